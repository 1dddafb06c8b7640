-- Purpose: what the version of each release that readers see was asked and satisfied, as last checked
-- Inputs: none; tables of the ledger
-- Output: none; the view current_guarantees
CREATE VIEW current_guarantees AS
SELECT
    guarantee.release,
    shown.version,
    guarantee.model,
    guarantee.sensitive,
    guarantee.parameter,
    guarantee.asked,
    guarantee.satisfied,
    guarantee.margin,
    guarantee.holds,
    guarantee.stage,
    guarantee.parameters,
    guarantee.position
FROM guarantee
JOIN (
    SELECT event.release, event.version, max(event.number) AS number
    FROM event
    JOIN pointer ON pointer.release = event.release AND pointer.version = event.version
    WHERE event.state IN ('published', 'rolled_back')
    GROUP BY event.release, event.version
) AS shown ON shown.release = guarantee.release AND shown.number = guarantee.number
