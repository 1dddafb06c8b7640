"""What of the suite runs on Spark as well, where QBLOCK_TEST_REQUIRE names it (`make test-spark`).

There a search takes seconds and a release half a minute, so each test function of what CHOSEN names, or that is for
Spark alone, runs in one case, told by the names of the cases alone, and with two examples where these are drawn; all
cases run where QBLOCK_TEST_ENGINES is `all`. Every other file whose tests run on each engine is in LEFT_OUT, with the
reason: a file that is in neither is an error.

A test marked `gap(engine, reason)` is expected to fail on that engine, and fails where it passes.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Collection

import pytest
from either import engine_of
from parts import function_of

CHOSEN = (
    "tests/api",
    "tests/cli/test_audit_command.py::test_people_are_said_where_people_are_counted",
    "tests/cli/test_init_looks.py::test_texts_that_repeat_and_texts_that_do_not_are_counted_by_row",
    "tests/cli/test_search_command.py::test_the_statements_of_a_node_can_be_run",
    "tests/examples/test_cookbook.py::test_every_query_answers_as_the_source_does",
    "tests/frequency/test_frequency_sets.py::test_entities_are_counted_once",
    "tests/frequency/test_frequency_sets.py::test_every_node_counts_the_raw_rows",
    "tests/frequency/test_frequency_sets.py::test_values_without_a_leaf_become_one_where_the_spec_says_so",
    "tests/frequency/test_samples.py::test_portions_are_all_blocks_once",
    "tests/integration/test_audits.py::test_a_prior_counts_equal_values_of_another_type",
    "tests/integration/test_audits.py::test_hostile_names",
    "tests/integration/test_audits.py::test_null_and_a_star_are_blocks_apart",
    "tests/integration/test_coarser.py::test_numbers_of_every_type_have_the_labels_that_hierarchies_give_them",
    "tests/integration/test_same.py::test_spellings_are_made_one",
    "tests/integration/test_unknown.py::test_a_code_is_null_in_every_type",
    "tests/integration/test_where.py::test_a_moment_with_a_zone_is_one_in_time",
    "tests/integration/test_where.py::test_the_rows_that_are_kept",
    "tests/integration/test_whole_lattices.py::test_random_tables",
    "tests/integration/test_worked_examples.py::test_every_node_of_the_inpatients",
    "tests/integration/test_worked_examples.py::test_several_sensitive_attributes_at_once",
    "tests/publish/test_publish_values.py::test_columns_keep_their_types_and_order_by_their_text",
    "tests/publish/test_publish_values.py::test_hostile_names_and_values",
    "tests/publish/test_publish_values.py::test_the_digest_is_the_same_on_every_engine",
    "tests/recoding/test_maps.py::test_any_order_of_rows_gives_the_same_map",
    "tests/recoding/test_maps.py::test_people_are_counted_once",
    "tests/release/test_dimension_tables.py::test_a_hierarchy_is_kept_as_a_table_that_a_spec_may_name",
    "tests/release/test_erase_missing.py::test_they_leave_at_once_with_their_cells",
    "tests/release/test_maps.py::test_the_first_version_shows_the_boxes_that_a_search_finds",
    "tests/release/test_move.py::test_a_move_that_was_stopped_is_finished_on_spark",
    "tests/release/test_release.py::test_a_refusal_leaves_the_earlier_version_published",
    "tests/release/test_release.py::test_entities_are_counted_by_the_search_and_their_rows_by_the_check",
    "tests/release/test_release.py::test_every_transition_is_in_the_ledger",
    "tests/release/test_release.py::test_one_run_at_a_time",
    "tests/release/test_release.py::test_suppressed_rows_are_not_in_the_copy",
    "tests/release/test_retire.py::test_a_retired_release_shows_nothing_until_somebody_says_so",
    "tests/release/test_rollback.py::test_readers_see_the_older_version_again",
    "tests/release/test_text_forms.py::test_timestamps_with_a_zone_are_published_in_utc",
    "tests/release/test_together.py::test_a_lone_newcomer_is_refused_and_a_group_is_published",
    "tests/release/test_verify.py::test_what_was_published_is_verified",
    "tests/releases/test_estimate.py::test_an_example_by_hand",
    "tests/search/test_compare.py::test_every_value_of_every_node",
    "tests/search/test_groups.py::test_a_search_and_an_audit_count_as_the_slow_count_does",
    "tests/search/test_guards.py::test_people_are_matched_in_the_type_of_the_source",
    "tests/search/test_projections.py::test_a_search_and_an_audit_count_as_the_slow_count_does",
    "tests/search/test_ranking.py::test_a_drawn_workload",
    "tests/search/test_weights.py::test_weighted_figures_and_the_choice_by_them",
    "tests/source/test_leaf_codes.py::test_each_person_has_a_leaf_of_each_quasi_identifier",
    "tests/source/test_leaf_codes.py::test_who_waits_for_a_hierarchy_is_left_out",
    "tests/source/test_levels.py::test_builders",
    "tests/source/test_levels.py::test_hierarchies_from_tables_and_views",
    "tests/source/test_local.py::test_people_are_told_apart_as_the_column_does",
    "tests/source/test_local.py::test_the_answer_is_the_same",
    "tests/source/test_named_values.py::test_a_null_key_is_not_the_text_null",
    "tests/source/test_named_values.py::test_every_spelling_of_a_value_is_that_value",
    "tests/source/test_named_values.py::test_null_does_not_take_the_weight_of_the_empty_string",
    "tests/source/test_named_values.py::test_text_is_compared_as_text",
    "tests/source/test_orders.py::test_ascending_is_that_of_the_column",
    "tests/source/test_sources.py::test_entities",
    "tests/source/test_sources.py::test_rows_wait_for_any_value_without_a_leaf_and_not_for_null",
    "tests/source/test_sources.py::test_the_source_is_only_read",
    "tests/source/test_types.py::test_days_beyond_the_calendar_are_values_too",
    "tests/source/test_types.py::test_every_type_as_quasi_identifier_and_sensitive",
    "tests/source/test_types.py::test_floats_are_written_exactly_and_read_back",
    "tests/source/test_types.py::test_leaves_compare_in_the_columns_own_type",
    "tests/source/test_types.py::test_what_is_no_number",
    "tests/test_engines.py",
    "tests/warehouse/test_session.py",
    "tests/warehouse/test_texts.py",
)
LEFT_OUT = {
    "tests/attack": "hundreds of runs in one test: hours",
    "tests/cli": "what commands print, of functions that are tried; init has tests/warehouse/test_spark_profile.py",
    "tests/examples": "what is written about the other engines' URLs",
    "tests/faults": "their processes are killed on Spark by tests/publish/test_spark_kills.py",
    "tests/frequency": "what is done with counts that are here is the same on every engine",
    "tests/hierarchy": "trees, labels and files: no engine has a part in them",
    "tests/integration": "hundreds of searches; CHOSEN has those that compare values, types and texts",
    "tests/integration/test_adult_engines.py": "makes databases of its own; docs/spark.md has these data on Spark",
    "tests/laws": "hundreds of searches in one test: hours",
    "tests/ledger": "ledgers, which are in DuckDB or PostgreSQL whatever is read",
    "tests/project": "programs that make databases of their own",
    "tests/publish": "SQL of readers, roles and types of the other engines; Spark has tests/publish/test_spark*.py",
    "tests/recoding": "a map is decided on coded rows that are here; CHOSEN has what is read for it",
    "tests/release": "half a minute for each run, so that CHOSEN has a sample",
    "tests/releases": "half a minute for each release; what an estimate reads has an example there",
    "tests/report": "reports on Spark have tests/publish/test_spark_helpers.py",
    "tests/search": "decided on counts that are here; CHOSEN has one of each thing that is counted there",
    "tests/source": "messages about what does not fit; CHOSEN has what is read, coded and compared",
    "tests/transcripts": "what is printed, published and sent on the other engines; digests have tests/publish",
    "tests/versions": "crosswalks, which are in DuckDB or PostgreSQL whatever is read; and runs, as tests/release",
    "tests/warehouse": "reading in parts, which Spark does not; connections, locks and poolers",
}
"""Why what is not CHOSEN does not run, by folder or file. The innermost name of either counts."""


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the runs on Spark that are not chosen, and expect those to fail that are marked as gaps."""
    cases, left_out = defaultdict(list), []
    for item in items:
        engine = engine_of(item)
        for mark in item.iter_markers("gap"):
            if mark.args[0] == engine:
                item.add_marker(pytest.mark.xfail(reason=mark.args[1], strict=True))
        if item.get_closest_marker("spark") and engine is None:
            cases[function_of(item.nodeid)].append(item)
        if engine != "spark":
            continue
        chosen, left = (nearest(item.nodeid, names) for names in (CHOSEN, LEFT_OUT))
        if len(chosen) > len(left):
            cases[function_of(item.nodeid)].append(item)
        elif left:
            left_out.append(item)
        else:
            raise pytest.UsageError(f"{item.nodeid}: tests/on_spark.py does not say whether it runs on Spark")
    if os.environ.get("QBLOCK_TEST_ENGINES") != "all":
        for found in cases.values():
            left_out += sorted(found, key=lambda item: (zlib.crc32(item.nodeid.encode()), item.nodeid))[1:]
    gone = {item.nodeid for item in left_out}
    if gone:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in gone]


def rolls_up_there(item: pytest.Item) -> bool:
    """Whether a run on Spark leaves the coded table on the cluster, as one stays there that is too large to be brought
    here: that is half of the functions."""
    return engine_of(item) == "spark" and zlib.crc32(function_of(item.nodeid).encode()) % 2 == 0


def nearest(run: str, names: Collection[str]) -> str:
    """The folder, file or function of a run that is named, the innermost of several; "" where there is none."""
    file, _, function = function_of(run).partition("::")
    parts = file.split("/")
    within = ["/".join(parts[:n]) for n in range(2, len(parts) + 1)] + [f"{file}::{function}"]
    return next((name for name in reversed(within) if name in names), "")
