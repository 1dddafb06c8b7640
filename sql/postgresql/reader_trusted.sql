-- Purpose: the roles that may read something private themselves
-- Inputs: oids (of the private relations)
-- Output: oid, name, reads
SELECT
    role.oid,
    CAST(role.rolname AS text) AS name,
    role.rolsuper
    OR (role.rolcreaterole AND CAST(pg_catalog.current_setting('server_version_num') AS int) < 160000)
    OR EXISTS (
        SELECT 1
        FROM pg_catalog.pg_roles AS power
        WHERE power.rolname IN ('pg_read_server_files', 'pg_execute_server_program')
            AND pg_catalog.pg_has_role(role.oid, power.oid, 'USAGE')
    )
    OR EXISTS (
        SELECT 1
        FROM pg_catalog.pg_class AS class
        WHERE
            class.oid = ANY(:oids)
            AND (
                pg_catalog.has_any_column_privilege(role.oid, class.oid, 'SELECT')
                OR pg_catalog.pg_has_role(role.oid, class.relowner, 'USAGE')
            )
    ) AS reads
FROM pg_catalog.pg_roles AS role
