-- Purpose: whether the ledger keeps which views are those of releases, and this login may read that
-- Inputs: none
-- Output: one row where it does
SELECT 1
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE
    namespace.nspname = 'qblock' AND class.relname = 'view'
    AND pg_catalog.has_schema_privilege(namespace.oid, 'USAGE')
    AND pg_catalog.has_table_privilege(class.oid, 'SELECT')
