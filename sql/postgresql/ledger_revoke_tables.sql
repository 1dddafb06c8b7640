-- Purpose: nobody reads or writes ledger and crosswalk, which says who has which value, nor what helper views are made of,
-- but the owner and whom the owner names, whatever the defaults are
-- Inputs: none
-- Output: none
REVOKE ALL ON event, guarantee, pointer, reference, release_move, begun, spec, alembic_version, release_history,
    version_guarantees, margin_trend, current_version, runs, refusals, current_guarantees, spec_texts, crosswalk_key,
    crosswalk_version, crosswalk, crosswalk_block, crosswalk_episode, crosswalk_signature, crosswalk_rolled,
    crosswalk_frozen, crosswalk_apart, crosswalk_turnover, crosswalk_rekeyed, crosswalk_shown, crosswalk_waiting,
    crosswalk_steady, crosswalk_cohort, view, shown_columns, shown_levels, shown_version, shown_guarantees,
    shown_spread FROM PUBLIC
