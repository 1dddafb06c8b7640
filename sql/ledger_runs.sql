-- Purpose: each run of each release in one row, as it ended, for a privacy officer
-- Inputs: none; tables of the ledger
-- Output: none; the view runs
CREATE VIEW runs AS
SELECT
    release,
    run,
    began_at,
    recorded_at AS ended_at,
    state AS outcome,
    version,
    rows_source,
    rows_published,
    rows_suppressed,
    choice,
    protected AS protected_against_search,
    joint AS joint_check,
    reason,
    readers,
    audience,
    view,
    program_version,
    spec_digest,
    number
FROM (
    SELECT
        event.*,
        min(recorded_at) OVER (PARTITION BY release, run) AS began_at,
        rank() OVER (PARTITION BY release, run ORDER BY number DESC) AS newest_first
    FROM event
    WHERE state <> 'kept'
) AS events
WHERE newest_first = 1
