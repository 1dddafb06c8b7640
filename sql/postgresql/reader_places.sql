-- Purpose: who could put something else in the place of what the job reads, or alter code that others run
-- Inputs: oids (of the private relations), roles (oids), schema and view (of the release), private (schema)
-- Output: role (oid), does (what it can), remedy (a statement)
SELECT
    namespace.nspowner AS role,
    pg_catalog.format('owns schema %I, and could put something else in the place of what the job reads there', namespace.nspname) AS does,
    pg_catalog.format('ALTER SCHEMA %I OWNER TO %I', namespace.nspname, current_user) AS remedy
FROM pg_catalog.pg_namespace AS namespace
WHERE
    namespace.nspowner = ANY(:roles)
    AND (
        namespace.nspname IN (:private, :schema)
        OR namespace.oid IN (SELECT class.relnamespace FROM pg_catalog.pg_class AS class WHERE class.oid = ANY(:oids))
    )
UNION ALL
SELECT
    acl.grantee,
    pg_catalog.format('may create something in the private schema %I', namespace.nspname),
    pg_catalog.format(
        'REVOKE CREATE ON SCHEMA %I FROM %s',
        namespace.nspname,
        CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.format('%I', pg_catalog.pg_get_userbyid(acl.grantee)) END
    )
FROM pg_catalog.pg_namespace AS namespace
CROSS JOIN LATERAL pg_catalog.aclexplode(namespace.nspacl) AS acl
WHERE
    namespace.nspname = :private AND acl.privilege_type = 'CREATE' AND acl.grantee = ANY(:roles)
    AND acl.grantee <> namespace.nspowner
UNION ALL
SELECT
    class.relowner,
    pg_catalog.format('owns the view %I.%I, which the job reads', namespace.nspname, class.relname),
    pg_catalog.format('DROP VIEW %I.%I', namespace.nspname, class.relname)
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = :schema AND class.relname = :view AND class.relkind = 'v' AND class.relowner = ANY(:roles)
    AND class.oid <> ALL(:oids)
UNION ALL
SELECT DISTINCT
    function.proowner,
    pg_catalog.format('owns the function %s, which runs with the rights of whoever uses %s', name.signature, used.by),
    pg_catalog.format('ALTER ROUTINE %s OWNER TO %I', name.signature, used.owner)
FROM (
    SELECT trigger.tgfoid AS function, pg_catalog.format('%I.%I', namespace.nspname, class.relname) AS by,
        pg_catalog.pg_get_userbyid(class.relowner) AS owner
    FROM pg_catalog.pg_trigger AS trigger
    JOIN pg_catalog.pg_class AS class ON class.oid = trigger.tgrelid AND class.oid = ANY(:oids)
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE trigger.tgenabled <> 'D'
    UNION ALL
    SELECT trigger.evtfoid, pg_catalog.format('this database (event trigger %I)', trigger.evtname),
        pg_catalog.pg_get_userbyid(trigger.evtowner)
    FROM pg_catalog.pg_event_trigger AS trigger
    WHERE trigger.evtenabled <> 'D'
    UNION ALL
    SELECT dependency.refobjid, pg_catalog.format('%I.%I', namespace.nspname, class.relname),
        pg_catalog.pg_get_userbyid(class.relowner)
    FROM (
        SELECT CAST('pg_catalog.pg_rewrite' AS regclass) AS kind, oid, ev_class AS relation FROM pg_catalog.pg_rewrite
        UNION ALL
        SELECT CAST('pg_catalog.pg_attrdef' AS regclass), oid, adrelid FROM pg_catalog.pg_attrdef
        UNION ALL
        SELECT CAST('pg_catalog.pg_constraint' AS regclass), oid, conrelid FROM pg_catalog.pg_constraint
        UNION ALL
        -- A domain's constraint belongs to every table with a column of it.
        SELECT CAST('pg_catalog.pg_constraint' AS regclass), oid, attribute.attrelid
        FROM pg_catalog.pg_constraint
        JOIN pg_catalog.pg_attribute AS attribute ON attribute.atttypid = contypid AND contypid <> 0
        UNION ALL
        SELECT CAST('pg_catalog.pg_policy' AS regclass), oid, polrelid FROM pg_catalog.pg_policy
        UNION ALL
        SELECT CAST('pg_catalog.pg_class' AS regclass), indexrelid, indrelid FROM pg_catalog.pg_index
    ) AS part
    JOIN pg_catalog.pg_depend AS dependency
        ON dependency.classid = part.kind AND dependency.objid = part.oid
        AND dependency.refclassid = CAST('pg_catalog.pg_proc' AS regclass)
    JOIN pg_catalog.pg_class AS class ON class.oid = part.relation AND class.oid = ANY(:oids)
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
) AS used
JOIN pg_catalog.pg_proc AS function ON function.oid = used.function AND function.proowner = ANY(:roles)
JOIN pg_catalog.pg_namespace AS place ON place.oid = function.pronamespace
CROSS JOIN LATERAL (
    SELECT pg_catalog.format(
        '%I.%I(%s)', place.nspname, function.proname, pg_catalog.pg_get_function_identity_arguments(function.oid)
    ) AS signature
) AS name
ORDER BY 2
