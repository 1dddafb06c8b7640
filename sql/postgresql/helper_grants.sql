-- Purpose: what a release's helper views lack of the grants on its view, and what they have beyond these
-- Inputs: schema, view, helpers (names of the helper views)
-- Output: name (of the helper view), grantee (NULL for PUBLIC), give (whether it is to be granted, or taken away)
WITH given AS (
    SELECT class.relname AS name, acl.grantee, acl.privilege_type AS privilege
    FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace AND namespace.nspname = :schema
    CROSS JOIN LATERAL pg_catalog.aclexplode(class.relacl) AS acl
    WHERE (class.relname = :view OR class.relname = ANY(:helpers)) AND acl.grantee <> class.relowner
),
there AS (
    SELECT class.relname AS name
    FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace AND namespace.nspname = :schema
    WHERE class.relname = ANY(:helpers)
),
wanted AS (
    SELECT there.name, given.grantee, given.privilege
    FROM there CROSS JOIN given
    WHERE given.name = :view AND given.privilege = 'SELECT'
),
held AS (SELECT given.name, given.grantee, given.privilege FROM given WHERE given.name <> :view)
SELECT CAST(found.name AS text) AS name, CAST(role.rolname AS text) AS grantee, found.give
FROM (
    SELECT lacking.name, lacking.grantee, true AS give FROM (SELECT * FROM wanted EXCEPT SELECT * FROM held) AS lacking
    UNION
    SELECT beyond.name, beyond.grantee, false FROM (SELECT * FROM held EXCEPT SELECT * FROM wanted) AS beyond
) AS found
LEFT JOIN pg_catalog.pg_roles AS role ON role.oid = found.grantee
ORDER BY found.give, 1, 2
