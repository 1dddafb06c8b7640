-- Purpose: nobody reads what is shown of whom, nor who waits, but the owner and whom the owner names
-- Inputs: none
-- Output: none
REVOKE ALL ON crosswalk_shown, crosswalk_waiting, crosswalk_steady FROM PUBLIC
