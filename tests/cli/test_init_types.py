"""`qblock init` and types: those of a CSV file's columns, taken where every value has them, and whole numbers that a
database has as decimals."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qblock.engines.copied import CopiedWarehouse
from qblock.engines.source_files import FileTable
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.profiling.text_types import recognize
from qblock.spec import load_spec
from qblock.spec.source_file import column_type

COLUMNS = {
    "number": ["1", "2", "", "30"],
    "minus": ["-1", "0", "5", "999999999999999999"],
    "code": ["01234", "1", "2", "3"],
    "zip": ["12345", "12346", "99999", ""],
    "money": ["1.5", "2.25", "3", "-.5"],
    "with_nulls": ["34.0", "", "71.0", "8.00"],
    "tiny": ["0.12345678", "1", "2", "3"],
    "power": ["1e-5", "2", "3", "4"],
    "huge": ["12345678901234567890", "1", "2", "3"],
    "comma": ['"1,5"', "2", "3", "4"],
    "spaced": [" 1", "2", "3", "4"],
    "flag": ["true", "FALSE", "", "true"],
    "yes": ["yes", "no", "no", "yes"],
    "day": ["2020-02-29", "", "1999-12-31", "2020-01-01"],
    "no_day": ["2021-02-29", "2020-01-01", "2020-01-01", "2020-01-01"],
    "year_0": ["0000-01-01", "2020-01-01", "2020-01-01", "2020-01-01"],
    "us_day": ["02/03/2020", "02/03/2020", "02/03/2020", "02/03/2020"],
    "time": ["2020-02-29", "2020-01-01 10:00", "2020-01-01T23:59:59.5", ""],
    "zoned": ["2020-01-01 10:00+01", "2020-01-01T10:00:00Z", "2020-01-01 10:00-05:30", ""],
    "half_zoned": ["2020-01-01 10:00+01", "2020-01-01 10:00", "", ""],
    "empty_text": ['""', "1", "2", "3"],
    "nothing": ["", "", "", ""],
}
TYPES = {
    "number": "integer",
    "minus": "integer",
    "money": "decimal(18,2)",
    "with_nulls": "decimal(18,0)",
    "tiny": "float",
    "power": "float",
    "flag": "boolean",
    "day": "date",
    "time": "timestamp",
    "zoned": "timestamptz",
}


def write(folder: Path, name: str, columns: dict[str, list[str]]) -> FileTable:
    rows = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    (folder / name).write_text("\n".join(rows) + "\n", "utf-8")
    return FileTable(name, folder, "here")


def taken(table: FileTable) -> dict[str, str]:
    return {name: str(type_) for name, type_ in recognize(table).types.items()}


def test_a_type_is_taken_where_every_value_has_it(tmp_path: Path) -> None:
    assert taken(write(tmp_path, "a.csv", COLUMNS)) == TYPES


def test_every_file_of_a_pattern_counts(tmp_path: Path) -> None:
    for name, values in {"a-1.csv": ["1", "2"], "a-2.csv": ["3.5", ""]}.items():
        write(tmp_path, name, {"x": values, "y": ["2020-01-01", "2020-01-02" if name == "a-1.csv" else "soon"]})
    assert taken(FileTable("a-*.csv", tmp_path, "here")) == {"x": "decimal(18,1)"}


def python_type(texts: list[str | None]) -> str | None:
    """The type by Python's own parsers."""

    def every(parse: Any) -> bool:
        try:
            return all(parse(text) is not None for text in texts if text is not None)
        except (ValueError, ArithmeticError):
            return False

    def number(text: str) -> Decimal:
        if text.lstrip("-").startswith("0") and text.lstrip("-")[1:2].isdigit():
            raise ValueError(text)
        if text.strip() != text or "_" in text or not text.isascii() or text.startswith("+"):
            raise ValueError(text)
        return Decimal(text)

    if all(text is None for text in texts):
        return None
    numbers = ["." in text or "e" in text.lower() for text in texts if text is not None] if every(number) else None
    if numbers is not None:
        return "number" if any(numbers) else "integer"
    if every(lambda text: date.fromisoformat(text) if len(text) == 10 else int("x")):
        return "date"
    return "timestamp" if every(datetime.fromisoformat) else None


NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.decimals(-1000, 1000, places=2).map(lambda n: f"{n:f}"),
    st.integers(0, 99).map(lambda n: f"{n:03}"),
)
DAYS = st.one_of(
    st.dates(date(1, 1, 1)).map(lambda day: day.isoformat()),
    st.datetimes(datetime(1, 1, 1)).map(lambda time: time.isoformat(" ", "seconds")),
    st.sampled_from(["2021-02-29", "2021-04-31", "2021-13-01", "2021-01-01 24:00", "2021-1-1"]),
)


@given(texts=st.one_of(*(st.lists(st.none() | kind, min_size=1, max_size=6) for kind in (NUMBERS, DAYS))))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_taken_is_read_and_is_what_python_reads(tmp_path: Path, texts: list[str | None]) -> None:
    table = write(tmp_path, "a.csv", {"x": [text or "" for text in texts], "y": ["1"] * len(texts)})
    types = taken(table)
    expected = python_type([text for text in texts if text is None or text])
    if expected is None or "24:00" in "".join(filter(None, texts)):
        assert types.get("x") in (None, "timestamp")
    else:
        assert types["x"].startswith(expected) or (expected == "number" and types["x"].startswith(("decimal", "float")))
    again = FileTable("a.csv", tmp_path, "here", {name: column_type(type_) for name, type_ in types.items()})
    opened = CopiedWarehouse(again, {"x": "here"})
    try:
        with opened.snapshot() as session:
            assert session.columns(TableName(None, "a.csv"))["x"].kind == types.get("x", "text").split("(")[0]
    finally:
        opened.close()


def table_of(rows: int) -> dict[str, list[str]]:
    return {
        "id": [str(1000 + i) for i in range(rows)],
        "age": [str(20 + i % 50) if i % 9 else "" for i in range(rows)],
        "weight": [f"{50 + i % 40}.{i % 10}" for i in range(rows)],
        "born": [f"19{50 + i % 40}-0{1 + i % 9}-11" for i in range(rows)],
        "diagnosis": [("flu", "cold", "cough")[i % 3] for i in range(rows)],
        "visits": [str(i % 7) if i != 5 else "NA" for i in range(rows)],
    }


def test_a_csv_file_is_searched_by_its_numbers_and_dates(
    qblock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "people.csv", table_of(120))
    ran = qblock("init", "people.csv", "--sensitive", "diagnosis", "--directory", "made")
    assert (ran.status, ran.err) == (0, "")
    said = " ".join(ran.out.split())
    assert "120 rows, 6 columns. Types recognized in 4 (2 integer, 1 decimal, 1 date): id, age, weight, born" in said
    assert "visits is read as text: 1 of 120 values is no number, the first in row 6 below the header" in said
    spec = load_spec(tmp_path / "made" / "release.yaml")
    assert spec.source.types == {"id": "integer", "age": "integer", "weight": "decimal(18,1)", "born": "date"}
    forms = {name: spec.attributes[name].hierarchy.form for name in ("age", "weight", "born")}  # type: ignore[union-attr]
    assert forms == {"age": "ranges", "weight": "ranges", "born": "dates"}
    # The weights of rows would have the name of a column.
    assert (spec.entity, spec.shows_weights, spec.publish.names) == ("id", True, {"weight": "share_present"})
    assert qblock("search", "made/release.yaml", "--quiet").status == 0
    # A later file in which a value is none of the type is refused by its row.
    write(tmp_path, "people.csv", {**table_of(120), "age": ["unknown"] * 120})
    later = qblock("search", "made/release.yaml", "--quiet")
    assert later.status == 2
    assert "column age: 120 values are not a whole number, the first in row 1 below the header" in later.err


def test_what_is_published_beside_columns_gets_a_name_that_none_of_them_has(
    qblock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    years = [str(2000 + i % 9) for i in range(120)]
    write(tmp_path, "people.csv", {**table_of(120), "Since": years, "shown_since": years})
    assert qblock("init", "people.csv", "--sensitive", "diagnosis", "--directory", "made").status == 0
    spec = load_spec(tmp_path / "made" / "release.yaml")
    assert (spec.shows_since, spec.publish.names) == (True, {"weight": "share_present", "since": "shown_since_2"})
    assert qblock("search", "made/release.yaml", "--quiet").status == 0


@pytest.mark.either_engine
def test_whole_numbers_are_that_in_a_column_of_decimals(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a data frame has a column with NULLs."""
    rows = 120
    columns: dict[str, list[Any]] = {
        "patient_id": [float(1000 + i) for i in range(rows)],
        "other": [float(7 * i) if i % 40 else None for i in range(rows)],
        "age": [20.0 + i % 50 if i % 9 else None for i in range(rows)],
        "children": [float(i % 4) for i in range(rows)],
        "height": [1.5 + i % 40 / 100 for i in range(rows)],
        "salary": [1000.0 + i % 7 for i in range(rows)],
    }
    url = warehouse("people", columns, dict.fromkeys(columns, "DOUBLE PRECISION"))
    monkeypatch.setenv("WAREHOUSE_URL", url)
    ran = qblock("init", url, "people", "--sensitive", "none", "--json", "--directory", tmp_path / "made")
    assert ran.status == 0, ran.err
    assert ran.json["entity"]["column"] == "patient_id"
    roles = {column["name"]: column["role"] for column in ran.json["columns"]}
    assert (roles["patient_id"], roles["other"], roles["height"]) == ("identifying", "identifying", "quasi_identifier")
    spec = load_spec(tmp_path / "made" / "release.yaml", {"WAREHOUSE_URL": url})
    assert spec.attributes["children"].hierarchy.form == "edges"  # type: ignore[union-attr]
    assert spec.attributes["age"].hierarchy.form == "ranges"  # type: ignore[union-attr]
    assert qblock("search", tmp_path / "made" / "release.yaml", "--quiet").status == 0


@pytest.mark.parametrize(
    ("name", "tool"), [("a.csv.gz", "gunzip -k"), ("a.parquet.zst", "unzstd"), ("a.CSV.GZ", "gunzip")]
)
def test_compressed_files_are_refused_with_what_to_do(qblock: Any, tmp_path: Path, name: str, tool: str) -> None:
    with pytest.raises(InputError) as caught:
        FileTable(name, tmp_path, "here")
    said = str(caught.value)
    assert f"compressed files are not read; decompress them ({tool}" in said
    assert f"name {name.rpartition('.')[0]!r}" in said
    ran = qblock("init", name, "--directory", tmp_path / "made")
    assert (ran.status, "compressed files are not read" in ran.err) == (2, True)
    (tmp_path / "release.yaml").write_text(f"version: 1\nrelease: a\nsource: {{file: {name}}}\n")
    spec = qblock("search", tmp_path / "release.yaml")
    assert (spec.status, f"source.file: compressed files are not read; decompress them ({tool}" in spec.err) == (
        2,
        True,
    )
