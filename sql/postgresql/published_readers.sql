-- Purpose: who may read the views of each release of the ledger: who was given SELECT on one, or on a column of it, and
--   its owner, but for one whose rights the job has
-- Inputs: none
-- Output: release, reader (name of a role; PUBLIC is everybody), back (the statement that takes it back), in order
SELECT DISTINCT
    known.release,
    CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE CAST(pg_catalog.pg_get_userbyid(given.grantee) AS text) END AS reader,
    CASE
        WHEN given.grantee = class.relowner THEN pg_catalog.format('ALTER VIEW %s OWNER TO %I', view.name, job.rolname)
        WHEN given.grantee = 0 THEN pg_catalog.format('REVOKE ALL ON %s FROM PUBLIC', view.name)
        ELSE pg_catalog.format('REVOKE ALL ON %s FROM %I', view.name, pg_catalog.pg_get_userbyid(given.grantee))
    END AS back
FROM qblock.view AS known
CROSS JOIN pg_catalog.pg_namespace AS namespace
JOIN pg_catalog.pg_roles AS job ON job.rolname = current_user
JOIN pg_catalog.pg_class AS class ON class.relnamespace = namespace.oid
CROSS JOIN LATERAL (SELECT pg_catalog.format('%I.%I', namespace.nspname, class.relname) AS name) AS view
CROSS JOIN LATERAL (
    SELECT acl.grantee, acl.privilege_type AS privilege
    FROM (
        SELECT class.relacl AS acl
        UNION ALL
        SELECT attribute.attacl
        FROM pg_catalog.pg_attribute AS attribute
        WHERE attribute.attrelid = class.oid AND NOT attribute.attisdropped
    ) AS list
    CROSS JOIN LATERAL pg_catalog.aclexplode(list.acl) AS acl
    WHERE acl.grantee <> class.relowner
    UNION ALL
    -- A superuser has the rights of everybody.
    SELECT class.relowner, 'SELECT'
    WHERE class.relowner <> job.oid AND (job.rolsuper OR NOT pg_catalog.pg_has_role(class.relowner, 'USAGE'))
) AS given
WHERE
    given.privilege = 'SELECT'
    AND class.relkind = 'v'
    AND (
        (known.schema = namespace.nspname AND known.name = class.relname)
        -- Under another name that somebody gave it.
        OR (known.object = class.oid AND known.comment = pg_catalog.obj_description(class.oid, 'pg_class'))
    )
ORDER BY 1, 2, 3
