"""`unknown`: codes for what is not known are NULL wherever rows are read, alike on every engine, and all that is said
of a column is what is said of a table that has NULL there."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from engines import table_name
from hypothesis import given, settings
from hypothesis import strategies as st

from integration.sources import opened, quoted
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.search.run import run_search
from qblock.tables.audited import audit

pytestmark = pytest.mark.either_engine

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
TYPES: dict[str, tuple[list[Any], str, list[Any], list[Any]]] = {
    "whole": ([21, 999, -1, 0, None], "SMALLINT", [999, -1], [21, None, None, 0, None]),
    "exact": (
        ["9.99", "999.00", "0.5", "-1", None],
        "DECIMAL(7, 2)",
        ["999.0", -1],
        ["9.99", None, "0.50", None, None],
    ),
    "real": ([0.1, 999.0, 0.5, -1.0, None], "REAL", [999, 0.1], [None, None, 0.5, -1.0, None]),
    "text": (["99", "099", "it's", "", None], "VARCHAR(5)", [99, "it's", ""], [None, "099", None, None, None]),
    "padded": (["99", "9", "n/a", "x", None], "CHAR(4)", ["99", "n/a"], [None, "9", None, "x", None]),
    "day": (
        [date(1900, 1, 1), date(2020, 2, 29), date(9999, 12, 31), date(2020, 1, 1), None],
        "DATE",
        ["1900-01-01", "9999-12-31"],
        [None, date(2020, 2, 29), None, date(2020, 1, 1), None],
    ),
    "moment": (
        [datetime(1970, 1, 1), datetime(1970, 1, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 2), None],
        "TIMESTAMP",
        ["1970-01-01"],
        [None, datetime(1970, 1, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 2), None],
    ),
}
"""Values, their type, the codes, and what is left of the values, by hand."""


def text(value: Any) -> str | None:
    return None if value is None else str(value).rstrip()


@pytest.mark.each_engine
def test_a_code_is_null_in_every_type(warehouse: Any, engine_name: str, tmp_path: Path) -> None:
    table = table_name(engine_name, 'St"aff')
    url = warehouse(
        table,
        {"id": [f"r{i}" for i in range(5)], **{name: of[0] for name, of in TYPES.items()}},
        {name: of[1] for name, of in TYPES.items()},
    )
    attributes = {name: {"role": "sensitive", "nulls": "value", "unknown": of[2]} for name, of in TYPES.items()}
    with opened(url, quoted(table), {"id": QUASI, **attributes}, tmp_path) as task:
        session, source = task.source.session, TableName.parse(task.spec.source.table)
        relation = session.relation(source)
        for name, (_, _, _, left) in TYPES.items():
            query = sa.select(relation.c[name].label("v")).order_by(relation.c.id)
            found = session.fetch(query).column(0).to_pylist()
            assert (name, [text(value) for value in found]) == (name, [text(value) for value in left])
            domain = task.source.sensitives[name].reference.domain
            assert (name, len(domain), domain[-1]) == (name, len(set(left)), None)


@pytest.mark.parametrize(
    ("name", "code", "type_"),
    [("age", "n/a", "INTEGER"), ("age", 99999, "SMALLINT"), ("age", 0.5, "INTEGER"), ("day", "1900-02-30", "DATE")],
)
def test_what_is_no_value_of_the_column_is_refused(
    warehouse: Any, tmp_path: Path, name: str, code: Any, type_: str
) -> None:
    values = [1, 2] if name == "age" else [date(2020, 1, 1)] * 2
    url = warehouse("t", {"id": ["r0", "r1"], name: values}, {name: type_})
    attributes = {"id": "identifying", name: {**QUASI, "unknown": [code]}}
    said = rf"spec\.yaml:\d+: '{code}' is not a value of column {name} of type .*; correct or remove it"
    with pytest.raises(InputError, match=said), opened(url, "t", attributes, tmp_path):
        pass


HIERARCHIES: dict[str, Any] = {
    "ranges": {"ranges": [10, 30]},
    "cuts": {"cuts": {"min_width": 10, "low": 0, "high": 99}},
    "edges": {"edges": [0, 30]},
    "file": {"file": "ages.csv"},
    "suppress": "suppress",
}


@pytest.mark.parametrize("form", HIERARCHIES)
def test_what_is_unknown_is_no_label_but_the_top(warehouse: Any, tmp_path: Path, form: str) -> None:
    """Also of a file that does not have it, and beyond the bounds of cuts."""
    ages = [21, 22, 35, 999, 999, -1]
    (tmp_path / "ages.csv").write_text("age,ten,all\n21,20s,*\n22,20s,*\n35,30s,*\n")
    url = warehouse("t", {"id": [f"r{i}" for i in range(6)], "age": ages})
    attributes = {"id": "identifying", "age": {**QUASI, "hierarchy": HIERARCHIES[form], "unknown": [999, -1]}}
    with opened(url, "t", attributes, tmp_path) as task:
        (hierarchy,), sets = task.source.hierarchies, task.source.frequency_sets
        code = hierarchy.leaves.index(None)
        assert {labels[code] for labels in hierarchy.labels[1:]} == {"*"}
        assert not [label for labels in hierarchy.labels for label in labels if label and "99" in label[-3:-1]]
        for level in range(hierarchy.height):
            (blocks,) = sets.blocks((level,), ())
            assert blocks.keys is not None
            sizes = {hierarchy.labels[level][leaf] for leaf in range(len(hierarchy.leaves))}
            assert len(blocks) == len(sizes)
            assert 3 in blocks.total.tolist()


def test_a_population_has_the_same_codes(warehouse: Any, tmp_path: Path) -> None:
    """Of which one is no value of its type."""
    url = warehouse("t", {"id": ["a", "b", "c"], "age": [30, 999, None]})
    warehouse("everybody", {"age": [30, 30, None, 99, 99]}, {"age": "SMALLINT"})
    attributes = {"id": "identifying", "age": {**QUASI, "unknown": [999, 99, 99999]}}
    privacy = [{"k_map": {"k": 2, "population": {"table": "everybody"}}}]
    with opened(url, "t", attributes, tmp_path, privacy) as task:
        assert task.assess((0,)).satisfied
    with opened(url, "t", attributes, tmp_path, [{"k_map": {"k": 3, "population": {"table": "everybody"}}}]) as task:
        assert not task.assess((0,)).satisfied


def test_a_data_frame_is_read_so_too() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2], "paid": [1, 999, None, 2]})
    entries: list[dict[str, Any]] = [{"nulls": "value"}, {"nulls": "value", "unknown": [999]}]
    least = [
        next(g for g in audit(frame, ["age"], {"paid": entry}).guarantees if g.model == "t_closeness")
        for entry in entries
    ]
    assert least[0] != least[1]


AGES = st.sampled_from([0, 5, 12, 17, 40, 99, 999, -1]) | st.none()
ILLS = st.sampled_from(["flu", "gout", "n/a", "?", "rash"])
PRIVACY = [
    {"k_anonymity": {"k": 2}},
    {"distinct_l_diversity": {"l": 2}},
    {"t_closeness": {"t": 0.4}},
    {"beta_likeness": {"beta": 2}},
]


def by_hand(rows: list[tuple[Any, Any]], level: int) -> Counter[tuple[str, str | None]]:
    """The rows of each label and value, one row after another."""
    counted: Counter[tuple[str, str | None]] = Counter()
    for age, ill in rows:
        known = age is not None and age not in (99, 999, -1) and level < 2
        label = (str(age) if level == 0 else str(age // 10)) if known else "*"
        counted[label, None if ill in ("n/a", "?") else ill] += 1
    return counted


@pytest.mark.each_engine
def test_answers_are_those_of_a_table_that_has_null_there(warehouse: Any, tmp_path: Path) -> None:
    numbers = count()

    @settings(max_examples=8)
    @given(st.lists(st.tuples(AGES, ILLS), min_size=4, max_size=20))
    def alike(rows: list[tuple[Any, Any]]) -> None:
        number = next(numbers)
        plain = [(None if a in (99, 999, -1) else a, None if i in ("n/a", "?") else i) for a, i in rows]
        codes = {"age": {"unknown": [99, 999, -1]}, "ill": {"unknown": ["n/a", "?"]}}
        answers = []
        for name, of in ((f"coded{number}", rows), (f"plain{number}", plain)):
            columns = {"age": [a for a, _ in of], "ill": [i for _, i in of]}
            url = warehouse(name, columns, {"age": "INTEGER", "ill": "VARCHAR(9)"})
            more = codes if of is rows else {"age": {"nulls": "top"}, "ill": {}}
            attributes = {
                "age": {**QUASI, "hierarchy": {"ranges": [10]}, **more["age"]},
                "ill": {"role": "sensitive", "nulls": "value", **more["ill"]},
            }
            with opened(url, name, attributes, tmp_path, PRIVACY, suppression_limit=0.3) as task:
                found = run_search(task).to_json()
                answers.append({key: found[key] for key in ("nodes_total", "minimal", "chosen", "satisfying", "rows")})
                answers[-1]["domain"] = task.source.sensitives["ill"].reference.domain
                answers[-1]["top"] = task.assess(task.lattice.top).tightest
                for level in range(task.lattice.top[0]):
                    blocks = task.source.frequency_sets.blocks((level,), [0])[0]
                    sizes = Counter(label for (label, _), n in by_hand(rows, level).items() for _ in range(n))
                    assert sorted(blocks.total.tolist()) == sorted(sizes.values())
                    assert sorted(blocks.count.tolist()) == sorted(by_hand(rows, level).values())
        assert answers[0] == answers[1]

    alike()
