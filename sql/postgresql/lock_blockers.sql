-- Purpose: the sessions whose locks keep a lock of this session waiting, longest first as far as the login may see it
-- Inputs: mode, the lock that is asked for (a mode of pg_locks, or `row`: rows of the relations); oids of the relations
-- Output: pid (NULL: a prepared transaction), role (or NULL), kind (of session), state, transaction_start, query_start
--   (NULL where the login may not see them)
WITH conflict (asked, held) AS (
    VALUES
    ('AccessShareLock', ARRAY['AccessExclusiveLock']),
    ('RowExclusiveLock', ARRAY['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock']),
    ('row', ARRAY['RowShareLock', 'RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
        'AccessExclusiveLock']),
    ('ShareUpdateExclusiveLock', ARRAY['ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock',
        'ExclusiveLock', 'AccessExclusiveLock']),
    ('ShareLock', ARRAY['RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
        'AccessExclusiveLock']),
    ('AccessExclusiveLock', ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock', 'ShareUpdateExclusiveLock',
        'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'])
)
SELECT DISTINCT
    lock.pid,
    CAST(activity.usename AS text) AS role,
    activity.backend_type AS kind,
    activity.state,
    activity.xact_start AS transaction_start,
    activity.query_start
FROM pg_catalog.pg_locks AS lock
JOIN conflict ON conflict.asked = :mode AND lock.mode = ANY (conflict.held)
LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = lock.pid
WHERE lock.granted
    AND lock.locktype = 'relation'
    AND lock.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    AND lock.relation = ANY (:oids)
    AND lock.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
ORDER BY transaction_start NULLS LAST, pid
