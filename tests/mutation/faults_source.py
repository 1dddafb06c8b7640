"""Faults in what is taken from the source: rows that wait, people, NULL, and the tables beside it."""

from __future__ import annotations

from mutation.mutation import Mutation

SOURCES = "tests/source/test_sources.py"
ONLY_READ = "tests/release/test_read_only_source.py"
UNCOVERED = "tests/release/test_waiting.py::test_rows_that_no_hierarchy_covers_wait_and_come_as_a_cohort"

WHERE = "tests/release/test_where.py"

SOURCE: tuple[Mutation, ...] = (
    Mutation(
        "copied server: an empty text is NULL",
        "warehouse/postgresql_copied.py",
        "quoted_strings_can_be_null=False",
        "quoted_strings_can_be_null=True",
        tests=(f"{ONLY_READ}::test_the_content_is_that_of_the_same_table_in_a_duckdb_file",),
    ),
    Mutation(
        "copied server: the last row of each group is one of the next",
        "warehouse/postgresql_copied.py",
        'side="right"',
        'side="left"',
        tests=(f"{ONLY_READ}::test_the_server_groups_rows_where_that_is_smaller",),
    ),
    Mutation(
        "published elsewhere: versions of a release file are forgotten",
        "publish/targets/__init__.py",
        "if is_elsewhere(spec):",
        "if is_copied(spec):",
        tests=("tests/release/test_published_on_a_server.py::test_versions_of_a_release_file_are_not_forgotten",),
    ),
    Mutation(
        "published elsewhere: versions of a release file are forgotten, of a server",
        "publish/targets/__init__.py",
        "if is_elsewhere(spec):",
        "if is_elsewhere(spec) and not is_copied(spec):",
        tests=(f"{ONLY_READ}::test_versions_of_a_release_file_are_not_forgotten",),
    ),
    Mutation(
        "copied server: another database is the same source",
        "publish/targets/protocol.py",
        'place = f"{url.get_backend_name()}:{url.host}:{url.port}/{url.database}"',
        "place = url.get_backend_name()",
        tests=(f"{ONLY_READ}::test_another_database_is_another_source_and_another_login_is_not",),
    ),
    Mutation(
        "where: the table is read as it is",
        "warehouse/protocol.py",
        "return rows if restriction is None else restriction.kept(self, rows, described, names)",
        "return rows",
        tests=(f"{WHERE}::test_only_the_rows_of_the_condition_are_published",),
    ),
    Mutation(
        "where: a table is restricted by one of its names alone",
        "warehouse/protocol.py",
        "if self._home(name) == home",
        "if name == table",
        tests=(f"{WHERE}::test_a_population_by_another_name_is_restricted_too",),
    ),
    Mutation(
        "where: all of the table is copied from Spark",
        "warehouse/spark.py",
        "rows = restriction.kept(self, rows, described, names)",
        "pass",
        tests=("tests/warehouse/test_spark_text.py::test_a_condition_decides_what_is_copied_of_the_source",),
    ),
    Mutation(
        "init: whatever has an open end is a history",
        "profiling/history.py",
        'return row["n"] == row["keys"] > 0',
        'return row["n"] > 0',
        tests=("tests/cli/test_init_history.py::test_of_a_table_that_is_none_nothing_is_said",),
    ),
    Mutation(
        "init: a stay that has not ended is a current row",
        "profiling/history.py",
        "if not self.weak:",
        "if True:",
        tests=("tests/cli/test_init_history.py::test_of_a_table_that_is_none_nothing_is_said",),
    ),
    Mutation(
        "where: NOT LIKE is LIKE",
        "spec/condition.py",
        'return Not(read) if like is not tree and like.args.get("negate") else read',
        "return read",
        tests=("tests/spec/test_condition.py::test_a_condition_is_read",),
    ),
    Mutation(
        "where: what is more than a part is made of is left out",
        "spec/condition.py",
        "if not word or more:",
        "if not word:",
        tests=("tests/spec/test_condition.py::test_anything_else_is_refused_with_the_part_and_what_is_allowed",),
    ),
    Mutation(
        "profile: approximate numbers of values decide roles",
        "profiling/profiles.py",
        "return any(mark / SURE <= p.distinct <= mark * SURE for mark in marks)",
        "return False",
        tests=("tests/cli/test_init_approximate.py::test_what_is_proposed_is_what_exact_counts_propose",),
    ),
    Mutation(
        "quarantine: rows that wait are counted out and published",
        "source/open.py",
        "released, scanned = without_uncovered(admitted, quasi), without_uncovered(stored, quasi)",
        "scanned = without_uncovered(stored, quasi)",
        tests=(UNCOVERED,),
    ),
    Mutation(
        "quarantine: rows wait where every value is uncovered",
        "source/columns.py",
        ".where(sa.or_(*without))",
        ".where(sa.and_(*without))",
        tests=(f"{SOURCES}::test_rows_wait_for_any_value_without_a_leaf_and_not_for_null",),
    ),
    Mutation(
        "quarantine: NULL is a value without a leaf",
        "source/columns.py",
        "sa.and_(value.is_not(None), value.not_in(sa.select(leaf).where(leaf.is_not(None))))",
        "value.not_in(sa.select(leaf).where(leaf.is_not(None)))",
        tests=(f"{SOURCES}::test_rows_wait_for_any_value_without_a_leaf_and_not_for_null",),
    ),
    Mutation(
        "entity: a person may have several rows that count",
        "source/columns.py",
        'if spec.count == "rows" and totals["n"] < totals["rows"]:',
        'if spec.count == "rows" and totals["n"] == 0:',
        tests=(f"{SOURCES}::test_entities",),
    ),
    Mutation(
        "entity: rows of nobody",
        "source/columns.py",
        '    if totals["unnamed"]:',
        '    if totals["unnamed"] == totals["rows"]:',
        tests=(f"{SOURCES}::test_entities",),
    ),
    Mutation(
        "entities: values are counted by rows",
        "frequency/sets.py",
        'return self.coding.values(sensitive, words), counts["n"]',
        'return self.coding.values(sensitive, words), counts["r" if self.entities else "n"]',
        tests=("tests/frequency/test_frequency_sets.py::test_entities_are_counted_once",),
    ),
    Mutation(
        "population: somebody of the source is not in it",
        "source/knowledge.py",
        "int(np.count_nonzero(mine.population == 0))",
        "int(np.count_nonzero(mine.population < 0))",
        tests=(f"{SOURCES}::test_a_population_without_somebody_of_the_source_is_refused",),
    ),
    Mutation(
        "guards: of everybody who is listed",
        "source/knowledge.py",
        "        if whole:\n",
        "        if whole == len(self.sets) > 1:\n",
        tests=("tests/search/test_guards.py::test_a_table_that_does_not_fit_is_refused",),
    ),
)
