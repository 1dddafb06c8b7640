-- Purpose: the private schema is closed to PUBLIC; where another owns it, only a notice says that nothing was revoked
-- Inputs: none
-- Output: none
REVOKE ALL ON SCHEMA qblock FROM PUBLIC
