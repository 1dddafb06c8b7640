"""Ways from a reader to the source that no privilege on it opens: how each is set up and shown.

Statements are run by the owner of the source, a superuser; those of `shows` by the reader, and what they print or
answer holds a value of the source. {reader}, {staff}, {owner} are roles.
"""

from __future__ import annotations

from dataclasses import dataclass

VALUE = "person 3"
NOTICE = "RAISE NOTICE '%', (SELECT string_agg(name, ',') FROM public.people)"
TRIGGER = (
    f"CREATE FUNCTION peek() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN {NOTICE}; "
    "RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END; END$$"
)
CLOSED = "REVOKE EXECUTE ON FUNCTION peek() FROM PUBLIC"
NOTES = "CREATE TABLE notes (a int)"
ON_NOTES = "CREATE TRIGGER fired BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION peek()"
INSERT = "GRANT INSERT ON notes TO {reader}"
INVOKER = "CREATE VIEW asked WITH (security_invoker = true) AS SELECT name FROM people"
STRING = "CREATE FUNCTION peek() RETURNS SETOF text LANGUAGE sql AS 'SELECT name FROM public.people'"
CELLS = "CREATE FUNCTION peek(state text, value int) RETURNS text LANGUAGE sql SECURITY DEFINER AS "
CELLS += "'SELECT string_agg(name, '','') FROM public.people'"

LONG = (
    "ALTER TABLE people ADD note text",
    "ALTER TABLE people ALTER note SET STORAGE EXTERNAL",
    "UPDATE people SET note = repeat(name || ' ', 500)",
)


def beside(table: str, statement: str, into: str = "") -> str:
    """A statement about the table of long values of another one, which stands for %s in it."""
    of = f"(SELECT CAST(reltoastrelid AS regclass) FROM pg_class WHERE oid = CAST('{table}' AS regclass))"
    return f"DO $$DECLARE told text; BEGIN EXECUTE format('{statement}', {of}){into}; END$$"


def chunks(table: str) -> str:
    """The long values of a table, read where they are kept."""
    read = "SELECT string_agg(encode(chunk_data, ''escape''), '''') FROM %s"
    return beside(table, read, " INTO told; RAISE NOTICE '%', told")


@dataclass(frozen=True)
class Way:
    """closed: how many statements the advice offers; each alone must close the way."""

    setup: tuple[str, ...]
    shows: tuple[str, ...]
    says: str
    closed: int = 1


WAYS = {
    "trigger": Way(
        (TRIGGER, CLOSED, NOTES, ON_NOTES, INSERT),
        ("INSERT INTO notes VALUES (1)",),
        r"may write \(INSERT\) to public.notes, where public.peek\(\) of trigger fired .*runs with the rights of",
        3,
    ),
    "trigger_on_one_column": Way(
        (
            TRIGGER,
            CLOSED,
            NOTES,
            "INSERT INTO notes VALUES (1)",
            "CREATE TRIGGER fired AFTER UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION peek()",
            "GRANT UPDATE (a) ON notes TO PUBLIC",
        ),
        ("UPDATE notes SET a = 2",),
        r"may write \(UPDATE\)",
        3,
    ),
    "trigger_of_truncate": Way(
        (
            TRIGGER,
            CLOSED,
            NOTES,
            "CREATE TRIGGER fired BEFORE TRUNCATE ON notes EXECUTE FUNCTION peek()",
            "GRANT TRUNCATE ON notes TO {reader}",
        ),
        ("TRUNCATE notes",),
        r"may write \(TRUNCATE\)",
        3,
    ),
    "trigger_on_a_partition": Way(
        (
            TRIGGER,
            CLOSED,
            "CREATE TABLE notes (a int) PARTITION BY LIST (a)",
            "CREATE TABLE part PARTITION OF notes DEFAULT",
            "CREATE TRIGGER fired BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION peek()",
            INSERT,
        ),
        ("INSERT INTO notes VALUES (1)",),
        "may write .* to public.notes, where public.peek.* on public.part",
        3,
    ),
    "trigger_on_a_child": Way(
        (
            TRIGGER,
            CLOSED,
            NOTES,
            "CREATE TABLE part () INHERITS (notes)",
            "INSERT INTO part VALUES (1)",
            "CREATE TRIGGER fired BEFORE DELETE ON part FOR EACH ROW EXECUTE FUNCTION peek()",
            "GRANT DELETE ON notes TO {reader}",
        ),
        ("DELETE FROM notes",),
        r"may write \(DELETE\) to public.notes",
        3,
    ),
    "trigger_instead_of": Way(
        (
            TRIGGER,
            CLOSED,
            "CREATE VIEW notes AS SELECT 1 AS a",
            "CREATE TRIGGER fired INSTEAD OF INSERT ON notes FOR EACH ROW EXECUTE FUNCTION peek()",
            INSERT,
        ),
        ("INSERT INTO notes VALUES (1)",),
        "may write .* to public.notes",
        3,
    ),
    "trigger_behind_a_view": Way(
        (
            TRIGGER,
            CLOSED,
            NOTES,
            ON_NOTES,
            "CREATE VIEW open AS SELECT * FROM notes",
            "GRANT INSERT ON open TO {reader}",
        ),
        ("INSERT INTO open VALUES (1)",),
        "may write .* to public.open, where public.peek.* on public.notes",
        3,
    ),
    "trigger_behind_a_rule": Way(
        (
            TRIGGER,
            CLOSED,
            NOTES,
            ON_NOTES,
            "CREATE TABLE first (a int)",
            "CREATE RULE also AS ON INSERT TO first DO ALSO INSERT INTO notes VALUES (NEW.a)",
            "GRANT INSERT ON first TO {reader}",
        ),
        ("INSERT INTO first VALUES (1)",),
        "may write .* to public.first, where public.peek.* on public.notes",
        3,
    ),
    "trigger_behind_a_foreign_key": Way(
        (
            # It is no definer: what a foreign key does, it does as the owner of the table.
            TRIGGER.replace(" SECURITY DEFINER", ""),
            "CREATE TABLE first (a int PRIMARY KEY)",
            "CREATE TABLE notes (a int REFERENCES first ON DELETE CASCADE)",
            "INSERT INTO first VALUES (1)",
            "INSERT INTO notes VALUES (1)",
            "CREATE TRIGGER fired BEFORE DELETE ON notes FOR EACH ROW EXECUTE FUNCTION peek()",
            "GRANT DELETE ON first TO {reader}",
        ),
        ("DELETE FROM first",),
        "may write .* to public.first, where public.peek.* on public.notes",
        2,
    ),
    "rule": Way(
        (NOTES, "CREATE RULE also AS ON INSERT TO notes DO INSTEAD SELECT name FROM people", INSERT),
        ("INSERT INTO notes VALUES (1)",),
        "may write .* to public.notes, where rule also on public.notes runs with the rights of",
        2,
    ),
    "foreign_key": Way(
        (
            "ALTER TABLE people ADD UNIQUE (name)",
            "CREATE TABLE notes (name text CONSTRAINT known REFERENCES people (name))",
            INSERT,
        ),
        (
            "DO $$BEGIN INSERT INTO notes VALUES ('nobody'); EXCEPTION WHEN foreign_key_violation THEN "
            f"INSERT INTO notes VALUES ('{VALUE}'); RAISE NOTICE '{VALUE} is there'; END$$",
        ),
        "where foreign key known tells which values",
        2,
    ),
    "event_trigger": Way(
        (
            "CREATE FUNCTION peek() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"AS $$BEGIN {NOTICE}; END$$",
            CLOSED,
            "CREATE EVENT TRIGGER fired ON ddl_command_start EXECUTE FUNCTION peek()",
        ),
        ("DROP TABLE IF EXISTS nothing",),
        r"everybody \(PUBLIC\) can fire event trigger fired",
        2,
    ),
    "copy_of_an_invoker_view": Way(
        (INVOKER, "CREATE MATERIALIZED VIEW kept AS SELECT * FROM asked", "GRANT SELECT ON kept TO {reader}"),
        ("SELECT * FROM kept",),
        "SELECT on materialized view over it .*kept",
    ),
    "copy_of_views_of_mixed_kinds": Way(
        (
            "CREATE VIEW deep AS SELECT name FROM people",
            "CREATE VIEW middle WITH (security_invoker) AS SELECT * FROM deep",
            "CREATE VIEW upper AS SELECT * FROM middle",
            "CREATE MATERIALIZED VIEW kept AS SELECT * FROM upper",
            "CREATE VIEW shown AS SELECT * FROM kept",
            "GRANT SELECT ON shown TO {reader}",
        ),
        ("SELECT * FROM shown",),
        "SELECT on view over it .*shown",
    ),
    "copy_of_a_function": Way(
        (
            "CREATE FUNCTION peek() RETURNS SETOF text LANGUAGE sql BEGIN ATOMIC SELECT name FROM people; END",
            "CREATE MATERIALIZED VIEW kept AS SELECT * FROM peek() AS name",
            "GRANT SELECT ON kept TO {reader}",
        ),
        ("SELECT * FROM kept",),
        "SELECT on materialized view over it .*kept",
    ),
    "copy_of_a_function_that_is_a_string": Way(
        (STRING, "CREATE MATERIALIZED VIEW kept AS SELECT * FROM peek() AS name", "GRANT SELECT ON kept TO {reader}"),
        ("SELECT * FROM kept",),
        "SELECT on materialized view over it .*kept",
    ),
    "definer_of_a_definer": Way(
        (
            STRING.replace("LANGUAGE sql", "LANGUAGE sql SECURITY DEFINER"),
            CLOSED,
            "GRANT EXECUTE ON FUNCTION peek() TO {staff}",
            "CREATE FUNCTION outer_peek() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER "
            "AS 'SELECT * FROM public.peek()'",
            "ALTER FUNCTION outer_peek() OWNER TO {staff}",
        ),
        ("SELECT * FROM outer_peek()",),
        r"may call public.outer_peek\(\), which runs with the rights of {staff}",
    ),
    "procedure": Way(
        (f"CREATE PROCEDURE peek() LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN {NOTICE}; END$$",),
        ("CALL peek()",),
        r"may call public.peek\(\); *|may call public.peek\(\), which runs",
    ),
    "aggregate": Way(
        (
            CELLS,
            "REVOKE EXECUTE ON FUNCTION peek(text, int) FROM PUBLIC",
            "CREATE AGGREGATE gather(int) (SFUNC = peek, STYPE = text)",
        ),
        ("SELECT gather(1)",),
        r"may call aggregate public.gather\(integer\), whose public.peek",
        2,
    ),
    "support_of_an_index": Way(
        (
            "CREATE TYPE pair AS (a int)",
            "CREATE FUNCTION below(pair, pair) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'",
            "CREATE OPERATOR <<< (LEFTARG = pair, RIGHTARG = pair, FUNCTION = below)",
            f"CREATE FUNCTION peek(pair, pair) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN {NOTICE}; "
            "RETURN 0; END$$",
            "REVOKE EXECUTE ON FUNCTION peek(pair, pair) FROM PUBLIC",
            "CREATE OPERATOR CLASS pairs FOR TYPE pair USING btree AS OPERATOR 1 <<<, FUNCTION 1 peek(pair, pair)",
        ),
        (
            "CREATE TEMPORARY TABLE sorted (p pair)",
            "CREATE INDEX ON sorted (p pairs)",
            "INSERT INTO sorted VALUES (row(1)), (row(2))",
        ),
        r"everybody \(PUBLIC\) uses public.peek\(public\.pair, public\.pair\)",
    ),
    "file_of_the_table": Way(
        ("GRANT EXECUTE ON FUNCTION pg_read_binary_file(text) TO {reader}", "CHECKPOINT"),
        ("SELECT encode(pg_read_binary_file(pg_relation_filepath('people')), 'escape')",),
        r"may call pg_catalog.pg_read_binary_file\(text\), which is in language internal",
    ),
    "untrusted_language": Way(
        (
            "CREATE FUNCTION peek(text) RETURNS bytea LANGUAGE internal STRICT AS 'pg_read_binary_file_all'",
            "CHECKPOINT",
        ),
        ("SELECT encode(peek(pg_relation_filepath('people')), 'escape')",),
        r"may call public.peek\(text\), which is in language internal",
    ),
    "statistics": Way(
        ("ANALYZE people", "GRANT SELECT ON pg_statistic TO {reader}"),
        ("SELECT stavalues1::text FROM pg_statistic WHERE starelid = 'people'::regclass",),
        "SELECT on table .*pg_statistic",
    ),
    "role_that_can_be_given": Way(
        (
            "GRANT SELECT ON people TO {staff}",
            "GRANT {staff} TO {owner}",
            "GRANT {owner} TO {reader} WITH ADMIN OPTION",
        ),
        ("SET ROLE {staff}", "SELECT name FROM people"),
        "who can become {staff}, has SELECT",
    ),
    "part_of_the_source": Way(
        (
            "CREATE TABLE part () INHERITS (people)",
            "INSERT INTO part SELECT * FROM ONLY people LIMIT 4",
            "CREATE VIEW shown AS SELECT name FROM part",
            "GRANT SELECT ON shown TO {reader}",
        ),
        ("SELECT * FROM shown",),
        "SELECT on view over it .*shown",
    ),
    "long_values": Way(
        (*LONG, "GRANT USAGE ON SCHEMA pg_toast TO {reader}", beside("people", "GRANT SELECT ON %s TO {reader}")),
        (chunks("people"),),
        r'SELECT on the TOAST table of public.people, "pg_toast"."pg_toast_\d+"',
    ),
    "view_of_long_values": Way(
        (
            *LONG,
            beside("people", "CREATE VIEW chunks AS SELECT encode(chunk_data, ''escape'') FROM %s"),
            "GRANT SELECT ON chunks TO {reader}",
        ),
        ("SELECT * FROM chunks",),
        "SELECT on view over it .*chunks",
    ),
    "long_values_of_a_copy": Way(
        (
            *LONG,
            "CREATE MATERIALIZED VIEW copied AS SELECT note FROM people",
            "ALTER MATERIALIZED VIEW copied ALTER note SET STORAGE EXTERNAL",
            "REFRESH MATERIALIZED VIEW copied",
            "GRANT USAGE ON SCHEMA pg_toast TO {staff}",
            beside("copied", "GRANT SELECT ON %s TO {staff}"),
            "GRANT {staff} TO {reader}",
        ),
        (chunks("copied"),),
        "who can become {staff}, has SELECT on the TOAST table of public.copied",
    ),
}
