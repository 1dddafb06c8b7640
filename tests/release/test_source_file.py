"""A release whose source is a file: the same job, and what the ledger has of the file."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import yaml

from qblock.cli.app import run
from qblock.errors import InputError
from qblock.ledger.history import history
from qblock.release.apply import release
from qblock.release.verify import verify
from qblock.results.release import Published
from qblock.search.run import open_task
from qblock.spec import Spec, load_spec
from release.jobs import ATTRIBUTES, PEOPLE

TABLE = pa.table(PEOPLE)


def write(folder: Path, source: dict[str, Any], **more: Any) -> Path:
    document = {
        "version": 1,
        "release": "people",
        "source": source,
        "attributes": {name: role for name, role in ATTRIBUTES.items() if name != "ward"},
        "privacy": [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
        "publish": {"url": "duckdb:///release.duckdb", "schema": "main"},
        "versions": {"joint": "none"},
        **more,
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def published(folder: Path, source: dict[str, Any], **more: Any) -> tuple[Spec, Published]:
    spec = load_spec(write(folder, source, **more))
    return spec, release(spec)


@pytest.mark.parametrize("file", ["people.csv", "people.parquet"])
def test_a_lost_header_puts_no_row_into_ledger_or_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """The first row is in the place of the names then, also where another program makes Parquet of the file."""
    csv = tmp_path / "people.csv"
    path = write(tmp_path, {"file": file} | ({"types": {"age": "integer"}} if file == csv.name else {}))
    pq.write_table(TABLE, tmp_path / "people.parquet")
    pc.write_csv(TABLE, csv)
    monkeypatch.chdir(tmp_path)
    assert run(["release", str(path)]) == 0
    pc.write_csv(TABLE, csv, pc.WriteOptions(include_header=False))
    pq.write_table(pc.read_csv(csv), tmp_path / "people.parquet")
    assert run(["release", str(path), "--result", "result.json", "--log-format", "json"]) == 2
    said = capsys.readouterr()
    assert f"{file} has none of the columns that are needed: name, zip, age" in said.err
    told = [said.err, said.out, (tmp_path / "result.json").read_text()]
    with contextlib.closing(sqlite3.connect(tmp_path / "qblock" / "ledger.sqlite")) as ledger:
        told.append("\n".join(ledger.iterdump()))
    for value in ("person 0", "13053"):
        assert not any(value in text for text in told), value
    assert history(load_spec(path))["events"][-1]["state"] == "failed"
    assert verify(load_spec(path)).problems == ()


def test_parquet_csv_and_a_database_publish_the_same(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet")
    pc.write_csv(TABLE, tmp_path / "people.csv")
    pq.write_table(TABLE[:5], tmp_path / "part-1.parquet")
    pq.write_table(TABLE[5:], tmp_path / "part-2.parquet")
    with duckdb.connect(str(tmp_path / "source.duckdb")) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    found = []
    for number, source in enumerate(
        (
            {"file": "people.parquet"},
            {"file": "people.csv", "types": {"age": "integer"}},
            {"file": "part-?.parquet"},
            {"url": "duckdb:///source.duckdb", "table": "people"},
        )
    ):
        more = {"release": f"people_{number}", "publish": {"url": f"duckdb:///{number}.duckdb", "schema": "main"}}
        spec, result = published(tmp_path, source, **more)
        found.append((result.digest, result.node, result.rows, result.suppressed))
        assert not verify(spec).problems
        assert release(spec).status == "unchanged"
    assert len({str(one) for one in found}) == 1


def test_the_ledger_has_size_time_and_digest_of_the_file(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet")
    spec, _ = published(tmp_path, {"file": "people.parquet"})
    event = history(spec)["events"][-1]
    kept = json.loads(event["source_files"])
    content = (tmp_path / "people.parquet").read_bytes()
    assert (kept["files"], kept["size"], kept["digest"]) == (1, len(content), sha256(content).hexdigest())
    assert (event["state"], event["source"]) == ("published", 'main."people.parquet"')
    pq.write_table(TABLE.slice(0, 10), tmp_path / "people.parquet")
    assert release(spec).version == 2
    assert json.loads(history(spec)["events"][-1]["source_files"]) != kept


def test_only_the_columns_of_the_spec_are_copied(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet")
    with open_task(load_spec(write(tmp_path, {"file": "people.parquet"}))) as task:
        assert list(task.source.columns) == ["name", "zip", "age", "disease"]


def test_a_column_that_is_not_in_the_file_is_told_with_the_line_of_the_spec(tmp_path: Path) -> None:
    pq.write_table(TABLE.rename_columns(["name", "zip", "aged", "disease", "ward"]), tmp_path / "people.parquet")
    spec = load_spec(write(tmp_path, {"file": "people.parquet"}))
    with pytest.raises(
        InputError, match=r"spec\.yaml:\d+: people\.parquet has no column 'age'; did you mean"
    ) as caught:
        release(spec)
    assert caught.value.suggestions[0] == "aged"
    assert not (tmp_path / "release.duckdb").exists()


def test_commands_read_files_and_a_result_does_not_replace_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(TABLE, tmp_path / "part-1.parquet")
    path = str(write(tmp_path, {"file": "part-*.parquet"}))
    for arguments in (["search", path, "--quiet"], ["plan", path], ["audit", path], ["hierarchy", "check", path]):
        assert run(arguments) == 0, capsys.readouterr().err
    assert not (tmp_path / "qblock").exists()
    (tmp_path / "part-2.parquet").write_bytes(b"")
    for name in ("part-1.parquet", "part-2.parquet"):
        assert run(["release", path, "--result", str(tmp_path / name), "--result-force"]) == 2
        assert "is the source" in capsys.readouterr().err
