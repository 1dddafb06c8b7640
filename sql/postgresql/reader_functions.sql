-- Purpose: functions that run with the rights of an owner who may read what no reader may, and that a role may call
-- Inputs: roles (oids), oids (of the relations)
-- Output: role (oid), function (with its arguments), owner (name)
SELECT
    role.oid AS role,
    CAST(CAST(function.oid AS regprocedure) AS text) AS function,
    CAST(owner.rolname AS text) AS owner
FROM pg_proc AS function
JOIN pg_roles AS owner ON owner.oid = function.proowner
JOIN pg_roles AS role ON role.oid = ANY(:roles)
WHERE
    function.prosecdef
    -- Whatever its schema: a view or a default calls it by number. An event trigger can be called by nobody.
    AND function.prorettype <> CAST('event_trigger' AS regtype)
    AND has_function_privilege(role.oid, function.oid, 'EXECUTE')
    AND (
        owner.rolsuper
        OR EXISTS (
            SELECT 1
            FROM pg_class AS class
            WHERE class.oid = ANY(:oids) AND has_any_column_privilege(owner.oid, class.oid, 'SELECT')
        )
    )
ORDER BY 2, 1
