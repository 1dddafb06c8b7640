-- Purpose: what a role owns and may hand on of schemas, before anything is granted
-- Inputs: role (a name, which need not exist), schemas (names, which need not exist)
-- Output: name, oid, owner, owned (the role is its owner, or acts with the owner's rights), grants (the role may grant
--   USAGE); no row for a schema that does not exist
SELECT
    CAST(namespace.nspname AS text) AS name,
    namespace.oid,
    pg_catalog.pg_get_userbyid(namespace.nspowner) AS owner,
    COALESCE(pg_catalog.pg_has_role(role.oid, namespace.nspowner, 'USAGE'), FALSE) AS owned,
    COALESCE(pg_catalog.has_schema_privilege(role.oid, namespace.oid, 'USAGE WITH GRANT OPTION'), FALSE) AS grants
FROM pg_catalog.pg_namespace AS namespace
LEFT JOIN pg_catalog.pg_roles AS role ON role.rolname = :role
WHERE namespace.nspname = ANY(CAST(:schemas AS text []))
