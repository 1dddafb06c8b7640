-- Purpose: which privileges roles have, by themselves, through roles that they inherit, or as PUBLIC
-- Inputs: arrays of the same length: roles (names, which need not exist), kinds (database, schema, relation, column),
--   oids of the objects, columns (names that exist, or empty), privileges
-- Output: held, one row for each of them, in their order
SELECT
    COALESCE(
        CASE asked.kind
            WHEN 'database' THEN pg_catalog.has_database_privilege(role.oid, CAST(asked.oid AS oid), asked.privilege)
            WHEN 'schema' THEN pg_catalog.has_schema_privilege(role.oid, CAST(asked.oid AS oid), asked.privilege)
            WHEN 'relation' THEN pg_catalog.has_table_privilege(role.oid, CAST(asked.oid AS oid), asked.privilege)
            ELSE pg_catalog.has_column_privilege(role.oid, CAST(asked.oid AS oid), asked.column_name, asked.privilege)
        END,
        FALSE
    ) AS held
FROM unnest(
    CAST(:roles AS text []), CAST(:kinds AS text []), CAST(:oids AS bigint []), CAST(:columns AS text []),
    CAST(:privileges AS text [])
) WITH ORDINALITY AS asked (role, kind, oid, column_name, privilege, position)
LEFT JOIN pg_catalog.pg_roles AS role ON role.rolname = asked.role
ORDER BY asked.position
