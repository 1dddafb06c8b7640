"""Faults in the check of versions together: who is let in, who waits, who has left, and what is compared."""

from __future__ import annotations

from mutation.mutation import Mutation

ALTERED = "tests/release/test_altered_crosswalk.py"
APART = "tests/versions/test_apart.py"
HASHES = "tests/release/test_hashes.py"
ATTACKER = "tests/versions/test_attacker.py"
FROZEN = "tests/versions/test_frozen_in_process.py"
GATE = "tests/versions/test_gate.py"
STEADY = "tests/release/test_steady_job.py"
SAID = "tests/release/test_steady_said.py"

VERSIONS: tuple[Mutation, ...] = (
    Mutation(
        "admission: people set apart are let in",
        "versions/admission.py",
        "            query = query.where(who.not_in(sa.select(self.excluded.c.entity)))\n",
        "            query = query.where(who.is_not(None))\n",
        tests=("tests/versions/test_admission.py::test_people_set_apart_are_left_out",),
    ),
    Mutation(
        "admission: of a session in this process nobody has moved",
        "versions/admission.py",
        "sa.or_(known.c.names != layout, *differ)",
        "known.c.names != layout",
        tests=(f"{FROZEN}::test_who_moved_is_where_the_first_version_has_them",),
    ),
    Mutation(
        "admission: of a session in this process other columns are not frozen",
        "versions/admission.py",
        "sa.or_(known.c.names != layout, *differ)",
        "sa.or_(*differ)",
        tests=(f"{FROZEN}::test_columns_of_another_layout_are_frozen_though_their_texts_agree",),
    ),
    Mutation(
        "admission: who was frozen with two layouts is there twice",
        "versions/admission.py",
        "layouts is None else layouts) == 1:",
        "layouts is None else layouts) >= 1:",
        tests=("tests/versions/test_admission.py::test_a_quasi_identifier_that_is_added_later_is_frozen_from_then_on",),
    ),
    Mutation(
        "admission: only what is published is frozen",
        "versions/admission.py",
        ".where(candidate.rows.c.shown != NOTHING, known.c.entity.is_(None)),",
        '.where(candidate.rows.c.shown == "P", known.c.entity.is_(None)),',
        tests=("tests/versions/test_admission.py::test_who_was_suppressed_for_the_values_of_a_block_is_frozen",),
    ),
    Mutation(
        "source: a text that stands for bytes is taken for bytes",
        "source/open.py",
        "compared=admitted is not base)",
        "compared=False)",
        tests=("tests/release/test_later_runs.py::test_bytes_are_shown_again_as_they_were",),
    ),
    Mutation(
        "crosswalk: its digests are not compared with those of the ledger",
        "release/private_state.py",
        "problems = integrity.problems(known.parts, parts)",
        "problems = []",
        tests=(
            "tests/release/test_altered_crosswalk.py"
            "::test_a_run_counts_the_rows_of_older_versions_and_verify_reads_them",
        ),
    ),
    Mutation(
        "cohort: smaller than a block must be",
        "versions/withdrawals.py",
        "    if declared < least:",
        "    if declared < 0:",
        tests=(f"{APART}::test_a_cohort_is_no_smaller_than_any_block",),
    ),
    Mutation(
        "gate: people who are counted otherwise are checked together",
        "versions/gate.py",
        "        if version.counted != spec.counted:\n",
        "        if not version.counted:\n",
        tests=("tests/release/test_bundles.py::test_people_are_not_counted_otherwise_later",),
    ),
    Mutation(
        "versions: how people are counted is not recorded",
        "versions/recorded.py",
        'return text if spec.counted == "rows" else',
        "return text if spec.counted else",
        tests=("tests/release/test_bundles.py::test_people_are_not_counted_otherwise_later",),
    ),
    Mutation(
        "crosswalk: a version that is recorded is not in what was read before",
        "versions/recorded.py",
        "    crosswalk.read.clear()\n    same: list",
        "    same: list",
        tests=("tests/versions/test_gate.py",),
    ),
    Mutation(
        "lag: what was decided does not outlast the run",
        "versions/policy/batched.py",
        "                keep(crosswalk, self.spec.release, decision)\n",
        "                crosswalk.key_numbers()\n",
        tests=(f"{STEADY}::test_a_run_that_stops_after_a_batch_closed_lets_nobody_join_it",),
    ),
    Mutation(
        "lag: a dry run is kept",
        "versions/policy/batched.py",
        "        if not self.dry:\n            with open_crosswalk",
        "        if kept:\n            with open_crosswalk",
        tests=(f"{SAID}::test_a_dry_run_tells_the_ledger_alone_what_a_run_would_come_to",),
    ),
    Mutation(
        "lag: who withdrew counts as present",
        "versions/pending/decision.py",
        "    withdrawn = {*queued, *entities_apart(",
        "    withdrawn = {*entities_apart(",
        tests=(f"{STEADY}::test_people_who_withdraw_leave_by_the_rules_of_leavers",),
    ),
    Mutation(
        "lag: the distribution of a model moves",
        "versions/policy/batched.py",
        'not needs & {"distribution", "domain"}',
        'needs & {"distribution", "domain"}',
        tests=(f"{STEADY}::test_the_distribution_that_models_compare_with_is_that_of_the_first_version",),
    ),
    Mutation(
        "lag: an edited hierarchy leaves joint cells as they were",
        "versions/pending/differences.py",
        "t.c.block != loaded.c.label)).to_pylist()",
        "t.c.block == t.c.cell)).to_pylist()",
        tests=(f"{STEADY}::test_an_edit_of_a_hierarchy_splits_the_cells_of_those_whom_it_moves",),
    ),
    Mutation(
        "lag: units whose values nobody has any more are in another block",
        "versions/pending/differences.py",
        "replace(source, relation=shown, dimensions=dimensions, hierarchies=hierarchies, compared=True), node",
        "replace(source, relation=shown, compared=True), node",
        tests=("tests/release/test_bundles.py::test_ranges_follow_the_values_there_are_and_move_nobody",),
    ),
    Mutation(
        "lag: a release that was published before merges its joint cells",
        "versions/pending/baseline.py",
        '        cell = Cell(block_of(row["label"]), 1, (), was)\n',
        '        cell = Cell(block_of(row["label"]), 1, ())\n',
        tests=(f"{STEADY}::test_a_release_that_was_published_before_goes_on_with_what_its_newest_version_shows",),
    ),
    Mutation(
        "lag: a state outlives a version that shows the source",
        "versions/policy/exact.py",
        "        set_down(crosswalk, self.spec.release)\n",
        "        pass\n",
        tests=(f"{STEADY}::test_a_release_that_lags_no_more_forgets_what_it_showed",),
    ),
    Mutation(
        "unchanged: which version was awaited last is looked at for ever",
        "versions/pending/state.py",
        'if kept.get("awaits") != newest:',
        'if kept.get("awaits") is None:',
        tests=("tests/release/test_unchanged.py::test_the_second_run_after_a_version_codes_nothing",),
    ),
    Mutation(
        "lag: versions that do not lag thaw a frozen cell",
        "versions/pending/state.py",
        'if _read(crosswalk, release).get("form") != SET_DOWN:',
        'if _read(crosswalk, release).get("form") is not None:',
        tests=(f"{STEADY}::test_a_cell_that_failed_is_left_alone_also_after_versions_that_did_not_lag",),
    ),
    Mutation(
        "lag: a refused first version is tried again",
        "versions/policy/batched.py",
        "            if refused and not self.forced:\n",
        "            if refused and self.forced:\n",
        tests=("tests/release/test_steady_first.py::test_it_is_not_tried_again_whoever_comes",),
    ),
    Mutation(
        "crosswalk: rows that a run takes away stay in the digest",
        "versions/crosswalk.py",
        "Sums()).plus(after).minus(before)",
        "Sums()).plus(after)",
        tests=("tests/release/test_concerned.py::test_a_run_decides_the_same_by_fewer_people",),
    ),
    Mutation(
        "lag: stale cells stay whatever the spec says",
        "versions/pending/decision.py",
        "        stale=spec.versions.stale,\n",
        "        stale=None,\n",
        tests=(
            "tests/release/test_steady_policy.py::test_every_version_shows_what_the_policy_decides_of_two_attributes",
        ),
    ),
    Mutation(
        "lag: people share a batch whose values changed in different attributes",
        "versions/pending/decision.py",
        "        change=(_counted if spec.by_rows else _grew) if spec.bundles else _change,\n",
        "        change=lambda *_: (),\n",
        tests=(
            "tests/release/test_steady_policy.py::test_every_version_shows_what_the_policy_decides_of_two_attributes",
        ),
    ),
    Mutation(
        "lag: leavers go where the first attribute lets them",
        "versions/batching/proposals.py",
        "zip(each, rules.ls, rules.models, strict=True)]\n",
        "zip(each, rules.ls[:1], rules.models)]\n",
        tests=("tests/steady/test_counterexamples.py::test_leavers_go_only_where_every_attribute_lets_them",),
    ),
    Mutation(
        "audience: who names this release is not asked",
        "versions/gate.py",
        "    named |= {release for release, v in newest.items() if spec.release in v.audience}\n",
        "    named &= newest.keys()\n",
        tests=(f"{GATE}::test_a_release_that_names_this_one_is_checked_with_it_too",),
    ),
    Mutation(
        "audience: what came meanwhile may be more",
        "versions/gate.py",
        "members(spec, recorded(crosswalk))} == set(verdict.considered)",
        "members(spec, recorded(crosswalk))} >= set(verdict.considered)",
        tests=(f"{GATE}::test_a_version_recorded_meanwhile_is_seen_at_publication",),
    ),
    Mutation(
        "gate: whoever knows who changed is forgotten",
        "versions/gate.py",
        "    return verdict if linked.passed else linked\n",
        "    return verdict if linked.versions else linked\n",
        tests=(
            f"{ATTACKER}::test_the_gate_holds_both_rules_at_once",
            "tests/release/test_changed.py::test_one_who_comes_among_those_who_changed_is_known_by_who_changed",
        ),
    ),
    Mutation(
        "gate: whoever does not know who changed is forgotten",
        "versions/gate.py",
        '    verdict, latest = judged(mode or "episodes")\n',
        '    verdict, latest = judged(mode or "linked")\n',
        tests=(f"{ATTACKER}::test_the_gate_holds_both_rules_at_once",),
    ),
    Mutation(
        "gate: that nobody changed is asked of shown cells alone",
        "versions/episodes.py",
        '            sa.func.max(sa.func.max(rows.c.episode)).over().label("latest"),\n',
        '            sa.func.max(rows.c.episode).label("latest"),\n',
        tests=(f"{ATTACKER}::test_the_gate_holds_both_rules_at_once",),
    ),
    Mutation(
        "gate: a cell has the quantities of the newest version",
        "versions/gate.py",
        "            if not any(model.needs for model in requirement.models):\n                todo[mask] = False",
        "            if requirement.models:\n                todo[mask] = False",
        tests=(f"{GATE}::test_a_cell_is_held_against_the_quantities_of_each_version_that_shows_it",),
    ),
    Mutation(
        "withdrawal: a batch that failed is topped up",
        "versions/withdrawals.py",
        "set(entities_apart(crosswalk, spec.release, [OUT, LEAVING, FAILED]))",
        "set(entities_apart(crosswalk, spec.release, [OUT, LEAVING]))",
        tests=(
            f"{APART}::test_a_batch_of_leavers_closes_by_size_and_both_parts_must_pass",
            "tests/release/test_waiting.py::test_a_batch_of_one_value_stays_in_and_is_not_topped_up",
        ),
    ),
    Mutation(
        "withdrawal: who leaves at once leaves alone",
        "versions/withdrawals.py",
        "query = sa.select(cells.c.entity, cells.c.cell).where(cells.c.cell.in_(theirs)).distinct()",
        "query = sa.select(cells.c.entity, cells.c.cell).where(cells.c.entity.in_(sa.select(wanted.c.entity)))",
        tests=(
            f"{APART}::test_leaving_at_once_takes_whole_joint_cells",
            f"{STEADY}::test_who_changed_with_others_leaves_at_once_with_these_alone",
        ),
    ),
    Mutation(
        "padding: as many rows as people who wait",
        "versions/crosswalk.py",
        "    return max(LEAST, 1 << (rows - 1).bit_length()) if rows else LEAST",
        "    return rows",
        tests=("tests/release/test_waiting_counters.py::test_how_many_people_wait_is_told_to_no_other_login",),
    ),
    Mutation(
        "turnover: those who went and those who came make up for each other",
        "versions/people.py",
        "ONE_IN * max(self.went, self.came)",
        "ONE_IN * abs(self.came - self.went)",
        tests=("tests/release/test_turnover.py::test_an_entity_column_that_was_recoded_makes_nobody_new",),
    ),
    Mutation(
        "types: floats of two widths write values alike",
        "engines/values.py",
        "return same and is_single(left) == is_single(right)",
        "return same",
        tests=("tests/release/test_retype_crosswalk.py::test_releases_of_one_audience_write_values_alike",),
    ),
    Mutation(
        "types: a narrower one is cast to from what a release that lags shows",
        "versions/pending/differences.py",
        "if name in other and text is not None and not fits(text, columns[name]):",
        "if name in other and text is None:",
        tests=(
            "tests/release/test_type_classes.py::test_a_release_that_lags_keeps_a_type_that_holds_whom_it_still_shows",
        ),
    ),
    Mutation(
        "private state: a run decides by tables of which marks alone were compared",
        "release/apply.py",
        "        run.compare_in_full()\n",
        "",
        tests=(f"{ALTERED}::test_rows_that_have_the_mark_of_others_are_found_before_anything_is_decided",),
    ),
    Mutation(
        "private state: a table that was marked counts as it was, whatever is in it",
        "versions/integrity.py",
        "return kept is not None and kept == marks(own, t, release)",
        "return kept is not None",
        tests=(f"{ALTERED}::test_marks_tell_what_was_done_to_a_table",),
    ),
    Mutation(
        "private state: what is shown of somebody is in no digest",
        "versions/integrity.py",
        'if column.key != "release"])',
        'if column.key not in ("release", "value")])',
        tests=(f"{ALTERED}::test_a_steady_job_notices_what_was_done_to_any_table",),
    ),
    Mutation(
        "private state: where marks do nobody counts the rows of older versions",
        "versions/integrity.py",
        "or name == _name(t.row.name, newest)",
        'or name.startswith(f"{t.row.name}/")',
        tests=(f"{ALTERED}::test_where_marks_do_the_rows_of_older_versions_are_counted_too",),
    ),
    Mutation(
        "hashes: a cluster is lent the key",
        "versions/crosswalk.py",
        "return not self.source.keeps_secrets",
        "return False",
        tests=(f"{HASHES}::test_the_source_is_lent_no_key",),
    ),
    Mutation(
        "hashes: who was sent with some of the rows stands for everybody",
        "versions/crosswalk.py",
        "if whose and self.source.is_copy(table):",
        "if whose:",
        tests=(f"{HASHES}::test_whoever_was_sent_with_a_copy_is_not_sent_again",),
    ),
    Mutation(
        "hashes: the digests of everybody go when the source is opened again",
        "engines/session.py",
        "(*keep, *self.lasting.values())",
        "keep",
        tests=(f"{HASHES}::test_whoever_was_sent_with_a_copy_is_not_sent_again",),
    ),
    Mutation(
        "hashes: a release goes on with digests of another kind, in which nobody is the same",
        "versions/recorded.py",
        "if own[-1].first.hashed != crosswalk.hashes:",
        "if own[-1].first.hashed is None:",
        tests=(f"{HASHES}::test_a_release_of_texts_does_not_go_on_with_hashes",),
    ),
    Mutation(
        "hashes: releases with digests of two kinds are checked together",
        "versions/admission.py",
        "if first.hashed != theirs.first.hashed:",
        "if first.hashed is None:",
        tests=(f"{HASHES}::test_releases_of_texts_and_of_hashes_have_no_readers_in_common",),
    ),
)
