"""Questions to a release: the truth about the published rows lies between what is certain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from release.conftest import copy_job, crossing, empty_ledger, first_runs, job, job_templates, make_job  # noqa: F401
from release.jobs import Job, MakeJob

from qblock.errors import InputError, Refused
from qblock.estimate.columns import Bounded, BoundedColumn, Column, LabelColumn, Number, ValueColumn
from qblock.estimate.conditions import Interval
from qblock.estimate.published import with_condition
from qblock.estimate.run import Question, _answer
from qblock.releases import Release
from qblock.results.estimate import Estimate

AGES = range(6)
REGIONS = {"a": {"a"}, "b": {"b"}, "c": {"c"}, "a or b": {"a", "b"}, "*": {"a", "b", "c", "hidden"}}
"""The regions behind each label; a, b and c are of level 0, `a or b` of level 1. One is never seen."""
LEVELS = {"a": 0, "b": 0, "c": 0, "a or b": 1, "*": 2}


@dataclass(frozen=True)
class Row:
    """What is true of a person, and what is published. weights: of the ages that the label may stand for."""

    age: int
    label: tuple[int, int] | None
    region: str
    region_label: str
    cost: int | None


@dataclass(frozen=True)
class World:
    """What may be true of a row: whether it meets the conditions, and the number that is asked for."""

    meets: bool
    number: float | None


@st.composite
def tables(draw: st.DrawFn, *, hidden: bool) -> list[Row]:
    """hidden: whether some ages are suppressed."""
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        age, region = draw(st.sampled_from(AGES)), draw(st.sampled_from("abc"))
        low, high = draw(st.integers(0, age)), draw(st.integers(age + 1, len(AGES)))
        label = None if hidden and draw(st.booleans()) else (low, high)
        shown = draw(st.sampled_from([name for name, regions in REGIONS.items() if region in regions]))
        rows.append(Row(age, label, region, shown, draw(st.none() | st.integers(-3, 3))))
    return rows


def conditions(rows: Sequence[Row]) -> st.SearchStrategy[dict[str, Any]]:
    """Conditions on any of the columns; a label must be one that is published."""
    end = st.none() | st.integers(-1, 7)
    ranges = st.tuples(end, end).filter(lambda e: e != (None, None)).map(lambda e: {"from": e[0], "below": e[1]})
    ages = ranges | st.lists(st.sampled_from(AGES), min_size=1, max_size=3) | st.sampled_from(AGES)
    labels = sorted({row.region_label for row in rows} - {"*"})
    regions = st.lists(st.sampled_from(labels), min_size=1, max_size=2) if labels else st.nothing()
    costs = ranges | st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=2)
    return st.fixed_dictionaries({}, optional={"age": ages, "cost": costs} | ({"region": regions} if labels else {}))


def holds(value: Any, raw: Any) -> bool:
    """Whether a true value meets a condition."""
    if isinstance(raw, dict):
        low, high = raw["from"], raw["below"]
        return value is not None and (low is None or value >= low) and (high is None or value < high)
    return value in (raw if isinstance(raw, list) else [raw])


def meets(age: int, region: str, cost: int | None, where: Mapping[str, Any]) -> bool:
    among = set().union(*(REGIONS[label] for label in where.get("region", REGIONS)))
    return (
        region in among
        and ("age" not in where or holds(age, where["age"]))
        and ("cost" not in where or holds(cost, where["cost"]))
    )


def worlds(row: Row, where: Mapping[str, Any], column: str | None) -> list[World]:
    """Everything that may be true of a row."""
    assert row.label is not None
    possible = []
    for age, region in itertools.product(range(*row.label), sorted(REGIONS[row.region_label])):
        number = {"age": age, "cost": row.cost, None: 1}[column]
        possible.append(World(meets(age, region, row.cost, where) and number is not None, number))
    return possible


def answered(what: str, worlds_: Sequence[World]) -> Fraction | None:
    numbers = [Fraction(world.number) for world in worlds_ if world.meets and world.number is not None]
    if what == "mean":
        return sum(numbers, Fraction()) / len(numbers) if numbers else None
    return sum(numbers, Fraction())


def columns_of(rows: Sequence[Row]) -> dict[str, Column]:
    """What helper views say: ages spread evenly, those that are suppressed over all."""
    labels: dict[str, Bounded] = {}
    for row in rows:
        low, high = row.label or (AGES[0], len(AGES))
        cells = [(Interval(age, age + 1), 1 / (high - low)) for age in range(low, high)]
        labels[label_of(row)] = Bounded(Interval() if row.label is None else Interval(low, high), cells)
    shown = [row.region_label for row in rows]
    counted = {label: shown.count(label) for label in shown}
    return {
        "age": BoundedColumn("age", 1, False, labels),
        "region": regions_of(counted),
        "cost": ValueColumn("cost", "integer"),
    }


def regions_of(rows: Mapping[str, int]) -> LabelColumn:
    """What `members` and `complete` say of each label."""
    single = {name for name in rows if REGIONS[name] == {name}}
    members = {label: frozenset(REGIONS[label] & single) for label in rows if label != "*"}
    complete = [label for label in members if REGIONS[label] <= single]
    return LabelColumn("region", {label: LEVELS[label] for label in rows}, rows, members, complete)


def label_of(row: Row) -> str:
    return "*" if row.label is None else f"{row.label[0]}-{row.label[1]}"


def estimated(rows: Sequence[Row], what: str, column: str | None, where: Mapping[str, Any]) -> Estimate:
    columns = columns_of(rows)
    read = {name: with_condition(columns[name], raw) for name, raw in where.items()}
    question = Question(what, column, read, None, None)  # type: ignore[arg-type]
    groups = []
    for row in rows:
        texts = {"age": label_of(row), "region": row.region_label, "cost": None if row.cost is None else str(row.cost)}
        groups.append((tuple(texts[name] for name in question.names), 1, 1.0))
    return _answer(question, columns, groups)


QUESTIONS = [("count", None), ("mean", "age"), ("sum", "age"), ("mean", "cost"), ("sum", "cost")]
CLOSE = 1e-9


@pytest.mark.parametrize(("what", "column"), QUESTIONS)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_the_truth_is_between(what: str, column: str | None, data: st.DataObject) -> None:
    rows = data.draw(tables(hidden=True))
    where = data.draw(conditions(rows))
    given_ = estimated(rows, what, column, where)
    true = [World(meets(r.age, r.region, r.cost, where), {"age": r.age, "cost": r.cost, None: 1}[column]) for r in rows]
    truth = answered(what, true)
    low = -math.inf if given_.at_least is None else given_.at_least
    high = math.inf if given_.at_most is None else given_.at_most
    assert truth is None or low - CLOSE <= truth <= high + CLOSE
    assert given_.expected is None or low - CLOSE <= given_.expected <= high + CLOSE


@pytest.mark.parametrize(("what", "column"), QUESTIONS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_nothing_narrower_is_certain(what: str, column: str | None, data: st.DataObject) -> None:
    """All that may be true of all rows, tried out, also of labels that stand for several regions."""
    rows = data.draw(tables(hidden=False))
    where = data.draw(conditions(rows))
    given_ = estimated(rows, what, column, where)
    every = list(itertools.product(*(worlds(row, where, column) for row in rows)))
    answers = [answer for world in every if (answer := answered(what, world)) is not None]
    if not answers:
        assert (given_.at_least, given_.at_most) == (None, None)
        return
    assert given_.at_least == pytest.approx(float(min(answers)))
    assert given_.at_most == pytest.approx(float(max(answers)))


@given(data=st.data())
def test_a_count_is_expected_where_each_age_of_a_label_is_as_likely(data: st.DataObject) -> None:
    rows = [row for row in data.draw(tables(hidden=False)) if row.region_label != "*"]
    where = {name: raw for name, raw in data.draw(conditions(rows)).items() if name == "age"}
    counts = [sum(world.meets for world in own) / len(own) for own in (worlds(row, where, None) for row in rows)]
    ages = [worlds(row, where, "age") for row in rows]
    sums = [sum(world.number or 0 for world in own if world.meets) / len(own) for own in ages]
    # Within a label the parts of a list of ages are known one by one.
    assert estimated(rows, "count", None, where).expected == pytest.approx(sum(counts))
    assert estimated(rows, "sum", "age", where).expected == pytest.approx(sum(sums))


def test_a_label_of_several_values_counts_by_those_that_are_shown() -> None:
    """Three of a, one of b and four of `a or b`, of whom three quarters are expected to be of a."""
    labels = ["a"] * 3 + ["b"] + ["a or b"] * 4 + ["c"]
    rows = [Row(0, (0, 1), min(REGIONS[label]), label, 1) for label in labels]
    assert ends(estimated(rows, "count", None, {"region": "a"})) == (3, 6, 7)
    assert ends(estimated(rows, "count", None, {"region": ["a", "b"]})) == (8, 8, 8)
    assert ends(estimated(rows, "count", None, {"region": "a or b"})) == (8, 8, 8)
    assert ends(estimated(rows, "count", None, {"region": "c"})) == (1, 1, 1)
    # Of two groups whose values nobody sees by themselves one may have what the other has.
    groups = LabelColumn("region", {"x": 1, "y": 2}, {"x": 1, "y": 1}, {"x": frozenset(), "y": frozenset()})
    assert groups.meets("x", with_condition(groups, "y")).possibly


def visits(make_job: MakeJob, **settings_: Any) -> Job:  # noqa: F811
    return make_job(
        {
            "age": [21, 24, 27, 29, 33, 38],
            "born": [date(1990, 1, 1), date(1990, 5, 1), date(1990, 9, 1), *[date(1991, 3, 1)] * 3],
            "zip": ["13053", "13068", "13068", "14850", "14850", "14853"],
            "ill": ["flu", "flu", "cold", None, "cold", "cold"],
            "cost": [10, 20, 20, 10, 20, 10],
        },
        {"age": "INTEGER"},
        attributes={
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}},
            "born": {"role": "quasi_identifier", "hierarchy": {"dates": ["year"]}},
            "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}},
            "ill": {"role": "sensitive", "nulls": "value"},
            "cost": {"role": "insensitive"},
        },
        privacy=[{"k_anonymity": {"k": 1}}],
        search={"node": [1, 1, 2]},
        versions={"joint": "none"},
        **settings_,
    )


@pytest.fixture
def shown(make_job: MakeJob) -> Release:  # noqa: F811
    made = visits(make_job)
    made.run()
    return Release(made.spec)


def ends(answer: Any) -> tuple[Any, ...]:
    return answer.at_least, answer.expected, answer.at_most


def test_an_example_by_hand(shown: Release) -> None:
    """Four of 20-29 and two of 30-39; a half of the four are expected below 25."""
    assert ends(shown.estimate("count", where={"age": {"below": 25}})) == (0, 2, 4)
    assert ends(shown.estimate("count", where={"age": {"from": 25}})) == (2, 4, 6)
    assert ends(shown.estimate("count", where={"age": [20, 21, 35]})) == (0, pytest.approx(4 * 0.2 + 2 * 0.1), 6)
    assert ends(shown.estimate("sum", "age")) == (140, 167, 194)
    assert ends(shown.estimate("mean", "age")) == tuple(pytest.approx(total / 6) for total in (140, 167, 194))
    # At least 25 and 30 of 25-29 and 30-39: the two that surely count, with all others at 25.
    older = shown.estimate("mean", "age", where={"age": {"from": 25}})
    assert ends(older) == tuple(map(pytest.approx, ((4 * 25 + 60) / 6, (2 * 27 + 2 * 34.5) / 4, 39)))
    costs = shown.estimate("mean", "cost", where={"zip": "130**"})
    assert ends(costs) == (pytest.approx(50 / 3),) * 3
    year = {"from": "1990-01-01", "below": date(1990, 7, 2)}
    assert ends(shown.estimate("count", where={"born": year})) == (0, pytest.approx(3 * 182 / 365), 3)
    assert ends(shown.estimate("count", where={"ill": None})) == (1, 1, 1)
    some = {"cost": {"from": 11, "below": "20.5"}, "ill": ["flu", "cold"]}
    assert ends(shown.estimate("count", where=some)) == (3, 3, 3)


def test_values_are_told_apart_and_said_in_words(shown: Release) -> None:
    answer = shown.estimate("count", where={"age": {"below": 25}}, by="ill")
    assert [(g.group, *ends(g)) for g in answer.groups] == [("cold", 0, 0.5, 1), ("flu", 0, 1, 2), (None, 0, 0.5, 1)]
    said = "count where age below 25: 2. The true answer is between 0 and 4, so it is off by 2 at most, 100% of it."
    assert str(answer).startswith(said)
    assert "<td>flu</td>" in answer._repr_html_()
    assert list(answer.to_frame()["at most"]) == [1, 2, 1, 4]
    assert "It is exact." in str(shown.estimate("count"))
    assert (answer.rows, shown.estimate("count").rows) == (4, 6)


REFUSED: list[tuple[Any, str | None, dict[str, Any], str]] = [
    ("median", "age", {}, r"a count, a mean or a sum; .*mean"),
    ("count", "age", {}, r'takes no column; leave it out: estimate\("count"\)'),
    ("mean", None, {}, r'name it: estimate\("mean", "age"\)'),
    ("mean", "born", {}, r"born: readers see no numbers of it; ask for one of age, cost"),
    ("mean", "zip", {}, r"zip: readers see no numbers of it"),
    ("count", None, {"agee": 3}, r"agee is no column of people .* did you mean age\?"),
    ("count", None, {"age_low": 3}, r"age_low is no column of people"),
    ("count", None, {"age": [20, None]}, r"age: no label says that a value is missing"),
    ("count", None, {"age": "old"}, r"age: 'old' is not a number"),
    ("count", None, {"age": {"to": 3}}, r'where=\{"age": \{"from": 20, "below": 40\}\}'),
    ("count", None, {"born": 1990}, r"born: '1990' is not a date"),
    ("count", None, {"zip": "13053"}, r"zip: '13053' is no published label; .*130\*\*"),
    ("count", None, {"zip": {"from": "1"}}, r"zip: its labels are in no order"),
    ("count", None, {"ill": {"from": "a"}}, r"ill: its values are text"),
    ("count", None, {"cost": {"from": "a"}}, r"cost: 'a' is no value of a column of type"),
]


@pytest.mark.either_engine
def test_a_question_that_cannot_be_asked_is_refused(shown: Release) -> None:
    for what, column, where, message in REFUSED:
        with pytest.raises(InputError, match=message):
            shown.estimate(what, column, where=where)
    with pytest.raises(InputError, match=r"publish: \{weights: true\}"):
        shown.estimate("count", weights=True)


def test_nothing_is_said_of_a_release_that_is_not_published(make_job: MakeJob) -> None:  # noqa: F811
    with pytest.raises(Refused):
        Release(visits(make_job).spec).estimate("count")


def test_without_bounds_labels_are_named(make_job: MakeJob) -> None:  # noqa: F811
    made = visits(make_job)
    made.settings["publish"]["ranges"] = "text"
    made.run()
    release = Release(made.spec)
    assert ends(release.estimate("count", where={"age": "20-29"})) == (4, 4, 4)
    with pytest.raises(InputError, match="readers see no numbers"):
        release.estimate("mean", "age")


def test_a_label_with_missing_values_makes_nothing_certain() -> None:
    """NULL is among them, and is in no range."""
    cells = [(Interval(30, 40), 1.0)]
    column = BoundedColumn("age", 1, False, {"30-39 or (missing)": Bounded(Interval(30, 40), cells)})
    older = with_condition(column, {"from": 20})
    assert column.meets("30-39 or (missing)", older).surely is False
    assert column.number("30-39 or (missing)", None) == Number(None, None, 34.5)


def test_an_open_label_is_certain_beyond_its_end_alone() -> None:
    """Of `<20` nobody says more; where a row has no number it has the mean of the others, as far as its label goes."""
    cells = {"<20": [(Interval(below=20), 1.0)], "20-29": [(Interval(20, 30), 1.0)]}
    bounds = {"<20": Interval(below=20), "20-29": Interval(20, 30)}
    columns = {"age": BoundedColumn("age", 1, False, {name: Bounded(bounds[name], cells[name]) for name in cells})}
    groups = [(("<20",), 1, 1.0), (("20-29",), 1, 1.0)]

    def asked_for(what: Any, column: str | None, raw: Any) -> tuple[Any, ...]:
        where = {} if raw is None else {"age": with_condition(columns["age"], raw)}
        return ends(_answer(Question(what, column, where, None, None), columns, groups))

    assert asked_for("count", None, {"below": 25}) == (1, 1.5, 2)
    assert asked_for("count", None, {"below": 10}) == (0, 0.5, 1)
    assert asked_for("mean", "age", None) == (None, (19 + 24.5) / 2, 24.0)
    assert asked_for("sum", "age", {"from": 10}) == (20, 0.5 * 19 + 24.5, 19 + 29)


def test_weights_count_who_is_there(make_job: MakeJob) -> None:  # noqa: F811
    """Of forty people ten have left since, and the release knows of which group."""
    made = make_job(
        {"id": [f"p{i}" for i in range(40)], "age": [20 + i % 20 for i in range(40)], "ill": ["flu", "cold"] * 20},
        {"age": "INTEGER"},
        attributes={
            "id": "identifying",
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}},
            "ill": {"role": "sensitive"},
        },
        entity="id",
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 1}}],
        search={"node": [1]},
        versions={"on_refusal": "hold_back"},
    )
    made.settings["publish"]["weights"] = True
    made.run()
    made.change(f"DELETE FROM people WHERE id IN {tuple(f'p{i}' for i in range(0, 40, 4))}")
    made.run()
    release, (total,) = Release(made.spec), made.query("SELECT sum(weight) FROM published.people")[0]
    assert release.estimate("count").expected == 40
    assert ends(release.estimate("count", weights=True)) == (pytest.approx(total),) * 3
    assert total < 40
    older = made.query("SELECT sum(weight) FROM published.people WHERE age = '30-39'")[0][0]
    assert ends(release.estimate("count", where={"age": {"from": 30}}, weights=True)) == (pytest.approx(older),) * 3
