"""Faults in the policy of the steady job: each is a rule left out that keeps somebody's value from being told."""

from __future__ import annotations

from mutation.mutation import Mutation

STEP = "tests/steady/test_step.py"
NEWCOMERS = "tests/steady/test_newcomers.py"

STEADY: tuple[Mutation, ...] = (
    Mutation(
        "steady: leavers go whatever their cell shows",
        "versions/batching/proposals.py",
        "        return sure or leaves_candidates(columns, m)\n",
        "        return True\n",
        tests=(f"{STEP}::test_leavers_stay_where_failing_would_tell_who_they_are",),
    ),
    Mutation(
        "steady: leavers go where failing tells who stays",
        "versions/batching/failing.py",
        "    return _holds_enough(columns, m) and _holds_enough(columns, n - m)\n",
        "    return _holds_enough(columns, m) and n > m\n",
        tests=("tests/steady/test_counterexamples.py::test_the_rules_of_the_job_do_not",),
    ),
    Mutation(
        "steady: whoever waits longest by the values goes first",
        "versions/batching/proposals.py",
        "0 if entity in pending else memory.since",
        "memory.since",
        tests=(f"{STEP}::test_those_who_are_gone_longest_go_first",),
    ),
    Mutation(
        "steady: bundles go whatever their cell shows",
        "versions/batching/proposals.py",
        "[held(value) for value, n in part.items() if n >= m]",
        "[held(value) for value in part]",
        tests=(
            "tests/steady/test_laws.py::test_the_plain_rules_publish_what_the_engine_does_where_people_have_several_rows",
        ),
    ),
    Mutation(
        "steady: what many have may be in all bundles",
        "versions/batching/proposals.py",
        " and not frozenset.intersection(*bundles)",
        "",
        tests=("tests/steady/test_counterexamples.py::test_the_rules_of_the_job_do_not",),
    ),
    Mutation(
        "steady: newcomers are shown whose bundle changed while they waited",
        "versions/batching/step.py",
        'reasons[entity] = "changed"',
        "pass",
        tests=("tests/steady/test_counterexamples.py::test_the_rules_of_the_job_do_not",),
    ),
    Mutation(
        "steady: newcomers are shown whose rows may have moved",
        "versions/batching/step.py",
        'reasons[entity] = "moved"',
        "pass",
        tests=("tests/steady/test_moved_rows.py::test_nobody_is_certain_whose_rows_move",),
    ),
    Mutation(
        "steady: two units that a row may have moved between are shown as changed",
        "versions/batching/step.py",
        "p._replace(times=p.times + 1) if entity in moving else p",
        "p",
        tests=(f"{STEP}::test_units_of_one_person_that_change_in_one_run_are_not_shown_as_changed",),
    ),
    Mutation(
        "lag: a batch of bundles passes in which everybody holds one value",
        "versions/gate.py",
        "if held_by_all(cells, len(spec.sensitives)).any():",
        "if False:",
        tests=("tests/release/test_bundles.py::test_every_version_shows_what_the_policy_decides",),
    ),
    Mutation(
        "lag: newcomers share a batch whatever it is known that they have rows",
        "versions/pending/differences.py",
        "return _by_rows(changes) if source.spec.by_rows else changes",
        "return changes",
        tests=("tests/release/test_bundles.py::test_every_version_shows_what_the_policy_decides",),
    ),
    Mutation(
        "joint: people share a cell whatever it is known that they have rows",
        "versions/recorded.py",
        "return _by_rows(crosswalk, proposed) if spec.by_rows else proposed",
        "return proposed",
        tests=("tests/release/test_bundles.py::test_a_lone_number_of_rows_is_refused_where_it_may_be_known",),
    ),
    Mutation(
        "gate: a cell of bundles passes in which everybody holds one value",
        "versions/gate.py",
        "common |= blocks.largest == people",
        "pass",
        tests=("tests/release/test_bundles.py::test_a_value_that_everybody_holds_is_refused",),
    ),
    Mutation(
        "steady: a cell is not frozen when a batch of it fails",
        "versions/batching/step.py",
        "            self.frozen.add(batch.cell)\n            return False\n",
        "            return False\n",
        tests=(f"{STEP}::test_leavers_go_where_even_failing_leaves_candidates",),
    ),
    Mutation(
        "steady: who stays when a stale cell goes is a newcomer again",
        "versions/batching/step.py",
        '"stale" if entity in present else "left") for entity in batch.members)',
        '"left") for entity in batch.members if entity not in present)',
        tests=(f"{STEP}::test_a_small_or_frozen_cell_that_most_have_left_goes_whole",),
    ),
    Mutation(
        "steady: newcomers who failed are tried again",
        "versions/batching/step.py",
        '            self.out.update((entity, "failed") for entity in batch.members)\n',
        "            pass\n",
        tests=(f"{STEP}::test_newcomers_who_fail_are_out_for_good_and_not_topped_up",),
    ),
    Mutation(
        "steady: who was taken out is a newcomer again",
        "versions/batching/step.py",
        '        self.out.update((entity, "left") for entity in batch.members)\n',
        "",
        tests=(f"{STEP}::test_leavers_go_where_even_failing_leaves_candidates",),
    ),
    Mutation(
        "steady: who changed twice is shown as changed",
        "versions/batching/proposals.py",
        "pending[entity].times == 1]",
        "pending[entity].times >= 1]",
        tests=(f"{STEP}::test_a_value_that_changed_once_is_shown_and_one_that_changed_twice_is_not",),
    ),
    Mutation(
        "steady: the coin is never thrown",
        "versions/batching/rules.py",
        "    coin = not symmetric and not by_sizes\n",
        "    coin = False\n",
        tests=(f"{STEP}::test_the_coin_sets_newcomers_aside_for_good_where_the_models_need_one",),
    ),
    Mutation(
        "steady: a batch that cannot fail is let go with models that look at shares",
        "versions/batching/rules.py",
        'sure=all(model.about.steady in ("sizes", "symmetric") for model in models)',
        "sure=True",
        tests=(f"{STEP}::test_leavers_go_where_they_cannot_fail_unless_a_model_looks_at_shares",),
    ),
    Mutation(
        "steady: only who withdraws goes at once",
        "versions/batching/proposals.py",
        "            yield Batch(Kind.ERASED, cell, tuple(people))\n",
        "            yield Batch(Kind.ERASED, cell, tuple(entity for entity in people if entity in erased))\n",
        tests=(f"{STEP}::test_who_withdraws_goes_at_once_with_the_whole_cell",),
    ),
    Mutation(
        "steady: a cohort closes in every run",
        "versions/batching/proposals.py",
        "        if len(people) < least or not due(waiting.run, min(waiting.since.values())):\n",
        "        if len(people) < least:\n",
        tests=(f"{NEWCOMERS}::test_all_who_wait_are_shown_in_runs_that_the_delay_divides",),
    ),
    Mutation(
        "steady: nobody waits too long",
        "versions/batching/proposals.py",
        "run % runs == 0 or run - since >= runs",
        "run % runs == 0",
        tests=(f"{NEWCOMERS}::test_fewer_than_a_box_wait_on_and_close_with_the_first_who_complete_it",),
    ),
    Mutation(
        "steady: a cohort may be smaller than a box",
        "versions/batching/proposals.py",
        "        if len(people) < least or not due",
        "        if not due",
        tests=(f"{NEWCOMERS}::test_fewer_than_a_box_wait_on_and_close_with_the_first_who_complete_it",),
    ),
    Mutation(
        "steady: newcomers at a node are grouped by neighbours",
        "versions/pending/cohorts.py",
        "cuts=not at_node",
        "cuts=True",
        tests=(
            "tests/release/test_full_domain_cohorts.py::test_newcomers_have_labels_of_the_levels_of_the_node_or_above",
            "tests/release/test_full_domain_cohorts.py::test_ranges_are_those_of_the_hierarchy",
        ),
    ),
    Mutation(
        "steady: newcomers at a node have finer labels than it",
        "versions/pending/cohorts.py",
        'self.recoding.stated["start"] if at_node else None',
        "None",
        tests=("tests/release/test_full_domain_cohorts.py::test_ranges_are_those_of_the_hierarchy",),
    ),
)
