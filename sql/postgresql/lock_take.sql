-- Purpose: take an advisory lock for this server session, and see in the same statement whether it has it
-- Inputs: key, the lock's 64-bit key; shared, whether it is shared
-- Output: pid of the server process; word, what the session has written into it; before, whether this server session
--         had the lock already, so that it was not taken again; taken, whether it was taken
WITH own AS MATERIALIZED (
    SELECT count(*) > 0 AS held
    FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory'
      AND granted
      AND objsubid = 1
      AND pid = pg_catalog.pg_backend_pid()
      AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
      AND (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) = CAST(:key AS bigint)
)
SELECT
    pg_catalog.pg_backend_pid() AS pid,
    pg_catalog.current_setting('qblock.session', true) AS word,
    own.held AS before,
    CASE
        WHEN own.held THEN false
        WHEN CAST(:shared AS boolean) THEN pg_catalog.pg_try_advisory_lock_shared(CAST(:key AS bigint))
        ELSE pg_catalog.pg_try_advisory_lock(CAST(:key AS bigint))
    END AS taken
FROM own
