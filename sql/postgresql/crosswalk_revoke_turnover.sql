-- Purpose: nobody reads who waits or is gone, nor which key is new, but the owner and whom the owner names
-- Inputs: none
-- Output: none
REVOKE ALL ON crosswalk_turnover, crosswalk_rekeyed FROM PUBLIC
