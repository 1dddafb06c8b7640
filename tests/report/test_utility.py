"""What a release keeps of its source, counted again row by row with pandas, by code that shares nothing with it."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release.jobs import Job, MakeJob

from qblock.hierarchy import Hierarchy
from qblock.report import read_report, rendered
from qblock.report.spreading import Spreading, cramers_v
from qblock.results.report_utility import NumbersKept, UtilityKept
from report.test_read import ACCEPT, NONE, QUASI, VISITS, visits

TYPES = {"age": "INTEGER", "cost": "INTEGER"}


def utility_of(job: Job) -> UtilityKept:
    job.run()
    utility = read_report(job.spec, internal=True).inside.utility
    assert utility is not None
    return utility


def published(job: Job) -> pd.DataFrame:
    names = [name for (name,) in job.query("SELECT column_name FROM published.people_columns")]
    wanted = [name for name in names if not name.endswith(("_low", "_high"))]
    rows = job.query(f"SELECT {', '.join(wanted)}, age_mid FROM published.people_midpoints")
    return pd.DataFrame(rows, columns=[*wanted, "age_mid"], dtype=object)


def range_of(age: int, width: int) -> str:
    low = age // width * width
    return f"{low}-{low + width - 1}"


def slow_v(pairs: list[tuple[Any, Any, float]]) -> float | None:
    """By its definition, cell by cell."""
    cells: Counter[tuple[Any, Any]] = Counter()
    for a, b, n in pairs:
        cells[a, b] += n  # type: ignore[assignment]
    first, second = {a for a, _ in cells}, {b for _, b in cells}
    if min(len(first), len(second)) < 2:
        return None
    total = sum(cells.values())
    of_a = {a: sum(n for (x, _), n in cells.items() if x == a) for a in first}
    of_b = {b: sum(n for (_, y), n in cells.items() if y == b) for b in second}
    squares = sum(
        (cells[a, b] - of_a[a] * of_b[b] / total) ** 2 / (of_a[a] * of_b[b] / total) for a in of_a for b in of_b
    )
    return math.sqrt(squares / total / (min(len(first), len(second)) - 1))


def check_numbers(kept: NumbersKept | None, values: list[Any]) -> None:
    known = sorted(float(value) for value in values if value is not None)
    assert kept is not None
    assert kept.mean == pytest.approx(np.mean(known))
    quartiles = [known[math.ceil(len(known) * share) - 1] for share in (0.25, 0.5, 0.75)]
    assert (kept.lower, kept.median, kept.upper) == pytest.approx(tuple(quartiles))


def check_shares(utility: UtilityKept, name: str, ours: dict[Any, float], theirs: dict[Any, float]) -> None:
    """ours, theirs: rows by label, of both sides."""
    column = next(column for column in utility.columns if column.name == name)
    totals = sum(ours.values()), sum(theirs.values())
    for of in column.labels:
        assert of.source == pytest.approx(ours.get(of.label, 0) / totals[0])
        assert of.released == pytest.approx(theirs.get(of.label, 0) / totals[1])
    named = {of.label for of in column.labels}
    assert column.rest_source == pytest.approx(sum(n for label, n in ours.items() if label not in named) / totals[0])
    assert column.rest_released == pytest.approx(
        sum(n for label, n in theirs.items() if label not in named) / totals[1], abs=1e-9
    )
    every = {label if label in named else "rest" for label in {*ours, *theirs}}
    apart: dict[Any, float] = defaultdict(float)
    for side, total, sign in ((ours, totals[0], 1), (theirs, totals[1], -1)):
        for label, n in side.items():
            apart[label if label in named else "rest"] += sign * n / total
    assert column.distance == pytest.approx(sum(abs(apart[label]) for label in every) / 2, abs=1e-9)


def test_a_node_is_compared_at_its_labels(make_job: MakeJob) -> None:
    """With suppressed rows, and a value that only these have."""
    table = {**VISITS, "age": [*VISITS["age"][:-1], 68], "disease": [*VISITS["disease"][:-1], "rare secret"]}
    job = make_job(
        table,
        TYPES,
        attributes=QUASI,
        privacy=[{"k_anonymity": {"k": 2}}],
        search={"node": [1, 0]},
        suppression_limit=0.3,
        versions=NONE,
        accept=ACCEPT,
    )
    utility = utility_of(job)
    source, view = pd.DataFrame(table, dtype=object), published(job)
    source["label"] = [range_of(age, 10) for age in table["age"]]
    assert (utility.rows_source, utility.rows_released) == (len(source), len(view))
    assert len(view) < len(source)
    check_shares(utility, "age", dict(Counter(source["label"])), dict(Counter(view["age"])))
    for name in ("sex", "disease", "cost"):
        texts = [[None if value is None else str(value) for value in side[name]] for side in (source, view)]
        check_shares(utility, name, *(dict(Counter(side)) for side in texts))
    kept = {column.name: column for column in utility.columns}
    for name in ("age", "cost"):
        check_numbers(kept[name].source, list(source[name]))
        check_numbers(kept[name].released, list(view["age_mid" if name == "age" else name]))
    assert kept["sex"].source is None
    assert "rare secret" not in json.dumps(utility.to_dict())
    assert kept["age"].distance > 0
    check_pairs(utility, source.assign(age_mid=source["age"], age=source["label"]), view)


def check_pairs(utility: UtilityKept, source: pd.DataFrame, view: pd.DataFrame) -> None:
    named = {column.name: {of.label for of in column.labels} for column in utility.columns}
    assert utility.pairs_total == len(list(combinations(named, 2)))
    losses = [pair.loss for pair in utility.pairs if pair.loss is not None]
    assert losses == sorted(losses, reverse=True)
    for pair in utility.pairs:
        assert (pair.measure == "pearson") == ({pair.first, pair.second} == {"age", "cost"})
        for side, value in ((source, pair.source), (view, pair.released)):
            if pair.measure == "pearson":
                both = side[["age_mid", "cost"]].astype(float).dropna()
                assert value == pytest.approx(np.corrcoef(both["age_mid"], both["cost"])[0, 1])
                continue
            texts = [
                [None if value is None else str(value) for value in side[name]] for name in (pair.first, pair.second)
            ]
            known = [
                [text if text in named[name] else "rest" for text in own]
                for name, own in zip((pair.first, pair.second), texts, strict=True)
            ]
            expected = slow_v([(a, b, 1) for a, b in zip(*known, strict=True)])
            assert value == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_labels_of_a_map_are_spread_over_their_values(make_job: MakeJob) -> None:
    job = visits(make_job, search={"recoding": "multidimensional"}, privacy=[{"k_anonymity": {"k": 5}}])
    utility = utility_of(job)
    ages = sorted(set(VISITS["age"]))
    listed = job.query("SELECT label, low, high FROM published.people_levels WHERE column_name = 'age'")
    under = {label: [age for age in ages if float(low) <= age < float(high)] for label, low, high in listed}
    assert any(len(values) > 1 for values in under.values())
    view = published(job)
    sexes = {"f": ["f"], "m": ["m"], "*": ["f", "m"]}
    theirs: dict[str, float] = defaultdict(float)
    cells = []
    for row in view.itertuples():
        for age in under[row.age]:
            theirs[range_of(age, 10)] += 1 / len(under[row.age])
            for sex in sexes[row.sex]:
                cells.append((range_of(age, 10), sex, 1 / len(under[row.age]) / len(sexes[row.sex])))
    ours = [range_of(age, 10) for age in VISITS["age"]]
    assert {of.label for of in utility.columns[0].labels} == set(ours)
    check_shares(utility, "age", dict(Counter(ours)), theirs)
    pair = next(pair for pair in utility.pairs if (pair.first, pair.second) == ("age", "sex"))
    assert pair.released == pytest.approx(slow_v(cells), abs=1e-9)
    raw = slow_v([(age, sex, 1) for age, sex in zip(ours, VISITS["sex"], strict=True)])
    assert pair.source == pytest.approx(raw, abs=1e-9)


def test_values_that_readers_do_not_see_are_not_named(make_job: MakeJob) -> None:
    """Of a map, at the finest level, where most values are published."""
    table = {**VISITS, "sex": ["f"] * 18 + ["m"] * 17 + ["rare secret"]}
    job = make_job(
        table,
        TYPES,
        attributes={**QUASI, "age": "insensitive"},
        privacy=[{"k_anonymity": {"k": 5}}],
        search={"recoding": "multidimensional"},
        versions=NONE,
        accept=ACCEPT,
    )
    utility = utility_of(job)
    sex = next(column for column in utility.columns if column.name == "sex")
    assert "rare secret" not in json.dumps(utility.to_dict())
    assert sum(of.source for of in sex.labels) + sex.rest_source == pytest.approx(1)
    assert sex.rest_source >= 1 / 36 - 1e-9


def test_readers_see_nothing_of_it_and_a_candidate_has_nothing_to_compare(make_job: MakeJob) -> None:
    job = visits(make_job)
    assert "there is nothing to compare the source with" in rendered(read_report(job.spec, candidate=True), "md")
    job.run()
    inside, outside = read_report(job.spec, internal=True), read_report(job.spec)
    assert "## Utility against the source (internal)" in rendered(inside, "md")
    assert "How columns go together: the 6 of 6 pairs that change most" in rendered(inside, "md")
    for form in ("html", "md", "json"):
        assert "Utility against" not in rendered(outside, form)  # type: ignore[arg-type]
        assert "rows_source" not in rendered(outside, form)  # type: ignore[arg-type]


def test_a_column_that_the_spec_no_longer_has_is_left_out(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    job.settings["attributes"] = {name: of for name, of in QUASI.items() if name != "disease"}
    utility = read_report(job.spec, internal=True).inside.utility
    assert utility is not None
    assert [column.name for column in utility.columns] == ["age", "sex", "cost"]


COUNTS = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=4)


@given(COUNTS)
def test_cramers_v_is_that_of_its_definition(counts: list[list[int]]) -> None:
    cells = [(i, j, float(n)) for i, row in enumerate(counts) for j, n in enumerate(row) if n]
    value, expected = cramers_v(np.array(counts, dtype=float)), slow_v(cells)
    assert value == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_cramers_v_of_what_tells_all_and_of_what_tells_nothing() -> None:
    assert cramers_v(np.diag([3.0, 5.0, 1.0])) == pytest.approx(1)
    assert cramers_v(np.outer([1.0, 2.0], [3.0, 4.0])) == pytest.approx(0)
    assert cramers_v(np.array([[1.0, 2.0]])) is None


@given(st.lists(st.sampled_from(["1", "2", "11", "1-9", "10-19", "2-11", "*"]), min_size=1, unique=True))
def test_each_label_is_spread_over_values_that_it_stands_for(published_labels: list[str]) -> None:
    hierarchy = Hierarchy("age", ("age", "tens", "all"), (("1", "2", "11"), ("1-9", "1-9", "10-19"), ("*", "*", "*")))
    levels = {"1": 0, "2": 0, "11": 0, "1-9": 1, "10-19": 1, "*": 2, "2-11": None}
    ends = {"2-11": ("2", "12")}
    under = {"1-9": {"1", "2"}, "10-19": {"11"}, "*": {"1", "2", "11"}, "2-11": {"2", "11"}}
    entries = []
    for i, label in enumerate(published_labels, 1):
        low, high = ends.get(label, (None, None))
        entry = {
            "label": label,
            "level": levels[label],
            "low": low,
            "high": high,
            "members": None,
            "sort": i,
            "rows": i,
        }
        entries.append(entry)
    spread = Spreading(hierarchy, entries, None, whole=False)
    values = {"1", "2", "11"} & set(published_labels)
    assert spread.level == (0 if len(values) > 1 else 1)
    # Of the finest level those alone that readers see, of another one those that a published label covers.
    bins = {"1": {"1"}, "2": {"2"}, "11": {"11"}} if spread.level == 0 else {"1-9": {"1", "2"}, "10-19": {"11"}}
    assert set(spread.bins) <= bins.keys()
    assert spread.level == 1 or set(spread.bins) == values
    for label, row in spread.weights().items():
        covered = under.get(label, {label})
        assert row.sum() == pytest.approx(1)
        assert spread.level == 0 or row[-1] == 0
        for bin_, share in zip(spread.bins, row.tolist(), strict=False):
            assert share == pytest.approx(len(bins[bin_] & covered) / len(covered))
