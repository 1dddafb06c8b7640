-- Purpose: the version of each release that readers see, how old it is, and whether the spec calls that stale
-- Inputs: an age in seconds, which is put in (ledger_age_seconds); tables of the ledger
-- Output: none; the view current_version
CREATE VIEW current_version AS
SELECT
    release,
    version,
    recorded_at AS published_at,
    age_seconds,
    age_seconds > stale_after AS stale,
    view,
    quasi_identifiers,
    node,
    choice,
    protected AS protected_against_search,
    joint AS joint_check,
    rows_source,
    rows_published,
    rows_suppressed,
    content_digest,
    digest
FROM (
    SELECT
        event.*,
        {age_seconds} AS age_seconds,
        rank() OVER (PARTITION BY event.release ORDER BY event.number DESC) AS newest_first
    FROM event
    JOIN pointer ON pointer.release = event.release AND pointer.version = event.version
    WHERE event.state IN ('published', 'rolled_back')
) AS publications
WHERE newest_first = 1
