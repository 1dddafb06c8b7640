"""`source.where` keeps the same rows on every engine, and reads of a table nothing else."""

from __future__ import annotations

from datetime import date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from engines import table_name
from hypothesis import given, settings
from hypothesis import strategies as st

from integration.sources import opened, quoted
from qblock.engines.condition import Where
from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.tables import Column, TableName
from qblock.errors import InputError, Refused
from qblock.releases import Release
from qblock.search.run import open_task
from qblock.spec import spec_of
from qblock.spec.condition import condition_of

pytestmark = pytest.mark.either_engine

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
TEXTS = ["A", "a", "", None, "it's", "50%", "5_0", "a\\b", "Zürich", "x!y", "A\nB", "-- '"]
COLUMNS: dict[str, Any] = {
    "id": [f"r{i}" for i in range(12)],
    "Site": TEXTS,
    "order": [1, 2, 3, 4, 5, 6, None, 8, 9, 10, 11, -12],
    'Größe "cm"': [0.5, 1.0, 1.5, None, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, -6.0],
    "is_deleted": [True, False, None] * 4,
    "valid_to": [None if i % 3 == 0 else date(2026, 1, i) for i in range(12)],
    "seen": [None if i % 4 == 0 else datetime(2026, 1, 1 + i, 12) for i in range(12)],
}
CONDITIONS: dict[str, str] = {
    "Site = 'A'": "r0",
    "Site = ''": "r2",
    "Site IS NULL": "r3",
    "NOT Site = 'A' AND \"order\" < 4": "r1 r2 r11",
    "Site = 'it''s'": "r4",
    "Site IN ('A', '50%', 'Zürich')": "r0 r5 r8",
    "Site NOT IN ('A', 'a') AND \"order\" <= 5": "r2 r4 r11",
    "Site LIKE '%!%' ESCAPE '!'": "r5",
    "Site LIKE '%!%%' ESCAPE '!'": "r5",
    "Site LIKE '5_0'": "r6",
    "Site LIKE '5!_0' ESCAPE '!'": "r6",
    "Site LIKE '50_'": "r5",
    "Site LIKE 'a\\\\_' ESCAPE '\\'": "r7",
    "Site LIKE 'x!y'": "r9",
    "Site LIKE 'A_B'": "r10",
    "Site LIKE '%''%'": "r4 r11",
    "Site NOT LIKE '%'": "",
    "Site LIKE 'a%'": "r1 r7",
    "Site > 'Z' AND Site < 'b'": "r1 r7 r8",
    '"order" BETWEEN 3 AND 5': "r2 r3 r4",
    '"order" = -12': "r11",
    '"order" IN (1, 2)': "r0 r1",
    '"Größe ""cm""" <= 1': "r0 r1 r11",
    '"Größe ""cm""" = 0.5 OR "Größe ""cm""" < -5.5': "r0 r11",
    "is_deleted": "r0 r3 r6 r9",
    "NOT is_deleted": "r1 r4 r7 r10",
    "is_deleted IS NULL OR is_deleted = FALSE": "r1 r2 r4 r5 r7 r8 r10 r11",
    "valid_to IS NULL": "r0 r3 r6 r9",
    "valid_to < DATE '2026-01-04'": "r1 r2",
    "valid_to = '2026-01-04'": "r4",
    "valid_to BETWEEN '2026-01-04' AND DATE '2026-01-05'": "r4 r5",
    "seen >= TIMESTAMP '2026-01-11 12:00:00'": "r10 r11",
    "seen > '2026-01-11'": "r10 r11",
    "seen < DATE '2026-01-03'": "r1",
    "(Site = 'A' OR Site = 'a') AND NOT is_deleted": "r1",
    "NOT (Site = 'A' OR \"order\" < 10)": "r9 r10",
}


def kept(task: Any) -> str:
    """The rows that a task is about, by their numbers."""
    relation = task.source.relation
    ids = task.source.session.fetch(sa.select(relation.c.id)).column(0).to_pylist()
    assert task.source.rows == len(ids)
    return in_order(ids)


def in_order(ids: list[str]) -> str:
    return " ".join(sorted(ids, key=lambda name: int(name[1:])))


@pytest.mark.each_engine
def test_the_rows_that_are_kept(warehouse, engine_name: str, tmp_path: Path) -> None:
    table = table_name(engine_name, 'St"ays')
    url = warehouse(table, COLUMNS)
    named = quoted(table)
    # Of Spark only the columns that a spec names are there.
    attributes = {"id": QUASI, **{column: "identifying" for column in COLUMNS if column != "id"}}
    with opened(url, named, attributes, tmp_path) as task:
        session, name = task.source.session, TableName.parse(named)
        rows, columns = session.relation(name), session.columns(name)
        for text, ids in CONDITIONS.items():
            relation = Where(condition_of(text), "spec", table, ["id"]).kept(session, rows, columns, None)
            ids_kept = session.fetch(sa.select(relation.c.id)).column(0).to_pylist()
            assert (text, in_order(ids_kept)) == (text, ids)
    source = {"url": url, "table": named, "where": "NOT is_deleted AND Site IS NOT NULL"}
    with opened(url, table, {"id": QUASI}, tmp_path, source=source) as task:
        assert kept(task) == "r1 r4 r7 r10"
    source["where"] = "Site = 'nowhere'"
    what = r"spec\.yaml:6: no row of the source .* meets the condition: there is nothing to release"
    with pytest.raises(Refused, match=what), opened(url, table, {"id": QUASI}, tmp_path, source=source):
        pass


@pytest.mark.each_engine
def test_a_moment_with_a_zone_is_one_in_time(warehouse, tmp_path: Path) -> None:
    moments = ["2026-01-31 23:30:00+00", "2026-02-01 00:30:00+00", None]
    url = warehouse("t", {"id": ["r0", "r1", "r2"], "at": moments}, {"at": "TIMESTAMP WITH TIME ZONE"})
    conditions = {
        "at >= TIMESTAMP '2026-02-01 00:30:00+01:00' AND at < DATE '2026-02-01'": "r0",
        "at >= DATE '2026-02-01'": "r1",
        "at = '2026-02-01 01:30:00+01:00'": "r1",
    }
    for where, rows in conditions.items():
        with opened(url, "t", {"id": QUASI}, tmp_path, source={"url": url, "table": "t", "where": where}) as task:
            assert (where, kept(task)) == (where, rows)


UNFIT = {
    "Site = 5": ("Site", "a text of its type in quotes"),
    "Site LIKE 'A' AND \"order\" LIKE '1%'": ("order", "LIKE is for texts"),
    "\"order\" = '5'": ("order", "a whole number of its type, without quotes"),
    '"order" = 0.5': ("order", "a whole number of its type"),
    '"order" < 99999999999999999999': ("order", "a whole number of its type"),
    '"order"': ("order", "a whole number of its type"),
    "is_deleted = 'Y'": ("is_deleted", "TRUE or FALSE"),
    "is_deleted < TRUE": ("is_deleted", "write = TRUE or = FALSE"),
    "valid_to = 20260131": ("valid_to", "a day (DATE '2026-01-31')"),
    "valid_to = '2026-02-30'": ("valid_to", "a day (DATE '2026-01-31')"),
    "valid_to < TIMESTAMP '2026-01-31 12:00:00'": ("valid_to", "a day (DATE '2026-01-31')"),
    "seen = '31.01.2026'": ("seen", "a day, or a moment"),
    "seen < DATE '2026-01-31 12:00:00'": ("seen", "a day, or a moment"),
    "valid_to < Site": ("valid_to", "compare columns of one type"),
    "Site IN ('A', 5)": ("Site", "a text of its type in quotes"),
}


def test_a_value_that_the_column_cannot_hold_is_named_by_its_column(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", COLUMNS)
    for where, (column, said) in UNFIT.items():
        source = {"url": url, "table": "t", "where": where}
        with pytest.raises(InputError) as caught, opened(url, "t", {"id": QUASI}, tmp_path, source=source):
            pass
        message = str(caught.value)
        assert f"spec.yaml:6: column {column} is of type " in message, (where, message)
        assert said in message, (where, message)


@pytest.mark.parametrize(("where", "near"), [("SITE = 'A'", "Site"), ("valid_too IS NULL", "valid_to")])
def test_a_column_that_is_not_there(warehouse, tmp_path: Path, where: str, near: str) -> None:
    url = warehouse("t", COLUMNS)
    source = {"url": url, "table": "t", "where": where}
    with pytest.raises(InputError) as caught, opened(url, "t", {"id": QUASI}, tmp_path, source=source):
        pass
    name = where.split()[0]
    assert str(caught.value).endswith(f"spec.yaml:6: the source t has no column '{name}'; did you mean {near}?")
    assert caught.value.suggestions == (near,)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_restricted_alike(tmp_path: Path, ending: str) -> None:
    table = pa.table({name: values for name, values in COLUMNS.items() if name != "seen"})
    types = {"order": "integer", 'Größe "cm"': "float", "is_deleted": "boolean", "valid_to": "date"}
    source: dict[str, Any] = {"file": f"t.{ending}"}
    if ending == "csv":
        pc.write_csv(table, tmp_path / "t.csv")
        source["types"] = types
    else:
        pq.write_table(table, tmp_path / "t.parquet")
    document = {
        "version": 1,
        "release": "tested",
        "source": source,
        "attributes": {"id": QUASI},
        "privacy": [{"k_anonymity": {"k": 1}}],
    }
    for where in ("valid_to < DATE '2026-01-04'", "is_deleted", "Site = ''", "Site LIKE 'a%'"):
        source["where"], rows = where, CONDITIONS[where]
        with open_task(spec_of(document, tmp_path / "spec.yaml")) as task:
            assert (where, kept(task)) == (where, rows)
    source["where"] = "valid IS NULL"
    with pytest.raises(InputError, match=r"source\.where: .* has no column 'valid'; did you mean valid_to") as caught:
        Release(spec_of(document, tmp_path / "spec.yaml")).search()
    assert caught.value.suggestions[0] == "valid_to"


CHARACTERS = st.sampled_from("ab%_!'\\\n") | st.characters(exclude_categories=("Cs",), exclude_characters="\0")


MEMORY = DuckdbWarehouse(None)

NUMBERS = count()


@settings(max_examples=10)
@given(st.lists(st.text(CHARACTERS, max_size=4), min_size=3), st.data())
def test_texts_are_compared_as_they_are(texts: list[str], data: st.DataObject) -> None:
    """On DuckDB, whose statements have values in their text."""
    chosen = data.draw(st.sampled_from(texts))
    literal = "'" + chosen.replace("'", "''") + "'"
    pattern = "'" + "".join(f"!{c}" if c in "!%_" else c for c in chosen).replace("'", "''") + "%' ESCAPE '!'"
    conditions = {
        f"v = {literal}": lambda v: v == chosen,
        f"v <> {literal}": lambda v: v != chosen,
        f"v < {literal}": lambda v: v.encode() < chosen.encode(),
        f"v LIKE {pattern}": lambda v: v.startswith(chosen),
    }
    columns = {"v": Column("v", "VARCHAR", "text", "VARCHAR")}
    with MEMORY.snapshot() as session:
        rows = session.load(f"t{next(NUMBERS)}", pa.table({"v": pa.array(texts, pa.string())}))
        for text, holds in conditions.items():
            relation = Where(condition_of(text), "spec", "t", ["v"]).kept(session, rows, columns, None)
            values = session.fetch(sa.select(relation.c.v)).column(0).to_pylist()
            assert sorted(values) == sorted(filter(holds, texts)), text
