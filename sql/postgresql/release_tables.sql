-- Purpose: the tables that hold versions of a release, newest column list first
-- Inputs: pattern, a regular expression that matches the names of the release's tables
-- Output: name, kind (p partitioned, r plain), columns (JSON list of [name, type]), parent (of a partition, or NULL),
--   comment (or NULL)
SELECT
    CAST(class.relname AS text) AS name,
    CAST(class.relkind AS text) AS kind,
    (
        SELECT json_agg(json_build_array(attname, format_type(atttypid, atttypmod)) ORDER BY attnum)
        FROM pg_attribute
        WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    ) AS columns,
    (
        SELECT CAST(parent.relname AS text)
        FROM pg_inherits JOIN pg_class AS parent ON parent.oid = pg_inherits.inhparent
        WHERE pg_inherits.inhrelid = class.oid
    ) AS parent,
    obj_description(class.oid, 'pg_class') AS comment
FROM pg_class AS class
WHERE class.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'qblock')
  AND class.relkind IN ('p', 'r')
  AND class.relname ~ :pattern
ORDER BY class.oid DESC
