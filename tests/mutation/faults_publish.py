"""Faults in what becomes visible: the copy, its digest, its second count, and the place that readers look at."""

from __future__ import annotations

from mutation.mutation import Mutation

VALUES = "tests/publish/test_publish_values.py"
MARK = "tests/publish/test_mark.py"
OF_BLOCKS = "tests/publish/test_people.py"
FAULTS = "tests/release/test_faults.py"
ROLLBACK = "tests/release/test_rollback.py"
STATISTICS = "tests/publish/test_statistics.py"

PUBLISH: tuple[Mutation, ...] = (
    Mutation(
        "digest: rows of a map that are alike are counted once",
        "publish/digest.py",
        "query = sa.select(text, values.c.n)",
        'query = sa.select(text, sa.literal_column("1").label("n"))',
        tests=(
            "tests/release/test_later_runs.py::test_values_that_are_equal_and_read_apart_are_published_as_they_read",
        ),
    ),
    Mutation(
        "digest: values of a map that are equal are one, however they read",
        "publish/copy.py",
        "alike = source.compared or all(",
        "alike = source.session.embedded or all(",
        tests=(
            "tests/release/test_later_runs.py::test_values_that_are_equal_and_read_apart_are_published_as_they_read",
        ),
    ),
    Mutation(
        "digest: rows that are alike are one in the list of digests",
        "publish/digest.py",
        "each = sa.func.repeat(h, sa.cast(n, sa.Integer), type_=sa.Text) if repeated else h",
        "each = h",
        tests=(f"{VALUES}::test_the_digest_is_the_same_on_every_engine",),
    ),
    Mutation(
        "digest: rows that are alike are counted once",
        "publish/digest.py",
        "whole(sa.func.sum(n)).label",
        "whole(sa.func.count()).label",
        tests=(f"{VALUES}::test_the_digest_is_the_same_on_every_engine",),
    ),
    Mutation(
        "copy: identifying columns are published",
        "publish/copy.py",
        '        elif column.kind == "timestamptz" and attribute.role != "identifying":',
        '        elif column.kind == "timestamptz":',
        tests=(f"{VALUES}::test_identifying_and_unnamed_columns_are_nowhere",),
    ),
    Mutation(
        "copy: rows in the order of the source",
        "publish/copy.py",
        "        return self.query.order_by(*self.order)",
        "        return self.query",
        tests=(f"{VALUES}::test_columns_keep_their_types_and_order_by_their_text",),
    ),
    Mutation(
        "copy: a column singles rows out where no value repeats alone",
        "checks/run.py",
        'if 2 * row[f"n{i}"] > source.rows]',
        'if row[f"n{i}"] >= source.rows]',
        tests=("tests/release/test_release.py::test_a_column_that_nearly_singles_out_rows_is_not_published_as_it_is",),
    ),
    Mutation(
        "copy: the rows of a block are published as its people",
        "publish/copy.py",
        "sa.func.count(sa.distinct(whose))",
        "sa.func.count(whose)",
        tests=(f"{OF_BLOCKS}::test_each_block_says_how_many_people_its_rows_are_about",),
    ),
    Mutation(
        "recheck: people are not counted again",
        "publish/recheck.py",
        "counted.people is not None and _blocks(",
        "counted.people is None and _blocks(",
        tests=(f"{OF_BLOCKS}::test_a_copy_with_other_people_is_not_published",),
    ),
    Mutation(
        "digest: NULL reads as the empty text",
        "publish/digest.py",
        "sa.literal_column(\"'N'\")",
        "sa.literal_column(\"'V0:'\")",
        tests=(f"{VALUES}::test_the_digest_is_the_same_on_every_engine",),
    ),
    Mutation(
        "digest: values without their lengths",
        "publish/digest.py",
        '.concat(sa.cast(session.byte_length(text), sa.Text)).concat(":").concat(text)',
        ".concat(text)",
        tests=(f"{VALUES}::test_the_digest_is_the_same_on_every_engine",),
    ),
    Mutation(
        "mark: a row that is there twice is not there",
        "publish/digest.py",
        "sa.func.sum(of_row(",
        "sa.func.bit_xor(of_row(",
        tests=(f"{MARK}::test_rows_that_are_there_twice_are_counted",),
    ),
    Mutation(
        "mark: the hash of each column is added by itself",
        "publish/digest.py",
        "sa.func.sum(of_row(of_row(*values)))",
        "sum(sa.func.sum(of_row(of_row(value))) for value in values)",
        tests=(f"{MARK}::test_other_rows_have_another_mark",),
    ),
    Mutation(
        "mark: NULL reads as the empty text",
        "publish/digest.py",
        "of_row(of_row(*values))",
        "of_row(of_row(*(sa.func.coalesce(sa.cast(value, sa.Text), sa.literal('')) for value in values)))",
        tests=(f"{MARK}::test_other_rows_have_another_mark",),
    ),
    Mutation(
        "mark: the last column takes no part",
        "publish/digest.py",
        "of_row(of_row(*values))",
        "of_row(of_row(*values[:-1]))",
        tests=(f"{MARK}::test_columns_that_are_not_read_take_no_part",),
    ),
    Mutation(
        "mark: columns are combined by XOR alone",
        "publish/digest.py",
        "of_row(of_row(*values))",
        "of_row(*values)",
        tests=(f"{MARK}::test_no_swap_of_two_values_is_lost_in_the_sum",),
    ),
    Mutation(
        "mark: a value that equals another one has its hash",
        "publish/digest.py",
        "column.type != column.compare_as",
        "column.type is None",
        tests=(f"{MARK}::test_a_value_that_equals_another_one_is_told_from_it",),
    ),
    Mutation(
        "recheck: agrees with every guarantee",
        "publish/recheck.py",
        "        if again is not None and not same(again, before):",
        "        if again is not None and again.model != before.model:",
        tests=("tests/publish/test_publish.py::test_a_copy_of_which_anything_counts_otherwise_is_not_published",),
    ),
    Mutation(
        "recheck: blocks of any size",
        "publish/recheck.py",
        "        if expected.get(key) != n:",
        "        if key not in expected:",
        tests=("tests/publish/test_publish.py::test_a_copy_of_which_anything_counts_otherwise_is_not_published",),
    ),
    Mutation(
        "rematch: the prior of another spec",
        "publish/kept_counts.py",
        "        elif not same_spec and requirement.prior is not None:",
        "        elif not same_spec and requirement.prior is None and not references:",
        tests=(f"{ROLLBACK}::test_a_spec_under_which_it_cannot_be_checked",),
    ),
    Mutation(
        "file: an old writer's log is replayed into the new one",
        "publish/targets/duckdb.py",
        "        remove_logs(target)\n        self._file.chmod(mode)",
        "        self._file.chmod(mode)",
        tests=("tests/publish/test_publish_file.py::test_a_stale_log_beside_the_target_is_not_replayed",),
    ),
    Mutation(
        "statistics: they stay those of the version before",
        "publish/targets/postgresql_tables.py",
        "            run(connection, f\"ANALYZE {', '.join(names)}\")",
        "            pass",
        tests=(f"{STATISTICS}::test_the_estimates_change_with_the_version_while_somebody_still_sees_the_older_one",),
    ),
    Mutation(
        "statistics: pages of other versions stay",
        "publish/targets/postgresql_tables.py",
        "        return [] if seen else tables",
        "        return []",
        tests=(f"{STATISTICS}::test_histories_that_end_in_one_version_are_told_alike",),
    ),
    Mutation(
        "statistics: pages that somebody still needs are taken for packed",
        "publish/targets/postgresql_tables.py",
        "        return [] if seen else tables",
        "        return tables",
        tests=(f"{STATISTICS}::test_pages_that_could_not_be_given_back_are_by_the_next_run",),
    ),
    Mutation(
        "readers: where long values of something private are kept is not looked at",
        "publish/targets/postgresql_access.py",
        '    relations = connection.execute(text("reader_relations"), values).all()\n',
        '    relations = [r for r in connection.execute(text("reader_relations"), values) if r.of is None]\n',
        tests=("tests/publish/test_rights.py::test_what_opens_later_is_found_by_the_next_run_and_by_verify",),
    ),
    Mutation(
        "grants: a reader is the officer",
        "publish/targets/postgresql_needs.py",
        "        _check_officer(connection, spec, officer)",
        "        pass",
        tests=("tests/publish/test_needs.py::test_no_reader_is_an_officer",),
    ),
    Mutation(
        "grants: a name ends its line of the script",
        "engines/rights.py",
        "{' '.join(text.splitlines())}",
        "{text}",
        tests=("tests/publish/test_needs.py::test_names_are_quoted_and_none_ends_its_line",),
    ),
    Mutation(
        "grants: rights that are missing stop nobody",
        "release/job.py",
        "        if lacks:\n            raise",
        "        if not job:\n            raise",
        tests=("tests/publish/test_needs.py::test_a_plan_lists_what_is_missing_and_a_run_ends_there_before_the_scan",),
    ),
    Mutation(
        "admission: every column of the source",
        "versions/admission.py",
        "[column for column in table.c if column.name in columns_read(self.spec)]",
        "list(table.c)",
        tests=("tests/publish/test_grants.py::test_the_columns_of_the_spec_are_enough",),
    ),
)
