-- Purpose: who but its owner has been given something on a relation, by default privileges too
-- Inputs: oid of the relation
-- Output: grantee (NULL for PUBLIC), privilege
SELECT CAST(role.rolname AS text) AS grantee, acl.privilege_type AS privilege
FROM pg_catalog.pg_class AS class
CROSS JOIN LATERAL pg_catalog.aclexplode(class.relacl) AS acl
LEFT JOIN pg_catalog.pg_roles AS role ON role.oid = acl.grantee
WHERE class.oid = :oid AND acl.grantee <> class.relowner
