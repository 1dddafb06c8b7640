-- Purpose: every role that a reader is, or can become, inherited or by SET ROLE
-- Inputs: readers (names)
-- Output: reader, role, oid, attribute (what lets the role read everything, or NULL)
SELECT
    CAST(reader.rolname AS text) AS reader,
    CAST(role.rolname AS text) AS role,
    role.oid AS oid,
    CASE
        WHEN role.rolsuper THEN 'is a superuser'
        WHEN role.rolreplication THEN 'may replicate the whole database'
        WHEN role.rolcreaterole AND current_setting('server_version_num')::int < 160000
            THEN 'may make itself a member of any role'
        WHEN role.rolname IN (
            'pg_read_all_data', 'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
            'pg_write_all_data', 'pg_maintain'
        ) THEN 'may reach every table or file of the server'
    END AS attribute
FROM pg_roles AS reader
JOIN pg_roles AS role ON reader.oid = role.oid OR (NOT reader.rolsuper AND pg_has_role(reader.oid, role.oid, 'MEMBER'))
WHERE reader.rolname = ANY(:readers)
ORDER BY 1, 2
