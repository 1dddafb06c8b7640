-- Purpose: the schemas in which a name without one is found along the path that the login came with
-- Inputs: schemas (names, in order; they need not exist), name of the relation
-- Output: schema, in the order of the path; no row where none of them has it
SELECT CAST(namespace.nspname AS text) AS schema
FROM pg_catalog.unnest(CAST(:schemas AS text [])) WITH ORDINALITY AS path (schema, position)
JOIN pg_catalog.pg_namespace AS namespace ON namespace.nspname = path.schema
JOIN pg_catalog.pg_class AS class ON class.relnamespace = namespace.oid
WHERE class.relname = CAST(:name AS name) AND pg_catalog.has_schema_privilege(namespace.oid, 'USAGE')
ORDER BY path.position
