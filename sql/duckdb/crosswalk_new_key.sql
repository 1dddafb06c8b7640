-- Purpose: keep a secret for the digests of entities where there is none, in a file that one process has open
-- Inputs: secret
-- Output: none
INSERT INTO crosswalk_key (id, secret) SELECT 1, CAST(:secret AS VARCHAR) WHERE NOT EXISTS (SELECT 1 FROM crosswalk_key)
