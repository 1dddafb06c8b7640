"""A table of a Spark server that is copied, from a session that answers as one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
import sqlalchemy as sa

from qblock.engines.from_spec import is_copied, is_elsewhere
from qblock.engines.spark import copied as spark_copied
from qblock.engines.spark.adapter import column_of
from qblock.engines.spark.copied import SparkTable
from qblock.engines.tables import Column, TableName
from qblock.errors import InputError, QblockError
from qblock.publish.targets.protocol import copied_source
from qblock.spec import load_spec

TABLE = TableName("clinic", "people", "lake")
TYPES = {"age": "int", "paid": "decimal(12,2)", "tags": "array<string>", "code": "char(4)"}
SPEC = """version: 1
release: people
source: {{url: "{source}", table: lake.clinic.people}}
attributes:
  age: {{role: quasi_identifier, hierarchy: suppress}}
privacy: [{{k_anonymity: {{k: 2}}}}]
publish: {{url: "{target}"}}
"""


class Answers:
    """What is used of a session. parts: what the server sends."""

    def __init__(self, *parts: pa.Table) -> None:
        self.sent = list(parts)
        self.queries: list[str] = []

    def columns(self, table: TableName) -> dict[str, Column]:
        return {name: column_of(name, type_) for name, type_ in TYPES.items()}

    def relation(self, table: TableName, names: Sequence[str]) -> sa.FromClause:
        return sa.table(table.name, *map(sa.column, names))

    def comparable(self, column: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        return column

    def text_of(self, value: sa.ColumnElement[Any], kind: str) -> sa.ColumnElement[Any]:
        return sa.cast(value, sa.Text)

    def parts(self, query: Any, reading: TableName) -> Iterator[pa.Table]:
        self.queries.append(str(query))
        while self.sent:
            yield self.sent.pop(0)


def table_of(*parts: pa.Table) -> tuple[SparkTable, Answers]:
    answers = Answers(*parts)
    return SparkTable(cast(Any, answers), TABLE), answers


def ages(*values: int, type_: pa.DataType = pa.int32()) -> pa.Table:  # noqa: B008
    return pa.table({"age": pa.array(values, type_)})


def test_rows_are_written_as_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_copied, "PART_ROWS", 3)
    table, answers = table_of(ages(1, 2), ages(3), ages(4, 5, 6, 7), ages(8))
    arrived = []
    for _, batches in table.parts(["age"], table.schema(["age"])):
        arrived.append(([row["age"] for batch in batches for row in batch.to_pylist()], len(answers.sent)))
    assert arrived == [([1, 2, 3], 2), ([4, 5, 6, 7], 1), ([8], 0)]


def test_rows_of_many_bytes_are_written_as_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_copied, "PART_BYTES", 8)
    table, answers = table_of(ages(1, 2), ages(3))
    assert [len(answers.sent) for _ in table.parts(["age"], table.schema(["age"]))] == [1, 0]


def test_columns_that_change_meanwhile_end_the_copy() -> None:
    table, _ = table_of(ages(1), ages(2, type_=pa.int64()))
    with pytest.raises(QblockError, match=r"the columns of lake\.clinic\.people were changed while it was copied; run"):
        list(table.parts(["age"], table.schema(["age"])))


def test_types_have_room_for_every_value() -> None:
    table, answers = table_of()
    schema = table.schema(["age", "paid", "code"])
    assert schema.types == [pa.int32(), pa.decimal128(12, 2), pa.string()]
    list(table.parts(["age", "code"], table.schema(["age", "code"])))
    assert "CAST(people.code AS TEXT)" in answers.queries[0]
    assert "CAST(people.age" not in answers.queries[0]


def test_a_column_that_is_not_read_is_named_before_anything_is_copied() -> None:
    table, answers = table_of()
    with pytest.raises(InputError, match=r"spec.yaml:9: column tags of .* array<string>, .*Cast it to STRING"):
        table.check({"tags": "spec.yaml:9"})
    with pytest.raises(InputError, match="has no column 'agee'; did you mean age"):
        table.check({"agee": "spec.yaml:9"})
    assert table.columns == ["age", "paid", "code"]
    assert not answers.queries


def test_the_copy_is_where_a_database_without_catalogs_has_it() -> None:
    table, _ = table_of()
    assert (table.home, table.name) == (TableName("lake.clinic", "people"), "lake.clinic.people")


@pytest.mark.parametrize(
    ("source", "target", "elsewhere"),
    [
        ("sc://a", "duckdb:///out.duckdb", True),
        ("sc://a", "postgresql://host/db", True),
        ("sc://a", "sc://b", True),
        ("sc://a:15002/;token=x", "sc://a", False),
        ("postgresql://host/db", "sc://a", True),
        ("duckdb:///w.duckdb", "sc://a", True),
        ("duckdb:///w.duckdb", "duckdb:///out.duckdb", False),
        ("postgresql://host/db", "postgresql://host/other", True),
        ("postgresql://host/db", "postgresql://host/db", False),
    ],
)
def test_where_a_release_is(source: str, target: str, elsewhere: bool, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(source=source, target=target), "utf-8")
    spec = load_spec(path)
    assert is_elsewhere(spec) == elsewhere
    assert is_copied(spec) == (elsewhere and not source.startswith("duckdb"))


def test_the_token_does_not_make_it_another_server(tmp_path: Path) -> None:
    known = set()
    for url in ("sc://a/;token=x", "sc://a:15002/;token=y", "sc://b"):
        path = tmp_path / "spec.yaml"
        path.write_text(SPEC.format(source=url, target="duckdb:///out.duckdb"), "utf-8")
        known.add(copied_source(load_spec(path)))
    assert [table for table, _ in known] == ["lake.clinic.people"] * 2
