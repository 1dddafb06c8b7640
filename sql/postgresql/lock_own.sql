-- Purpose: whether the server session of this very statement holds an advisory lock
-- Inputs: key, the lock's 64-bit key; other, the pid of the server process that took it
-- Output: pid of the server process; word, what the session has written into it; held, whether it has the lock;
--         elsewhere, whether the server process that took it has it
SELECT
    pg_catalog.pg_backend_pid() AS pid,
    pg_catalog.current_setting('qblock.session', true) AS word,
    count(*) FILTER (WHERE pid = pg_catalog.pg_backend_pid()) > 0 AS held,
    count(*) FILTER (WHERE pid = :other) > 0 AS elsewhere
FROM pg_catalog.pg_locks
WHERE locktype = 'advisory'
  AND granted
  AND objsubid = 1
  AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) = CAST(:key AS bigint)
