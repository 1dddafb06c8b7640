"""Faults in what a spec takes for granted: a column that tells what is hidden is not found, or nobody is asked."""

from __future__ import annotations

from mutation.mutation import Mutation

CHECKED = "tests/release/test_checks.py"
PAIRS = f"{CHECKED}::test_the_leaves_that_remain_are_those_of_pairs_of_rows"
STOPS = f"{CHECKED}::test_a_release_stops_unless_somebody_answers"

CHECKS: tuple[Mutation, ...] = (
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
        "checks/run.py",
        "if label.leaves > 1}",
        "if label.leaves > 0}",
        tests=(STOPS,),
    ),
    Mutation(
        "checks: a release asks nobody",
        "release/apply.py",
        "refuse_dependencies(run.task, result)",
        "pass",
        tests=(STOPS,),
    ),
    Mutation(
        "checks: one answer is for every finding of its kind",
        "checks/run.py",
        "reasons.get((finding.check, *finding.columns))",
        "next((a.because for a in spec.accept if a.check == finding.check), None)",
        tests=(STOPS, f"{CHECKED}::test_the_command_says_each_with_its_figure_and_remedy"),
    ),
)
