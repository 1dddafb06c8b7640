"""Which few columns tell people apart, against counting them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.profiling.unique_sets import Sample, UniqueSet, minimal, percent, said, sentence, unique_shares

NAMES = ("a", "b", "c", "d")
ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 4, st.integers(0, 6)), min_size=1, max_size=14)


def sample(rows: Sequence[Sequence[int]]) -> Sample:
    columns = np.array(rows, dtype=np.int64).T
    return Sample(dict(zip((*NAMES, "person"), columns, strict=True)), len(rows))


def one_by_one(rows: Sequence[Sequence[int]], of: Sequence[str], person: str | None) -> float:
    """The share of the people who have some combination that nobody else has."""
    places = [NAMES.index(name) for name in of]
    who = [row[4] if person else number for number, row in enumerate(rows)]
    having: dict[tuple[int, ...], set[int]] = {}
    for one, row in zip(who, rows, strict=True):
        having.setdefault(tuple(row[place] for place in places), set()).add(one)
    alone = {next(iter(people)) for people in having.values() if len(people) == 1}
    return len(alone) / len(set(who))


@given(ROWS, st.sampled_from([None, "person"]))
def test_the_shares_are_those_of_counting_one_by_one(rows: list[tuple[int, ...]], person: str | None) -> None:
    found = {one.columns: one.share for one in unique_shares(sample(rows), NAMES, person)}
    sets = [of for size in (1, 2, 3) for of in combinations(NAMES, size)]
    assert found == pytest.approx({of: one_by_one(rows, of, person) for of in sets})
    shares = [round(one.share, 3) for one in unique_shares(sample(rows), NAMES, person)]
    assert shares == sorted(shares, reverse=True)


@given(ROWS)
def test_no_set_of_those_that_are_named_holds_another_one(rows: list[tuple[int, ...]]) -> None:
    found = unique_shares(sample(rows), NAMES, None)
    sets = minimal(found)
    assert not any(set(one.columns) < set(other.columns) for one in sets for other in sets)
    most = [one for one in found if one.share > 0.5]
    assert all(any(set(one.columns) <= set(other.columns) for one in sets) for other in most)


def test_what_is_said() -> None:
    sets = [UniqueSet(("born",), 1.0), UniqueSet(("zip", "age"), 0.634), UniqueSet(("zip", "sex"), 0.52)]
    assert said(sets) == {
        "born": "unique for 100 % of the people",
        "zip": "with age unique for 63.4 % of the people",
        "age": "with zip unique for 63.4 % of the people",
        "sex": "with zip unique for 52 % of the people",
    }
    assert sentence(sets, 10, 10) == ("Unique people, by column: born 100 %, zip + age 63.4 %, zip + sex 52 %")
    assert sentence([], 100_000, 10**6) == "Unique people, by column (of 100,000 rows drawn by a digest): nobody"
    assert sentence([*sets, UniqueSet(("sex", "age"), 0.51)], 10, 10).endswith("zip + sex 52 %, and 1 other set")
    assert (percent(0.99999), percent(1.0), percent(0.001)) == ("99.9 %", "100 %", "0.1 %")


def test_a_person_with_several_rows_is_one_person() -> None:
    rows = [(1, 0, 0, 0, 7), (1, 0, 0, 0, 7), (2, 0, 0, 0, 8)]
    found = {one.columns: one.share for one in unique_shares(sample(rows), ("a",), "person")}
    assert found == {("a",): 1.0}
    assert {one.columns: one.share for one in unique_shares(sample(rows), ("a",), None)} == {("a",): 1 / 3}


def test_without_columns_nobody_is_told_apart() -> None:
    assert unique_shares(Sample(), (), None) == []
    assert minimal([]) == []
