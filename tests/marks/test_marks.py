"""No value of the source is in what any failing run prints, logs, stores or leaves behind, in any form."""

from __future__ import annotations

import base64
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from engines import create_table, database
from faults.test_wrong import chosen
from faults.wrong import CASES, Wrong, folder_open
from release.jobs import Job, new_job

from marks.marks import MarkedJob, found_in, ledger_texts, marked, not_private, pieces
from marks.scenarios import JOINT, SCENARIOS, Scenario
from qblock.cli.app import run

pytestmark = [pytest.mark.either_engine, pytest.mark.handed_on]

COLUMNS, BECAME = marked(random.Random(20))
LOOKED_FOR = pieces(BECAME)
BY_BLOCK = {"cohort": "auto"}
"""Versions that keep quasi-identifiers as they were, and no labels."""
HOOK = 'env > "$1"; cat "$2" >> "$1"\n'


@pytest.fixture(scope="session")
def templates() -> Iterator[dict[tuple[str, bool], tuple[MarkedJob, ExitStack]]]:
    """Jobs that have published once, by engine and whether they name an entity."""
    made: dict[tuple[str, bool], tuple[MarkedJob, ExitStack]] = {}
    yield made
    for _, stack in made.values():
        stack.close()


@pytest.fixture
def play(
    engine_name: str,
    templates: dict[tuple[str, bool], tuple[MarkedJob, ExitStack]],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Any]:
    """`play(entity=False)`: a job over marked people that has published version 1, in a folder of its own."""

    def job_of(folder: Path, url: str, entity: bool) -> MarkedJob:
        plain = new_job(engine_name, folder, url, **({"entity": "name", "versions": BY_BLOCK} if entity else {}))
        return MarkedJob(plain.engine, plain.folder, plain.url, plain.settings, BECAME)

    server = request.getfixturevalue("postgresql_server") if engine_name == "postgresql" else ""
    with ExitStack() as stack:

        def make(entity: bool = False) -> MarkedJob:
            if (engine_name, entity) not in templates:
                folder, kept = tmp_path_factory.mktemp("marked"), ExitStack()
                url = kept.enter_context(database(server)) if server else f"duckdb:///{folder}/warehouse.duckdb"
                create_table(url, "people", COLUMNS)
                first = job_of(folder, url, entity)
                assert first.run().status == "published"
                templates[engine_name, entity] = first, kept
            template, folder = templates[engine_name, entity][0], tmp_path / "work"
            shutil.copytree(template.folder, folder)
            url = f"duckdb:///{folder}/warehouse.duckdb"
            if server:
                url = stack.enter_context(database(server, sa.make_url(template.url).database or ""))
            return job_of(folder, url, entity)

        (tmp_path / "spill").mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / "spill"))
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield make


def leavings(job: Job) -> set[str]:
    return {str(path.relative_to(job.folder)) for path in job.folder.rglob("*")}


def places_after(
    job: MarkedJob, command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str], wrong: Wrong | None = None
) -> tuple[int, dict[str, str]]:
    """Exit status, and the text of every place that a run may have written to."""
    spill, out = tmp_path / "spill", tmp_path / "out"
    out.mkdir()
    (out / "hook.sh").write_text(HOOK, "utf-8")
    if command[0] in ("release", "rollback"):
        command += ["--result", str(out / "result.json"), "--log-format", "json", "--json"]
        command += ["--hook", f"sh {out / 'hook.sh'} {out / 'heard'}"]
    before = leavings(job)
    with wrong.during(job) if wrong is not None and wrong.during else nullcontext():
        capfd.readouterr()
        status = run([*command, *(wrong.options if wrong else ())])
        said = capfd.readouterr()
    places = {"standard output": said.out, "standard error and log": said.err}
    for name in ("result.json", "heard"):
        if (out / name).exists():
            places[name] = (out / name).read_text("utf-8")
    places["names of files left"] = "\n".join(sorted(leavings(job) - before))
    for path in spill.rglob("*"):
        places[f"spill: {path.name}"] = path.read_bytes().decode("latin-1") if path.is_file() else path.name
    return status, places


def left(places: dict[str, str]) -> list[str]:
    """What a run has left in the working folder and in the one for spill."""
    names = [name for name in places["names of files left"].splitlines() if not name.startswith("qblock/")]
    return names + [place for place in places if place.startswith("spill: ")]


def check(job: MarkedJob, places: dict[str, str], intact: dict[str, Any]) -> None:
    settings, job.settings = job.settings, intact
    try:
        places |= ledger_texts(job)
        assert not_private(job) == []
    finally:
        job.settings = settings
    assert any(place.startswith("ledger: ") for place in places)
    assert left(places) == []
    assert found_in(LOOKED_FOR, places) == []


@pytest.mark.parametrize(
    ("engine_name", "wrong"),
    [
        pytest.param(engine, wrong, id=f"{engine}-{wrong.what}".replace(" ", "_"))
        for number, wrong in enumerate(CASES)
        # The other engine than faults/test_wrong.py has.
        for engine in chosen(number + 1, wrong)
    ],
)
def test_no_mark_is_left_by_wrong_input(
    engine_name: str, wrong: Wrong, play: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = play()
    intact = dict(job.settings)
    wrong.do(job)
    path = job.folder / "spec.yaml"
    if wrong.text is None:
        job.write()
    elif wrong.text == "(absent)":
        path.unlink()
    else:
        path.write_text(wrong.text, "utf-8")
    status, places = places_after(job, ["release", str(path)], tmp_path, capfd, wrong)
    # Marks make values longer, and so the lattice higher than the node that a case names.
    assert status == wrong.status or (status and "node" in wrong.what), places["standard error and log"]
    if wrong.do is folder_open:
        (job.folder / "qblock").chmod(0o700)  # which the case itself has opened
    check(job, places, intact)


def cases(scenarios: list[Scenario]) -> list[Any]:
    return [
        pytest.param(engine, scenario, id=f"{engine}-{scenario.what}".replace(" ", "_"))
        for scenario in scenarios
        for engine in scenario.engines
    ]


@pytest.mark.parametrize(("engine_name", "scenario"), cases(SCENARIOS))
def test_no_mark_is_left_by_what_the_database_cannot_read(
    engine_name: str, scenario: Scenario, play: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    after(play(), scenario, tmp_path, capfd)


@pytest.mark.parametrize(("engine_name", "scenario"), cases(JOINT))
def test_no_mark_is_left_by_what_the_joint_check_refuses(
    engine_name: str, scenario: Scenario, play: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    after(play(entity=True), scenario, tmp_path, capfd)


def after(job: MarkedJob, scenario: Scenario, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    intact = dict(job.settings)
    scenario.do(job)
    path = job.write()
    command = [job.became.get(part, part.format(spec=path)) for part in scenario.command]
    status, places = places_after(job, command, tmp_path, capfd)
    assert status in scenario.statuses, (status, places["standard error and log"])
    if command[0] in ("search", "plan", "hierarchy"):
        # These list uncovered values for whoever sits there; the database's own text they do not.
        assert "Error" not in places["standard error and log"]
    check(job, places, intact)


@pytest.mark.parametrize("engine_name", ["duckdb", "postgresql"])
def test_the_search_finds_a_mark_in_every_place(
    play: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, mark = play(), BECAME["viral"]
    reason = f"planted {mark}".replace("'", "''")
    plant = f"UPDATE {{}}event SET reason = '{reason}'"
    if job.engine == "duckdb":
        with closing(sqlite3.connect(job.folder / "qblock" / "ledger.sqlite", isolation_level=None)) as connection:
            connection.execute(plant.format(""))
    else:
        Job.change(job, plant.format("qblock."))

    def leaking(_: list[str]) -> int:
        print(mark)
        print(mark, file=sys.stderr)
        for file in (tmp_path / "out" / "result.json", tmp_path / "out" / "heard", job.folder / mark):
            file.write_text(mark, "utf-8")
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(mark)
        return 1

    monkeypatch.setattr(sys.modules[__name__], "run", leaking)
    _, places = places_after(job, ["release", "spec.yaml"], tmp_path, capfd)
    assert {place.partition(": ")[0] for place in left(places)} == {mark, "spill"}
    places |= ledger_texts(job)
    found = {place for place, _, _ in found_in([mark[:7]], places)}
    plain = {"standard output", "standard error and log", "result.json", "heard", "names of files left"}
    assert found >= plain
    assert {place.partition(": ")[0] for place in found - plain} == {"spill", "ledger"}


@pytest.mark.parametrize("mark", [LOOKED_FOR[0], LOOKED_FOR[-1], "48151623"])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_the_search_finds_every_form_of_a_mark(mark: str, before: str) -> None:
    raw = f"{before}{mark}xyz".encode()
    places = {
        "plain": raw.decode(),
        "upper": raw.decode().upper(),
        "hex": raw.hex().upper(),
        "percent": "".join(f"%{b:02X}" for b in raw),
        "base64": base64.b64encode(raw).decode(),
    }
    assert {place for place, _, _ in found_in([mark], places)} == set(places)
    assert found_in([mark], {"nothing": "of it"}) == []
