-- Purpose: how many seconds ago an event was recorded
-- Inputs: event.recorded_at, a text in UTC, as is the epoch of a timestamp without a zone
-- Output: an expression
CAST(floor(extract(epoch FROM now()) - extract(epoch FROM CAST(event.recorded_at AS timestamp))) AS bigint)
