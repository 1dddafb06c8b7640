-- Purpose: who may create functions and tables in a schema of the job's search path, or such a schema itself
-- Inputs: schemas (names, in order; they need not exist), readers (names of roles)
-- Output: schema, exists (whether it does), role (NULL for PUBLIC), database (this one); in the order of the path
SELECT path.schema, namespace.oid IS NOT NULL AS exists, given.role, current_database() AS database
FROM unnest(CAST(:schemas AS text [])) WITH ORDINALITY AS path (schema, position)
LEFT JOIN pg_namespace AS namespace ON namespace.nspname = path.schema
JOIN pg_database AS own ON own.datname = current_database()
CROSS JOIN LATERAL (
    SELECT CAST(NULL AS text) AS role
    FROM aclexplode(
        CASE
            WHEN namespace.oid IS NULL THEN coalesce(own.datacl, acldefault('d', own.datdba))
            ELSE coalesce(namespace.nspacl, acldefault('n', namespace.nspowner))
        END
    ) AS acl
    WHERE acl.grantee = 0 AND acl.privilege_type = 'CREATE'
    UNION ALL
    SELECT CAST(reader.rolname AS text)
    FROM pg_roles AS reader
    WHERE
        reader.rolname = ANY(CAST(:readers AS text []))
        AND CASE
            WHEN namespace.oid IS NULL THEN has_database_privilege(reader.oid, own.oid, 'CREATE')
            ELSE has_schema_privilege(reader.oid, namespace.oid, 'CREATE')
        END
) AS given
ORDER BY path.position, given.role NULLS FIRST
