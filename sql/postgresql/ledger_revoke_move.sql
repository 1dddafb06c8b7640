-- Purpose: nobody reads which releases were moved but the owner of the ledger and whom the owner names
-- Inputs: none
-- Output: none
REVOKE ALL ON release_move FROM PUBLIC
