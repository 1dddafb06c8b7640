-- Purpose: the session that holds an advisory lock of this database, as far as the login may see it
-- Inputs: key, the lock's 64-bit key
-- Output: pid of the server process, own (whether it is this session), application_name, backend_start
SELECT
    activity.pid,
    activity.pid = pg_backend_pid() AS own,
    activity.application_name,
    activity.backend_start
FROM pg_locks AS held
JOIN pg_stat_activity AS activity ON activity.pid = held.pid
WHERE held.locktype = 'advisory'
  AND held.granted
  AND held.objsubid = 1
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (CAST(held.classid AS bigint) << 32) | CAST(held.objid AS bigint) = :key
