-- Purpose: keep a secret for the digests of entities where there is none; of two jobs that do so at once, one wins
-- Inputs: secret
-- Output: none
INSERT INTO crosswalk_key (id, secret) VALUES (1, :secret) ON CONFLICT DO NOTHING
