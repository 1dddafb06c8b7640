"""What may be suppressed, and what a map cannot be asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from integration.sources import make_spec
from reference.recoding import Attribute, Recoding

from qblock.engines.memory import UNLIMITED
from qblock.search.boxes import recoded

from .answers import Answer, answered
from .drawn import written

pytestmark = pytest.mark.either_engine


def at_places(warehouse: Any, folder: Path, rows: list[dict[str, str]], privacy: list[Any], **more: Any) -> Answer:
    """The map of places, whose first letter is the level above them."""
    leaves = dict.fromkeys(row["p"] for row in rows)
    leaves |= dict.fromkeys(more.pop("empty", ()))
    table = Recoding((Attribute("p", {place: [place, place[0], "*"] for place in leaves}),), rows)
    written(table.attributes, folder)
    url = warehouse("places", {name: [row[name] for row in rows] for name in rows[0]})
    attributes: dict[str, Any] = {"p": {"role": "quasi_identifier", "hierarchy": {"file": "p.csv"}}, "s": "sensitive"}
    attributes |= {"person": "identifying"} if "person" in rows[0] else {}
    search = {"recoding": "multidimensional", "choose_by": more.pop("choose_by", "loss")}
    with answered(table, make_spec(url, "places", attributes, privacy, folder, search=search, **more)) as answer:
        assert answer.result.metrics["loss"] == pytest.approx(answer.published.loss())
        return answer


def places(answer: Answer) -> set[frozenset[str]]:
    return {leaves for (leaves,) in answer.boxes}


def test_rows_are_not_suppressed_where_more_is_lost(warehouse: Any, tmp_path: Path) -> None:
    """Without x1 the part of x has fewer pairs of rows that look the same; but two rows lose all of seven places."""
    counts = {"x0": 8, "x1": 2, "y0": 1, "y1": 1, "y2": 1}
    rows = [{"p": place, "s": "u"} for place, n in counts.items() for _ in range(n)]
    more: dict[str, Any] = {"choose_by": "discernibility", "suppression_limit": 2, "empty": ["y3", "y4"]}
    found = at_places(warehouse, tmp_path, rows, [{"k_anonymity": {"k": 3}}], **more)
    assert found.result.full_domain is not None
    assert found.result.metrics["loss"] <= found.result.full_domain["metrics"]["loss"]
    assert found.map.specialized.suppressed_rows == 0


@pytest.mark.parametrize("fit", [24, 10])
def test_the_limit_is_one_for_all_parts(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: int
) -> None:
    """Each of three parts would lose one row; where it gains most first, also where ten of 24 rows fit in memory."""
    monkeypatch.setattr(recoded, "bytes_of", lambda _, __, rows: rows * UNLIMITED // fit)
    counts = {"x0": 5, "x1": 1, "y0": 9, "y1": 1, "z0": 7, "z1": 1}
    rows = [{"p": place, "s": "u"} for place, n in counts.items() for _ in range(n)]
    found = at_places(warehouse, tmp_path, rows, [{"k_anonymity": {"k": 3}}], suppression_limit=2)
    assert places(found) == {frozenset({"x0", "x1"}), frozenset({"y0"}), frozenset({"z0"})}
    assert found.map.specialized.suppressed_rows == 2


def test_a_part_that_is_too_small_for_two_boxes_may_lose_a_row(warehouse: Any, tmp_path: Path) -> None:
    """Of five rows of x two groups of three do not fit, and four show their place where the fifth is suppressed. No
    node does that, since z fits together alone."""
    counts = {"x0": 4, "x1": 1, "z0": 1, "z1": 1, "z2": 1}
    rows = [{"p": place, "s": "u"} for place, n in counts.items() for _ in range(n)]
    found = at_places(warehouse, tmp_path, rows, [{"k_anonymity": {"k": 3}}], suppression_limit=1)
    assert places(found) == {frozenset({"x0"}), frozenset({"z0", "z1", "z2"})}
    assert found.map.specialized.suppressed_rows == 1


def test_what_the_node_suppresses_is_of_the_limit(warehouse: Any, tmp_path: Path) -> None:
    """The top fails, since two hold v in each place, so that splits begin where z is suppressed."""
    held = {"x0": ["1u", "2u", "3u", "av", "bv"], "x1": ["4u"], "y0": ["5u", "6u", "7u", "av", "bv"], "z0": ["8u"]}
    rows = [{"p": place, "person": one[0], "s": one[1]} for place, ones in held.items() for one in ones]
    privacy = [{"k_anonymity": {"k": 2}}, {"frequency_l_diversity": {"l": 1.5, "sensitive": "s"}}]
    found = at_places(warehouse, tmp_path, rows, privacy, suppression_limit=1, entity="person", count="entities")
    assert places(found) == {frozenset({"x0", "x1"}), frozenset({"y0"})}
    assert found.map.specialized.suppressed_rows == 1
