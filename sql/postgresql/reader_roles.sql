-- Purpose: every role that a reader is, has the rights of, can become, or can give itself
-- Inputs: readers (names)
-- Output: reader, role, oid, attribute (what lets the role read everything, or NULL), option (of ALTER ROLE that takes
-- it away, or NULL), cuts (array of two names, role and member: the memberships by which the reader has the role)
WITH RECURSIVE
edges AS (
    SELECT
        membership.member,
        membership.roleid AS role,
        -- Since PostgreSQL 16.
        coalesce(CAST(pg_catalog.to_jsonb(membership) ->> 'set_option' AS boolean), true) AS becomes,
        coalesce(CAST(pg_catalog.to_jsonb(membership) ->> 'inherit_option' AS boolean), true) AS inherits,
        membership.admin_option AS gives
    FROM pg_catalog.pg_auth_members AS membership
    UNION ALL
    SELECT database.datdba, role.oid, true, true, false
    FROM pg_catalog.pg_database AS database
    JOIN pg_catalog.pg_roles AS role ON role.rolname = 'pg_database_owner'
    WHERE database.datname = pg_catalog.current_database()
),
held (reader, role, becomes) AS (
    SELECT role.oid, role.oid, true FROM pg_catalog.pg_roles AS role WHERE role.rolname = ANY(:readers)
    UNION
    SELECT held.reader, edges.role, step.becomes
    FROM held
    JOIN edges ON edges.member = held.role
    CROSS JOIN (VALUES (true), (false)) AS step (becomes)
    WHERE CASE WHEN step.becomes THEN edges.gives OR (held.becomes AND edges.becomes) ELSE edges.inherits END
),
roles AS (SELECT DISTINCT held.reader, held.role FROM held)
SELECT
    CAST(reader.rolname AS text) AS reader,
    CAST(role.rolname AS text) AS role,
    role.oid AS oid,
    power.attribute,
    power.option,
    ARRAY(
        SELECT ARRAY[CAST(given.rolname AS text), CAST(member.rolname AS text)]
        FROM edges
        JOIN roles AS had ON had.reader = roles.reader AND had.role = edges.member
        JOIN pg_catalog.pg_roles AS given ON given.oid = edges.role
        JOIN pg_catalog.pg_roles AS member ON member.oid = edges.member
        WHERE
            member.oid >= 16384 AND given.rolname <> 'pg_database_owner'
            AND (given.oid = role.oid OR (given.oid < 16384 AND pg_catalog.pg_has_role(given.oid, role.oid, 'MEMBER')
                AND NOT given.rolsuper))
        ORDER BY 1
    ) AS cuts
FROM roles
JOIN pg_catalog.pg_roles AS reader ON reader.oid = roles.reader
JOIN pg_catalog.pg_roles AS role ON role.oid = roles.role
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN role.rolsuper THEN 'is a superuser'
            WHEN role.rolreplication THEN 'may replicate the whole database'
            WHEN role.rolcreaterole AND CAST(pg_catalog.current_setting('server_version_num') AS int) < 160000
                THEN 'may make itself a member of any role'
            WHEN role.rolname = 'pg_read_all_stats' THEN 'may read the text of everybody''s statements'
            WHEN role.rolname IN (
                'pg_read_all_data', 'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
                'pg_write_all_data', 'pg_maintain'
            ) THEN 'may reach every table or file of the server'
            WHEN role.rolname = current_user THEN 'is the login of the job'
        END AS attribute,
        CASE
            WHEN role.rolsuper THEN 'NOSUPERUSER'
            WHEN role.rolreplication THEN 'NOREPLICATION'
            WHEN role.rolcreaterole AND CAST(pg_catalog.current_setting('server_version_num') AS int) < 160000 THEN 'NOCREATEROLE'
        END AS option
) AS power
ORDER BY 1, 2
