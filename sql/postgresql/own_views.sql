-- Purpose: views that this login made as those of releases, which show what is published
-- Inputs: mark (how the comment begins on views from before `qblock.view`)
-- Output: oid
SELECT class.oid
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_catalog.pg_roles AS role ON role.oid = class.relowner AND role.rolname = current_user
CROSS JOIN LATERAL (SELECT pg_catalog.obj_description(class.oid, 'pg_class') AS comment) AS said
WHERE
    class.relkind = 'v'
    AND (
        said.comment LIKE :mark
        OR EXISTS (
            SELECT 1
            FROM qblock.view AS known
            WHERE
                known.schema = namespace.nspname AND known.name = class.relname
                AND (known.object = class.oid OR known.comment = said.comment)
        )
    )
