"""What attackers learn from the blocks of a recoding map, by the definitions, from the rows that a run publishes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest
from release.jobs import Job, MakeJob

from qblock.errors import InputError
from qblock.report import read_report, rendered
from qblock.report.internal import read_internal
from qblock.results.report import CurveShown, EpsilonShown
from report.test_maps import PEOPLE, QUASI, ROWS, blocks_of, covered, models, people, published

VALUES = ("flu", "heart", "cancer")
Block = tuple[str, str]


def least_epsilon(blocks: dict[Block, Counter[str]], prior: dict[str, float]) -> float:
    """Against whoever knows the prior and never learns: how much a block's shares are above it, or their rest below."""
    largest = 1.0
    for values in blocks.values():
        rows = sum(values.values())
        for value, before in prior.items():
            inside = values[value] / rows
            largest = max(largest, inside / before, (1 - before) / (1 - inside) if inside < 1 else math.inf)
    return largest


def told(shown: EpsilonShown, adversary: str) -> float:
    (values,) = shown.values
    return float(values[shown.adversaries.index(adversary)].replace(",", ""))


def at_infinity(curves: tuple[CurveShown, ...], adversary: str) -> float | None:
    (curve,) = [curve for curve in curves if curve.adversary == adversary]
    assert curve.levels is None
    assert curve.stubbornness[-1] == "inf"
    return curve.values[-1]


def test_epsilon_is_that_of_the_blocks_that_readers_see(make_job: MakeJob) -> None:
    job = people(make_job)
    before = read_internal(job.spec, candidate=True)
    blocks = blocks_of(published(job))
    inside = read_internal(job.spec)
    table = {value: n / ROWS for value, n in Counter(PEOPLE["ill"]).items()}
    uniform = dict.fromkeys(VALUES, 1 / len(VALUES))
    for of in (before, inside):
        (shown,) = of.epsilon
        assert shown.levels == (None,)
        assert told(shown, "III table") == pytest.approx(least_epsilon(blocks, table), rel=1e-3)
        assert told(shown, "III uniform") == pytest.approx(least_epsilon(blocks, uniform), rel=1e-3)
        assert at_infinity(of.curves, "A_c, table's prior") == pytest.approx(least_epsilon(blocks, table))
        assert at_infinity(of.curves, "A_d, uniform prior") == pytest.approx(least_epsilon(blocks, uniform))
    assert len(blocks) > 3
    text = rendered(read_report(job.spec, internal=True), "html")
    assert "Smallest epsilon of ill in the blocks of the map, by adversary" in text
    assert "by stubbornness, at the map" in text
    assert "at node" not in text


def places(blocks: dict[Block, Counter[str]]) -> dict[tuple[int, str], Block]:
    """The block of each age and town, by what its labels cover."""
    found = {}
    for age in set(PEOPLE["age"]):
        for town in set(PEOPLE["town"]):
            (found[age, town],) = [
                block for block in blocks if covered(block[0], {age}) == 1 and block[1] in (town, "*")
            ]
    return found


def believed(
    blocks: dict[Block, Counter[str]], weight: dict[tuple[int, str, str], int], among_them: set[Block] | None = None
) -> dict[str, int]:
    """People by what becomes of the beliefs about them, by Theorem 3.1 of l-diversity, one after the other."""
    place = places(blocks)
    of_block: dict[Block, Counter[str]] = defaultdict(Counter)
    for (age, town, value), n in weight.items():
        of_block[place[age, town]][value] += n
    counts: Counter[str] = Counter()
    for age, town, own in zip(*PEOPLE.values(), strict=True):
        block = place[age, town]
        if among_them is not None and block not in among_them:
            continue
        total, everybody = sum(weight[age, town, value] for value in VALUES), sum(of_block[block].values())
        prior = {value: Fraction(weight[age, town, value], total) for value in VALUES}
        among = {value: Fraction(of_block[block][value], everybody) for value in VALUES}
        worth = {value: blocks[block][value] * prior[value] / among[value] for value in VALUES}
        after = {value: of / sum(worth.values()) for value, of in worth.items()}
        rho1, rho2 = Fraction(1, 10), Fraction(1, 2)
        counts["breach"] += any(
            (prior[value] < rho1 and after[value] > rho2) or (prior[value] > 1 - rho1 and after[value] < 1 - rho2)
            for value in VALUES
        )
        counts["positive"] += after[own] > Fraction(9, 10)
        counts["negative"] += any(after[value] < Fraction(1, 10) for value in VALUES if value != own)
        counts["moved"] += any(after[value] > 2 * prior[value] or 2 * after[value] < prior[value] for value in VALUES)
    return {name: counts[name] for name in ("breach", "positive", "negative", "moved")}


def population(folder: Path) -> tuple[Path, dict[tuple[int, str, str], int]]:
    """A file of weights of every age, town and value."""
    everything = [(age, town, value) for age in set(PEOPLE["age"]) for town in "ab" for value in VALUES]
    weight = {(age, town, value): 1 + (age * 7 + len(value) ** 2 + ord(town)) % 30 for age, town, value in everything}
    lines = [f"{age},{town},{value},{n}" for (age, town, value), n in weight.items()]
    path = folder / "weights.csv"
    path.write_text("\n".join(["age,town,ill,weight", *lines, ""]))
    return path, weight


def test_beliefs_are_those_from_the_blocks_that_readers_see(make_job: MakeJob) -> None:
    job = people(make_job)
    path, weight = population(job.folder)
    expected = believed(blocks_of(published(job)), weight)
    for candidate in (False, True):
        (shown,) = read_internal(job.spec, prior=str(path), candidate=candidate).beliefs
        assert shown.levels is None
        assert shown.people == ROWS
        assert {name: getattr(shown, name) for name in expected} == expected
    assert 0 < expected["moved"] < ROWS
    assert expected["negative"] > 0
    text = rendered(read_report(job.spec, internal=True, prior=str(path)), "md")
    assert "Beliefs about ill at the map, of somebody who knows the population" in text


def test_blocks_that_fail_the_spec_now_tell_nothing_since_no_run_publishes_them(make_job: MakeJob) -> None:
    job = people(make_job)
    path, weight = population(job.folder)
    blocks = blocks_of(published(job))
    passing = {block: values for block, values in blocks.items() if sum(values.values()) >= 11}
    assert 0 < len(passing) < len(blocks)
    job.settings["privacy"] = models(11)
    inside = read_internal(job.spec, prior=str(path))
    table = {value: n / ROWS for value, n in Counter(PEOPLE["ill"]).items()}
    assert told(inside.epsilon[0], "III table") == pytest.approx(least_epsilon(passing, table), rel=1e-3)
    assert at_infinity(inside.curves, "A_c, table's prior") == pytest.approx(least_epsilon(passing, table))
    assert least_epsilon(passing, table) < least_epsilon(blocks, table)
    (shown,) = inside.beliefs
    everybody, expected = believed(blocks, weight), believed(blocks, weight, set(passing))
    assert shown.people == sum(sum(values.values()) for values in passing.values())
    assert {name: getattr(shown, name) for name in expected} == expected != everybody
    job.settings["privacy"] = models(ROWS)
    assert read_internal(job.spec).epsilon == ()


def test_a_population_with_values_that_no_hierarchy_covers(make_job: MakeJob) -> None:
    """Where a map shows each value, nobody of the source is beside them; where it shows ranges, no block is known."""
    tens = {"role": "quasi_identifier", "hierarchy": {"file": "ages.csv"}}
    job = people(make_job, attributes={**QUASI, "age": tens})
    lines = [f"{age},{age // 10}x,*" for age in sorted(set(PEOPLE["age"]))]
    (job.folder / "ages.csv").write_text("\n".join(["age,tens,all", *lines, ""]))
    path, _ = population(job.folder)
    before = read_internal(job.spec, prior=str(path), candidate=True).beliefs
    with path.open("a") as file:
        file.write("25,z,flu,5\n")
    assert read_internal(job.spec, prior=str(path), candidate=True).beliefs == before
    with path.open("a") as file:
        file.write("99,a,flu,5\n")
    with pytest.raises(InputError, match=r"have a value of age .*their block of the map is unknown"):
        read_internal(job.spec, prior=str(path), candidate=True)


def test_count_queries_are_answered_from_the_map(make_job: MakeJob) -> None:
    """As an analyst would: the rows of a block are spread evenly over the values of its labels."""
    queries = [{"age": {"from": 25, "to": 33}, "ill": ["flu"]}, {"town": ["a"]}]
    job = people(make_job, search={"recoding": "multidimensional", "choose_by": "loss", "workload": queries})
    shown = read_internal(job.spec, candidate=True).workload
    assert shown is not None
    assert shown.levels is None
    check_queries(job, {query.number: (query.true, query.expected) for query in shown.worst_queries})
    text = rendered(read_report(job.spec, internal=True), "md")
    assert "answered from the map as an analyst would" in text


def check_queries(job: Job, answers: dict[int, tuple[int, float]]) -> None:
    blocks, ages = blocks_of(published(job)), set(PEOPLE["age"])
    between = {age for age in ages if 25 <= age <= 33}
    expected, rows = [0.0, 0.0], list(zip(*PEOPLE.values(), strict=True))
    for (age, town), values in blocks.items():
        expected[0] += values["flu"] * covered(age, between) / covered(age, ages)
        expected[1] += sum(values.values()) * {"a": 1.0, "b": 0.0, "*": 0.5}[town]
    true = [sum(age in between and ill == "flu" for age, _, ill in rows), sum(town == "a" for _, town, _ in rows)]
    assert answers == {i + 1: (true[i], pytest.approx(expected[i])) for i in range(2)}
