"""compare --parquet and audit --counts: against the CSV and a GROUP BY of its own; nobody else reads them."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from qblock import Release
from qblock.cli.app import run

SPEC = """\
version: 1
release: patients
source: {url: "duckdb:///patients.duckdb", table: main.patients}
attributes:
  age: {role: quasi_identifier, hierarchy: {ranges: [10, 20, 40]}, nulls: top}
  count: {role: quasi_identifier, hierarchy: suppress}
  diagnosis: {role: sensitive, nulls: value}
  cost: sensitive
privacy:
  - k_anonymity: {k: 4}
  - t_closeness: {t: 0.5, sensitive: cost}
publish: {url: "duckdb:///published.duckdb", schema: main, view: patients}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with duckdb.connect(str(tmp_path / "patients.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE patients AS SELECT CASE WHEN i % 11 > 0 THEN 20 + (i * 7) % 50 END AS age, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS \"count\", "
            "['flu', 'cold', NULL][i % 3 + 1] AS diagnosis, (i % 5) * 10 AS cost FROM range(1, 241) AS n(i)"
        )
    (tmp_path / "release.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


LABELS = {
    "1,0": """coalesce((age // 10 * 10)::VARCHAR || '-' || (age // 10 * 10 + 9), '*') AS a, "count" AS b""",
    "bottom": """coalesce(age::VARCHAR, '*') AS a, "count" AS b""",
    "top": "'*' AS a, '*' AS b",
}


@pytest.mark.parametrize("node", LABELS)
def test_a_frequency_set_is_a_group_by(folder: Path, node: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "counts.parquet").write_text("older, for everybody")
    (folder / "counts.parquet").chmod(0o644)
    assert run(["audit", "release.yaml", "--node", node, "--counts", "counts.parquet"]) == 0
    assert "Node:" in capsys.readouterr().out
    with duckdb.connect(str(folder / "patients.duckdb")) as connection:
        expected = connection.execute(
            f"SELECT {LABELS[node]}, diagnosis, cost::VARCHAR, count(*) FROM patients GROUP BY ALL"
        ).fetchall()
        found = connection.execute("SELECT * FROM 'counts.parquet'").fetchall()
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(found) == len(set(found))
    assert sum(row[-1] for row in found) == 240
    written = pq.read_table(folder / "counts.parquet")
    assert written.column_names == ["age", "count", "diagnosis", "cost", "count_"]
    assert written.schema.metadata[b"qblock:counted"] == b"rows"
    assert written.equals(Release("release.yaml").frequency_set(node))
    assert stat.S_IMODE((folder / "counts.parquet").stat().st_mode) == 0o600
    assert not [path.name for path in folder.iterdir() if ".parquet." in path.name]


def test_node_results_are_those_of_the_csv(folder: Path) -> None:
    assert run(["compare", "release.yaml", "--csv", "all.csv", "--parquet", "all.parquet", "--quiet"]) == 0
    table = pq.read_table(folder / "all.parquet")
    with (folder / "all.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    assert table.num_rows == len(rows) == 10
    assert [name.rstrip("_") for name in table.column_names] == head
    types = {str(field.type) for field in table.schema}
    assert types == {"int64", "double", "bool"}
    for number, values in enumerate(zip(*rows, strict=True)):
        column = table.column(number)
        for text, value in zip(values, column.to_pylist(), strict=True):
            if isinstance(value, bool):
                assert text == str(value).lower()
            else:
                assert text == "" if value is None else float(text) == value
    assert "inf" in {text for row in rows for text in row}, "an infinite value is written as one"
    assert {stat.S_IMODE((folder / f"all.{kind}").stat().st_mode) for kind in ("csv", "parquet")} == {0o600}


def test_what_cannot_be_written_is_said_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    wrong = {
        ("audit", "release.yaml", "--counts", "c.parquet"): "--counts is about a node of a spec",
        ("audit", "release.yaml", "--node", "top", "--counts", "release.yaml"): "is the spec, which would be lost",
        ("audit", "release.yaml", "--node", "top", "--counts", "published.duckdb"): "would be lost",
        ("audit", "release.yaml", "--node", "top", "--counts", "none/c.parquet"): "there is no folder none",
        ("compare", "release.yaml", "--parquet", "patients.duckdb"): "would be lost",
        ("compare", "release.yaml", "--parquet", "."): "it is a folder; name a file",
        (
            "compare",
            "release.yaml",
            "--parquet",
            "c.parquet",
            "--recoding",
            "both",
        ): "--parquet: it is about definitions",
    }
    for arguments, message in wrong.items():
        assert run(list(arguments)) == 2
        assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
