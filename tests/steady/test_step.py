"""One run of the steady job, batch by batch."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from qblock.blocks import Reference
from qblock.models import DistinctLDiversity, KAnonymity, Model, PdRecursiveCLDiversity, TCloseness
from qblock.versions.batching.proposals import by_block
from qblock.versions.batching.rules import Rules, rules_for
from qblock.versions.batching.state import Cell, Memory, Person
from qblock.versions.batching.step import Step, step
from steady.pure import first_version, judge

BLOCK = (0,)
MODELS: tuple[Model, ...] = (KAnonymity(k=2), DistinctLDiversity(l=2))
PASSES = judge(MODELS, Reference(0, (), np.zeros(0, dtype=np.int64)))
RULES = rules_for(MODELS)


def people(**values: str) -> dict[str, Person]:
    return {one: Person(BLOCK, value) for one, value in values.items()}


def run(before: Step, present: dict[str, Person], rules: Rules = RULES, **more) -> Step:
    return step(before.shown, present, before.memory, rules, PASSES, newcomers=by_block(lambda block: 2), **more)


def shown(found: Step) -> dict[str, str]:
    return {one: str(unit.values[-1]) for one, unit in sorted(found.shown.items())}


def begun(**values: str) -> Step:
    return first_version(people(**values), Memory(), PASSES)


def test_newcomers_wait_until_there_are_enough_and_are_shown_together() -> None:
    first = begun(p="a", q="b")
    one = run(first, people(p="a", q="b", r="a"))
    assert (shown(one), one.published, one.counts.newcomers) == ({"p": "a", "q": "b"}, False, 1)
    two = run(one, people(p="a", q="b", r="b", s="a"))
    assert shown(two) == {"p": "a", "q": "b", "r": "b", "s": "a"}
    assert two.shown["s"].cell == Cell(BLOCK, 2)
    assert (two.published, two.memory.version, two.counts.lag) == (True, 2, 0)


def test_newcomers_who_fail_are_out_for_good_and_not_topped_up() -> None:
    failed = run(begun(p="a", q="b"), people(p="a", q="b", r="a", s="a"))
    assert failed.counts.failed == {"newcomers": 1}
    later = run(failed, people(p="a", q="b", r="a", s="a", t="b"))
    assert set(later.shown) == {"p", "q"}
    assert (later.counts.newcomers, later.counts.lag) == (1, 3)


def test_a_refused_first_version_is_not_retried_with_the_same_people() -> None:
    refused = begun(p="a", q="a")
    assert (refused.published, refused.memory.version) == (False, 0)
    again = first_version(people(p="a", q="a", r="b"), refused.memory, PASSES)
    assert not again.published
    assert set(again.memory.out) == {"p", "q", "r"}


def test_leavers_go_where_even_failing_leaves_candidates() -> None:
    cell = {"p": "a", "q": "a", "r": "b", "s": "b", "t": "c"}
    stay = people(r="b", s="b", t="c")
    failed = run(begun(**cell), stay)
    assert failed.memory.frozen == {Cell(BLOCK, 1)}
    assert set(failed.shown) == set(cell)
    gone = run(begun(**cell), people(p="a", r="b", t="c"))
    assert set(gone.shown) == {"p", "r", "t"}
    assert set(gone.memory.out) == {"q", "s"}
    again = run(gone, people(p="a", q="a", r="b", s="b", t="c"))
    assert set(again.shown) == {"p", "r", "t"}


def test_leavers_stay_where_failing_would_tell_who_they_are() -> None:
    cell = {"p": "d", "q": "d", "r": "a", "s": "b", "t": "c"}
    found = run(begun(**cell), people(r="a", s="b", t="c"))
    assert set(found.shown) == set(cell)
    assert not found.batches
    assert found.counts.leavers == 2


def test_leavers_go_where_they_cannot_fail_unless_a_model_looks_at_shares() -> None:
    cell = {"p": "a", "q": "b", "r": "c", "s": "d"}
    assert set(run(begun(**cell), people(p="a", q="b")).shown) == {"p", "q"}
    rules = rules_for([*MODELS, TCloseness(t=1, distance="equal")])
    assert not rules.sure
    assert set(run(begun(**cell), people(p="a", q="b"), rules).shown) == set(cell)


def test_those_who_are_gone_longest_go_first() -> None:
    """As many as the condition allows; who changed before they left come first, and else digests decide."""
    everybody = dict(zip("pqrstuvw", "ddddabce", strict=True))

    def gone(*weeks: str, changed: str = "") -> list[set[str]]:
        result, left, shown_before, leaving = begun(**everybody), "", set(everybody), []
        for week in weeks:
            left += week
            now = {one: value for one, value in everybody.items() if one not in left}
            result = run(result, people(**{**now, **{one: "z" for one in changed if one in now}}), leave=2)
            leaving.append(shown_before - result.shown.keys())
            shown_before = set(result.shown)
        return leaving

    assert gone("t", "p", "qru") == [set(), set(), set("tpqr")]
    assert gone("", "qruvw") == [set(), set("qruv")]
    assert gone("", "qruvw", changed="w") == [set(), set("wqru")]


def test_a_small_or_frozen_cell_that_most_have_left_goes_whole() -> None:
    """By presence alone: those who are still there are out for good. Not before, nor a larger one, nor the last one."""
    share = Fraction(3, 5)
    values = dict(zip("pqrst", "aaabb", strict=True))
    two = run(begun(**values), people(**values, v="a", w="b"), stale=share)
    still = run(two, people(q="a", r="a", t="b", v="a", w="b"), stale=share)
    assert still.counts.closed == {"leavers": 1}
    gone = run(two, people(r="a", t="b", v="a", w="b"), stale=share)
    assert (set(gone.shown), gone.counts.closed, gone.counts.lag) == ({"v", "w"}, {"stale cell": 1}, 2)
    assert gone.memory.out == {"p": "left", "q": "left", "s": "left", "r": "stale", "t": "stale"}
    again = run(gone, people(q="a", r="a", t="b", v="a", w="b"), stale=share)
    assert set(again.shown) == {"v", "w"}
    assert run(two, people(r="a", t="b", v="a", w="b")).counts.closed == {"leavers": 1}
    never = run(two, people(r="a", t="b", v="a", w="b"), replace(RULES, stale=False), stale=share)
    assert never.counts.closed == {"leavers": 1}
    assert "stale cell" not in run(begun(**values), people(r="a", t="b"), stale=share).counts.closed
    large = dict(zip("abcdefgh", "xxxxyyzw", strict=True))
    more = run(begun(**large), people(**large, v="a", w="b"), stale=share)
    few = people(e="y", f="y", g="z", v="a", w="b")
    frozen = replace(more, memory=replace(more.memory, frozen=frozenset({Cell(BLOCK, 1)})))
    assert run(frozen, few, stale=share).counts.closed == {"stale cell": 1}
    assert "stale cell" not in run(more, few, stale=share).counts.closed


def test_a_cell_that_all_have_left_goes_but_never_the_last_one() -> None:
    two = run(begun(p="a", q="b"), people(r="a", s="b"))
    assert set(two.shown) == {"p", "q", "r", "s"}
    assert set(run(two, people(r="a", s="b")).shown) == {"r", "s"}


def test_a_value_that_changed_once_is_shown_and_one_that_changed_twice_is_not() -> None:
    cell = {"p": "a", "q": "b", "r": "a", "s": "b"}
    once = run(begun(**cell), people(p="b", q="b", r="a", s="b"))
    assert (once.published, once.counts.changes) == (False, 1)
    both = run(once, people(p="b", q="a", r="a", s="b"))
    assert shown(both) == {"p": "b", "q": "a", "r": "a", "s": "b"}
    assert both.shown["p"].cell == Cell(BLOCK, 1, (2,))
    assert both.shown["p"].values == ("a", "b")
    twice = run(once, people(p="c", q="a", r="a", s="b"))
    assert shown(twice) == cell


def test_the_core_shows_no_changed_values_and_takes_whole_cells_alone() -> None:
    core = rules_for([TCloseness(t=1, distance="equal")])
    assert (core.cells, core.coin) == (False, True)
    cell = {"p": "a", "q": "b", "r": "a", "s": "b"}
    assert shown(run(begun(**cell), people(p="b", q="a", r="a", s="b"), core)) == cell
    assert shown(run(begun(**cell), people(p="a", q="b"), core)) == cell


def test_the_coin_sets_newcomers_aside_for_good_where_the_models_need_one() -> None:
    present = people(p="a", q="b", r="a", s="b")
    core = rules_for([PdRecursiveCLDiversity(c=3, l=2, allowed=("a",))])
    found = run(begun(p="a", q="b"), present, core, coin=lambda block, number: number == 1)
    assert (set(found.shown), found.counts.aside) == ({"p", "q"}, 1)
    assert set(run(begun(p="a", q="b"), present, coin=lambda block, number: True).shown) == set("pqrs")


def test_who_withdraws_goes_at_once_with_the_whole_cell() -> None:
    first = begun(p="a", q="b")
    found = run(first, people(p="a", q="b", r="a", s="b"), erased=["p", "r"])
    assert found.shown == {}
    assert found.memory.out == {"p": "erased", "q": "cell", "r": "erased"}


def test_units_of_one_person_that_change_in_one_run_are_not_shown_as_changed() -> None:
    """A row may have moved from one to the other. Who changes in one block alone is shown as changed."""
    rules = replace(RULES, bundles=True)
    values = dict(zip("pqrstu", "aabbcc", strict=True))
    first = {f"{who}{block}": Person((block,), value) for block in "12" for who, value in values.items()}
    begun = first_version(first, Memory(), PASSES)

    def shown_as_changed(**changed: str) -> set[str]:
        now = {one: person._replace(value=changed.get(one, person.value)) for one, person in first.items()}
        found = step(
            begun.shown, now, begun.memory, rules, PASSES, newcomers=by_block(lambda _: 2), owner=lambda unit: unit[0]
        )
        return {one for one in changed if found.shown[one].values[-1] == changed[one]}

    assert shown_as_changed(p1="d", r1="e", t2="d") == {"p1", "r1"}
    assert shown_as_changed(p1="d", r1="e", p2="d") == set()
