"""The OpenLineage event that a hook writes: what its schema requires, names by its rules, and nothing secret."""

from __future__ import annotations

import json
import runpy
import sys
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from qblock.cli.app import run
from qblock.spec import read_spec

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "openlineage" / "event.py"
SPEC = """\
version: 1
release: people
source: {url: "URL", table: TABLE}
attributes:
  age: {role: quasi_identifier, hierarchy: {ranges: [10]}}
  ill: sensitive
privacy:
  - k_anonymity: {k: K}
"""


def check(found: dict[str, Any]) -> None:
    """What RunEvent of the published schema requires, and the formats of it."""
    assert {"eventTime", "producer", "schemaURL", "run", "job"} <= found.keys()
    assert datetime.fromisoformat(found["eventTime"]).tzinfo is not None
    assert found["eventType"] in ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
    uuid.UUID(found["run"]["runId"])
    for one in (found["job"], *found["inputs"], *found["outputs"]):
        assert {"namespace", "name"} <= one.keys()
    for facet in found["run"]["facets"].values():
        assert {"_producer", "_schemaURL"} <= facet.keys()


def test_a_published_run_and_one_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("source.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT i % 30 AS age, 'ill' || i % 3 AS ill FROM range(90) AS n(i)")
    text = SPEC.replace("URL", "duckdb:///source.duckdb").replace("TABLE", "main.t") + (
        "publish: {url: 'duckdb:///shown.duckdb', schema: main}\n"
    )
    hook = f"{sys.executable} {SCRIPT} release.yaml events.ndjson"
    for k, status in (("2", 0), ("1000", 3)):
        Path("release.yaml").write_text(text.replace("K}", f"{k}}}"), "utf-8")
        assert run(["release", "release.yaml", "--quiet", "--force", "--hook", hook]) == status
    published, refused = map(json.loads, Path("events.ndjson").read_text("utf-8").splitlines())
    check(published)
    check(refused)
    assert (published["eventType"], refused["eventType"]) == ("COMPLETE", "FAIL")
    assert published["inputs"] == [{"namespace": f"duckdb://{tmp_path}/source.duckdb", "name": "main.t"}]
    assert published["outputs"] == [{"namespace": f"duckdb://{tmp_path}/shown.duckdb", "name": "main.people"}]
    assert refused["outputs"] == []
    assert published["run"]["facets"]["qblock"]["version"] == 1
    assert published["run"]["runId"] != refused["run"]["runId"]


@pytest.mark.parametrize(
    ("url", "namespace", "name"),
    [
        ("postgresql://me:secret@db.example/clinic", "postgres://db.example:5432", "clinic.ward.stays"),
        ("postgresql://me:secret@db.example:6000/clinic", "postgres://db.example:6000", "clinic.ward.stays"),
        ("postgresql://me:secret@/clinic?host=a:5433&host=b:5434", "postgres://a:5433", "clinic.ward.stays"),
    ],
)
def test_names_have_no_secret(url: str, namespace: str, name: str, tmp_path: Path) -> None:
    text = SPEC.replace("URL", url).replace("TABLE", "ward.stays").replace("K}", "2}")
    result = {"status": "failed", "release": "people", "run": None, "exit_status": 143, "reason": "secret"}
    found = runpy.run_path(str(SCRIPT))["event"](read_spec(text, tmp_path / "release.yaml"), result)
    check(found)
    assert found["eventType"] == "ABORT"
    assert found["inputs"] == [{"namespace": namespace, "name": name}]
    assert "secret" not in json.dumps(found)
