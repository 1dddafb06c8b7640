-- Purpose: functions that run with the rights of somebody else, or outside the server's rules, and who may call them
-- Inputs: roles (oids)
-- Output: role (oid), function (with its arguments), runs_as (oid of a role, or NULL: as the server itself), by (how:
-- call, component of an aggregate, support of types and operators, event trigger), name (of the aggregate or event
-- trigger, or NULL), language. What needs no EXECUTE has role 0
WITH
-- Given to nobody at first: each reads files of the server, or pages of tables, or logs in as the server's own user.
server AS (
    SELECT CAST(pg_catalog.unnest(ARRAY[
        'pg_read_file', 'pg_read_binary_file', 'pg_read_file_all', 'pg_read_binary_file_all', 'pg_file_write',
        'lo_import', 'lo_export', 'dblink_connect_u', 'pg_get_wal_record_info', 'pg_get_wal_records_info',
        'pg_get_wal_block_info'
    ]) AS name) AS name
),
functions AS (
    SELECT
        function.*,
        pg_catalog.format(
            '%I.%I(%s)', namespace.nspname, function.proname, pg_catalog.pg_get_function_identity_arguments(function.oid)
        ) AS signature,
        CAST(language.lanname AS text) AS language,
        NOT language.lanpltrusted AND function.prokind <> 'a' AND function.oid >= 16384 AND NOT EXISTS (
            SELECT 1
            FROM pg_catalog.pg_depend AS dependency
            WHERE dependency.classid = CAST('pg_catalog.pg_proc' AS regclass) AND dependency.objid = function.oid
                AND dependency.deptype = 'e'
        ) AS untrusted
    FROM pg_catalog.pg_proc AS function
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = function.pronamespace
    JOIN pg_catalog.pg_language AS language ON language.oid = function.prolang
    WHERE function.prosecdef OR function.oid >= 16384 OR function.proname = ANY(ARRAY(SELECT server.name FROM server))
),
components AS (
    SELECT aggregate.aggfnoid, aggregate.component
    FROM (
        SELECT
            CAST(aggregate.aggfnoid AS oid) AS aggfnoid,
            CAST(pg_catalog.unnest(ARRAY[
                aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn, aggminvtransfn, aggmfinalfn
            ]) AS oid) AS component
        FROM pg_catalog.pg_aggregate AS aggregate
    ) AS aggregate
    WHERE aggregate.component <> 0 AND aggregate.aggfnoid >= 16384
),
supports AS (
    SELECT CAST(amproc AS oid) AS oid FROM pg_catalog.pg_amproc
    UNION
    SELECT CAST(pg_catalog.unnest(ARRAY[rngcanonical, rngsubdiff]) AS oid) FROM pg_catalog.pg_range
    UNION
    SELECT CAST(pg_catalog.unnest(ARRAY[
        typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze
    ]) AS oid) FROM pg_catalog.pg_type
)
SELECT
    role.oid AS role,
    function.signature AS function,
    CASE WHEN function.prosecdef THEN function.proowner END AS runs_as,
    'call' AS by,
    CAST(NULL AS text) AS name,
    function.language
FROM functions AS function
JOIN pg_catalog.pg_roles AS role ON role.oid = ANY(:roles)
WHERE
    (
        function.prosecdef
        OR function.untrusted
        OR function.proname IN (SELECT server.name FROM server) AND function.language IN ('c', 'internal')
    )
    -- Whatever its schema: a view or a default calls it by number. An event trigger can be called by nobody.
    AND function.prorettype <> CAST('pg_catalog.event_trigger' AS regtype)
    AND pg_catalog.has_function_privilege(role.oid, function.oid, 'EXECUTE')
UNION ALL
-- For its components, the owner of the aggregate is asked.
SELECT role.oid, function.signature, function.proowner, 'component', aggregate.signature, function.language
FROM components
JOIN functions AS function ON function.oid = components.component AND function.prosecdef
JOIN functions AS aggregate ON aggregate.oid = components.aggfnoid
JOIN pg_catalog.pg_roles AS role ON role.oid = ANY(:roles)
WHERE pg_catalog.has_function_privilege(role.oid, aggregate.oid, 'EXECUTE')
UNION ALL
SELECT 0, function.signature, function.proowner, 'support', NULL, function.language
FROM functions AS function
WHERE function.prosecdef AND function.oid IN (SELECT supports.oid FROM supports)
UNION ALL
SELECT 0, function.signature, function.proowner, 'event trigger', CAST(trigger.evtname AS text), function.language
FROM pg_catalog.pg_event_trigger AS trigger
JOIN functions AS function ON function.oid = trigger.evtfoid AND function.prosecdef
WHERE trigger.evtenabled <> 'D'
ORDER BY 2, 1, 4
