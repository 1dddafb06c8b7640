-- Purpose: what a role owns of relations, before anything is granted
-- Inputs: role (a name, which need not exist), schemas and names (arrays of the same length; the relations need not exist)
-- Output: schema, name, oid, kind (pg_class.relkind), owner, owned (the role is its owner, or acts with the owner's
--   rights), columns (array of names), invoker (a view that reads with the rights of who asks), policies (row level
--   security is on); no row for a relation that does not exist
SELECT
    asked.schema,
    asked.name,
    class.oid,
    CAST(class.relkind AS text) AS kind,
    pg_catalog.pg_get_userbyid(class.relowner) AS owner,
    COALESCE(pg_catalog.pg_has_role(role.oid, class.relowner, 'USAGE'), FALSE) AS owned,
    ARRAY(
        SELECT CAST(attname AS text) FROM pg_catalog.pg_attribute
        WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    ) AS columns,
    COALESCE(
        (
            SELECT CAST(option_value AS boolean) FROM pg_catalog.pg_options_to_table(class.reloptions)
            WHERE option_name = 'security_invoker'
        ),
        FALSE
    ) AS invoker,
    class.relrowsecurity AS policies
FROM unnest(CAST(:schemas AS text []), CAST(:names AS text [])) AS asked (schema, name)
JOIN pg_catalog.pg_namespace AS namespace ON namespace.nspname = asked.schema
JOIN pg_catalog.pg_class AS class ON class.relnamespace = namespace.oid AND class.relname = asked.name
LEFT JOIN pg_catalog.pg_roles AS role ON role.rolname = :role
