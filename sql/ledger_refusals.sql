-- Purpose: runs that published nothing, with why and what to do, for a privacy officer
-- Inputs: none; the view runs
-- Output: none; the view refusals
CREATE VIEW refusals AS
SELECT release, run, ended_at AS refused_at, outcome, version, reason, view, spec_digest, number
FROM runs
WHERE outcome IN ('refused', 'failed')
