-- Purpose: views that this login made as those of releases, which show what is published
-- Inputs: none
-- Output: oid
SELECT class.oid
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_catalog.pg_roles AS role ON role.oid = class.relowner AND role.rolname = current_user
WHERE
    class.relkind = 'v'
    AND EXISTS (
        SELECT 1
        FROM qblock.view AS known
        WHERE
            known.schema = namespace.nspname AND known.name = class.relname
            AND (known.object = class.oid OR known.comment = pg_catalog.obj_description(class.oid, 'pg_class'))
    )
