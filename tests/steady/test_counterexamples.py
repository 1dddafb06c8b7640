"""The smallest histories in which an obvious rule tells somebody's value, and the rules of the job do not.

Person by person, one letter a run, - for absent; a is the value whose disclosure pd allows. Of two sensitive attributes
two letters a run, and a dot between runs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from .attacker import Attack
from .bundles import bundled_frame, bundles
from .double import Double, Wrong
from .frames import Frame, frame_of
from .players import Engine, EngineOfBundles, Player
from .settings import setting
from .verdicts import both, close, sizes


@dataclass(frozen=True)
class Example:
    """values: how many each attribute has; wrong: the obvious rule; model, l: of settings; bundles: whether people have
    several rows, a letter each, with a dot between runs. given: whether the attacker has seen the first version, where
    there are too many histories else."""

    people: str
    values: int | tuple[int, ...]
    wrong: Wrong
    model: str = "distinct"
    bundles: bool = False
    l: int = 2  # noqa: E741
    given: bool = False
    stale: Fraction | None = None


EXAMPLES = {
    "leavers go by size alone": Example("d- d- cc bb aa", 4, Wrong(leavers_by_size=True)),
    "leavers go by size alone from a cell of newcomers": Example(
        "aaa bbb -b- -b- -b- -aa -aa -cc -cc", 3, Wrong(leavers_by_size=True), given=True
    ),
    "leavers go where failing leaves two candidates of three": Example(
        "a- a- b- b- cc dd ee ff gg", 7, Wrong(two=True), l=3, given=True
    ),
    "leavers go where failing tells who stays": Example("aa aa b- c- d-", 4, Wrong(inside=True)),
    "leavers of several cells are a batch": Example("bbb aaa a-- -cc -b-", 3, Wrong(merged=True)),
    "who stays when a stale cell goes is a newcomer again": Example(
        "bbb aa- aaa aa- -aa -bb --b --a", 2, Wrong(readmitted=True), stale=Fraction(1, 2)
    ),
    "a cell goes on after a batch of it failed": Example("b--- b--- aa-- aa-- aaa-", 2, Wrong(thaw=True)),
    "newcomers share a cell with people who changed": Example("ca ba ba -b -a", 3, Wrong(as_it_is=True)),
    "a whole cell changes": Example("cca --a baa bba", 3, Wrong(whole=True)),
    "who changed twice, by flag": Example("bbaa aaba -a-- abaa", 2, Wrong(often="flag", whole=True)),
    "who changed twice, by difference": Example("bbbb accb aaaa -aaa bbba", 3, Wrong(often="difference")),
    "returners are newcomers": Example("a--- b--- c--- d--d d--d -aaa -bbb", 4, Wrong(returners=True), given=True),
    "a refused first version is retried": Example("a- -b aa aa", 2, Wrong(retry=True)),
    "batches tried alone are applied together": Example("a- b- ab ba cc cc", 3, Wrong(together=True)),
    "failing tells which value, pd": Example("a- b- -b -b", 2, Wrong(no_coin=True), "pd"),
    "failing tells which value, t": Example("b- b- -a -a", 2, Wrong(no_coin=True, moving=True), "t"),
    "people share a batch whose values changed in different attributes": Example(
        "aa.ca bb.bc aa.aa bb.bb", (3, 3), Wrong(mixed=True), "two distinct", given=True
    ),
    "a cell passes in which everybody has a row with one value": Example(
        "a.a b.b -.c -.cd", 4, Wrong(common=True), bundles=True
    ),
    "newcomers are shown of whom it is known that they have several rows": Example(
        "a.a.a b.b.b -.c.cd -.-.a", 4, Wrong(grown=True), bundles=True
    ),
    "people share a batch with a row more and with another one": Example(
        "a.ac b.d a.a b.b", 4, Wrong(mixed=True), bundles=True
    ),
    "leavers of whom all that is held often enough has one value": Example(
        "ab.- ab.- ac.ac ac.ac d.d e.e f.f", 6, Wrong(alike=True), bundles=True
    ),
}


def double(example: Example, wrong: Wrong) -> Double:
    chosen = setting(example.model, example.l)
    named = bundles(example.values, 6) if example.bundles and isinstance(example.values, int) else ()
    verdict = both(sizes(2), close(Fraction(3, 10))) if example.model == "t" else chosen.verdict
    rules = chosen.rules
    double = Double([verdict] * chosen.sensitive, rules.k, rules.ls, rules.sure, rules.cells, rules.coin, wrong)
    return replace(double, bundles=named, stale=example.stale, counting=[chosen.counting] * chosen.sensitive)


def told(example: Example, player: Player) -> bool:
    """Whether somebody's value is certain in this very history."""
    frame: Frame
    if example.bundles and isinstance(example.values, int):
        frame, chosen = bundled_frame(example.people.split(), example.values)
    else:
        widths = (example.values,) if isinstance(example.values, int) else example.values
        frame, chosen = frame_of(example.people.split(), widths)
    one = Attack(frame, player)
    # Of people with several rows only what the first version leaves: there are too many bundles for all.
    found = one.given(chosen) if example.bundles or example.given else one.all()
    return bool(found.disclosed(one.transcript_of(chosen), setting(example.model, example.l).promises))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_obvious_rule_tells_somebodys_value(name: str) -> None:
    example = EXAMPLES[name]
    assert told(example, double(example, example.wrong))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rules_of_the_job_do_not(name: str) -> None:
    example = EXAMPLES[name]
    assert not told(example, double(example, Wrong()))
    if example.bundles and isinstance(example.values, int):
        assert not told(example, EngineOfBundles(setting(example.model, example.l), example.values))
    elif example.model != "t":
        assert not told(example, Engine(setting(example.model, example.l), stale=example.stale))


def test_leavers_go_only_where_every_attribute_lets_them() -> None:
    """Of seven people two leave. Whoever they are, the first version shows the same rows; which of them the second one
    may be without tells the second attribute of both where the rules look at the first alone."""
    chosen = setting("two distinct")
    rows = ["aa", "aa", "ba", "ba", "cb", "dc", "ed"]

    def carried(player: Player) -> list[set[str]]:
        """What the two may have had, attribute by attribute, where the second version is not published."""
        found: list[set[str]] = [set(), set()]
        for pair in itertools.combinations(range(7), 2):
            people = [f"{row}.{'--' if i in pair else row}" for i, row in enumerate(rows)]
            frame, values = frame_of(people, (5, 4))
            if Attack(frame, player).told(values)[0] == (0,):
                for i in pair:
                    for letters, letter in zip(found, rows[i], strict=True):
                        letters.add(letter)
        return found

    rules = chosen.rules
    wrong, right = (
        Double([chosen.verdict] * 2, rules.k, rules.ls, wrong=Wrong(first=first)) for first in (True, False)
    )
    assert carried(wrong) == [{"a", "b"}, {"a"}]
    assert carried(right) == carried(Engine(chosen)) == [set("abcde"), set("abcd")]
