"""What somebody can put into a schema to have it run by others: everything there calls one function that counts."""

from __future__ import annotations

import psycopg

READY = """
CREATE SCHEMA trap;
CREATE SEQUENCE trap.ran;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
GRANT ALL ON SEQUENCE trap.ran TO PUBLIC;
"""
"""A sequence counts calls of transactions that are rolled back, too; in one that only reads the call is an error."""

SPRING = """
CREATE FUNCTION {schema}.spring() RETURNS boolean LANGUAGE plpgsql VOLATILE AS
$$ BEGIN PERFORM pg_catalog.nextval(CAST('trap.ran' AS pg_catalog.regclass)); RETURN true; END $$;
"""

EVERYTHING = """
DO $do$
DECLARE
    one record;
    made integer := 0;
    changed pg_catalog.text;
    body pg_catalog.text := 'BEGIN PERFORM {schema}.spring(); RETURN NULL; END';
BEGIN
    -- every function and aggregate of the catalog that plpgsql can imitate, and the same for varchar, which ours find
    -- to fit better than those for text
    FOR one IN
        SELECT
            proname AS name,
            pg_catalog.oidvectortypes(proargtypes) AS arguments,
            pg_catalog.format_type(prorettype, NULL) AS result
        FROM pg_catalog.pg_proc
        JOIN pg_catalog.pg_type AS result ON result.oid = prorettype
        WHERE pronamespace = 11 AND NOT proretset AND prokind IN ('f', 'a', 'w') AND result.typtype = 'b'
            AND NOT EXISTS (
                SELECT FROM pg_catalog.unnest(proargtypes) AS argument (oid)
                JOIN pg_catalog.pg_type AS type ON type.oid = argument.oid WHERE type.typtype <> 'b'
            )
            AND proname ~ '{functions}'
    LOOP
        FOREACH changed IN ARRAY ARRAY[
            one.arguments, pg_catalog.replace(one.arguments, 'text', 'character varying'),
            pg_catalog.replace(one.arguments, 'text', 'name'), pg_catalog.replace(one.arguments, 'name', 'text'),
            pg_catalog.replace(one.arguments, 'name', 'character varying')
        ] LOOP
            BEGIN
                EXECUTE pg_catalog.format('CREATE FUNCTION {schema}.%I(%s) RETURNS %s LANGUAGE plpgsql VOLATILE AS %L',
                    one.name, changed, one.result, body);
                made := made + 1;
            EXCEPTION WHEN duplicate_function OR undefined_object THEN
                NULL;
            END;
        END LOOP;
    END LOOP;
    -- operators on every pair of the types that ours compare and join
    FOR one IN
        SELECT sign, one_type, other_type, pg_catalog.format('spring_%s', pg_catalog.row_number() OVER ()) AS name
        FROM pg_catalog.unnest(ARRAY['=', '<>', '<', '>', '>=', '||', '+', '-', '~', '<<', '|']) AS sign,
            pg_catalog.unnest(ARRAY['text', 'varchar', 'name', 'bpchar', 'int4', 'int8', 'oid', '"char"']) AS one_type,
            pg_catalog.unnest(ARRAY['text', 'varchar', 'name', 'bpchar', 'int4', 'int8', 'oid', '"char"']) AS other_type
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION {schema}.%I(pg_catalog.%s, pg_catalog.%s) RETURNS %s LANGUAGE plpgsql VOLATILE AS %L',
            one.name, one.one_type, one.other_type,
            CASE WHEN one.sign IN ('||', '+', '-', '<<', '|') THEN one.one_type ELSE 'pg_catalog.bool' END, body);
        EXECUTE pg_catalog.format(
            'CREATE OPERATOR {schema}.%s (FUNCTION = {schema}.%I, LEFTARG = pg_catalog.%s, RIGHTARG = pg_catalog.%s)',
            one.sign, one.name, one.one_type, one.other_type);
        made := made + 1;
    END LOOP;
    -- every relation of the catalog, and ours
    FOR one IN
        SELECT relname AS name, pg_catalog.string_agg(pg_catalog.quote_ident(attname), ', ' ORDER BY attnum) AS columns
        FROM pg_catalog.pg_class
        JOIN pg_catalog.pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND atttypid <> 2277  -- anyarray
        WHERE relnamespace = 11 AND relkind IN ('r', 'v') AND relname !~ '^pg_statistic'
        GROUP BY relname
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE VIEW {schema}.%I AS SELECT %s FROM pg_catalog.%I WHERE {schema}.spring()',
            one.name, one.columns, one.name);
        made := made + 1;
    END LOOP;
    FOREACH changed IN ARRAY ARRAY[
        'event', 'guarantee', 'reference', 'pointer', 'alembic_version', 'version_guarantees', 'release_history',
        'crosswalk', 'crosswalk_key', 'crosswalk_version', 'crosswalk_block', 'crosswalk_episode', 'crosswalk_apart',
        'crosswalk_signature', 'crosswalk_rolled', 'crosswalk_frozen', 'qblock_raw', 'qblock_leaf', 'qblock_copy',
        'qblock_joint_0', 'qblock_joint_1', 'qblock_set_0', 'columns', 'tables'
    ] LOOP
        EXECUTE pg_catalog.format(
            'CREATE VIEW {schema}.%I AS SELECT 1 AS id, 1 AS version, 1 AS number, %L AS release, %L AS secret, '
            '%L AS version_num, %L AS entity WHERE {schema}.spring()', changed, 'people', 'known', '0001', 'person 1');
        made := made + 1;
    END LOOP;
    -- a cast to text is a name, too
    FOREACH changed IN ARRAY ARRAY['text', 'name', 'oid', 'regclass', 'regtype', 'regprocedure', 'bytea'] LOOP
        EXECUTE pg_catalog.format(
            'CREATE DOMAIN {schema}.%I AS pg_catalog.%I CHECK ({schema}.spring())', changed, changed);
        made := made + 1;
    END LOOP;
    IF made < 1000 THEN
        RAISE EXCEPTION 'only % traps', made;
    END IF;
END
$do$
"""
FUNCTIONS = (
    "^(convert_to|sha256|md5|encode|decode|left|right|length|octet_length|replace|split_part|substr|concat|lower|upper"
    "|count|sum|min|max|string_agg|lag|version|current_schema|set_config|current_setting|to_regclass|format_type|pg_.*"
    "|has_.*_privilege|obj_description|array_to_string|age|now|floor|timezone|row_security_active|text|varchar|name"
    "|int4|int8|numeric|bpchar|oidvectortypes|abs|round|unnest|aclexplode|json_.*|nextval|random|any_value)$"
)


def set_traps(url: str, schema: str) -> None:
    """Fill a schema, as a login that may create in it."""
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path TO pg_catalog")
        connection.execute(SPRING.format(schema=schema))
        connection.execute(EVERYTHING.format(schema=schema, functions=FUNCTIONS))
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO PUBLIC")


def calls(url: str) -> int:
    """How often one of them ran."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM trap.ran").fetchone()
    assert found is not None
    return int(found[0])
