"""An OpenLineage event of a run of the job, as its hook: which table was read, and which view readers got.

    qblock release release.yaml --hook "python event.py release.yaml events.ndjson" --hook-env WAREHOUSE_URL

The result of the run is the last argument, which the job adds. A line of JSON is appended for each run; the format is
that of https://openlineage.io/spec/2-0-2/OpenLineage.json (RunEvent), and names are as its naming rules have them.
Nothing of a row, and of a URL neither user nor password, is in it.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock import __version__
from qblock.spec import Spec, load_spec, table_parts

SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/definitions/RunEvent"
PRODUCER = f"urn:qblock:{__version__}"
DONE = ("published", "rolled_back", "unchanged", "lagging")
STOPPED = (130, 143)
PORT = 5432


def event(spec: Spec, result: Mapping[str, Any]) -> dict[str, Any]:
    """The event of a run. result: what `--result` writes."""
    kind = "COMPLETE" if result["status"] in DONE else "ABORT" if result["exit_status"] in STOPPED else "FAIL"
    run = uuid.uuid5(uuid.NAMESPACE_URL, f"qblock:{spec.release}:{result.get('run')}")
    facets = {"qblock": {"_producer": PRODUCER, "_schemaURL": PRODUCER, **_told(result)}}
    source, view = _source(spec), _view(spec)
    return {
        "eventType": kind,
        "eventTime": datetime.now(UTC).isoformat(),
        "run": {"runId": str(run), "facets": facets},
        "job": {"namespace": view["namespace"], "name": f"qblock.{spec.release}", "facets": {}},
        "inputs": source,
        "outputs": [view] if kind == "COMPLETE" else [],
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
    }


def _told(result: Mapping[str, Any]) -> dict[str, Any]:
    """What is public of a run: neither who waits nor why something was refused."""
    return {key: result[key] for key in ("status", "version", "exit_status", "ledger_head", "digest") if key in result}


def _source(spec: Spec) -> list[dict[str, str]]:
    if spec.source.file is not None:
        return [{"namespace": "file", "name": str((spec.directory / spec.source.file).absolute())}]
    return [_dataset(spec, spec.source.url.url, list(table_parts(spec.source.table)))]


def _view(spec: Spec) -> dict[str, str]:
    url = spec.source.url if spec.publish.url is None else spec.publish.url
    return _dataset(spec, url.url, [spec.publish.schema, spec.view])


def _dataset(spec: Spec, text: str, parts: list[str | None]) -> dict[str, str]:
    url, named = sa.make_url(text), ".".join(part for part in parts if part is not None)
    if url.get_backend_name() != "postgresql":
        place = (spec.directory / (url.database or "")).absolute() if url.host is None else url.host
        return {"namespace": f"{url.get_backend_name()}://{place}", "name": named}
    hosts = url.query.get("host", url.host or "localhost")
    host = hosts if isinstance(hosts, str) else hosts[0]
    port = "" if ":" in host else f":{url.port or PORT}"
    return {"namespace": f"postgres://{host}{port}", "name": f"{url.database or ''}.{named}"}


def main(spec: str, events: str, result: str) -> None:
    """Append the event of a run to a file."""
    found = event(load_spec(spec), json.loads(Path(result).read_text("utf-8")))
    with Path(events).open("a", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
