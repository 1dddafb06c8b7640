-- Purpose: nobody reads what helper views are made of, and what officers are shown, but the owner and whom it names
-- Inputs: none
-- Output: none
REVOKE ALL ON view, shown_columns, shown_levels, shown_version, shown_guarantees, spec, runs, refusals,
    current_guarantees, spec_texts FROM PUBLIC
