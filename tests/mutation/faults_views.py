"""Faults in what readers are given beside the rows: bounds that lose values, helper views that tell other things."""

from __future__ import annotations

from mutation.mutation import Mutation

LABELS = ("tests/hierarchy/test_bounds.py",)
BOUNDS = "tests/publish/test_bounds.py"
LEVELS = "tests/publish/test_levels.py"
EXACT = "tests/publish/test_exact.py"
KEPT_TYPES = "tests/publish/test_kept_types.py"
HELPERS = "tests/publish/test_helpers.py"
SPREAD = "tests/publish/test_spread.py"
ESTIMATE = "tests/releases/test_estimate.py"
SEE = "tests/publish/test_readers_see.py"
ON_SPARK = "tests/publish/test_spark_spec.py"

VIEWS: tuple[Mutation, ...] = (
    Mutation(
        "bounds: a whole number ends at itself",
        "hierarchy/bounds.py",
        "return (exact, exact + 1) if exact.denominator == 1 else None",
        "return (exact, exact) if exact.denominator == 1 else None",
        tests=LABELS,
    ),
    Mutation(
        "bounds: a closed end leaves its value out",
        "hierarchy/bounds.py",
        'after=match["close"] == "]"',
        'after=match["close"] == "}"',
        tests=LABELS,
    ),
    Mutation(
        "bounds: years of weeks are those of months",
        "hierarchy/bounds.py",
        "return _week_year(int(text)) if self.weeks else",
        "return _week_year(int(text)) if not self.kind else",
        tests=LABELS,
    ),
    Mutation(
        "bounds: labels of a file are believed",
        "hierarchy/bounds.py",
        "        if label is None or label in self._wrong or (self.joined and self._wrong):",
        "        if label is None:",
        tests=LABELS,
    ),
    Mutation(
        "bounds: a box is believed that joins wrong labels",
        "publish/bounds.py",
        "joined=recoding is not None)",
        "joined=False)",
        tests=(f"{BOUNDS}::test_a_box_that_joins_wrong_labels_of_a_file_is_open",),
    ),
    Mutation(
        "bounds: a label that is open is at zero",
        "hierarchy/bounds.py",
        "    low = -math.inf if ends[0] is None else float(ends[0])",
        "    low = 0.0 if ends[0] is None else float(ends[0])",
        tests=LABELS,
    ),
    Mutation(
        "bounds: the copy's are not checked",
        "release/apply.py",
        "        check_copied(rows.session, rows.rows, chosen.copy.bounds)\n",
        "",
        tests=(f"{BOUNDS}::test_a_copy_with_other_bounds_than_its_labels_is_not_published",),
    ),
    Mutation(
        "bounds: a spec that says nothing gives a release new columns",
        "release/maps.py",
        'return "text" if kept is None else Kept.of_text(kept).ranges',
        'return "text" if kept is None else FIRST',
        tests=(f"{BOUNDS}::test_a_spec_that_says_nothing_goes_on_as_the_version_before",),
    ),
    Mutation(
        "spread: rows lie evenly whatever other labels say",
        "publish/spread.py",
        "mass = mass * _sums(",
        "mass = mass + 0 * _sums(",
        tests=(f"{SPREAD}::test_a_wide_label_has_its_rows_where_the_narrow_ones_are",),
    ),
    Mutation(
        "spread: a whole number may be the end of its label",
        "publish/spread.py",
        "(self.low + self.high - step) / 2",
        "(self.low + self.high) / 2",
        tests=(f"{SPREAD}::test_the_middle_of_a_label_is_the_mean_of_its_values",),
    ),
    Mutation(
        "spread: rows that nobody sees are counted",
        "release/run.py",
        "labels_by_code(self.labels, counts.keys[published], counts.rows[published])",
        "labels_by_code(self.labels, counts.keys, counts.rows)",
        tests=(f"{SPREAD}::test_shares_come_of_the_published_rows_alone",),
    ),
    Mutation(
        "estimate: a row that may meet a condition is said to",
        "estimate/columns.py",
        "any(interval.holds(bounds) for interval in intervals)",
        "possibly",
        tests=(f"{ESTIMATE}::test_the_truth_is_between",),
    ),
    Mutation(
        "estimate: labels of two levels are taken for different values",
        "estimate/columns.py",
        "level is None or level != self.levels[value]",
        "level is None",
        tests=(f"{ESTIMATE}::test_the_truth_is_between",),
    ),
    Mutation(
        "estimate: a mean is of the rows that surely count",
        "estimate/combine.py",
        "if weight and least * weight >= total:",
        "if weight:",
        tests=(f"{ESTIMATE}::test_the_truth_is_between",),
    ),
    Mutation(
        "helpers: the level that the search chose",
        "publish/levels.py",
        "        return max(shared, default=None)",
        "        return min(shared, default=None)",
        tests=(f"{HELPERS}::test_the_level_is_that_of_the_labels_not_of_the_search",),
    ),
    Mutation(
        "helpers: types list the values of an enum",
        "release/run.py",
        "types={name: column.kind for",
        "types={name: column.type for",
        tests=("tests/publish/test_publish_values.py::test_other_types_are_published_as_text",),
    ),
    Mutation(
        "helpers: what takes private counts is said to be reached",
        "publish/recheck.py",
        "    if needs_more(spec, requirement) or isinstance(requirement.prior, PriorTable):",
        "    if isinstance(requirement.prior, PriorTable):",
        tests=(f"{HELPERS}::test_what_takes_more_than_the_published_rows_is_not_said_to_be_reached",),
    ),
    Mutation(
        "helpers: what is reached over rows that nobody sees is told",
        "publish/recheck.py",
        "    return spec.shows_every_row or not requirement.model.needs & WHOLE_TABLE",
        "    return True",
        tests=(f"{SEE}::test_no_model_tells_of_the_suppressed",),
    ),
    Mutation(
        "helpers: what is reached over values that nobody sees is told",
        "publish/recheck.py",
        'WHOLE_TABLE = frozenset({"distribution", "domain"})',
        'WHOLE_TABLE = frozenset({"distribution"})',
        tests=(f"{SEE}::test_nothing_is_told_of_values_that_are_not_shown",),
    ),
    Mutation(
        "helpers: what is reached by another table is told",
        "publish/recheck.py",
        "needs_more(spec, requirement) or isinstance(requirement.prior, PriorTable):",
        "needs_more(spec, requirement):",
        tests=(f"{SEE}::test_nothing_is_told_of_the_table_that_a_prior_is_from",),
    ),
    Mutation(
        "helpers: rows that are set aside count as shown",
        "spec/model.py",
        "        return self.entity is None and not self.suppression_limit and not aside",
        "        return self.entity is None and not self.suppression_limit",
        tests=(f"{SEE}::test_what_the_rows_give_is_told_where_no_row_of_any_source_is_hidden",),
    ),
    Mutation(
        "helpers: people who wait count as shown",
        "spec/model.py",
        "        return self.entity is None and not self.suppression_limit and not aside",
        "        return not self.suppression_limit and not aside",
        tests=(f"{SEE}::test_what_the_rows_give_is_told_where_no_row_of_any_source_is_hidden",),
    ),
    Mutation(
        "helpers: rows that nobody sees make a version of their own",
        "release/run.py",
        "            and self.ledger.stated == self.chosen.baseline.stated",
        "            and event.reference_digest == kept_digest(self.chosen.baseline.text())",
        tests=(f"{SEE}::test_nothing_is_told_of_changes_that_show_nothing",),
    ),
    Mutation(
        "helpers: whoever lost the view keeps them",
        "publish/targets/postgresql_views.py",
        'if row.give else f"REVOKE ALL ON {on} FROM {role}"',
        'if row.give else "SELECT 1"',
        tests=(f"{HELPERS}::test_whoever_may_read_the_view_may_read_its_helpers_and_nobody_else",),
    ),
    Mutation(
        "helpers: a view that was altered is left as it is",
        "publish/targets/postgresql_views.py",
        "            views = [view for view in views if view is self or view.name in there]\n",
        "            pass\n        views = [self]\n",
        tests=(f"{HELPERS}::test_an_altered_helper_view_is_found_and_made_again",),
    ),
    Mutation(
        "helpers: another's view is replaced",
        "publish/targets/postgresql_view.py",
        "        if row is None or row.release != self.spec.release:\n            return False",
        "        if row is None or row.release != self.spec.release:\n            return True",
        tests=(f"{HELPERS}::test_something_else_of_that_name_is_left_alone",),
    ),
    Mutation(
        "helpers: what they show of a dropped version stays",
        "publish/targets/postgresql.py",
        "                self.views.forget(attempt.connection, int(version[1]))",
        "                pass",
        tests=(f"{HELPERS}::test_what_is_dropped_is_forgotten",),
    ),
    Mutation(
        "helpers: verify does not count their labels",
        "release/verify.py",
        "        if listed != expected:",
        "        if not listed and expected:",
        tests=(f"{HELPERS}::test_labels_that_are_not_those_published_are_found",),
    ),
    Mutation(
        "helper views on Spark: what somebody else made is replaced",
        "publish/targets/spark_helpers.py",
        "            if name in entries and name not in own:",
        "            if name in entries and entries[name].comment is None:",
        tests=(f"{ON_SPARK}::test_a_name_of_a_helper_view_that_is_taken_is_refused",),
    ),
    Mutation(
        "helper views on Spark: those of another view are this release's",
        "publish/targets/spark_helpers.py",
        "if entry.is_view and entry.comment in self.says.values()]",
        "if entry.is_view and entry.name in self.names.values()]",
        tests=(f"{ON_SPARK}::test_a_name_of_a_helper_view_that_is_taken_is_refused",),
    ),
    Mutation(
        "helper views on Spark: what is published need not be what was staged",
        "publish/targets/spark_helpers.py",
        "        if catalog.differ(source, (self.schema, beside(table))):",
        "        if not comment:",
        tests=(f"{ON_SPARK}::test_a_table_beside_a_version_that_is_another_one_is_dropped_with_the_version",),
    ),
    Mutation(
        "helper views on Spark: one that shows something else is intact",
        "warehouse/spark_catalog.py",
        'return told.startswith(f"Comment: {mark}\\nView Text: {text}\\nView Original Text: ")',
        'return told.startswith(f"Comment: {mark}\\n")',
        tests=(f"{ON_SPARK}::test_what_is_told_of_a_view_is_what_it_says_and_shows",),
    ),
    Mutation(
        "helper views on Spark: former ones go on showing a version unseen",
        "publish/targets/spark_helpers.py",
        "if not set(self.own(entries)) == set(texts) == catalog.showing(self.schema, texts):",
        "if not set(texts) == catalog.showing(self.schema, texts):",
        tests=(f"{ON_SPARK}::test_helper_views_that_are_missing_or_of_another_name_are_not_intact",),
    ),
    Mutation(
        "helper views on Spark: rows that were altered after they were published are intact",
        "publish/targets/spark_helpers.py",
        "        return not catalog.differ(source, published)",
        "        return True",
        tests=(f"{ON_SPARK}::test_helper_views_that_are_missing_or_of_another_name_are_not_intact",),
    ),
    Mutation(
        "labels: values of the source are named that are no label",
        "publish/levels.py",
        "for leaf in leaves if self.declared or leaf in self.rows)",
        "for leaf in leaves)",
        tests=(f"{LEVELS}::test_a_value_that_nobody_declares_is_named_where_it_is_a_label_alone",),
    ),
    Mutation(
        "labels: some of the values are said to be all",
        "publish/levels.py",
        "return named[:MOST_MEMBERS], len(named) == len(leaves) <= MOST_MEMBERS",
        "return named[:MOST_MEMBERS], True",
        tests=(f"{LEVELS}::test_whoever_has_a_value_has_a_label_that_names_it_or_not_all",),
    ),
    Mutation(
        "exact: a group that a file calls as a value is one",
        "publish/bounds.py",
        "        return label if self.reader.is_value(label) else None",
        "        return label",
        tests=(f"{EXACT}::test_a_group_that_a_file_calls_as_a_value_has_none",),
    ),
    Mutation(
        "open ends: those of a filter are left out",
        "publish/levels.py",
        "    if bound.nulls:\n",
        "    if False:\n",
        tests=(f"{EXACT}::test_an_open_end_is_null_where_that_is_asked",),
    ),
    Mutation(
        "kept types: a type may change from version to version",
        "publish/bounds.py",
        "    if not spec.published_once:\n        return {}\n",
        "",
        tests=(f"{KEPT_TYPES}::test_no_type_may_change_from_version_to_version",),
    ),
    Mutation(
        "kept types: the next run takes the columns for others",
        "publish/copy.py",
        'as_it_is = [c.name for c in kept if c.role == "quasi_identifier" and c.kind != "text"]',
        "as_it_is: list[str] = []",
        tests=("tests/publish/test_kept_types.py::test_columns_ahead_are_those_that_readers_see",),
    ),
)
