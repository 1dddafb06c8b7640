-- Purpose: a session of another run that holds an advisory lock of this database, or one that stands in for it (of the
--   same upper half); a login that may not write the ledger, nor become one that may, has no run, whatever it has locked
-- Inputs: half, the upper half of the lock's key; shared, whether the lock is wanted shared; own, the pid of this session
-- Output: pid of the server process of this very statement; word, what the session has written into it; holder (pid),
--   role, application_name, backend_start (NULL where the login may not see it) of the other one, or NULL; one row
WITH private AS (
    SELECT namespace.oid AS schema, class.oid AS ledger
    FROM pg_catalog.pg_namespace AS namespace
    LEFT JOIN pg_catalog.pg_class AS class ON class.relnamespace = namespace.oid AND class.relname = 'event'
    WHERE namespace.nspname = 'qblock'
),
held AS (
    SELECT DISTINCT lock.pid
    FROM pg_catalog.pg_locks AS lock
    WHERE
        lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1 AND lock.pid <> CAST(:own AS int)
        AND lock.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
        AND CAST(lock.classid AS bigint) = CAST(:half AS bigint)
        AND (lock.mode = 'ExclusiveLock' OR NOT CAST(:shared AS boolean))
),
rivals AS (
    SELECT held.pid, activity.usesysid, activity.application_name, activity.backend_start
    FROM held
    -- Asked after the locks were read: a session that is not there has ended.
    CROSS JOIN LATERAL pg_catalog.pg_stat_get_activity(held.pid) AS activity
    WHERE
        activity.usesysid = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user)
        OR EXISTS (
            SELECT 1
            FROM pg_catalog.pg_roles AS role
            LEFT JOIN private ON true
            WHERE
                pg_catalog.pg_has_role(activity.usesysid, role.oid, 'MEMBER')
                -- Whoever may make the ledger, where there is none.
                AND coalesce(
                    pg_catalog.has_table_privilege(role.oid, private.ledger, 'INSERT'),
                    pg_catalog.has_schema_privilege(role.oid, private.schema, 'CREATE'),
                    pg_catalog.has_database_privilege(role.oid, pg_catalog.current_database(), 'CREATE')
                )
        )
)
SELECT
    pg_catalog.pg_backend_pid() AS pid,
    pg_catalog.current_setting('qblock.session', true) AS word,
    rivals.pid AS holder,
    CAST(pg_catalog.pg_get_userbyid(rivals.usesysid) AS text) AS role,
    rivals.application_name,
    rivals.backend_start
FROM (VALUES (1)) AS always (one)
LEFT JOIN rivals ON true
ORDER BY rivals.application_name LIKE 'qblock %' DESC NULLS LAST, rivals.pid
LIMIT 1
