"""Faults in the check of versions together: who is let in, who waits, who has left, and what is compared."""

from __future__ import annotations

from mutation.mutation import Mutation

APART = "tests/joint/test_apart.py"
GATE = "tests/joint/test_gate.py"

JOINT: tuple[Mutation, ...] = (
    Mutation(
        "admission: people set apart are let in",
        "joint/admission.py",
        "            query = query.where(who.not_in(sa.select(self.apart.c.entity)))\n",
        "            query = query.where(who.is_not(None))\n",
        tests=("tests/joint/test_admission.py::test_people_set_apart_are_left_out_and_newcomers_wait_unless_admitted",),
    ),
    Mutation(
        "admission: only what is published is frozen",
        "joint/admission.py",
        ".where(found.rows.c.shown != NOTHING, known.c.entity.is_(None)),",
        '.where(found.rows.c.shown == "P", known.c.entity.is_(None)),',
        tests=("tests/joint/test_admission.py::test_who_was_suppressed_for_the_values_of_a_block_is_frozen",),
    ),
    Mutation(
        "cohort: one of them closes too early",
        "joint/cohorts.py",
        "for key, found in sorted(blocks.items()) if len(found) >= size]",
        "for key, found in sorted(blocks.items()) if len(found) >= size - 1]",
        tests=(f"{APART}::test_newcomers_wait_by_block_and_size",),
    ),
    Mutation(
        "cohort: smaller than a block must be",
        "joint/cohorts.py",
        "if asked is None or asked < least:",
        "if asked is None:",
        tests=(f"{APART}::test_a_cohort_needs_a_size",),
    ),
    Mutation(
        "audience: who names this release is not asked",
        "joint/gate.py",
        "    named |= {release for release, v in newest.items() if spec.release in v.audience}\n",
        "    named &= newest.keys()\n",
        tests=(f"{GATE}::test_a_release_that_names_this_one_is_checked_with_it_too",),
    ),
    Mutation(
        "audience: what came meanwhile may be more",
        "joint/gate.py",
        "members(spec, recorded(book))} == set(verdict.considered)",
        "members(spec, recorded(book))} >= set(verdict.considered)",
        tests=(f"{GATE}::test_a_version_recorded_meanwhile_is_seen_at_publication",),
    ),
    Mutation(
        "gate: a cell has the quantities of the newest version",
        "joint/gate.py",
        "            if not any(model.needs for model in requirement.models):\n                todo[mask] = False",
        "            if requirement.models:\n                todo[mask] = False",
        tests=(f"{GATE}::test_a_cell_is_held_against_the_quantities_of_each_version_that_shows_it",),
    ),
    Mutation(
        "withdrawal: a batch that failed is topped up",
        "joint/withdrawals.py",
        "set(entities_apart(book, spec.release, [OUT, LEAVING, FAILED]))",
        "set(entities_apart(book, spec.release, [OUT, LEAVING]))",
        tests=(
            f"{APART}::test_a_batch_of_leavers_closes_by_size_and_both_parts_must_pass",
            "tests/release/test_waiting.py::test_a_batch_of_one_value_stays_in_and_is_not_topped_up",
        ),
    ),
    Mutation(
        "withdrawal: who leaves at once leaves alone",
        "joint/withdrawals.py",
        "query = sa.select(one.c.entity).where(one.c.running, one.c.cell.in_(theirs)).distinct()",
        "query = sa.select(one.c.entity).where(one.c.cell.in_(theirs), ~one.c.running).distinct()",
        tests=(f"{APART}::test_leaving_at_once_takes_whole_joint_cells",),
    ),
    Mutation(
        "turnover: those who went and those who came make up for each other",
        "joint/turnover.py",
        "ONE_IN * max(self.went, self.came)",
        "ONE_IN * abs(self.came - self.went)",
        tests=("tests/release/test_turnover.py::test_an_entity_column_that_was_recoded_makes_nobody_new",),
    ),
)
