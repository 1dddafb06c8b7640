-- Purpose: what no reader may touch: the relations named, what they are made of, the private schema, and what shows them
-- Inputs: oids (of the relations named), private (schema), own (oids of the views of releases)
-- Output: oid, schema, name, kind (pg_class.relkind), owner (oid), over (whether it only shows one of the others), of
--   (the relation, quoted, whose long values it keeps, or NULL)
WITH RECURSIVE
edges AS (
    SELECT
        CAST('pg_catalog.pg_class' AS regclass) AS made_class,
        rule.ev_class AS made,
        dependency.refclassid AS from_class,
        dependency.refobjid AS from_oid,
        rule.ev_type = '1' AS shows
    FROM pg_catalog.pg_rewrite AS rule
    JOIN pg_catalog.pg_depend AS dependency
        ON dependency.classid = CAST('pg_catalog.pg_rewrite' AS regclass) AND dependency.objid = rule.oid
        AND dependency.refclassid IN (CAST('pg_catalog.pg_class' AS regclass), CAST('pg_catalog.pg_proc' AS regclass))
        AND dependency.refobjid <> rule.ev_class
    UNION
    -- Only of a function whose body is SQL and not a string.
    SELECT dependency.classid, dependency.objid, dependency.refclassid, dependency.refobjid, true
    FROM pg_catalog.pg_depend AS dependency
    WHERE
        dependency.classid = CAST('pg_catalog.pg_proc' AS regclass)
        AND dependency.refclassid IN (CAST('pg_catalog.pg_class' AS regclass), CAST('pg_catalog.pg_proc' AS regclass))
    UNION
    -- The TOAST table of a relation shows its long values.
    SELECT kind.class, class.reltoastrelid, kind.class, class.oid, true
    FROM pg_catalog.pg_class AS class
    CROSS JOIN (SELECT CAST('pg_catalog.pg_class' AS regclass) AS class) AS kind
    WHERE class.reltoastrelid <> 0
),
named (class, oid) AS (
    SELECT CAST('pg_catalog.pg_class' AS regclass), class.oid FROM pg_catalog.pg_class AS class
    WHERE class.oid = ANY(:oids)
    UNION
    SELECT further.class, further.oid
    FROM named
    CROSS JOIN LATERAL (
        SELECT edges.from_class AS class, edges.from_oid AS oid FROM edges
        WHERE edges.made_class = named.class AND edges.made = named.oid
        UNION ALL
        SELECT named.class, inherits.inhrelid FROM pg_catalog.pg_inherits AS inherits
        WHERE inherits.inhparent = named.oid AND named.class = CAST('pg_catalog.pg_class' AS regclass)
        UNION ALL
        SELECT named.class, inherits.inhparent FROM pg_catalog.pg_inherits AS inherits
        WHERE inherits.inhrelid = named.oid AND named.class = CAST('pg_catalog.pg_class' AS regclass)
    ) AS further
    WHERE further.oid <> ALL(:own)
),
tables AS (
    SELECT named.oid FROM named WHERE named.class = CAST('pg_catalog.pg_class' AS regclass)
    UNION
    SELECT class.oid
    FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = :private AND class.relkind IN ('r', 'p', 'v', 'm', 'f')
    UNION
    -- Values of every table, large objects, and secrets of logins.
    SELECT class.oid
    FROM pg_catalog.pg_class AS class
    WHERE
        class.relnamespace = CAST('pg_catalog' AS regnamespace)
        AND class.relname IN ('pg_statistic', 'pg_statistic_ext_data', 'pg_largeobject', 'pg_authid', 'pg_user_mapping')
),
closed AS (
    SELECT tables.oid FROM tables
    UNION
    SELECT class.reltoastrelid
    FROM tables
    JOIN pg_catalog.pg_class AS class ON class.oid = tables.oid
    WHERE class.reltoastrelid <> 0
),
readers AS (
    SELECT role.oid
    FROM pg_catalog.pg_roles AS role
    WHERE
        role.rolsuper
        OR EXISTS (
            SELECT 1 FROM closed WHERE pg_catalog.has_any_column_privilege(role.oid, closed.oid, 'SELECT')
        )
),
-- shown: with its own rights (D), by a definer function (S), or with the rights of whoever asks (I).
views (class, oid, shown) AS (
    SELECT CAST('pg_catalog.pg_class' AS regclass), closed.oid, 'D' FROM closed
    UNION
    -- A foreign table of a server that leads back to this database.
    SELECT CAST('pg_catalog.pg_class' AS regclass), back.ftrelid, 'D'
    FROM pg_catalog.pg_foreign_table AS back
    JOIN pg_catalog.pg_foreign_server AS server ON server.oid = back.ftserver
    JOIN pg_catalog.pg_foreign_data_wrapper AS wrapper ON wrapper.oid = server.srvfdw
    WHERE
        EXISTS (SELECT 1 FROM pg_catalog.pg_user_mappings AS mapping WHERE mapping.srvid = server.oid)
        AND CASE
            WHEN pg_catalog.array_to_string(server.srvoptions, ' ') ~ '(^| )dbname='
                THEN 'dbname=' || pg_catalog.current_database() = ANY(server.srvoptions)
            ELSE wrapper.fdwname IN ('postgres_fdw', 'dblink_fdw')
        END
    UNION
    -- What a function with a string for a body reads is not in the catalog.
    SELECT
        CAST('pg_catalog.pg_proc' AS regclass),
        function.oid,
        CASE WHEN function.prosecdef AND function.proowner IN (SELECT readers.oid FROM readers) THEN 'S' ELSE 'I' END
    FROM pg_catalog.pg_proc AS function
    WHERE
        function.prosqlbody IS NULL AND function.provolatile <> 'i' AND function.oid >= 16384
        AND NOT EXISTS (
            SELECT 1
            FROM pg_catalog.pg_depend AS dependency
            WHERE dependency.classid = CAST('pg_catalog.pg_proc' AS regclass) AND dependency.objid = function.oid
                AND dependency.deptype = 'e'
        )
    UNION
    SELECT edges.made_class, edges.made, CAST(step.shown AS text)
    FROM views
    JOIN edges ON edges.from_class = views.class AND edges.from_oid = views.oid AND edges.shows
    LEFT JOIN pg_catalog.pg_class AS class
        ON edges.made_class = CAST('pg_catalog.pg_class' AS regclass) AND class.oid = edges.made
    LEFT JOIN pg_catalog.pg_proc AS function
        ON edges.made_class = CAST('pg_catalog.pg_proc' AS regclass) AND function.oid = edges.made
    CROSS JOIN LATERAL (
        SELECT
            CASE
                WHEN function.oid IS NOT NULL AND function.prosecdef
                    AND function.proowner IN (SELECT readers.oid FROM readers) THEN 'S'
                WHEN function.oid IS NOT NULL THEN 'I'
                -- A materialized view is filled with the rights of its owner, whatever it asks.
                WHEN class.relkind = 'm' AND (
                    views.shown <> 'I' OR class.relowner IN (SELECT readers.oid FROM readers)
                ) THEN 'D'
                WHEN class.relkind = 'm' THEN NULL
                WHEN views.shown = 'D'
                    AND NOT coalesce(
                        pg_catalog.array_to_string(class.reloptions, ',') ~* 'security_invoker=(true|on|1|yes)', false
                    ) THEN 'D'
                ELSE 'I'
            END AS shown
    ) AS step
    WHERE
        step.shown IS NOT NULL
        AND edges.made <> ALL(:own)
        -- PostgreSQL's own views ask whoever reads them.
        AND coalesce(class.oid, function.oid) >= 16384
)
SELECT DISTINCT
    class.oid,
    CAST(namespace.nspname AS text) AS schema,
    CAST(class.relname AS text) AS name,
    CAST(class.relkind AS text) AS kind,
    class.relowner AS owner,
    class.oid NOT IN (SELECT closed.oid FROM closed) AS over,
    CASE WHEN main.oid IS NOT NULL THEN pg_catalog.format('%I.%I', place.nspname, main.relname) END AS of
FROM views
JOIN pg_catalog.pg_class AS class
    ON views.class = CAST('pg_catalog.pg_class' AS regclass) AND class.oid = views.oid AND views.shown = 'D'
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
LEFT JOIN pg_catalog.pg_class AS main ON main.reltoastrelid = class.oid
LEFT JOIN pg_catalog.pg_namespace AS place ON place.oid = main.relnamespace
WHERE
    namespace.nspname <> 'information_schema'
    AND (namespace.nspname <> 'pg_catalog' OR class.relname ~ '^pg_(statistic|largeobject|authid|user_mapping)')
ORDER BY 2, 3
