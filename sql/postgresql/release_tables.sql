-- Purpose: the tables of a release in the private schema, newest first
-- Inputs: pattern, a regular expression that matches the names of the release's tables
-- Output: oid, name, columns (JSON list of [name, type]), used (columns that there have ever been), shown (whether a
--   view that stays reads it), comment (or NULL)
SELECT
    class.oid,
    CAST(class.relname AS text) AS name,
    (
        SELECT json_agg(json_build_array(attname, format_type(atttypid, atttypmod)) ORDER BY attnum)
        FROM pg_attribute
        WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    ) AS columns,
    class.relnatts AS used,
    EXISTS (
        SELECT 1
        FROM pg_depend AS depends
        JOIN pg_rewrite AS rule ON rule.oid = depends.objid
        JOIN pg_class AS view ON view.oid = rule.ev_class AND view.relpersistence <> 't'
        WHERE depends.classid = CAST('pg_rewrite' AS regclass)
          AND depends.refclassid = CAST('pg_class' AS regclass)
          AND depends.refobjid = class.oid
    ) AS shown,
    obj_description(class.oid, 'pg_class') AS comment
FROM pg_class AS class
WHERE class.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'qblock')
  AND class.relkind = 'r'
  AND class.relname ~ :pattern
ORDER BY class.oid DESC
