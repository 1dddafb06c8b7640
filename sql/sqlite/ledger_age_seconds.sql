-- Purpose: how many seconds ago an event was recorded
-- Inputs: event.recorded_at; to the millisecond, of which a difference of days is a rounded fraction
-- Output: an expression
CAST(round((julianday('now') - julianday(event.recorded_at)) * 86400, 3) AS bigint)
