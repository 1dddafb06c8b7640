-- Purpose: whether a session may still see the state from before a ledger event, and so an older version
-- Inputs: release, number of the event
-- Output: sessions, how many may
SELECT count(*) AS sessions
FROM pg_stat_activity
WHERE datname = current_database()
  AND pid <> pg_backend_pid()
  AND backend_xmin IS NOT NULL
  AND age(backend_xmin) >= (SELECT age(event.xmin) FROM qblock.event WHERE release = :release AND number = :number)
