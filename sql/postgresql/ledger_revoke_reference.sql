-- Purpose: nobody reads the reference quantities of a version but the owner and whom the owner names
-- Inputs: none
-- Output: none
REVOKE ALL ON reference FROM PUBLIC
