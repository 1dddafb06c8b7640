-- Purpose: the schema and name of a table or view, however a spec writes them
-- Inputs: name, quoted
-- Output: schema, name; no row where there is no such table
SELECT CAST(namespace.nspname AS text) AS schema, CAST(class.relname AS text) AS name
FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE class.oid = to_regclass(:name)
