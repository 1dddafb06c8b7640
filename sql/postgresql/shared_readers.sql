-- Purpose: roles that can read two views, each granted to some roles; whoever may read the source anyway is left out
-- Inputs: mine, theirs (names of roles; PUBLIC is everybody), source (quoted name of the source's table)
-- Output: role, in order; roles that were granted both come first, and members of one of each last
SELECT CAST(role.rolname AS text) AS role
FROM pg_roles AS role
WHERE NOT role.rolsuper
  AND NOT coalesce(has_table_privilege(role.oid, to_regclass(:source), 'SELECT'), false)
  AND role.rolname NOT LIKE 'pg\_%'
  AND EXISTS (
      SELECT 1 FROM unnest(CAST(:mine AS text[])) AS granted (name)
      LEFT JOIN pg_roles AS reader ON reader.rolname = granted.name
      WHERE granted.name = 'PUBLIC' OR pg_has_role(role.oid, reader.oid, 'MEMBER')
  )
  AND EXISTS (
      SELECT 1 FROM unnest(CAST(:theirs AS text[])) AS granted (name)
      LEFT JOIN pg_roles AS reader ON reader.rolname = granted.name
      WHERE granted.name = 'PUBLIC' OR pg_has_role(role.oid, reader.oid, 'MEMBER')
  )
ORDER BY
    CAST(role.rolname = ANY(CAST(:mine AS text[])) AS int) + CAST(role.rolname = ANY(CAST(:theirs AS text[])) AS int) DESC,
    1
