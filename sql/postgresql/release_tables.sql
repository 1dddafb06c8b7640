-- Purpose: the tables that hold versions of a release, newest column list first
-- Inputs: pattern, a regular expression that matches the names of the release's tables
-- Output: oid, name, kind (p partitioned, r plain), columns (JSON list of [name, type]), key (the column that a
--   partitioned table is parted by, or NULL), used (columns that there have ever been), parent (of a partition, or
--   NULL), comment (or NULL)
SELECT
    class.oid,
    CAST(class.relname AS text) AS name,
    CAST(class.relkind AS text) AS kind,
    (
        SELECT json_agg(json_build_array(attname, format_type(atttypid, atttypmod)) ORDER BY attnum)
        FROM pg_attribute
        WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    ) AS columns,
    (
        SELECT CAST(keyed.attname AS text)
        FROM pg_partitioned_table AS parted
        JOIN pg_attribute AS keyed ON keyed.attrelid = parted.partrelid AND keyed.attnum = parted.partattrs[0]
        WHERE parted.partrelid = class.oid
    ) AS key,
    class.relnatts AS used,
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
