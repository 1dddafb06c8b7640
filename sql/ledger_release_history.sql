-- Purpose: what happened to each release, one row per transition, for a privacy officer
-- Inputs: none; tables of the ledger
-- Output: none; the view release_history
CREATE VIEW release_history AS
SELECT
    release,
    number,
    recorded_at,
    state,
    version,
    choice,
    protected AS protected_against_search,
    joint AS joint_check,
    quasi_identifiers,
    node,
    rows_source,
    rows_published,
    rows_suppressed,
    reason,
    view,
    detail,
    run,
    program_version,
    spec_digest,
    hierarchy_digest,
    content_digest,
    digest
FROM event
WHERE state <> 'kept'
