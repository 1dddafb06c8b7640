-- Purpose: what was asked by each spec that a version was made by, for a privacy officer
-- Inputs: none; the table spec, and the ledger
-- Output: none; the view spec_texts
CREATE VIEW spec_texts AS
SELECT spec.digest AS spec_digest, spec.content, used.release, used.first_version, used.last_version
FROM spec
JOIN (
    SELECT release, spec_digest, min(version) AS first_version, max(version) AS last_version
    FROM event
    WHERE version IS NOT NULL AND spec_digest IS NOT NULL
    GROUP BY release, spec_digest
) AS used ON used.spec_digest = spec.digest
