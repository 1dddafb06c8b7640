-- Purpose: nobody reads which versions were begun but the owner and whom the owner names
-- Inputs: none
-- Output: none
REVOKE ALL ON begun FROM PUBLIC
