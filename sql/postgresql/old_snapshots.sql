-- Purpose: whether a session may still see what a release showed before its last change
-- Inputs: release
-- Output: sessions, how many may
SELECT count(*) AS sessions
FROM pg_stat_activity
WHERE datname = current_database()
  AND pid <> pg_backend_pid()
  AND backend_xmin IS NOT NULL
  AND age(backend_xmin) >= (
      SELECT age(event.xmin)
      FROM qblock.event
      WHERE release = :release AND state IN ('published', 'rolled_back', 'retired_view')
      ORDER BY number DESC
      LIMIT 1
  )
