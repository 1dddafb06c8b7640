"""Files as a source: copied once, with the columns that are needed, or refused with file, column and row."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from qblock.engines import source_files
from qblock.engines.copied import CopiedWarehouse, Tabular
from qblock.engines.source_files import FileTable
from qblock.engines.tables import SourceFacts
from qblock.errors import InputError, QblockError
from qblock.spec.source_file import column_type
from qblock.tables.frames import FrameTable

Rows = list[tuple[Any, ...]]


def read(
    folder: Path, name: str, *columns: str, types: Mapping[str, str] | None = None, rows: bool = True
) -> tuple[Rows, list[str], SourceFacts | None]:
    """The rows and the engine's types of the copy, and what is recorded of the files."""
    table = FileTable(name, folder, "spec:3", {c: column_type(t) for c, t in (types or {}).items()})
    return copied(table, columns, rows=rows)


def copied(
    table: Tabular, columns: Sequence[str], *, rows: bool = True, as_text: bool = False
) -> tuple[Rows, list[str], SourceFacts | None]:
    opened = CopiedWarehouse(table, dict.fromkeys(columns, "spec:4"), rows=rows)
    try:
        with opened.snapshot() as session:
            there = session.columns(table.home)
            assert list(there) == list(columns)
            values = session.relation(table.home).c
            found = session.fetch(sa.select(*(sa.cast(value, sa.Text) if as_text else value for value in values)))
            return list(zip(*found.to_pydict().values(), strict=True)), [c.type for c in there.values()], opened.facts
    finally:
        opened.close()


def refused(folder: Path, name: str, *columns: str, error: type[QblockError] = InputError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        read(folder, name, *columns, **options)
    assert type(caught.value) is error
    assert "secret" not in str(caught.value)
    return str(caught.value)


def write(folder: Path, name: str, content: str | bytes) -> None:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def paste(command: str, folder: Path) -> None:
    """Run a line of a message as it is, in a shell in the folder."""
    program = folder / "bin" / "duckdb"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys, duckdb\n_, c, sql = sys.argv\nduckdb.sql(sql)\n")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, shell=True, check=True, cwd=folder, timeout=60, env={**os.environ, "PATH": path})


def test_csv_is_text_unless_types_are_given(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", 'age,unused,day\n1,x,2026-02-03\n,y,\n"","z",2026-02-04\n')
    assert read(tmp_path, "a.csv", "age", "day")[0] == [("1", "2026-02-03"), (None, None), ("", "2026-02-04")]
    write(
        tmp_path,
        "b.csv",
        "n,f,b,d,t,z,m,s\n+7,1e-3,TRUE,2026-02-03,2026-02-03T04:05,2026-02-03 04:05:06+01,1.50,007\n,,,,,,,\n",
    )
    words = "integer", "float", "boolean", "date", "timestamp", "timestamptz", "decimal(5,1)"
    types = dict(zip("nfbdtzm", words, strict=True))
    found, engine, _ = read(tmp_path, "b.csv", *types, "s", types=types)
    assert engine == [
        *("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DECIMAL(5,1)", "VARCHAR")
    ]
    assert found[0][:3] == (7, 0.001, True)
    assert [str(value) for value in found[0][3:]] == [
        "2026-02-03", "2026-02-03 04:05:00", "2026-02-03 03:05:06+00:00", "1.5", "007"
    ]  # fmt: skip
    assert found[1] == (None,) * 8


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("integer", ["-1", "+9223372036854775807", "007"], ["1.0", " 1", "1e3", "9223372036854775808", "１", "0x1"]),
        ("float", ["1", ".5", "5.", "1E5", "-inf", "Infinity", "nan"], ["1e999", "-1e999", "1,5", "1 ", "0x1", "one"]),
        ("boolean", ["true", "False"], ["1", "t", "yes"]),
        ("date", ["2026-02-28"], ["2026-02-30", "2026-2-3", "03.02.2026", "2026-02-03 00:00:00", "infinity"]),
        ("timestamp", ["2026-02-28", "2026-02-28 01:02", "2026-02-28T01:02:03.123456"], ["2026-02-28 25:00", "x"]),
        ("timestamp", ["2026-02-28"], ["2026-02-28 01:02+01", "2026-02-28 01:02:03.1234567"]),
        ("timestamptz", ["2026-02-28 01:02:03Z", "2026-02-28 01:02:03+05:30", "2026-02-28"], ["2026-02-28 UTC", "x"]),
        ("decimal(4,2)", ["1.5", "12.34", "1.500", "-.5"], ["123.4", "1.555", "1e1", "x"]),
        ("decimal(3,0)", ["123", "1.", "1.0"], ["1234", "1.5"]),
    ],
)  # fmt: skip
def test_what_is_a_value_of_a_type_is_decided_strictly(
    tmp_path: Path, type_: str, good: list[str], bad: list[str]
) -> None:
    write(tmp_path, "a.csv", "x,y\n" + "".join(f"{text},\n" for text in good))
    assert len(read(tmp_path, "a.csv", "x", types={"x": type_})[0]) == len(good)
    for text in bad:
        quoted = f'"{text}"'
        write(tmp_path, "a.csv", f"x,y\n{good[0]},\n,\n{quoted},secret\n{quoted},\n")
        found = refused(tmp_path, "a.csv", "x", types={"x": type_})
        assert found.startswith("a.csv: column x: 2 values are not "), text
        assert "the first in row 3 below the header" in found


def test_a_number_that_is_none_is_a_missing_one(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "x\nNaN\n1\n")
    pq.write_table(pa.table({"x": [float("nan"), 1.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([float("nan"), 1.0], pa.float32())}), tmp_path / "b.parquet")
    assert read(tmp_path, "a.csv", "x", types={"x": "float"})[0] == [(None,), (1.0,)]
    assert read(tmp_path, "a.parquet", "x")[0] == read(tmp_path, "b.parquet", "x")[0] == [(None,), (1.0,)]


def test_every_row_of_a_single_column_counts(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "x\n1\n\n3\n\n")
    assert read(tmp_path, "a.csv", "x")[0] == [("1",), (None,), ("3",), (None,)]


def test_texts_keep_what_is_in_them(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", '\ufeffname,x\r\n"two\nlines, and ""quotes""",1\r\nNULL,NA\r\n" ü ",nan\r\n')
    assert read(tmp_path, "a.csv", "name", "x")[0] == [
        ('two\nlines, and "quotes"', "1"), ("NULL", "NA"), (" ü ", "nan")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x,y\n1,2\nsecret\n", "a.csv: row 2 below the header has 1 columns, and the header has 2"),
        (b"x,y\n1,2\nsecret,2,3\n", "a.csv: row 2 below the header has 3 columns, and the header has 2"),
        (b"x,y\n" + b"1,2\n" * 9000 + b"secret\xff,3\n", "a.csv: row 9001 below the header is not UTF-8"),
        (b"\xff,y\n1,2\n", "a.csv is not UTF-8"),
        (b"", "a.csv is empty"),
        (b'x,y\n1,"secret\n2,b\n3,c\n', 'a.csv: a quote (") does not end'),
        (b'x,y\n1,5" secret\n', 'a.csv: a quote (") does not end'),
        (b"x;y\nsecret;2\n", "its columns are not separated by commas but by ';'"),
        (b"x,x\nsecret,2\n", "spec:4: a.csv has 2 columns named 'x'"),
        (b"secret,z\nsecret,2\n", "spec:4: a.csv has none of the columns that are needed: x. Was its header lost?"),
    ],
)
def test_a_damaged_csv_file_is_told_without_its_values(tmp_path: Path, content: bytes, said: str) -> None:
    write(tmp_path, "a.csv", content)
    assert refused(tmp_path, "a.csv", "x").startswith(said) or said in refused(tmp_path, "a.csv", "x")


def test_columns_are_named_where_the_first_line_is_a_header(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "x,z\n1,2\n")
    assert refused(tmp_path, "a.csv", "x", "y") == "spec:4: a.csv has no column 'y'; its columns are x, z"
    write(tmp_path, "a.csv", " X ,Y\n1,2\n")
    assert "spec:4: a.csv has no column 'y'; did you mean Y?" in refused(tmp_path, "a.csv", "x", "y")


def test_a_row_that_is_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "BLOCK", 1 << 10)
    write(tmp_path, "a.csv", "x,y\n1,2\n" + "secret" * 1000 + ",2\n")
    assert "cannot be read as CSV" in refused(tmp_path, "a.csv", "x")


def test_parquet_of_every_scalar_type(tmp_path: Path) -> None:
    table = pa.table(
        {
            "category": pa.array(["a", None, "a"]).dictionary_encode(),
            "half": pa.array([1.5, None, 2.5], pa.float16()),
            "view": pa.array(["a", None, "b"], pa.string_view()),
            "day": pa.array([0, None, 86_400_000], pa.date64()),
            "nothing": pa.nulls(3),
            "zoned": pa.array([0, None, 1000], pa.timestamp("ns", "Europe/Berlin")),
            "big": pa.array([2**63, None, 1], pa.uint64()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    found, types, _ = read(tmp_path, "a.parquet", *table.column_names)
    assert types == ["VARCHAR", "FLOAT", "VARCHAR", "DATE", "INTEGER", "TIMESTAMP WITH TIME ZONE", "UBIGINT"]
    assert [row[0] for row in found] == ["a", None, "a"]
    assert [row[1] for row in found] == [1.5, None, 2.5]
    assert [row[6] for row in found] == [2**63, None, 1]


UUIDS = pa.array([UUID(int=1).bytes, None], pa.binary(16))


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (pa.ExtensionArray.from_storage(pa.uuid(), UUIDS), "UUID"),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None])), "JSON"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())), "BOOLEAN"),
        (UUIDS, "BLOB"),
        (pa.array([b"a", None], pa.large_binary()), "BLOB"),
        (pa.array([b"a", None], pa.binary_view()), "BLOB"),
        (pa.array([[1, 2], None]), "BIGINT[]"),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), "BIGINT[2]"),
        (pa.array([["a"], None], pa.large_list(pa.string())), "VARCHAR[]"),
        (pa.array([{"a": 1}, None]), "STRUCT(a BIGINT)"),
        (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), "MAP(VARCHAR, BIGINT)"),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_what_the_database_has_as_a_type_is_read_from_frames_and_parquet(
    tmp_path: Path, column: pa.Array, type_: str
) -> None:
    """As tables of DuckDB have them; a column that is not named does not matter either way."""
    table = pa.table({"x": column, "y": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    with duckdb.connect() as connection:
        connection.register("t", table)
        expected = connection.sql("SELECT CAST(x AS VARCHAR) FROM t").fetchall()
    for source in (FrameTable(table), FileTable("a.parquet", tmp_path, "spec:3")):
        assert copied(source, ["x"], as_text=True)[:2] == (expected, [type_])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.decimal256(50, 2)),
        pa.array([[1]], pa.list_(pa.decimal256(50, 2))),
        pa.array([[None]]),
        pa.array([{}], pa.struct([])),
        pa.array([{"a": ["a"]}], pa.struct([("a", pa.list_(pa.dictionary(pa.int8(), pa.string())))])),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_whose_values_cannot_be_compared_are_refused(tmp_path: Path, column: pa.Array) -> None:
    table = pa.table({"x": column, "y": [1]})
    with pytest.raises(InputError, match=r"column x has the type .*, whose values cannot be compared"):
        copied(FrameTable(table), ["x"])
    assert copied(FrameTable(table), ["y"])[0] == [(1,)]


def test_nanoseconds_of_a_zoned_time_are_not_cut_off(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1], pa.timestamp("ns", "UTC"))}), tmp_path / "a.parquet")
    assert "some of its values are none of timestamp[us, tz=UTC]" in refused(tmp_path, "a.parquet", "x")


def test_a_pattern_names_files_in_order_and_all_have_the_columns(tmp_path: Path) -> None:
    for name, table in {
        "s-2.parquet": {"x": pa.array([2], pa.int64()), "y": pa.nulls(1)},
        "s-1.parquet": {"y": pa.array(["a"]), "x": pa.array([1], pa.int64()), "z": [1]},
        "t-1.parquet": {"x": pa.array([1], pa.int32()), "y": ["a"]},
        "u-1.parquet": {"x": [1], "Y": ["a"]},
    }.items():
        pq.write_table(pa.table(table), tmp_path / name)
    found, types, facts = read(tmp_path, "s-*.parquet", "x", "y")
    assert (found, types) == ([(1, "a"), (2, None)], ["BIGINT", "VARCHAR"])
    assert facts is not None
    assert [file.name for file in facts.files] == ["s-1.parquet", "s-2.parquet"]
    said = refused(tmp_path, "[st]-*.parquet", "x", "y")
    assert said.startswith("column x has the type int64 in s-1.parquet and int32 in t-1.parquet; write one type: ")
    paste(said.split("write one type: ")[1], tmp_path)
    assert read(tmp_path, "all.parquet", "x", "y")[:2] == ([(1, "a"), (2, None), (1, "a")], ["BIGINT", "VARCHAR"])
    assert refused(tmp_path, "[su]-*.parquet", "x", "y").startswith("spec:4: u-1.parquet has no column 'y'")


def test_names_in_a_path_are_not_interpreted(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("[x].csv", "*.csv", "it's; DROP TABLE.csv", 'a"b.csv', "${HOME}.csv", "-rf.csv", "\N{SNOWMAN}\n.csv"):
        write(outside, name, f"x,y\n{len(name)},1\n")
        assert read(outside, name, "x")[0] == [(str(len(name)),)], name
    write(tmp_path, "s3:", "x")
    for url in ("s3://bucket/a.csv", "http://host/a.csv", "file:///etc/a.csv"):
        assert "this is a URL" in refused(tmp_path, url, "x")


def test_what_is_at_the_path_is_looked_at_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nothing.csv")
    write(tmp_path, "broken.parquet", "secret")
    for name, said in {
        "pipe.csv": "is a pipe (FIFO)",
        "folder.csv": "spec:3: folder.csv is a folder; name files that end in .parquet or .csv; it has none",
        "gone.csv": "is a link to a file that does not exist",
        "missing.csv": "the file",
        "missing-*.csv": "no file matches missing-*.csv; relative paths start at",
        "broken.parquet": "broken.parquet cannot be read: it is damaged",
    }.items():
        assert said in refused(tmp_path, name, "x"), name


@pytest.mark.parametrize(
    ("name", "content", "better"),
    [
        ("semicolons.csv", "x;y\n1,5;\n", "all.csv"),
        ("tabs.csv", "x\ty\n1,5\t\n", "all.csv"),
        ("tabs.tsv", "x\ty\n1,5\t\n", "all.csv"),
        ('$(touch all.csv)`x`\'\\"y".csv', "x|y\n1,5|\n", "all.csv"),
        ("rows.jsonl", '{"x": "1,5", "y": null}\n', "all.parquet"),
        ("windows.csv", 'x,y\n"1,5",\xe9\n'.encode("latin-1"), "utf8.csv"),
        ("late.csv", ("x,y\n" + '"1,5",\n' * 9000 + '"1,5",\xe9\n').encode("latin-1"), "utf8.csv"),
        ("excel.csv", 'x,y\n"1,5",\n'.encode("utf-16"), "utf8.csv"),
    ],
)
def test_a_file_of_another_form_is_refused_with_a_command_that_writes_it_anew(
    tmp_path: Path, name: str, content: str | bytes, better: str
) -> None:
    write(tmp_path, name, content)
    said = refused(tmp_path, name, "x", "y")
    paste(said[re.search(r"(duckdb|iconv) -", said).start() :], tmp_path)  # type: ignore[union-attr]
    assert set(read(tmp_path, better, "x")[0]) == {("1,5",)}


def test_a_folder_is_refused_with_the_pattern_of_its_files(tmp_path: Path) -> None:
    for inner in ("parts.parquet", "by/year=2020"):
        (tmp_path / inner).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / inner / "part-0.parquet")
    for folder, pattern in {"parts.parquet": "parts.parquet/*.parquet", "by": "by/*/*.parquet"}.items():
        assert refused(tmp_path, folder, "x") == f"spec:3: {folder} is a folder; name its files: {pattern}"
        assert read(tmp_path, pattern, "x")[0] == [(1,)]


@pytest.mark.parametrize(("one", "other"), [("x", "X"), ("é", "É")])
def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path, one: str, other: str) -> None:
    write(tmp_path, "a.csv", f"{one},{other},z\n1,2,3\n")
    assert "differ by case alone" in refused(tmp_path, "a.csv", one, other)
    assert read(tmp_path, "a.csv", other, "z")[0] == [("2", "3")]


@pytest.mark.parametrize("name", ["rowid", "c0", "qblock_rows", "select", 'a"b', "a.b", "n", "x y", "日本", "1"])
def test_any_name_of_a_column(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"a": [0], name: [1], "b": [2]}), tmp_path / "a.parquet")
    assert read(tmp_path, "a.parquet", "b", name)[0] == [(2, 1)]


def test_what_is_recorded_of_the_files(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "x\n1\n")
    os.utime(tmp_path / "a.csv", ns=(0, 1_700_000_000_123_456_789))
    _, _, facts = read(tmp_path, "a.csv", "x")
    assert facts is not None
    digest = sha256(b"x\n1\n").hexdigest()
    expected = {"files": 1, "size": 4, "modified": "2023-11-14T22:13:20.123457+00:00", "digest": digest}
    assert json.loads(facts.text()) == expected
    write(tmp_path, "b.csv", "x\n2\n")
    both = read(tmp_path, "?.csv", "x")[2]
    assert both is not None
    assert json.loads(both.text())["files"] == 2
    assert read(tmp_path, "a.csv", "x", rows=False) == ([], ["VARCHAR"], None)


def test_a_file_that_is_changed_while_it_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.csv", "x\n1\n")
    batches = source_files.Csv.batches

    def written_meanwhile(*arguments: Any) -> Any:
        yield from batches(*arguments)
        write(tmp_path, "a.csv", "x\n1\n2\n")

    monkeypatch.setattr(source_files.Csv, "batches", written_meanwhile)
    found = refused(tmp_path, "a.csv", "x", error=QblockError)
    assert found == "a.csv was changed while it was read; run again when nobody writes it"


def partitions(folder: Path, ending: str, column: str) -> None:
    for year in (2020, 2021):
        inner = folder / f"year={year}"
        inner.mkdir()
        table = pa.table({column: [str(year)], "y": ["1"]})
        pq.write_table(table, inner / "a.parquet") if ending == "parquet" else write(
            inner, "a.csv", f"{column},y\n{year},1\n"
        )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("pattern", ["year=*/a.{}", "*/*.{}", "**/*.{}"])
def test_a_column_in_the_names_of_folders_is_not_lost(tmp_path: Path, ending: str, pattern: str) -> None:
    partitions(tmp_path, ending, "x")
    said = refused(tmp_path, pattern.format(ending), "x")
    assert "the column year is in the names of folders and not in the files" in said
    paste(said.split("Write one file: ")[1], tmp_path)
    assert {str(year) for year, _ in read(tmp_path, "all.parquet", "year", "x")[0]} == {"2020", "2021"}


def test_a_partition_by_itself_and_a_column_that_is_there_are_read(tmp_path: Path) -> None:
    partitions(tmp_path, "csv", "year")
    assert sorted(read(tmp_path, "*/a.csv", "year")[0]) == [("2020",), ("2021",)]
    write(tmp_path / "year=2020", "b.csv", "x\n1\n")
    write(tmp_path / "year=2020", "c.csv", "x\n2\n")
    assert sorted(read(tmp_path, "year=2020/[bc].csv", "x")[0]) == [("1",), ("2",)]
