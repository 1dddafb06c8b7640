-- Purpose: which of some relations a role may write to
-- Inputs: oids (of the relations), roles (oids)
-- Output: role (oid), oid, event, owns (whether it is the role's by ownership)
SELECT role.oid AS role, class.oid AS oid, event.name AS event, mine.owns
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_roles AS role ON role.oid = ANY(:roles)
CROSS JOIN (VALUES ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS event (name)
CROSS JOIN LATERAL (SELECT pg_catalog.pg_has_role(role.oid, class.relowner, 'USAGE') AS owns) AS mine
WHERE
    class.oid = ANY(:oids)
    AND (
        mine.owns
        OR CASE
            WHEN event.name IN ('INSERT', 'UPDATE')
                THEN pg_catalog.has_any_column_privilege(role.oid, class.oid, event.name)
            ELSE pg_catalog.has_table_privilege(role.oid, class.oid, event.name)
        END
    )
ORDER BY 1, 2, 3
