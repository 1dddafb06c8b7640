"""What is like a way to the source but is none (`publish.ways`), and where PostgreSQL itself asks for EXECUTE."""

from __future__ import annotations

from publish.ways import CELLS, CLOSED, INSERT, INVOKER, NOTES, ON_NOTES, STRING, TRIGGER

HARMLESS: dict[str, tuple[str, ...]] = {
    "trigger_on_a_table_that_is_not_written": (TRIGGER, CLOSED, NOTES, ON_NOTES, "GRANT SELECT ON notes TO {reader}"),
    "trigger_of_another_event": (TRIGGER, CLOSED, NOTES, ON_NOTES, "GRANT DELETE ON notes TO {reader}"),
    "trigger_that_is_off": (TRIGGER, CLOSED, NOTES, ON_NOTES, INSERT, "ALTER TABLE notes DISABLE TRIGGER fired"),
    "trigger_of_somebody_who_reads_nothing": (
        TRIGGER,
        CLOSED,
        NOTES,
        ON_NOTES,
        INSERT,
        "ALTER FUNCTION peek() OWNER TO {staff}",
    ),
    "invoker_trigger": (TRIGGER.replace(" SECURITY DEFINER", ""), CLOSED, NOTES, ON_NOTES, INSERT),
    "child_that_inserting_does_not_reach": (
        TRIGGER,
        CLOSED,
        NOTES,
        "CREATE TABLE part () INHERITS (notes)",
        ON_NOTES.replace("ON notes", "ON part"),
        INSERT,
    ),
    "invoker_view_over_a_table_with_a_trigger": (
        TRIGGER,
        CLOSED,
        NOTES,
        ON_NOTES,
        "CREATE VIEW open AS SELECT * FROM notes",
        "ALTER VIEW open OWNER TO {staff}",
        "GRANT INSERT ON open TO {reader}",
    ),
    "foreign_key_that_does_nothing": (
        TRIGGER.replace(" SECURITY DEFINER", ""),
        "CREATE TABLE first (a int PRIMARY KEY)",
        "CREATE TABLE notes (a int REFERENCES first)",
        "CREATE TRIGGER fired BEFORE DELETE ON notes FOR EACH ROW EXECUTE FUNCTION peek()",
        "GRANT DELETE ON first TO {reader}",
    ),
    "rule_on_a_table_that_is_only_read": (
        NOTES,
        "CREATE TABLE seen (name text)",
        "CREATE RULE also AS ON INSERT TO notes DO ALSO INSERT INTO seen SELECT name FROM people",
        "GRANT SELECT ON notes TO {reader}",
    ),
    "rule_of_somebody_who_reads_nothing": (
        NOTES,
        "CREATE TABLE seen (name text)",
        "CREATE RULE also AS ON INSERT TO notes DO ALSO INSERT INTO seen SELECT name FROM people",
        "ALTER TABLE notes OWNER TO {staff}",
        INSERT,
    ),
    "foreign_key_to_another_table": (
        "CREATE TABLE first (a int PRIMARY KEY)",
        "CREATE TABLE notes (a int REFERENCES first)",
        INSERT,
    ),
    "event_trigger_of_somebody_who_reads_nothing": (
        "CREATE FUNCTION peek() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN END'",
        "ALTER FUNCTION peek() OWNER TO {staff}",
        "CREATE EVENT TRIGGER fired ON ddl_command_start EXECUTE FUNCTION peek()",
    ),
    "view_over_an_invoker_view": (
        INVOKER,
        "CREATE VIEW shown AS SELECT * FROM asked",
        "GRANT SELECT ON shown TO {reader}",
    ),
    "view_over_a_function": (STRING, "CREATE VIEW shown AS SELECT * FROM peek()", "GRANT SELECT ON shown TO {reader}"),
    "empty_copy_of_somebody_who_reads_nothing": (
        INVOKER,
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM asked WITH NO DATA",
        "ALTER MATERIALIZED VIEW kept OWNER TO {staff}",
        "GRANT SELECT ON kept TO {reader}",
    ),
    "copy_of_an_immutable_function": (
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
        "CREATE MATERIALIZED VIEW kept AS SELECT one()",
        "GRANT SELECT ON kept TO {reader}",
    ),
    "view_over_the_statistics_that_everybody_sees": (
        "CREATE VIEW shown AS SELECT tablename, n_distinct FROM pg_stats",
        "GRANT SELECT ON shown TO {reader}",
    ),
    "definer_of_somebody_who_reads_nothing": (
        STRING.replace("LANGUAGE sql", "LANGUAGE sql SECURITY DEFINER"),
        "ALTER FUNCTION peek() OWNER TO {staff}",
    ),
    "aggregate_that_nobody_may_call": (
        CELLS,
        "CREATE AGGREGATE gather(int) (SFUNC = peek, STYPE = text)",
        "REVOKE EXECUTE ON FUNCTION peek(text, int), gather(int) FROM PUBLIC",
    ),
    "function_of_a_trusted_language": ("CREATE FUNCTION one() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",),
    "aggregate_of_plain_functions": ("CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int)",),
}

ASKED = {
    "default": ("CREATE TABLE notes (a int, b int DEFAULT peek(1))", INSERT, "INSERT INTO notes VALUES (1)"),
    "check": ("CREATE TABLE notes (a int CHECK (peek(a) = 1))", INSERT, "INSERT INTO notes VALUES (1)"),
    "domain": ("CREATE DOMAIN one AS int CHECK (peek(VALUE) = 1)", "SELECT 1", "SELECT 1::one"),
    "generated": (
        "CREATE TABLE notes (a int, b int GENERATED ALWAYS AS (peek(a)) STORED)",
        INSERT,
        "INSERT INTO notes VALUES (1)",
    ),
    "index": (
        "CREATE TABLE notes (a int); CREATE INDEX ON notes (peek(a))",
        INSERT,
        "INSERT INTO notes VALUES (1)",
    ),
    "policy": (
        "CREATE TABLE notes (a int); ALTER TABLE notes ENABLE ROW LEVEL SECURITY; "
        "CREATE POLICY asks ON notes USING (true) WITH CHECK (peek(a) = 1)",
        INSERT,
        "INSERT INTO notes VALUES (1)",
    ),
    "operator": (
        "CREATE OPERATOR !!! (RIGHTARG = int, FUNCTION = peek)",
        "SELECT 1",
        "SELECT !!! 1",
    ),
    "cast": (
        "CREATE TYPE pair AS (a int); CREATE FUNCTION made(int) RETURNS pair LANGUAGE sql SECURITY DEFINER "
        "AS 'SELECT row($1)::public.pair'; REVOKE EXECUTE ON FUNCTION made(int) FROM PUBLIC; "
        "CREATE CAST (int AS pair) WITH FUNCTION made(int)",
        "SELECT 1",
        "SELECT 1::pair",
    ),
    "view": ("CREATE VIEW shown AS SELECT peek(1)", "GRANT SELECT ON shown TO {reader}", "SELECT * FROM shown"),
}
"""Where PostgreSQL asks for EXECUTE, so that a definer function which readers may not call is no way in."""
