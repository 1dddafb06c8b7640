"""Boxes of people who have several rows, against counts that are made here from the labels and the rows alone."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from integration.sources import make_spec

from qblock.blocks import Ints
from qblock.models.base import Value
from qblock.search.boxes import recoded
from qblock.search.run import open_task, run_search
from qblock.spec import Spec

from .test_labels import box_of

pytestmark = pytest.mark.either_engine
Rows = list[dict[str, Any]]
QUASI = ("age", "ward")
SENSITIVE = ("diagnosis", "drug", "doctor")
FIT = 60
"""Rows that fit in memory, of 150."""


def drawn_rows(draw: random.Random) -> Rows:
    """Visits of people, most of whom have several, with another drug each time."""
    return [
        {
            "person": draw.randrange(40),
            "age": draw.randrange(20, 60),
            "ward": draw.randrange(3),
            "diagnosis": draw.choice("uvwxy"),
            "drug": draw.randrange(6),
            "doctor": draw.choice("pq"),
        }
        for _ in range(150)
    ]


def entropy(people: Mapping[Any, set[int]]) -> float:
    """The effective number of values, of which a person with several has each."""
    total = sum(map(len, people.values()))
    return math.exp(-sum(len(of) / total * math.log(len(of) / total) for of in people.values()))


def by_value(rows: Iterable[dict[str, Any]], name: str) -> dict[Any, set[int]]:
    """Who has each value."""
    people = defaultdict[Any, set[int]](set)
    for row in rows:
        people[row[name]].add(row["person"])
    return people


def parts_of(rows: Rows, names: tuple[str, ...]) -> list[tuple[Rows, str]]:
    """The rows that agree in all but one of these attributes, and which that is."""
    parts = []
    for name in names:
        alike = defaultdict[Any, Rows](list)
        for row in rows:
            alike[tuple(row[other] for other in names if other != name)].append(row)
        parts += [(part, name) for part in alike.values()]
    return parts


def told(spec: Spec) -> tuple[list[tuple[str, ...]], list[Value], Ints]:
    """The boxes by how their labels read, the tightest value of each requirement, and the people of each box."""
    with open_task(spec) as task:
        result = run_search(task)
    answer = result.recoded
    assert answer is not None
    return answer.boxes, [of.values[0] for of in answer.assessment.tightest], answer.specialized.groups.size


@pytest.mark.parametrize("by", ["loss", "kl_divergence"])
@pytest.mark.parametrize("counted", ["in memory", "in portions", "by statements"])
@pytest.mark.parametrize("seed", range(2))
def test_a_person_with_a_value_in_several_rows_has_it_once(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, counted: str, by: str
) -> None:
    if counted == "in portions":
        monkeypatch.setattr(recoded, "bytes_of", lambda _, sets, rows: rows * sets.memory // FIT)
    rows = drawn_rows(random.Random(seed))
    url = warehouse("visits", {name: [row[name] for row in rows] for name in rows[0]})
    attributes: dict[str, Any] = dict.fromkeys(SENSITIVE, "sensitive") | {"person": "identifying"}
    attributes["age"] = {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10, 20]}}
    attributes["ward"] = {"role": "quasi_identifier", "hierarchy": "suppress"}
    asked: list[tuple[str, ...]] = [("diagnosis",), ("drug",), ("diagnosis", "doctor")]
    told_of = [(1.1, list(of)) if len(of) > 1 else (2, of[0]) for of in asked]
    privacy = [{"entropy_l_diversity": {"l": least, "sensitive": names}} for least, names in told_of]
    more = {"entity": "person", "count": "entities", "versions": {"joint": "none"}}
    search = {"recoding": "multidimensional", "choose_by": by}
    search["roll_up"] = "warehouse" if counted == "by statements" else "auto"
    spec = make_spec(url, "visits", attributes, [{"k_anonymity": {"k": 4}}, *privacy], tmp_path, search=search, **more)
    boxes, tightest, sizes = told(spec)
    inside = defaultdict[tuple[str, ...], Rows](list)
    for row in rows:
        inside[box_of([row[name] for name in QUASI], boxes)].append(row)
    assert sorted(sizes.tolist()) == sorted(len({row["person"] for row in of}) for of in inside.values())
    assert len(boxes) > 3
    for of, value in zip(asked, tightest[1:], strict=True):
        least = min(entropy(by_value(part, name)) for box in inside.values() for part, name in parts_of(box, of))
        assert float(value.value or 0) == pytest.approx(least, rel=1e-12)
