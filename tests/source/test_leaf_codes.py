"""The codes of the leaves of people, who are named by a column beside those of the source."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from integration.sources import make_spec

from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.search.run import open_task
from qblock.source import leaf_codes

PEOPLE: list[tuple[str, int | None, str, date]] = [
    ("p3", 31, "Peru", date(2024, 1, 5)),
    ("p1", 18, "Malta", date(2023, 12, 1)),
    ("p2", None, "Peru", date(2024, 1, 5)),
    ("p4", 67, "Spain", date(2024, 2, 1)),
]
LANDS = "land,part,all\nMalta,Europe,*\nSpain,Europe,*\nPeru,America,*\n"


def coded(warehouse: Any, folder: Path, lands: str, uncovered: str) -> tuple[list[tuple[Any, ...]], int]:
    """Each person with the texts of the leaves, and how many temporary tables are left of it."""
    columns = {name: [row[i] for row in PEOPLE] for i, name in enumerate(("id", "age", "land", "day"))}
    url = warehouse("people", columns, {"id": "VARCHAR(9)", "age": "INTEGER", "land": "VARCHAR(9)", "day": "DATE"})
    (folder / "lands.csv").write_text(LANDS, "utf-8")
    hierarchies: dict[str, Any] = {"age": {"ranges": [5]}, "land": {"file": "lands.csv"}, "day": {"dates": ["month"]}}
    attributes = {name: {"role": "quasi_identifier", "hierarchy": of} for name, of in hierarchies.items()}
    attributes["age"]["nulls"] = "top"
    attributes["land"]["uncovered"] = uncovered
    spec = make_spec(url, "people", {**attributes, "id": "identifying"}, [{"k_anonymity": {"k": 1}}], folder)
    with open_task(spec) as task:
        (folder / "lands.csv").write_text(lands, "utf-8")
        session = task.source.frequency_sets.session
        table = session.relation(TableName.parse("people"))
        rows = sa.select(*table.c, table.c.id.label("of whom")).subquery("everybody")
        wanted = session.load("qblock_wanted", pa.table({"person": ["p1", "p2", "p3"]}))
        before = len(session._temporary)
        hierarchies_, people, codes = leaf_codes(spec, session, rows, task.source.columns, "of whom", wanted)
        # The hierarchies are those of everybody, whoever is wanted.
        assert "67" in hierarchies_[0].leaves
        leaves = [[of.leaves[code] for of, code in zip(hierarchies_, row, strict=True)] for row in codes.tolist()]
        return [(person, *row) for person, row in zip(people, leaves, strict=True)], len(session._temporary) - before


def test_each_person_has_a_leaf_of_each_quasi_identifier(warehouse: Any, tmp_path: Path) -> None:
    expected = [
        ("p1", "18", "Malta", "2023-12-01"),
        ("p2", None, "Peru", "2024-01-05"),
        ("p3", "31", "Peru", "2024-01-05"),
    ]
    assert coded(warehouse, tmp_path, LANDS, "refuse") == (expected, 0)


def test_who_waits_for_a_hierarchy_is_left_out(warehouse: Any, tmp_path: Path) -> None:
    people, left = coded(warehouse, tmp_path, LANDS.replace("Peru,America,*\n", ""), "quarantine")
    assert ([person for person, *_ in people], left) == (["p1"], 0)


def test_a_value_without_a_leaf_is_refused(warehouse: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="land"):
        coded(warehouse, tmp_path, LANDS.replace("Peru,America,*\n", ""), "refuse")
