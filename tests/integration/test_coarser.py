"""`publish_as`: a sensitive column is its ranges, or a level of its taxonomy, alike on every engine, and all that is
said of it is what is said of a table that was made coarser beforehand."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from engines import table_name
from hypothesis import given, settings
from hypothesis import strategies as st

from integration.sources import opened, quoted
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.search.run import open_task, run_search
from qblock.spec import spec_of
from qblock.tables.audited import audit

pytestmark = pytest.mark.either_engine

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
RANGES: dict[str, Any] = {"ranges": [10], "from": -5, "to": 25}
"""Cuts at 0, 10 and 20."""


def shown(task: Any, name: str) -> list[str | None]:
    """A column as the rows of the source have it, by `id`."""
    session, table = task.source.session, TableName.parse(task.spec.source.table)
    assert session.columns(table)[name].kind == "text"
    relation = session.relation(table)
    return session.fetch(sa.select(relation.c[name].label("v")).order_by(relation.c.id)).column(0).to_pylist()


def sensitive(published: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "sensitive", "nulls": "value", "publish_as": published, **more}


WHOLE = [-129, -1, 0, 9, 10, 19, 20, 127, None]
WHOLE_LABELS = ["<0", "<0", "[0, 10)", "[0, 10)", "[10, 20)", "[10, 20)", ">=20", ">=20", None]
FAR_LABELS = ["[-1000000000, 0)"] * 2 + ["[0, 1000000000)"] * 6 + [None]
EXACT = ["-0.01", "0", "9.99", "10", "19.99", "20", "99999.99", "-99999.99", None]
EXACT_LABELS = ["<0", "[0, 10)", "[0, 10)", "[10, 20)", "[10, 20)", ">=20", ">=20", "<0", None]
TENTHS = [0.1, 0.3, 0.7, -0.1, 1e300, -1e300, 5e-324, 0.6, None]
SINGLE = [0.1, 0.3, 0.7, -0.1, 1e30, -1e30, 0.05, 0.6, None]
TENTHS_LABELS = ["[0.1, 0.2)", "[0.3, 0.4)", "[0.7, 0.8)", "<0", ">=0.8", "<0", "[0, 0.1)", "[0.6, 0.7)", None]


@pytest.mark.each_engine
def test_numbers_of_every_type_have_the_labels_that_hierarchies_give_them(
    warehouse: Any, engine_name: str, tmp_path: Path
) -> None:
    """Written down by hand: also where the bounds are beyond a type, or between two of its numbers."""
    real = "FLOAT" if engine_name == "duckdb" else "REAL"
    small = [max(-128, value) if value is not None else None for value in WHOLE]
    cases: dict[str, tuple[list[Any], str, dict[str, Any], list[str | None]]] = {
        "small": (small, "SMALLINT", RANGES, WHOLE_LABELS),
        "far": (small, "SMALLINT", {"edges": [-(10**9), 0, 10**9, 10**10]}, FAR_LABELS),
        "big": (WHOLE, "BIGINT", RANGES, WHOLE_LABELS),
        "half": (WHOLE, "INTEGER", {"edges": [0.5, 9.5]}, ["<0.5"] * 3 + ["[0.5, 9.5)"] + [">=9.5"] * 4 + [None]),
        "paid": (EXACT, "DECIMAL(7, 2)", RANGES, EXACT_LABELS),
        "fine": (EXACT, "DECIMAL(7, 2)", {"edges": [0.005, 9.985, 10000000]}, [
            "<0.005", "<0.005", "[9.985, 10000000)", "[9.985, 10000000)", "[9.985, 10000000)", "[9.985, 10000000)",
            "[9.985, 10000000)", "<0.005", None]),
        "share": (TENTHS, "DOUBLE PRECISION", {"ranges": [0.1], "from": 0, "to": 0.8}, TENTHS_LABELS),
        "single": (SINGLE, real, {"ranges": [0.1], "from": 0, "to": 0.8}, TENTHS_LABELS),
    }  # fmt: skip
    table = table_name(engine_name, 'St"aff')
    columns = {name: values for name, (values, *_) in cases.items()}
    types = {name: type_ for name, (_, type_, *_) in cases.items()}
    url = warehouse(table, {"id": [f"r{i}" for i in range(9)], **columns}, types)
    attributes = {name: sensitive(published) for name, (_, _, published, _) in cases.items()}
    privacy = [{"k_anonymity": {"k": 1}}]
    with opened(url, quoted(table), {"id": QUASI, **attributes}, tmp_path, privacy) as task:
        for name, (_, _, _, labels) in cases.items():
            assert (name, shown(task, name)) == (name, labels)
        # In the order of the ranges.
        assert task.source.sensitives["paid"].reference.domain == ("<0", "[0, 10)", "[10, 20)", ">=20", None)


@pytest.mark.each_engine
def test_a_level_of_a_taxonomy(warehouse: Any, tmp_path: Path) -> None:
    taxonomy = "value,kind,all\n1,odd,*\n2,even,*\n3.50,neither,*\n4,even,*\n"
    (tmp_path / "kinds.csv").write_text(taxonomy)
    values = ["1", "2", "3.5", "4", "2", None]
    diseases = ["flu", "gout", "flu", "it's", "bone", "gout"]
    url = warehouse("t", {"id": [f"r{i}" for i in range(6)], "n": values, "d": diseases}, {"n": "DECIMAL(6, 2)"})
    warehouse("kinds", {"leaf": ["flu", "gout", "it's"], "class": ["lungs", "bone", "100%"], "top": ["any"] * 3})
    attributes = {
        "id": QUASI,
        "n": sensitive({"level": 1}, taxonomy={"file": "kinds.csv"}),
        "d": sensitive({"level": 1}, taxonomy={"table": "kinds", "levels": ["leaf", "class", "top"]}),
    }
    with opened(url, "t", attributes, tmp_path) as task:
        assert shown(task, "n") == ["odd", "even", "neither", "even", "even", None]
        # What is written as a label of the level is of it.
        assert shown(task, "d") == ["lungs", "bone", "lungs", "100%", "bone", "bone"]
        of_n, of_d = (task.source.sensitives[name] for name in ("n", "d"))
        assert of_n.reference.domain == ("even", "neither", "odd", None)
        assert [list(level) for level in of_d.hierarchy.labels] == [
            ["100%", "bone", "lungs", None],
            ["any"] * 3 + ["*"],
            ["*"] * 4,
        ]


def test_a_value_that_the_taxonomy_lacks_is_refused_as_ever(warehouse: Any, tmp_path: Path) -> None:
    (tmp_path / "kinds.csv").write_text("value,kind,all\nflu,lungs,*\ngout,bone,*\n")
    url = warehouse("t", {"id": ["r0", "r1", "r2"], "d": ["flu", "rash", None]})
    attributes = {"id": QUASI, "d": {**sensitive({"level": 1}, taxonomy={"file": "kinds.csv"}), "nulls": "refuse"}}
    with pytest.raises(InputError) as caught, opened(url, "t", attributes, tmp_path):
        pass
    assert "column d is NULL in 1 row" in str(caught.value)
    assert "1 value of column d (1 row) is missing in its taxonomy or domain: 'rash' (1 row)" in str(caught.value)


LEVELS = {1: None, 2: "level 2 of the taxonomy of d is not there, or has no label but `*`; write 1", 3: "; write 1"}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", ["file", "table"])
def test_a_level_without_labels_is_refused(warehouse: Any, tmp_path: Path, level: int, form: str) -> None:
    (tmp_path / "kinds.csv").write_text("leaf,kind,all\nflu,lungs,*\ngout,bone,*\n")
    url = warehouse("t", {"id": ["r0", "r1"], "d": ["flu", "gout"]})
    warehouse("kinds", {"leaf": ["flu", "gout"], "kind": ["lungs", "bone"]})
    taxonomy = {"file": {"file": "kinds.csv"}, "table": {"table": "kinds", "levels": ["leaf", "kind"]}}[form]
    attributes = {"id": QUASI, "d": sensitive({"level": level}, taxonomy=taxonomy)}
    said = LEVELS[level]
    if said is None:
        with opened(url, "t", attributes, tmp_path) as task:
            assert shown(task, "d") == ["lungs", "bone"]
        return
    with pytest.raises(InputError) as caught, opened(url, "t", attributes, tmp_path):
        pass
    assert said in str(caught.value)


@pytest.mark.each_engine
@pytest.mark.parametrize("domain", [None, [">=20", "[10, 20)", "[0, 10)", "<0"]])
def test_what_no_range_holds_is_refused(warehouse: Any, tmp_path: Path, domain: list[str] | None) -> None:
    for value in ("NaN", "Infinity", "-Infinity"):
        url = warehouse(
            f"t{value.strip('-')}{len(value)}", {"id": ["r0", "r1"], "x": ["1", value]}, {"x": "DOUBLE PRECISION"}
        )
        more = {} if domain is None else {"domain": domain}
        attributes = {"id": QUASI, "x": sensitive(RANGES, **more)}
        with pytest.raises(InputError) as caught, opened(url, f"t{value.strip('-')}{len(value)}", attributes, tmp_path):
            pass
        said = (
            f"column x has {value}, which no range holds"
            if domain is None
            else f"missing in its taxonomy or domain: '{value}'"
        )
        assert said in str(caught.value)


def test_ranges_of_what_are_no_numbers_are_refused(warehouse: Any, tmp_path: Path) -> None:
    url = warehouse("t", {"id": ["r0", "r1"], "x": ["1", "2"]})
    said = r"spec\.yaml:\d+: column x is of type .*, and ranges are of numbers\. Cast it"
    with pytest.raises(InputError, match=said), opened(url, "t", {"id": QUASI, "x": sensitive(RANGES)}, tmp_path):
        pass


@pytest.mark.parametrize(
    "model", [{"epsilon_m_anonymity": {"epsilon": 1, "m": 1}}, {"delta_l_diversity": {"delta": 1, "l": 1}}]
)
def test_a_model_that_needs_numbers_says_that_there_are_labels(warehouse: Any, tmp_path: Path, model: Any) -> None:
    url = warehouse("t", {"id": ["r0", "r1"], "x": [1, 12]})
    with opened(url, "t", {"id": QUASI, "x": {"role": "sensitive"}}, tmp_path, [model]):
        pass
    said = "computes with the numbers of x, and `publish_as` makes them labels; leave it out, or take another model"
    with (
        pytest.raises(InputError, match=said),
        opened(url, "t", {"id": QUASI, "x": sensitive(RANGES)}, tmp_path, [model]),
    ):
        pass


def test_a_data_frame_is_audited_by_what_would_be_published() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2], "paid": [1, 9, 11, 29]})
    exact, ranges = (audit(frame, ["age"], {"paid": entry}) for entry in ({}, {"publish_as": RANGES}))
    least = [
        next(g for g in a.guarantees if g.model == "distinct_l_diversity").values[0].value for a in (exact, ranges)
    ]
    assert least == [2, 1]


NUMBERS = st.integers(-300, 300) | st.none()
PRIVACY = [
    {"distinct_l_diversity": {"l": 2}},
    {"t_closeness": {"t": 0.4, "distance": "ordered"}},
    {"beta_likeness": {"beta": 2}},
]


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), NUMBERS), min_size=4, max_size=24),
    st.integers(1, 90),
    st.integers(-200, 100),
    st.integers(0, 300),
    st.booleans(),
)
def test_answers_are_those_of_a_table_that_was_made_coarser_before(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int | None]],
    width: int,
    low: int,
    span: int,
    decimals: bool,
) -> None:
    """By pandas.cut, and by bisection of fractions: of quarters, or of whole numbers."""
    unit = 4 if decimals else 1
    values = [None if value is None else Fraction(value, unit) for _, value in rows]
    cuts = [i * width for i in range(-500, 500) if low <= i * width <= low + span + width]
    labels = [f"<{cuts[0]}", *(f"[{a}, {b})" for a, b in pairwise(cuts)), f">={cuts[-1]}"]
    expected = [None if value is None else labels[bisect_right(cuts, value)] for value in values]
    floats = pd.Series([None if value is None else float(value) for value in values], dtype="float64")
    cut = pd.cut(floats, [-float("inf"), *cuts, float("inf")], right=False, labels=labels)
    assert [None if pd.isna(label) else label for label in cut] == expected
    folder = tmp_path_factory.mktemp("coarser")
    ids = pa.array([block for block, _ in rows])
    kind = pa.float64() if decimals else pa.int64()
    raw = pa.array([None if value is None else float(value) if decimals else int(value) for value in values], kind)
    pq.write_table(pa.table({"block": ids, "paid": raw}), folder / "raw.parquet")
    pq.write_table(pa.table({"block": ids, "paid": pa.array(expected, pa.string())}), folder / "cut.parquet")
    seen = [label for label in labels if label in expected]
    entries = {
        "raw": {"publish_as": {"ranges": [width], "from": low, "to": low + span + width}, "order": "ascending"},
        "cut": {"order": [*seen, *([None] if None in expected else [])]},
    }
    nulls = {"nulls": "value"} if None in expected else {}
    answers = []
    for name, entry in entries.items():
        document = {
            "version": 1,
            "release": "tested",
            "source": {"file": f"{name}.parquet"},
            "attributes": {"block": QUASI, "paid": {"role": "sensitive", **nulls, **entry}},
            "privacy": PRIVACY,
            "suppression_limit": 0.3,
        }
        with open_task(spec_of(document, folder / "spec.yaml")) as task:
            found = run_search(task).to_json()
            answers.append({key: found[key] for key in ("nodes_total", "minimal", "chosen", "satisfying", "rows")})
            answers[-1]["domain"] = task.source.sensitives["paid"].reference.domain
            answers[-1]["top"] = task.assess(task.lattice.top).tightest
    assert answers[0] == answers[1]
