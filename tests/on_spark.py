"""What of the suite runs on Spark as well, where QBLOCK_TEST_REQUIRE names it (`make test-spark`).

There a search takes seconds and a release half a minute, so each test function of what CHOSEN names runs in one case,
told by the names of the cases alone, and with two examples where these are drawn; in all of them where
QBLOCK_TEST_ENGINES is `all`. Every other file whose tests run on each engine is in LEFT_OUT, with the reason: a file
that is in neither is an error.

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
    "tests/cli/test_audit_command.py",
    "tests/cli/test_search_command.py",
    "tests/examples/test_cookbook.py",
    "tests/frequency",
    "tests/hierarchy",
    "tests/integration",
    "tests/publish/test_mark.py",
    "tests/publish/test_publish.py::test_the_published_rows_are_those_computed_by_hand",
    "tests/publish/test_publish_values.py::test_columns_keep_their_types_and_order_by_their_text",
    "tests/publish/test_publish_values.py::test_hostile_names_and_values",
    "tests/publish/test_publish_values.py::test_identifying_and_unnamed_columns_are_nowhere",
    "tests/publish/test_publish_values.py::test_null_is_mapped_where_the_spec_says_so",
    "tests/publish/test_publish_values.py::test_the_digest_is_the_same_on_every_engine",
    "tests/recoding",
    "tests/release/test_dimension_tables.py",
    "tests/release/test_erase_missing.py::test_they_leave_at_once_with_their_cells",
    "tests/release/test_maps.py::test_the_first_version_shows_the_boxes_that_a_search_finds",
    "tests/release/test_move.py::test_a_move_that_was_stopped_is_finished_on_spark",
    "tests/release/test_move.py::test_a_moved_release_goes_on_with_its_evidence",
    "tests/release/test_move.py::test_a_release_is_moved_to_another_view_and_source_under_its_name",
    "tests/release/test_move.py::test_a_retired_release_stays_retired_when_it_is_moved",
    "tests/release/test_move.py::test_the_earlier_name_and_view_are_gone",
    "tests/release/test_next_version.py::test_leavers_and_changed_values_are_counted",
    "tests/release/test_release.py::test_a_pinned_node_that_fails_is_refused",
    "tests/release/test_release.py::test_a_plan_writes_nothing_and_names_the_steps_that_are_run",
    "tests/release/test_release.py::test_a_refusal_leaves_the_earlier_version_published",
    "tests/release/test_release.py::test_an_empty_source_is_refused",
    "tests/release/test_release.py::test_another_spec_with_the_same_content_is_published_anew",
    "tests/release/test_release.py::test_changed_data_is_refused_unless_the_spec_gives_up_joint_protection",
    "tests/release/test_release.py::test_entities_are_counted_by_the_search_and_their_rows_by_the_check",
    "tests/release/test_release.py::test_every_transition_is_in_the_ledger",
    "tests/release/test_release.py::test_one_run_at_a_time",
    "tests/release/test_release.py::test_several_sensitive_attributes_and_a_model_over_both",
    "tests/release/test_release.py::test_suppressed_rows_are_not_in_the_copy",
    "tests/release/test_release.py::test_what_nothing_satisfies_is_refused_and_recorded",
    "tests/release/test_repeated_people.py::test_rows_of_one_person_are_said_to_be_rows",
    "tests/release/test_retire.py::test_a_retired_release_shows_nothing_until_somebody_says_so",
    "tests/release/test_retype.py::test_the_crossing_node_is_refused_while_nothing_changes",
    "tests/release/test_rollback.py::test_readers_see_the_older_version_again",
    "tests/release/test_steady_job.py::test_changed_values_are_shown_together_and_others_as_they_were",
    "tests/release/test_text_forms.py::test_timestamps_with_a_zone_are_published_in_utc",
    "tests/release/test_together.py::test_a_lone_newcomer_is_refused_and_a_group_is_published",
    "tests/release/test_turnover.py::test_exactly_a_fifth_may_go_or_come_and_one_more_may_not",
    "tests/release/test_verify.py::test_nothing_published_is_refused",
    "tests/release/test_verify.py::test_what_was_published_is_verified",
    "tests/releases/test_estimate.py::test_an_example_by_hand",
    "tests/search",
    "tests/source",
    "tests/test_engines.py",
    "tests/warehouse/test_session.py",
    "tests/warehouse/test_texts.py",
)
LEFT_OUT = {
    "tests/attack": "hundreds of runs in one test: hours",
    "tests/cli": "what commands print, of functions that are tried; init has tests/warehouse/test_spark_profile.py",
    "tests/examples": "what is written about the other engines' URLs",
    "tests/faults": "their processes are killed on Spark by tests/publish/test_spark_kills.py",
    "tests/integration/test_adult_engines.py": "makes databases of its own; docs/spark.md has these data on Spark",
    "tests/versions": "crosswalks, which are in DuckDB or PostgreSQL whatever is read; and runs, as tests/release",
    "tests/laws": "hundreds of searches in one test: hours",
    "tests/ledger": "ledgers, which are in DuckDB or PostgreSQL whatever is read",
    "tests/project": "programs that make databases of their own",
    "tests/publish": "SQL of readers, roles and types of the other engines; Spark has tests/publish/test_spark*.py",
    "tests/release": "half a minute for each run, so that CHOSEN has a sample",
    "tests/releases": "half a minute for each release; what an estimate reads has an example there",
    "tests/report": "reports on Spark have tests/publish/test_spark_helpers.py",
    "tests/transcripts": "what is printed, published and sent on the other engines; digests have tests/publish",
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
