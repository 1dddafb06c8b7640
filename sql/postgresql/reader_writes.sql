-- Purpose: what writing to one relation does to others: rules, updatable views, partitions, foreign keys
-- Inputs: none
-- Output: oid, event, relation (quoted; what was written), owner (oid), by (rule, view, part, cascade; reference: it is
-- only looked into), name (of the rule or constraint, quoted, or NULL), to_oid, to_event (NULL for a reference)
WITH events (name, number) AS (VALUES ('UPDATE', '2'), ('INSERT', '3'), ('DELETE', '4')),
uses AS (
    SELECT DISTINCT rule.oid AS rule, rule.ev_class, rule.ev_type, rule.rulename, dependency.refobjid AS to_oid
    FROM pg_catalog.pg_rewrite AS rule
    JOIN pg_catalog.pg_depend AS dependency
        ON dependency.classid = CAST('pg_catalog.pg_rewrite' AS regclass) AND dependency.objid = rule.oid
        AND dependency.refclassid = CAST('pg_catalog.pg_class' AS regclass)
    WHERE rule.ev_enabled <> 'D'
),
found (oid, event, by, name, to_oid, to_event) AS (
    SELECT uses.ev_class, events.name, 'rule', pg_catalog.format('%I', uses.rulename), uses.to_oid, further.name
    FROM uses
    JOIN events ON events.number = CAST(uses.ev_type AS text)
    CROSS JOIN events AS further
    WHERE uses.to_oid <> uses.ev_class
    UNION
    -- Whether a view can be written to is not asked: for a foreign table that would load the code of its wrapper.
    SELECT uses.ev_class, events.name, 'view', NULL, uses.to_oid, events.name
    FROM uses
    JOIN pg_catalog.pg_class AS class ON class.oid = uses.ev_class AND class.relkind = 'v' AND class.oid >= 16384
    CROSS JOIN events
    WHERE
        uses.ev_type = '1' AND uses.to_oid <> uses.ev_class
        AND CASE
            WHEN events.name = 'DELETE' THEN pg_catalog.has_table_privilege(class.relowner, uses.to_oid, 'DELETE')
            ELSE pg_catalog.has_any_column_privilege(class.relowner, uses.to_oid, events.name)
        END
    UNION
    SELECT inherits.inhparent, event.name, 'part', NULL, inherits.inhrelid, event.further
    FROM pg_catalog.pg_inherits AS inherits
    JOIN pg_catalog.pg_class AS class ON class.oid = inherits.inhparent AND class.relkind IN ('r', 'p', 'f')
    JOIN (
        VALUES
        ('UPDATE', 'UPDATE', 'rp'), ('DELETE', 'DELETE', 'rp'), ('TRUNCATE', 'TRUNCATE', 'rp'),
        ('INSERT', 'INSERT', 'p'), ('UPDATE', 'INSERT', 'p'), ('UPDATE', 'DELETE', 'p')
    ) AS event (name, further, kinds) ON pg_catalog.strpos(event.kinds, CAST(class.relkind AS text)) > 0
    UNION
    SELECT key.confrelid, event.name, 'cascade', pg_catalog.format('%I', key.conname), key.conrelid, event.further
    FROM pg_catalog.pg_constraint AS key
    CROSS JOIN LATERAL (
        VALUES
        ('DELETE', CASE WHEN key.confdeltype = 'c' THEN 'DELETE' WHEN key.confdeltype IN ('n', 'd') THEN 'UPDATE' END),
        ('UPDATE', CASE WHEN key.confupdtype IN ('c', 'n', 'd') THEN 'UPDATE' END)
    ) AS event (name, further)
    WHERE key.contype = 'f' AND event.further IS NOT NULL
    UNION
    SELECT key.conrelid, event.name, 'reference', pg_catalog.format('%I', key.conname), key.confrelid, NULL
    FROM pg_catalog.pg_constraint AS key
    CROSS JOIN (VALUES ('INSERT'), ('UPDATE')) AS event (name)
    WHERE key.contype = 'f'
)
SELECT
    found.oid,
    found.event,
    pg_catalog.format('%I.%I', namespace.nspname, class.relname) AS relation,
    class.relowner AS owner,
    found.by,
    found.name,
    found.to_oid,
    found.to_event
FROM found
JOIN pg_catalog.pg_class AS class ON class.oid = found.oid
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
ORDER BY 3, 2, 5, 6, 7, 8
