-- Purpose: the schemas in which a name without one is found along the path that the login came with
-- Inputs: schemas (names, in order; they need not exist), name of the relation
-- Output: schema, trusted (the owner of what stands there is the login, the database's owner or a superuser); in the
-- order of the path; no row where none of them has it
SELECT
    CAST(namespace.nspname AS text) AS schema,
    owner.rolsuper OR owner.rolname = current_user OR owner.oid = own.datdba AS trusted
FROM pg_catalog.unnest(CAST(:schemas AS text [])) WITH ORDINALITY AS path (schema, position)
JOIN pg_catalog.pg_namespace AS namespace ON namespace.nspname = path.schema
JOIN pg_catalog.pg_class AS class ON class.relnamespace = namespace.oid
JOIN pg_catalog.pg_roles AS owner ON owner.oid = class.relowner
JOIN pg_catalog.pg_database AS own ON own.datname = pg_catalog.current_database()
WHERE class.relname = CAST(:name AS name) AND pg_catalog.has_schema_privilege(namespace.oid, 'USAGE')
ORDER BY path.position
