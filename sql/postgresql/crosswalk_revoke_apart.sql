-- Purpose: nobody reads who was set apart but the owner and whom the owner names
-- Inputs: none
-- Output: none
REVOKE ALL ON crosswalk_apart FROM PUBLIC
