-- Purpose: privileges on relations, and on single columns of them
-- Inputs: oids (of the relations)
-- Output: oid, grantee (oid; 0 for PUBLIC), privilege, column (NULL for the whole relation)
SELECT class.oid, acl.grantee, acl.privilege_type AS privilege, CAST(NULL AS text) AS column
FROM pg_catalog.pg_class AS class
CROSS JOIN LATERAL pg_catalog.aclexplode(class.relacl) AS acl
WHERE class.oid = ANY(:oids) AND acl.grantee <> class.relowner
UNION ALL
SELECT class.oid, acl.grantee, acl.privilege_type, CAST(attribute.attname AS text)
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_attribute AS attribute ON attribute.attrelid = class.oid AND NOT attribute.attisdropped
CROSS JOIN LATERAL pg_catalog.aclexplode(attribute.attacl) AS acl
WHERE class.oid = ANY(:oids) AND acl.grantee <> class.relowner
ORDER BY 1, 2, 4, 3
