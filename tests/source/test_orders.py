"""Only `order` orders: a declared domain and a taxonomy are sets, and numbers ascend."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from integration.sources import opened
from reference.closeness import t_tightest
from reference.tables import table_of

from qblock.errors import InputError
from qblock.search.audit import audit_node
from qblock.search.compare import compare
from source.test_sources import QUASI, problem

pytestmark = pytest.mark.either_engine

ORDERED = {"t_closeness": {"t": 1, "distance": "ordered"}}
KERNEL = {"t_closeness": {"t": 0.69, "distance": "kernel_js", "bandwidth": 0.6}}
NEAR = {"nt_closeness": {"n": 3, "t": 1, "distance": "ordered"}}


def tightest(url: str, folder: Path, privacy: Sequence[Any], **sensitive: Any) -> list[Any]:
    """The tightest t of each model on the table as it is."""
    attributes = {"a": QUASI, "s": {"role": "sensitive", **sensitive}}
    with opened(url, "t", attributes, folder, privacy) as task:
        return [verdict.values[0].value for verdict in task.assess(task.lattice.bottom).tightest]


@pytest.mark.parametrize("order", [{}, {"order": "ascending"}])
def test_a_domain_that_is_not_written_in_order(warehouse, tmp_path: Path, order: dict[str, str]) -> None:
    """10 and 30 lie at the ends, however the domain is written: t is 1/3 and not 1/6."""
    url = warehouse("t", {"a": ["x"] * 3 + ["y"] * 3, "s": [10, 10, 20, 20, 30, 30]})
    (tmp_path / "s.csv").write_text("s,g\n30,*\n10,*\n20,*\n", encoding="utf-8")
    for declared in ({"domain": [30, 10, 20]}, {"taxonomy": {"file": "s.csv"}}, {}):
        found = tightest(url, tmp_path, [ORDERED], **declared, **order)
        assert found == [Fraction(1, 3)], declared
    assert tightest(url, tmp_path, [ORDERED], order=[30, 10, 20], domain=[20, 30, 10]) == [Fraction(1, 6)]


@pytest.mark.parametrize("seed", range(3))
def test_distances_do_not_change_when_a_declaration_is_shuffled(warehouse, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    numbers = draw.sample(range(-30, 30), 5)
    values = [draw.choice(numbers) for _ in range(20)]
    url = warehouse("t", {"a": [draw.choice("xyz") for _ in values], "s": values})
    groups = {number: draw.choice("gh") for number in numbers}
    hierarchical = {"t_closeness": {"t": 1, "distance": "hierarchical"}}
    found = []
    for _ in range(3):
        draw.shuffle(numbers)
        rows = "".join(f"{number},{groups[number]},*\n" for number in numbers)
        (tmp_path / "s.csv").write_text(f"s,group,any\n{rows}", encoding="utf-8")
        taxonomy = tightest(url, tmp_path, [ORDERED, KERNEL, NEAR, hierarchical], taxonomy={"file": "s.csv"})
        found.append((tightest(url, tmp_path, [ORDERED, KERNEL, NEAR], domain=list(numbers)), taxonomy))
    assert found[1:] == found[:-1]
    assert len(set(found[0][0])) > 1


def test_audit_and_compare_of_a_shuffled_domain(warehouse, tmp_path: Path) -> None:
    columns = {"a": ["x"] * 3 + ["y"] * 3, "s": [10, 10, 20, 20, 30, 30]}
    url = warehouse("t", columns)
    answers = []
    for domain in ([10, 20, 30], [30, 10, 20]):
        with opened(url, "t", {"a": QUASI, "s": {"role": "sensitive", "domain": domain}}, tmp_path) as task:
            audit = audit_node(task, task.lattice.bottom)
            compared = compare(task)
            values = [row.values for row in compared.rows]
        answers.append((audit, values))
    assert answers[0] == answers[1]
    _, blocks = table_of([{10: 2, 20: 1}, {20: 1, 30: 2}], domain=(10, 20, 30))
    expected = max(t_tightest(block, "ordered") for block in blocks)
    found = [e for e in answers[1][0]["tightest"] if e["asked"].get("distance") == "ordered"]
    assert Fraction(found[0]["values"][0]["exact"]) == expected


def test_text_has_no_order_of_its_own(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x", "y"], "s": ["b", "a"]})
    for given in ({}, {"order": "ascending"}, {"domain": ["b", "a"]}):
        with pytest.raises(InputError, match="needs of the sensitive attribute s an order: write a list of its values"):
            tightest(url, tmp_path, [ORDERED], **given)
    with pytest.raises(InputError, match="write a list of its values"):
        tightest(url, tmp_path, [KERNEL], order="ascending")
    assert tightest(url, tmp_path, [ORDERED], order=["b", "a"]) == [Fraction(1, 2)]
    assert tightest(url, tmp_path, [KERNEL])  # without an order all values are as far apart


MOMENTS = [datetime(2024, 1, 1), datetime(2024, 1, 1, 12), datetime(12, 1, 2), datetime(2023, 12, 31, 23, 59, 59, 5)]
DAYS = [date(2024, 2, 29), date(999, 1, 1), date(2024, 3, 1)]
DECIMALS = [Decimal("10"), Decimal("9.5"), Decimal("-1.25"), Decimal("0")]


@pytest.mark.parametrize(
    ("values", "type_"), [(MOMENTS, "TIMESTAMP"), (DAYS, "DATE"), (DECIMALS, "NUMERIC(12,4)"), ([9.5, 10.0], None)]
)
def test_ascending_is_that_of_the_column(warehouse, tmp_path: Path, values: list[Any], type_: str | None) -> None:
    """Not that of the texts, in which 10 comes before 9."""
    url = warehouse("t", {"a": ["x"] * len(values), "s": values}, {"s": type_} if type_ else None)
    attributes = {"a": QUASI, "s": {"role": "sensitive", "order": "ascending"}}
    written = [str(value) for value in reversed(values)]
    for declared in ({}, {"domain": written}):
        with opened(url, "t", {**attributes, "s": {**attributes["s"], **declared}}, tmp_path) as task:
            found = task.source.sensitives["s"].reference
        kind = datetime.fromisoformat if type_ in ("TIMESTAMP", "DATE") else Fraction
        assert [kind(text) for text in found.domain] == sorted(map(kind, found.domain))
        assert found.ordered
        assert len(found.domain) == len(values)


def test_where_null_stands_among_numbers_has_to_be_said(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x", "x", "y"], "s": [1, 2, None]}, {"s": "INTEGER"})
    with pytest.raises(InputError, match="write `order: ascending` or a list of its values"):
        tightest(url, tmp_path, [ORDERED], nulls="value")
    with pytest.raises(InputError, match="write `order: ascending` or a list of its values"):
        tightest(url, tmp_path, [ORDERED], nulls="value", publish_as={"edges": [0, 2]})
    last = tightest(url, tmp_path, [ORDERED], nulls="value", order="ascending")
    assert last == tightest(url, tmp_path, [ORDERED], nulls="value", order=[1, 2, None])
    assert last == tightest(url, tmp_path, [ORDERED], nulls="value", order=[1, 2])
    assert tightest(url, tmp_path, [ORDERED], nulls="value", order=[1, None, 2]) != last
    assert "the order holds null; add `nulls: value`" in problem(
        url, {"a": QUASI, "s": {"role": "sensitive", "order": [1, 2, None]}}, tmp_path
    )
