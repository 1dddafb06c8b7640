"""How many statements commands send to DuckDB, by kind, with a digest of their texts: lines of recorded/statements.txt.

Those of migrations are left out, which the suite replays (tests/migrated.py). Statements that count frequency sets go
by the driver, several at a time: they are the line's COUNT, in no order. What is in a text for one run alone is left
out: digests, keys, paths, numbers in names. A change that is about something else has the same lines.
QBLOCK_TRANSCRIPTS=update writes the file anew (docs/testing.md, Transcripts); QBLOCK_STATEMENTS names a folder for the
texts, to be compared.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from release.jobs import PEOPLE, Job, MakeJob, job_templates, make_job  # noqa: F401

from benchmarks.questions import QUESTIONS, keys_of_search
from benchmarks.tables import in_duckdb
from qblock.cli.app import run
from qblock.engines.duckdb.adapter import DuckdbAdapter
from qblock.engines.duckdb.dialect import DuckdbBeside
from qblock.ledger import schema

FILE = Path(__file__).parent / "recorded" / "statements.txt"
ROWS = 500
WORKLOADS = [q.name for q in QUESTIONS.values() if q.engine == "duckdb" and not q.process and "x10" not in q.table]
MASKS = (
    (r"(?<=[a-z]_)\d+(?=_)|(?<=qblock_joint_)\d+", "N"),  # what is numbered within a process
    (r"'[^']*/[^']*'", "'PATH'"),
    (r"\b[0-9a-f]{8,64}\b|(?<=_)[0-9a-f]{8,32}\b", "HEX"),
    (r"\s+", " "),
)


def shortened(text: str) -> str:
    text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for pattern, name in MASKS:
        text = re.sub(pattern, name, text)
    return text.strip()


@contextmanager
def sent() -> Iterator[tuple[list[str], list[str]]]:
    """The statements that are sent within, and those that count frequency sets, without what differs between runs."""
    texts: list[str] = []
    counting: list[str] = []

    def note(_: Any, __: Any, text: str, *more: object) -> None:
        texts.append(shortened(text))

    migrations = schema._run

    def migrated(connection: sa.Connection) -> None:
        before = len(texts)
        migrations(connection)
        del texts[before:]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "_run", migrated)
        for owner, place in ((DuckdbBeside, 0), (DuckdbAdapter, 1)):

            def counts(*given: Any, run: Any = owner.counts, place: int = place) -> Any:
                counting.append(shortened(given[place + 1]))
                return run(*given)

            patched.setattr(owner, "counts", counts)
        sa.event.listen(sa.Engine, "before_cursor_execute", note)
        try:
            yield texts, counting
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", note)


def line(name: str, call: Callable[[], object]) -> str:
    with sent() as (texts, counting):
        call()
    texts += sorted(f"COUNT {text}" for text in counting)
    kinds = Counter(text.split()[0].upper() for text in texts)
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    if "QBLOCK_STATEMENTS" in os.environ:
        (Path(os.environ["QBLOCK_STATEMENTS"]) / f"{name}.sql").write_text("\n".join(texts), "utf-8")
    return f"{name}: {len(texts)} statements ({counts}), {digest}"


def check(part: str, lines: list[str]) -> None:
    """Compare lines with those of a part of the file, or write them."""
    parts = dict(re.findall(r"^\[(.+)\]\n((?:.+\n)*)", FILE.read_text("utf-8") if FILE.exists() else "", re.M))
    if os.environ.get("QBLOCK_TRANSCRIPTS") == "update":
        parts[part] = "".join(f"{line}\n" for line in lines)
        FILE.write_text("\n".join(f"[{name}]\n{text}" for name, text in sorted(parts.items())), "utf-8")
        return
    assert lines == parts[part].splitlines()


@pytest.fixture
def engine_name() -> str:
    return "duckdb"


def command(job: Job, *words: str) -> str:
    path = str(job.write())
    return line(" ".join(words), lambda: run([words[0], path, *words[1:]]))


def test_a_job(make_job: MakeJob, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    job = make_job({name: values * 4 for name, values in PEOPLE.items()} | {"name": [f"p{i}" for i in range(48)]})
    job.set(entity="name", versions={"cohort": 3})
    monkeypatch.chdir(job.folder)
    looks = (["search"], ["search", "--nodes", "all"], ["audit"], ["compare"], ["plan"], ["grants"])
    lines = [command(job, *words) for words in looks]
    lines += [command(job, "release"), command(job, "release"), command(job, "release", "--force")]
    job.change("INSERT INTO people VALUES ('n1', '13053', 28, 'flu', 'A')")
    lines.append(command(job, "release", "--quiet"))
    job.change("INSERT INTO people SELECT 'm' || i, '13053', 28, ['flu', 'viral'][1 + i % 2], 'A' FROM range(5) t(i)")
    lines += [command(job, *words) for words in (["plan"], ["release"], ["verify"], ["history"])]
    later = (["report", "--output", "report.md"], ["rollback", "1"], ["erase", "p1"], ["retire"])
    lines += [command(job, *words) for words in later]
    check("job", lines)


def test_a_map(make_job: MakeJob, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    job = make_job({name: values * 4 for name, values in PEOPLE.items()} | {"name": [f"p{i}" for i in range(48)]})
    job.set(entity="name", search={"recoding": "multidimensional", "choose_by": "loss"})
    lines = [command(job, *words) for words in (["search"], ["release"], ["release", "--force"], ["verify"])]
    check("map", lines)


def test_the_workloads_of_the_benchmarks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    keys, lines = keys_of_search(), []
    for name in WORKLOADS:
        url = f"duckdb:///{in_duckdb(QUESTIONS[name].of, tmp_path, ROWS)}"
        spec = QUESTIONS[name].spec(url, "main.rows", tmp_path, keys)
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
        lines.append(line(name, lambda path=path: run(["search", str(path), "--quiet"])))
    check("benchmarks", lines)
