-- Purpose: what depends on a relation, so that it cannot be dropped: views, functions, rules, and what depends on these
-- Inputs: oid of the relation
-- Output: kind (view, materialized view, function, ...), identity (schema.name, quoted), owner (or NULL), oldest first
WITH RECURSIVE found (class, object) AS (
    SELECT CAST('pg_catalog.pg_class' AS regclass), CAST(:oid AS oid)
    UNION
    -- A rule stands for its view or table, and the row type of a relation for the relation.
    SELECT
        CAST(CASE
            WHEN depends.classid IN ('pg_catalog.pg_rewrite'::regclass, 'pg_catalog.pg_policy'::regclass)
                THEN 'pg_catalog.pg_class'::regclass
            ELSE depends.classid
        END AS regclass),
        coalesce(rule.ev_class, policy.polrelid, depends.objid)
    FROM found
    CROSS JOIN LATERAL (
        SELECT found.class, found.object
        UNION ALL
        SELECT 'pg_catalog.pg_type'::regclass, unnest(ARRAY[row.oid, row.typarray])
        FROM pg_catalog.pg_class AS of_rows
        JOIN pg_catalog.pg_type AS row ON row.oid = of_rows.reltype
        WHERE found.class = 'pg_catalog.pg_class'::regclass AND of_rows.oid = found.object
    ) AS referred
    JOIN pg_catalog.pg_depend AS depends
        ON depends.deptype = 'n' AND depends.refclassid = referred.class AND depends.refobjid = referred.object
    LEFT JOIN pg_catalog.pg_rewrite AS rule
        ON depends.classid = 'pg_catalog.pg_rewrite'::regclass AND rule.oid = depends.objid
    LEFT JOIN pg_catalog.pg_policy AS policy
        ON depends.classid = 'pg_catalog.pg_policy'::regclass AND policy.oid = depends.objid
)
SELECT
    named.type AS kind,
    named.identity,
    CAST(pg_catalog.pg_get_userbyid(coalesce(relation.relowner, routine.proowner, kind.typowner)) AS text) AS owner
FROM found
CROSS JOIN LATERAL pg_catalog.pg_identify_object(found.class, found.object, 0) AS named
LEFT JOIN pg_catalog.pg_class AS relation
    ON found.class = 'pg_catalog.pg_class'::regclass AND relation.oid = found.object
LEFT JOIN pg_catalog.pg_proc AS routine
    ON found.class = 'pg_catalog.pg_proc'::regclass AND routine.oid = found.object
LEFT JOIN pg_catalog.pg_type AS kind
    ON found.class = 'pg_catalog.pg_type'::regclass AND kind.oid = found.object
WHERE found.object <> CAST(:oid AS oid) AND named.identity IS NOT NULL
ORDER BY found.object
