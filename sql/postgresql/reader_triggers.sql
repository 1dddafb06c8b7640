-- Purpose: triggers that are not switched off, and what they run
-- Inputs: none
-- Output: oid (of the relation), relation (quoted), trigger (quoted), event, function (with its arguments), definer
-- (oid of the role that it runs as, or NULL), table_owner (oid)
SELECT
    class.oid,
    pg_catalog.format('%I.%I', place.nspname, class.relname) AS relation,
    pg_catalog.format('%I', trigger.tgname) AS trigger,
    event.name AS event,
    pg_catalog.format(
        '%I.%I(%s)', namespace.nspname, function.proname, pg_catalog.pg_get_function_identity_arguments(function.oid)
    ) AS function,
    CASE WHEN function.prosecdef THEN function.proowner END AS definer,
    class.relowner AS table_owner
FROM pg_catalog.pg_trigger AS trigger
JOIN pg_catalog.pg_class AS class ON class.oid = trigger.tgrelid
JOIN pg_catalog.pg_namespace AS place ON place.oid = class.relnamespace
JOIN pg_catalog.pg_proc AS function ON function.oid = trigger.tgfoid
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = function.pronamespace
JOIN (VALUES ('INSERT', 4), ('DELETE', 8), ('UPDATE', 16), ('TRUNCATE', 32)) AS event (name, bit)
    ON CAST(trigger.tgtype AS int) & event.bit <> 0
WHERE NOT trigger.tgisinternal AND trigger.tgenabled <> 'D'
ORDER BY 2, 3, 4
