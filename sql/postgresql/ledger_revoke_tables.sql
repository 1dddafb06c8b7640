-- Purpose: nobody reads or writes the ledger but its owner and whom the owner names, whatever the defaults are
-- Inputs: none
-- Output: none
REVOKE ALL ON event, guarantee, pointer, alembic_version, release_history, version_guarantees, headroom_trend,
    current_version FROM PUBLIC
