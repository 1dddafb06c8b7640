-- Purpose: the ledger event by which readers went from a version to another one, for the last time
-- Inputs: release, version
-- Output: number of the event
SELECT min(number) AS number
FROM qblock.event
WHERE release = :release
  AND state IN ('published', 'rolled_back')
  AND number > (
      SELECT max(number)
      FROM qblock.event
      WHERE release = :release AND version = :version AND state IN ('published', 'rolled_back')
  )
