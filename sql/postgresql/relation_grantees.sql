-- Purpose: who but its owner has been given something on a relation or a column of it, by default privileges too
-- Inputs: oid of the relation
-- Output: grantee (NULL for PUBLIC), privilege, whole (false where it is on a column)
SELECT CAST(role.rolname AS text) AS grantee, acl.privilege_type AS privilege, given.whole
FROM pg_catalog.pg_class AS class
CROSS JOIN LATERAL (
    SELECT class.relacl AS acl, true AS whole
    UNION ALL
    SELECT attribute.attacl, false
    FROM pg_catalog.pg_attribute AS attribute
    WHERE attribute.attrelid = class.oid AND NOT attribute.attisdropped
) AS given
CROSS JOIN LATERAL pg_catalog.aclexplode(given.acl) AS acl
LEFT JOIN pg_catalog.pg_roles AS role ON role.oid = acl.grantee
WHERE class.oid = :oid AND acl.grantee <> class.relowner
