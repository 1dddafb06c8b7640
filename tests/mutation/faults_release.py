"""Faults in the job: what stops a release, a rollback or an erasure from showing what it must not."""

from __future__ import annotations

from mutation.mutation import Mutation

ROLLBACK = "tests/release/test_rollback.py"
FAULTS = "tests/release/test_faults.py"
MISSING = "tests/release/test_erase_missing.py"
NODES = "tests/release/test_full_domain_cohorts.py"

RELEASE: tuple[Mutation, ...] = (
    Mutation(
        "rollback: who has withdrawn is shown again",
        "release/rollback.py",
        "return self.version in common.showing_withdrawn(self.spec, self.store)",
        "return False",
        tests=("tests/release/test_together.py::test_a_version_that_shows_who_has_left_is_not_published_again",),
    ),
    Mutation(
        "retire: the next version has other boxes",
        "release/apply.py",
        "run.store, run.ledger.latest, run.ledger.baseline)",
        "run.store, run.ledger.current, run.ledger.baseline)",
        tests=(f"{NODES}::test_a_release_that_was_retired_goes_on_with_the_boxes_that_it_had",),
    ),
    Mutation(
        "node: newcomers are shown otherwise than by the versions before",
        "release/maps.py",
        'if (stated is not None) != spec.by_boxes and current.joint == "episodes":',
        "if current is None:",
        tests=(
            f"{NODES}::test_all_versions_have_the_same_node_and_show_newcomers_alike",
            f"{NODES}::test_cohorts_begin_with_a_first_version",
        ),
    ),
    Mutation(
        "rollback: an erasure is of its own version alone",
        "release/rollback.py",
        'e.state == "erased" and e.number > self.event.number for e',
        'e.state == "erased" and e.version == self.version for e',
        tests=(f"{ROLLBACK}::test_an_erasure_since_then",),
    ),
    Mutation(
        "rollback: the copy's rows are counted and not read",
        "release/rollback.py",
        "        if content_digest(rows.session, rows.rows, columns) != self.event.content_digest:\n",
        "        if columns != self.kept.columns:\n",
        tests=(f"{ROLLBACK}::test_a_copy_that_was_altered",),
    ),
    Mutation(
        "rollback: altered reference quantities",
        "release/rollback.py",
        "if text is None or kept_digest(text) != self.event.reference_digest:",
        "if text is None:",
        tests=(f"{ROLLBACK}::test_evidence_that_was_altered",),
    ),
    Mutation(
        "release: the copy's content is not what was read",
        "release/apply.py",
        "    if content_digest(rows.session, rows.rows, chosen.copy.columns) != chosen.digest:\n",
        "    if counted.total != chosen.copy.rows:\n",
        tests=(
            f"{FAULTS}::test_a_copy_that_differs_by_one_row_is_not_published",
            f"{FAULTS}::test_a_copy_that_was_changed_after_it_was_staged_is_not_published",
        ),
    ),
    Mutation(
        "release: the lock is not asked for before readers see",
        "release/apply.py",
        "        run.lock.check()\n        roles.judge(run.spec, run.store, run.identity, running=True)\n        if",
        "        roles.judge(run.spec, run.store, run.identity, running=True)\n        if",
        tests=(f"{FAULTS}::test_a_lock_that_was_lost_stops_the_publication",),
    ),
    Mutation(
        "release: other content is that of the newest version alone",
        "release/apply.py",
        "for version, digest in run.ledger.digests.items() if digest != run.chosen.digest]",
        "for version, digest in [*run.ledger.digests.items()][-1:] if digest != run.chosen.digest]",
        tests=("tests/release/test_release.py::test_a_version_that_was_replaced_still_counts_as_read",),
    ),
    Mutation(
        "release: what an audience was shown meanwhile",
        "release/apply.py",
        "    if not common.still_complete(run.spec, run.store,",
        "    if False and not common.still_complete(run.spec, run.store,",
        tests=("tests/release/test_together.py::test_what_the_same_readers_are_shown_meanwhile_is_not_added_to",),
    ),
    Mutation(
        "roles: who exposes a column waives its protection",
        "release/roles.py",
        "if protector.waived or (own and self.mine.waived):",
        "if protector.waived or self.mine.waived:",
        tests=("tests/release/test_audience_roles.py::test_only_the_release_whose_column_is_exposed_can_waive_it",),
    ),
    Mutation(
        "roles: who was given the view of another release since is not asked",
        "release/roles.py",
        "        mine, theirs = {*self.readers, *here}, {*recorded, *there}\n",
        "        mine, theirs = {*self.readers, *here}, {*recorded}\n",
        tests=("tests/release/test_audience_roles.py::test_a_reader_who_gets_both_later_is_found_by_both",),
    ),
    Mutation(
        "retire: versions that show who has left are kept",
        "release/run.py",
        "withdrawn = common.showing_withdrawn(self.spec, self.store)",
        "withdrawn: list[int] = []",
        tests=(
            "tests/release/test_waiting.py::test_who_leaves_at_once_takes_whole_joint_cells",
            "tests/release/test_waiting.py::test_who_withdraws_leaves_in_a_batch_that_passes",
        ),
    ),
    Mutation(
        "private state: somebody is known to have left",
        "release/private_state.py",
        "if crosswalk is None or crosswalk.out >= known.left:",
        "if crosswalk is None or crosswalk.there:",
        tests=("tests/release/test_stamps.py::test_people_who_have_left_are_not_shown_again_by_a_lost_crosswalk",),
    ),
    Mutation(
        "erase: whoever says no is not heard",
        "release/erase.py",
        "        if not run.agree(run.sharing):\n",
        "        if run.agree(run.sharing) is None:\n",
        tests=("tests/release/test_erase_asks.py::test_whoever_is_not_agreed_to_stays",),
    ),
    Mutation(
        "erase: who leaves along is not counted",
        "versions/withdrawals.py",
        "    return Sharing(leaving=len(leaving), companions=companions, cells=removal.cells, staying=staying)\n",
        "    return Sharing(leaving=len(leaving), companions=0, cells=removal.cells, staying=staying)\n",
        tests=("tests/release/test_erase_asks.py::test_a_plan_counts_what_an_erasure_does",),
    ),
    Mutation(
        "erase: everybody is missing from an empty source",
        "versions/people.py",
        "        raise Refused(EMPTY.format(no_rows(spec)))\n",
        "        pass\n",
        tests=(f"{MISSING}::test_a_source_that_is_empty_is_no_reason_to_take_everybody_out",),
    ),
    Mutation(
        "erase: any number may be missing",
        "release/erase.py",
        "    if request.confirm is None and people.ONE_IN * number > absent.people:\n",
        "    if request.confirm is None and number > absent.people:\n",
        tests=(f"{MISSING}::test_more_than_a_fifth_has_to_be_confirmed_by_its_number",),
    ),
    Mutation(
        "erase: another number than was confirmed",
        "release/erase.py",
        "    if request.confirm not in (None, number):\n",
        "    if request.confirm is not None and request.confirm < 0:\n",
        tests=(f"{MISSING}::test_more_than_a_fifth_has_to_be_confirmed_by_its_number",),
    ),
    Mutation(
        "erase: who is there is missing too",
        "versions/people.py",
        "query.where(left, here.c.entity.is_(None))",
        "query.where(left)",
        tests=(f"{MISSING}::test_they_leave_at_once_with_their_cells",),
    ),
    Mutation(
        "erase: whom readers see still is not missing any more",
        "versions/people.py",
        "sa.select(t.c.entity).where(*withdrawn, t.c.entity.not_in(seen))",
        "sa.select(t.c.entity).where(*withdrawn)",
        tests=(f"{MISSING}::test_whom_readers_see_still_is_tried_again",),
    ),
)
