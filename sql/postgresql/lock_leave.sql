-- Purpose: leave an advisory lock once, if the server session of this very statement holds it
-- Inputs: key, the lock's 64-bit key; shared, whether it is shared
-- Output: left, true where it was held and left; no row where this session does not hold it
WITH own AS MATERIALIZED (
    SELECT mode
    FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory'
      AND granted
      AND objsubid = 1
      AND pid = pg_catalog.pg_backend_pid()
      AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
      AND (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) = CAST(:key AS bigint)
      AND mode = CASE WHEN CAST(:shared AS boolean) THEN 'ShareLock' ELSE 'ExclusiveLock' END
)
SELECT
    CASE
        WHEN CAST(:shared AS boolean) THEN pg_catalog.pg_advisory_unlock_shared(CAST(:key AS bigint))
        ELSE pg_catalog.pg_advisory_unlock(CAST(:key AS bigint))
    END AS "left"
FROM own
