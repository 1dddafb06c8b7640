-- Purpose: nobody reads the crosswalk, which says who has which value, but its owner and whom the owner names
-- Inputs: none
-- Output: none
REVOKE ALL ON crosswalk_key, crosswalk_version, crosswalk, crosswalk_block, crosswalk_episode, crosswalk_signature,
    crosswalk_rolled, crosswalk_frozen FROM PUBLIC
