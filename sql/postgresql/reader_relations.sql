-- Purpose: what no reader may touch: the relations named, what they are made of, the private schema, and views on them
-- Inputs: oids (of the relations named), private (schema), mark (how the comment on a release's own view begins)
-- Output: oid, schema, name, kind (pg_class.relkind), owner (oid), over (whether it is a view on one of the others)
WITH RECURSIVE
uses AS (
    SELECT rule.ev_class AS made, dependency.refobjid AS from_oid
    FROM pg_rewrite AS rule
    JOIN pg_depend AS dependency
        ON dependency.classid = 'pg_rewrite'::regclass AND dependency.objid = rule.oid
        AND dependency.refclassid = 'pg_class'::regclass AND dependency.refobjid <> rule.ev_class
),
own AS (
    SELECT class.oid
    FROM pg_class AS class
    JOIN pg_roles AS role ON role.oid = class.relowner AND role.rolname = current_user
    WHERE class.relkind = 'v' AND obj_description(class.oid, 'pg_class') LIKE :mark
),
named AS (
    SELECT class.oid FROM pg_class AS class WHERE class.oid = ANY(:oids)
    UNION
    SELECT further.oid
    FROM named
    CROSS JOIN LATERAL (
        SELECT uses.from_oid AS oid FROM uses WHERE uses.made = named.oid
        UNION ALL
        SELECT inherits.inhrelid FROM pg_inherits AS inherits WHERE inherits.inhparent = named.oid
        UNION ALL
        SELECT inherits.inhparent FROM pg_inherits AS inherits WHERE inherits.inhrelid = named.oid
    ) AS further
    WHERE further.oid NOT IN (SELECT own.oid FROM own)
),
closed AS (
    SELECT named.oid FROM named
    UNION
    SELECT class.oid
    FROM pg_class AS class
    JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = :private AND class.relkind IN ('r', 'p', 'v', 'm', 'f')
),
views AS (
    SELECT closed.oid FROM closed
    UNION
    SELECT uses.made
    FROM views
    JOIN uses ON uses.from_oid = views.oid
    JOIN pg_class AS class ON class.oid = uses.made
    WHERE uses.made NOT IN (SELECT own.oid FROM own)
        -- Such a view reads with the rights of whoever asks.
        AND NOT coalesce(array_to_string(class.reloptions, ',') ~* 'security_invoker=(true|on|1|yes)', false)
)
SELECT
    class.oid,
    CAST(namespace.nspname AS text) AS schema,
    CAST(class.relname AS text) AS name,
    CAST(class.relkind AS text) AS kind,
    class.relowner AS owner,
    class.oid NOT IN (SELECT closed.oid FROM closed) AS over
FROM views
JOIN pg_class AS class ON class.oid = views.oid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname NOT IN ('pg_catalog', 'information_schema') AND namespace.nspname !~ '^pg_toast'
ORDER BY 2, 3
