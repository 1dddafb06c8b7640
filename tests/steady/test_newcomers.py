"""Newcomers in cohorts: when one closes, who is in it, and what becomes of its boxes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qblock.versions.batching.proposals import every, in_cohorts
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Block, Cell, Memory, Person, Trial
from qblock.versions.batching.step import Step, step

from .pure import first_version

RULES = Rules(cells=False, k=2, ls=(2,), models=((),))
BASE = {f"b{i}": Person(("base",), "ab"[i % 2]) for i in range(4)}


def passes(trial: Trial) -> bool:
    """Two values in each part."""
    return all(len(part) > 1 for group in trial.groups for part in group.parts)


def by_first_letter(people: Collection[str]) -> Sequence[tuple[Block, Sequence[str]]]:
    """A map of two boxes: of x, labelled as the base is, and of others."""
    boxes = {"base": [p for p in people if p[0] == "x"], "others": [p for p in people if p[0] != "x"]}
    return [((label,), members) for label, members in boxes.items() if members]


def weeks(*newcomers: str, within: int = 2, least: int = 2) -> list[Step]:
    """Runs after a first version. newcomers: of each run those who are present, `x1a` with the value a."""
    steps = [first_version(BASE, Memory(), passes)]
    for names in newcomers:
        present = BASE | {name[:-1]: Person(("base",), name[-1]) for name in names.split()}
        before = steps[-1]
        closing = in_cohorts(every(within), least, by_first_letter)
        steps.append(step(before.shown, present, before.memory, RULES, passes, newcomers=closing))
    return steps[1:]


def new(found: Step) -> list[str]:
    return sorted(entity for entity in found.shown if entity not in BASE)


def test_all_who_wait_are_shown_in_runs_that_the_delay_divides() -> None:
    second, third, fourth = weeks("x1a x2b", "x1a x2b x3a", "x1a x2b x3a x4b", within=4)
    assert [new(found) for found in (second, third, fourth)] == [[], [], ["x1", "x2", "x3", "x4"]]
    assert second.counts.newcomers == 2
    assert fourth.counts.oldest_wait == 0


def test_fewer_than_a_box_wait_on_and_close_with_the_first_who_complete_it() -> None:
    second, third = weeks("x1a", "x1a x2b", within=2, least=2)
    assert not second.published
    # The first has waited for one run, and the third run is not one that closes.
    assert not third.published
    third = weeks("x1a", "x1a", "x1a x2b", within=2, least=2)[-1]
    assert new(third) == ["x1", "x2"]
    # Run 5 is no multiple of 2; somebody has waited since run 2.
    fifth = weeks("x1a", "x1a", "x1a", "x1a x2b", within=2, least=2)[-1]
    assert new(fifth) == ["x1", "x2"]


def test_who_is_away_when_the_cohort_closes_is_not_in_it_and_waits_anew() -> None:
    *_, closing = weeks("x1a x2b x3a", "x1a x2b x3a", "x1a x2b", within=4)
    assert new(closing) == ["x1", "x2"]
    assert "x3" not in closing.memory.out
    assert "x3" not in closing.memory.since


def test_a_box_that_fails_is_out_for_good_and_its_siblings_are_shown() -> None:
    (closing,) = weeks("x1a x2a y1a y2b")
    assert new(closing) == ["y1", "y2"]
    assert {e: why for e, why in closing.memory.out.items() if e[0] == "x"} == {"x1": "failed", "x2": "failed"}
    assert [d.outcome for d in closing.batches] == ["failed", "closed"]
    # With people who would have made it pass it is not tried again.
    later = weeks("x1a x2a y1a y2b", "x1a x2a y1a y2b x3a x4b", "x1a x2a y1a y2b x3a x4b")[-1]
    assert new(later) == ["x3", "x4", "y1", "y2"]


def test_a_cohort_is_a_cell_of_its_own_whatever_its_labels_are() -> None:
    (closing,) = weeks("x1a x2b")
    assert {closing.shown[e].cell for e in ("x1", "x2")} == {Cell(("base",), 2)}
    assert {closing.shown[e].cell for e in BASE} == {Cell(("base",), 1)}


def test_the_order_of_the_people_changes_nothing() -> None:
    names = "x1a x2b y1a y2b"
    backwards = " ".join(reversed(names.split()))
    assert [s.memory for s in weeks(names)] == [s.memory for s in weeks(backwards)]
    assert [s.shown for s in weeks(names)] == [s.shown for s in weeks(backwards)]
