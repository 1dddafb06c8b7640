-- Purpose: views that this login made as those of releases, where the ledger does not keep which these are yet
-- Inputs: mark (how the comment on them begins)
-- Output: oid
SELECT class.oid
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_roles AS role ON role.oid = class.relowner AND role.rolname = current_user
WHERE class.relkind = 'v' AND pg_catalog.obj_description(class.oid, 'pg_class') LIKE :mark
