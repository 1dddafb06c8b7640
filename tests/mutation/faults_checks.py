"""Faults in what a spec takes for granted: a column that tells what is hidden is not found, or nobody is asked."""

from __future__ import annotations

from mutation.mutation import Mutation

CHECKED = "tests/release/test_checks.py"
GROUPS = "tests/release/test_group_checks.py"
VOLATILE = "tests/release/test_volatile_checks.py"
HISTORY = "tests/release/test_history_checks.py"
SKEW = "tests/release/test_skew_checks.py"
LEFT = "tests/models/test_left.py"
PAIRS = f"{CHECKED}::test_the_leaves_that_remain_are_those_of_pairs_of_rows"
STOPS = f"{CHECKED}::test_a_release_stops_unless_somebody_answers"
ENDS = f"{CHECKED}::test_a_command_answers_all_and_ends_as_a_release_would"
ONCE = f"{CHECKED}::test_a_release_names_warnings_once_and_asks_nothing_where_nothing_changed"

UNKNOWN = "tests/release/test_unknown.py"
CODES = "tests/integration/test_unknown.py"
SAME = "tests/release/test_same.py"
SPELLED = "tests/integration/test_same.py"

CHECKS: tuple[Mutation, ...] = (
    Mutation(
        "checks: a plan does not print what a run would stop at",
        "cli/publish.py",
        "    yield from stopping_lines(planned.checks)",
        "    pass",
        tests=(ENDS,),
    ),
    Mutation(
        "checks: a text that says yes of deleted rows is that of the others",
        "checks/history.py",
        'said = words("yes" if part == "deleted" else "no")',
        'said = words("no")',
        tests=(f"{HISTORY}::test_rows_that_are_over_are_counted",),
    ),
    Mutation(
        "checks: what the catalog says of a computed column is passed over",
        "checks/dependencies.py",
        "if of in computed.get(column, ()) and left < known:",
        "if False:",
        tests=(f"{CHECKED}::test_what_the_table_computes_is_told_however_few_values_it_leaves_out",),
    ),
    Mutation(
        "checks: a computed column that splits no label is unsafe",
        "checks/dependencies.py",
        "if of in computed.get(column, ()) and left < known:",
        "if of in computed.get(column, ()):",
        tests=(f"{CHECKED}::test_what_the_table_computes_is_told_however_few_values_it_leaves_out",),
    ),
    Mutation(
        "checks: what a hidden quasi-identifier excludes counts",
        "checks/skew.py",
        "without = ~present & (np.outer(some.total, many) >= sure)",
        "without = present & False",
        tests=(f"{SKEW}::test_what_one_sex_alone_has_does_not_count_for_who_knows_it",),
    ),
    Mutation(
        "checks: a value is excluded that too few rows would have had",
        "checks/skew.py",
        "without = ~present & (np.outer(some.total, many) >= sure)",
        "without = ~present",
        tests=(f"{SKEW}::test_it_is_silent_where_nothing_is_excluded",),
    ),
    Mutation(
        "checks: suppressed blocks are looked at for what excludes values",
        "checks/skew.py",
        "return self.assessment.counts.keys[self.assessment.kept]",
        "return self.assessment.counts.keys",
        tests=(f"{SKEW}::test_one_value_of_nearly_everybody_in_a_group_that_stays",),
    ),
    Mutation(
        "checks: of a group all leaves are asked, and not those in it",
        "checks/skew.py",
        "told = of_leaf[leaf] >= 0",
        "told = of_leaf[leaf] >= -1",
        tests=(f"{SKEW}::test_who_has_a_leaf_that_excludes_nothing_counts_all_values",),
    ),
    Mutation(
        "checks: l that is as much as asked fails by its bounds",
        "checks/skew.py",
        "fails: Mask = high < required",
        "fails: Mask = high <= required",
        tests=(f"{LEFT}::test_who_fails_is_the_same_by_bounds_and_case_by_case",),
    ),
    Mutation(
        "checks: of who fails the first found is the least",
        "checks/skew.py",
        "may = part[low[part] < least]",
        "may = part[low[part] < min(least, 0)]",
        tests=(f"{LEFT}::test_who_fails_is_the_same_by_bounds_and_case_by_case",),
    ),
    Mutation(
        "checks: sums are of what is taken away, too",
        "models/left.py",
        "(~self.values[:, self._taken]).T",
        "(self.values[:, self._taken] >= 0).T",
        tests=(f"{LEFT}::test_bounds_decide_most_of_what_is_excluded",),
    ),
    Mutation(
        "frequency: a key that is nowhere has the place of the next one",
        "frequency/coding.py",
        "return np.where(known[order[at]] == single, order[at], -1)",
        "return order[at]",
        tests=("tests/frequency/test_coding.py::test_keys_are_found_among_others_by_what_a_mask_keeps",),
    ),
    Mutation(
        "unknown: codes are read as they are",
        "engines/published.py",
        "if unknown is not None:",
        "if False:",
        tests=(f"{UNKNOWN}::test_the_example_of_the_page",),
    ),
    Mutation(
        "unknown: what is published in place of a number is that of the code",
        "engines/published.py",
        "session.comparable(value, column), column)\n        return",
        "session.comparable(table.c[name], column), column)\n        return",
        tests=(f"{UNKNOWN}::test_it_goes_with_what_is_published_in_place_of_a_number",),
    ),
    Mutation(
        "unknown: a code that is no value is passed over",
        "engines/published.py",
        "if unfit and self.place is not None:",
        "if False:",
        tests=(f"{CODES}::test_what_is_no_value_of_the_column_is_refused",),
    ),
    Mutation(
        "unknown: codes of a population are read as they are",
        "engines/from_spec.py",
        "for table in spec.populations if unknown or same else ():",
        "for table in ():",
        tests=(f"{CODES}::test_a_population_has_the_same_codes",),
    ),
    Mutation(
        "unknown: a version with other codes is checked together with an earlier one",
        "versions/types.py",
        "    _check_replaced(spec, known, version)",
        "    pass",
        tests=(f"{UNKNOWN}::test_other_codes_than_those_of_an_earlier_version_are_refused",),
    ),
    Mutation(
        "unknown: a version with other codes is rolled back to",
        "release/rollback.py",
        "if otherwise:",
        "if False:",
        tests=(f"{UNKNOWN}::test_other_codes_than_those_of_an_earlier_version_are_refused",),
    ),
    Mutation(
        "unknown: it is not said that no row has a code",
        "checks/values.py",
        "if not counted.get(None)",
        "if False",
        tests=(f"{UNKNOWN}::test_a_check_proposes_it_and_then_says_nothing",),
    ),
    Mutation(
        "same: values are read as they are",
        "engines/published.py",
        "value = spellings.expression(session.comparable(value, column))",
        "pass",
        tests=(f"{SAME}::test_a_check_proposes_it_and_then_says_nothing",),
    ),
    Mutation(
        "same: other rows decide the spelling of versions that are checked together",
        "spec/model.py",
        "return self.checked_together or bool(self.populations)",
        "return bool(self.populations)",
        tests=(f"{SAME}::test_no_spelling_tells_of_other_rows_where_versions_are_checked_together",),
    ),
    Mutation(
        "same: a population is read in its own commonest spelling",
        "spec/model.py",
        "return self.checked_together or bool(self.populations)",
        "return self.checked_together",
        tests=(f"{SPELLED}::test_a_population_is_spelled_alike",),
    ),
    Mutation(
        "same: rows that are not read decide the spelling",
        "engines/spelled.py",
        "counted = rows.with_only_columns(",
        "counted = sa.select(",
        tests=(f"{SPELLED}::test_it_goes_with_unknown_with_a_condition_and_with_a_level",),
    ),
    Mutation(
        "same: a code is one in one spelling alone",
        "engines/spelled.py",
        "if text not in texts and plain(text, self.parts) in wanted",
        "if False",
        tests=(f"{SPELLED}::test_it_goes_with_unknown_with_a_condition_and_with_a_level",),
    ),
    Mutation(
        "same: the rarest spelling is read",
        "spellings.py",
        "(-of[1], of[0])",
        "(of[1], of[0])",
        tests=(f"{SPELLED}::test_spellings_are_made_one",),
    ),
    Mutation(
        "same: of several commonest spellings the largest is read",
        "spellings.py",
        "return min(rows, key=lambda of: (-of[1], of[0]))[0]",
        "return max(rows, key=lambda of: (of[1], of[0]))[0]",
        tests=(f"{SPELLED}::test_spellings_are_made_one",),
    ),
    Mutation(
        "same: a table of Spark is read twice",
        "engines/published.py",
        "return (self.where, replace(self, where=None)) if self.same else (self, None)",
        "return self, None",
        tests=("tests/warehouse/test_spark_text.py::test_spellings_are_those_of_rows_that_are_stored",),
    ),
    Mutation(
        "checks: a row makes a pair with itself",
        "checks/dependencies.py",
        "(sizes * (sizes - 1)).sum()",
        "(sizes * sizes).sum()",
        tests=(PAIRS,),
    ),
    Mutation(
        "checks: a row of an insensitive column makes a pair with itself",
        "checks/dependencies.py",
        "(n * (n - 1))",
        "(n * n)",
        tests=(PAIRS,),
    ),
    Mutation(
        "checks: the smallest group is that of the labels",
        "checks/dependencies.py",
        "tuple(0 if j == i else level for j, level in enumerate(node))",
        "node",
        tests=(PAIRS,),
    ),
    Mutation(
        "checks: what tells a leaf within a year is passed over",
        "checks/dependencies.py",
        "wholly or (pairs.leaves <= FEW_LEFT and",
        "wholly or (pairs.leaves <= 1 and",
        tests=(PAIRS,),
    ),
    Mutation(
        "checks: of what a map shows as it is somebody has to answer",
        "search/boxes/recoded.py",
        "(self._leaves_of_labels > 1).any(axis=0)",
        "(self._leaves_of_labels > 0).any(axis=0)",
        tests=(STOPS,),
    ),
    Mutation(
        "checks: a release asks nobody",
        "release/apply.py",
        "refuse_findings(run.spec, run.taken)",
        "pass",
        tests=(STOPS, f"{CHECKED}::test_a_later_version_is_asked_too"),
    ),
    Mutation(
        "checks: a search and a plan ask nobody",
        "results/check.py",
        "    if stopping:",
        "    if stopping > 99:",
        tests=(ENDS,),
    ),
    Mutation(
        "checks: a run that changes nothing asks the source",
        "release/apply.py",
        "        if self.force or not run.nothing_changed():",
        "        run.findings()\n        if self.force or not run.nothing_changed():",
        tests=(ONCE,),
    ),
    Mutation(
        "checks: warnings are named each time",
        "release/taken.py",
        "if {(f.check, f.columns) for f in findings} - old else",
        "if findings else",
        tests=(ONCE,),
    ),
    Mutation(
        "checks: the ledger says of nothing that it was accepted",
        "release/taken.py",
        '"warning" if finding.because is None else "accepted"',
        '"warning"',
        tests=(ONCE,),
    ),
    Mutation(
        "checks: a report gives a reason of another spec",
        "ledger/kept.py",
        " and hashlib.sha256(text.encode()).hexdigest() == digest else None",
        " else None",
        tests=(f"{CHECKED}::test_a_reason_whose_spec_was_altered_is_not_given",),
    ),
    Mutation(
        "checks: readers get the page of what is taken for granted",
        "report/pages/officers.py",
        "taken_page, internal=True",
        "taken_page",
        tests=(f"{CHECKED}::test_the_report_has_what_the_ledger_recorded",),
    ),
    Mutation(
        "checks: a block that no model lets stand is one group",
        "checks/groups.py",
        "max(2, task.least)",
        "2",
        tests=(f"{GROUPS}::test_a_block_that_a_model_suppresses_is_none",),
    ),
    Mutation(
        "checks: who has no household is of the one beside them",
        "checks/groups.py",
        "sa.and_(sa.func.count(v) == n, sa.func.min(v) == sa.func.max(v))",
        "sa.func.min(v) == sa.func.max(v)",
        tests=(f"{GROUPS}::test_blocks_of_one_household_are_counted",),
    ),
    Mutation(
        "checks: what repeats in many rows is a group",
        "checks/groups.py",
        "values < rows <= values * values and few",
        "values < rows",
        tests=(f"{GROUPS}::test_it_is_silent_of_what_is_no_group",),
    ),
    Mutation(
        "checks: the groups that are counted are asked about",
        "checks/groups.py",
        "not in (spec.entity, spec.groups)",
        "not in (spec.entity,)",
        tests=(f"{GROUPS}::test_it_is_silent_of_what_is_no_group",),
    ),
    Mutation(
        "checks: views of views are not followed",
        "checks/volatile.py",
        "views += [] if read in views else [read]",
        "views += []",
        tests=(f"{VOLATILE}::test_views_of_views_are_followed",),
    ),
    Mutation(
        "checks: a function of another day comes before one of each reading",
        "checks/volatile.py",
        "((RANDOM, True), (DATED, False))",
        "((DATED, False), (RANDOM, True))",
        tests=(f"{VOLATILE}::test_a_function_of_a_view_is_named",),
    ),
    Mutation(
        "checks: what the condition looks at is asked about",
        "checks/history.py",
        "name in used or (part",
        "(part",
        tests=(f"{HISTORY}::test_what_the_condition_looks_at_is_no_finding",),
    ),
    Mutation(
        "checks: a day that is far away is an end",
        "checks/history.py",
        "sa.and_(value.is_not(None), value < far)",
        "value.is_not(None)",
        tests=(f"{HISTORY}::test_rows_that_are_over_are_counted",),
    ),
    Mutation(
        "checks: the time of storing is told by the name alone",
        "checks/history.py",
        "if source.columns[name].kind in DATES and STORED",
        "if STORED",
        tests=(f"{HISTORY}::test_the_time_of_storing_is_told_by_name_and_kind",),
    ),
    Mutation(
        "checks: one answer is for every finding of its kind",
        "checks/run.py",
        "reasons.get((finding.check, *finding.columns))",
        "next((a.because for a in spec.accept if a.check == finding.check), None)",
        tests=(STOPS, f"{CHECKED}::test_the_command_says_each_with_its_figure_and_remedy"),
    ),
)
