"""The macros for dbt, whose SQL is run on a release, and the job around them. dbt itself is not needed."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2
import pytest
import yaml
from release.jobs import Job, copy_job, first_runs, job_templates, make_job, released  # noqa: F401

from qblock.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "dbt"
PAGE = ROOT / "docs/how-to/dbt.md"
NAMED = "CREATE TABLE stays_guarantees AS SELECT * FROM (VALUES {}) AS named(model, sensitive, asked, holds)"


@dataclass(frozen=True)
class Relation:
    """A table, as dbt gives it to macros."""

    database: str | None
    schema: str | None
    identifier: str

    def __str__(self) -> str:
        return ".".join(f'"{part}"' for part in (self.database, self.schema, self.identifier) if part is not None)


def compiled(view: Relation, now: datetime.datetime | None = None, **arguments: Any) -> str:
    """The SQL of the generic test: dbt reads `test NAME` as `macro test_NAME`, too. now: when its run started."""
    text = (EXAMPLE / "macros" / "qblock.sql").read_text("utf-8")
    text = re.sub(r"{% test (\w+)", r"{% macro test_\1", text).replace("endtest", "endmacro")
    names = {"api": SimpleNamespace(Relation=SimpleNamespace(create=Relation)), "return": str}
    names |= {"modules": SimpleNamespace(datetime=datetime), "run_started_at": now}
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.globals.update(names)
    macros = environment.from_string(text).module
    return str(macros.test_qblock_guarantees(view, **arguments))  # type: ignore[attr-defined]


@pytest.mark.either_engine
def test_a_release_passes_until_its_version_is_too_old(released: Job) -> None:  # noqa: F811
    view = Relation(None, "published", "people")
    [(made,)] = released.query("SELECT published_at FROM published.people_version")
    assert released.query(compiled(view)) == []
    for days, problems in ((34, []), (36, ["older than 35 days"])):
        now = made.replace(tzinfo=datetime.UTC) + datetime.timedelta(days=days)
        assert [row[-1] for row in released.query(compiled(view, now, max_age_days=35))] == problems


@pytest.mark.parametrize(
    ("guarantees", "problems"),
    [
        ([("k_anonymity", None, "k = 5", "TRUE")], []),
        ([("k_anonymity", None, "k = 5", "TRUE"), ("l", "disease", "l = 3", "FALSE")], ["does not hold"]),
        ([("k_anonymity", None, "k = 5", "CAST(NULL AS BOOLEAN)")], ["does not hold"]),
        ([], ["no guarantee"]),
    ],
)
def test_what_does_not_hold_fails(guarantees: list[tuple[Any, ...]], problems: list[str]) -> None:
    rows = guarantees or [("", None, "", "TRUE")]
    values = ", ".join(f"('{m}', {'NULL' if s is None else repr(s)}, '{a}', {h})" for m, s, a, h in rows)
    with duckdb.connect() as connection:
        connection.execute(NAMED.format(values))
        if not guarantees:
            connection.execute("DELETE FROM stays_guarantees")
        found = connection.execute(compiled(Relation(None, None, "stays"))).fetchall()
    assert [row[-1] for row in found] == problems


def test_the_example_is_of_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its model is released by its spec, and the file that readers get has the source that its test is of."""
    monkeypatch.chdir(tmp_path)
    spec = (EXAMPLE / "release.yaml").read_text("utf-8")
    Path("release.yaml").write_text(spec, "utf-8")
    with duckdb.connect("warehouse.duckdb") as connection:
        connection.execute("CREATE TABLE stays AS " + (EXAMPLE / "models" / "stays.sql").read_text("utf-8"))
    assert run(["release", "release.yaml", "--quiet"]) == 0
    targets = yaml.safe_load((EXAMPLE / "profiles.yml").read_text("utf-8"))["clinic"]["outputs"]
    [attached] = targets["readers"]["attach"]
    [source] = yaml.safe_load((EXAMPLE / "models" / "published.yml").read_text("utf-8"))["sources"]
    [table] = source["tables"]
    [asked] = table["data_tests"]
    view = Relation(source["database"], source["schema"], table["name"])
    with duckdb.connect("warehouse.duckdb") as connection:
        connection.execute(f"ATTACH '{attached['path']}' AS {attached['alias']} (READ_ONLY)")
        arguments = asked["qblock_guarantees"]["arguments"]
        assert connection.execute(compiled(view, datetime.datetime.now(datetime.UTC), **arguments)).fetchall() == []
        model = (EXAMPLE / "models" / "people_by_age.sql").read_text("utf-8")
        model = jinja2.Template(model).render(source=lambda *names: Relation(source["database"], *names))
        assert sum(people for _, people in connection.execute(model).fetchall()) == 400


@pytest.mark.parametrize(("status", "commands"), [(0, ["dbt", "qblock", "dbt"]), (3, ["dbt", "qblock"])])
def test_a_refused_release_ends_the_night(tmp_path: Path, status: int, commands: list[str]) -> None:
    for name, ends in (("dbt", 0), ("qblock", status)):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLED"\nexit {ends}\n')
        program.chmod(0o755)
    called = tmp_path / "called"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLED": str(called)}
    assert subprocess.run([EXAMPLE / "job"], env=environment, check=False).returncode == status
    assert [line.split()[0] for line in called.read_text("utf-8").splitlines()] == commands


def test_the_page_shows_what_the_files_have() -> None:
    page = PAGE.read_text("utf-8")
    [commands] = re.findall(r"(?s)```sh\n(.*?)```", page)
    assert (EXAMPLE / "job").read_text("utf-8").endswith(commands)
    [shown] = re.findall(r"(?s)```yaml\n(.*?)```", page)
    file = (EXAMPLE / "models" / "published.yml").read_text("utf-8")
    assert shown == "".join(line for line in file.splitlines(True) if "database:" not in line)
