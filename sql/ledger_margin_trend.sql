-- Purpose: how the margin between asked and satisfied changes from one published version to the next
-- Inputs: none; the view version_guarantees (last check of each version from its own copy)
-- Output: none; the view margin_trend, margin and its change since the version before
CREATE VIEW margin_trend AS
SELECT
    release,
    model,
    sensitive,
    parameters,
    parameter,
    version,
    recorded_at,
    asked,
    satisfied,
    margin,
    margin - lag(margin) OVER (
        PARTITION BY release, model, sensitive, parameters, parameter ORDER BY version
    ) AS margin_change
FROM (
    SELECT
        version_guarantees.*,
        rank() OVER (
            PARTITION BY release, version, model, sensitive, parameters, parameter ORDER BY number DESC, position DESC
        ) AS newest_first
    FROM version_guarantees
    WHERE stage = 'recheck'
) AS checks
WHERE newest_first = 1
