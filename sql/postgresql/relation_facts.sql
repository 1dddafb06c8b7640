-- Purpose: what names of a schema stand for, to tell a release's own view from anything else
-- Inputs: schema, names
-- Output: oid, kind (pg_class.relkind), columns (JSON list of [name, type], or NULL), definition (of a view), options
--   (array or NULL), comment (or NULL), name
SELECT
    class.oid,
    CAST(class.relkind AS text) AS kind,
    (
        SELECT pg_catalog.json_agg(
            pg_catalog.json_build_array(attname, pg_catalog.format_type(atttypid, atttypmod)) ORDER BY attnum
        )
        FROM pg_catalog.pg_attribute
        WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    ) AS columns,
    CASE WHEN class.relkind = 'v' THEN pg_catalog.pg_get_viewdef(class.oid) END AS definition,
    class.reloptions AS options,
    pg_catalog.obj_description(class.oid, 'pg_class') AS comment,
    CAST(class.relname AS text) AS name
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = :schema AND class.relname = ANY(:names)
