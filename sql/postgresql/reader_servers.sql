-- Purpose: foreign servers that lead back to this database, with a mapping by which a role logs in there
-- Inputs: roles (oids)
-- Output: role (oid), server (quoted), mapped (name of the mapped role, quoted, or PUBLIC)
SELECT DISTINCT
    role.oid AS role,
    pg_catalog.format('%I', server.srvname) AS server,
    CASE WHEN mapping.umuser = 0 THEN 'PUBLIC' ELSE pg_catalog.format('%I', mapping.usename) END AS mapped
FROM pg_catalog.pg_foreign_server AS server
JOIN pg_catalog.pg_foreign_data_wrapper AS wrapper ON wrapper.oid = server.srvfdw
JOIN pg_catalog.pg_user_mappings AS mapping ON mapping.srvid = server.oid
JOIN pg_catalog.pg_roles AS role ON role.oid = ANY(:roles) AND mapping.umuser IN (0, role.oid)
WHERE
    pg_catalog.has_server_privilege(role.oid, server.oid, 'USAGE')
    AND CASE
        WHEN pg_catalog.array_to_string(server.srvoptions, ' ') ~ '(^| )dbname='
            THEN 'dbname=' || pg_catalog.current_database() = ANY(server.srvoptions)
        ELSE wrapper.fdwname IN ('postgres_fdw', 'dblink_fdw')
    END
ORDER BY 2, 1, 3
