-- Purpose: what was asked of each version that was ever published, and what it satisfied, at each check of it
-- Inputs: none; tables of the ledger
-- Output: none; the view version_guarantees
CREATE VIEW version_guarantees AS
SELECT
    event.release,
    event.version,
    event.number,
    event.recorded_at,
    guarantee.stage,
    guarantee.position,
    guarantee.model,
    guarantee.sensitive,
    guarantee.parameters,
    guarantee.parameter,
    guarantee.asked,
    guarantee.satisfied,
    guarantee.satisfied_number,
    guarantee.attained,
    guarantee.margin,
    guarantee.holds
FROM guarantee
JOIN event ON event.release = guarantee.release AND event.number = guarantee.number
WHERE EXISTS (
    SELECT 1
    FROM event AS publication
    WHERE publication.release = event.release
      AND publication.version = event.version
      AND publication.state IN ('published', 'rolled_back')
)
