"""The benchmark on tables of a few rows: that it asks what it says, and tells one answer from another."""

from __future__ import annotations

import copy
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from qblock.search.run import open_task
from qblock.spec import load_spec

ROOT = Path(__file__).resolve().parents[2]
SEARCH = {"choose_by", "strategy"}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)


def test_a_question_has_figures_and_keeps_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.__main__ import main

    kept = tmp_path / "found.json"
    given = ["retail-k6", "--rows", "3000", "--repeat", "1", "--directory", str(tmp_path), "--json", str(kept)]
    command = [sys.executable, "-m", "benchmarks", *given]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("retail-k6 ")
    (result,) = json.loads(kept.read_text("utf-8"))["results"]
    assert (result["status"], result["nodes"], result["runs"]) == ("ok", 1920, 1)
    assert 0 < result["evaluated"] < result["nodes"]
    assert result["minimal"] == len(result["essence"]["minimal"]) > 0
    assert math.isclose(result["u"], result["seconds"] / result["unit"]["seconds"])
    assert math.isclose(result["cu"], result["cpu"] / result["unit"]["cpu"])
    assert set(result["stages"]) == {"import", "opening", "search", "metrics"}
    assert result["statements"]["store"]["calls"] > 0
    assert result["peak memory"] > 50 << 20
    assert [path.name for path in tmp_path.glob("*.duckdb")] == ["retail_3000_1.duckdb"]
    assert main(["--compare", str(kept), str(kept)]) == 0
    assert capsys.readouterr().out.startswith("retail-k6: the same answer\n")


@pytest.mark.parametrize(
    ("program", "timeout", "status"),
    [("import time; time.sleep(600)", 0.1, None), ("raise SystemExit(3)", None, 3), ("print('answer')", 60, 0)],
)
def test_a_program_that_takes_too_long_is_ended(program: str, timeout: float | None, status: int | None) -> None:
    from benchmarks import children

    ended = children.run(["-c", program], children.Limits(timeout))
    assert (ended.status, ended.output) == (status, "answer\n" if status == 0 else "")
    assert ended.late is (status is None)


def test_a_program_that_takes_too_much_memory_is_ended() -> None:
    from benchmarks.children import Limits
    from benchmarks.clock import Clock
    from benchmarks.measured import process

    found = process(["demo"], Limits(timeout=600, memory=1 << 20), Clock(""))
    assert found["status"] == "not finished with 1 MB"
    assert found["peak memory"] > 1 << 20


def test_a_command_that_fails_has_no_figures_but_what_it_said() -> None:
    from benchmarks.children import Limits
    from benchmarks.clock import Clock
    from benchmarks.measured import process

    found = process(["search", "no-such-spec.yaml"], Limits(), Clock(""))
    assert found["status"] == "failed"
    assert "no-such-spec.yaml" in found["errors"]
    assert "seconds" not in found
    assert process(["--help"], Limits(), Clock(""), (3,))["status"] == "failed"  # 0 is no status of these


def test_what_a_server_takes_is_taken_by_the_command() -> None:
    from benchmarks.children import Limits
    from benchmarks.clock import Clock
    from benchmarks.measured import process

    class Served(Clock):
        spent = 0.0

        def server(self) -> float:
            self.spent += 1000
            return self.spent

    found = process(["--help"], Limits(), Served(""))
    assert 1000 < found["cpu"] < 1100
    assert found["others"] == 0  # what the server took is not taken by others, too


def test_a_whole_command_is_a_question_and_a_try_is_not_kept(tmp_path: Path) -> None:
    from benchmarks import page, table
    from benchmarks.__main__ import main

    before, kept = (table.KEPT.read_bytes(), page.PAGE.read_bytes()), tmp_path / "found.json"
    given = ["--table", "tiny-k2-process", "--rows", "3", "--repeat", "2", "--directory", str(tmp_path)]
    assert main([*given, "--json", str(kept)]) == 0
    (result,) = json.loads(kept.read_text("utf-8"))["results"]
    assert (result["status"], result["rows"], result["runs"], result["nodes"]) == ("ok", 3, 2, 8)
    assert result["seconds"] > result["unit"]["seconds"] > 0
    assert result["peak memory"] > 50 << 20
    assert (table.KEPT.read_bytes(), page.PAGE.read_bytes()) == before


def test_weekly_runs_do_what_they_are_asked_for(tmp_path: Path) -> None:
    from benchmarks import job
    from benchmarks.children import Limits

    found = list(job.measure(tmp_path, 6000, Limits()))
    assert [result["question"] for result in found] == list(job.RUNS)
    assert {result["status"] for result in found} == {"ok"}, found
    assert found[0]["rows"] == 6000
    assert list(tmp_path.iterdir()) == []


def test_a_weekly_run_that_does_something_else_is_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import job
    from benchmarks.children import Limits

    monkeypatch.setattr(job, "RUNS", {"weekly-first": "unchanged", "weekly-publishing": "published"})
    (only,) = job.measure(tmp_path, 500, Limits())
    assert only["status"].startswith("failed: published instead of unchanged")


def test_a_name_that_is_no_question_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.__main__ import main

    assert main(["retail-k7"]) == 2
    assert "retail-k7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("retail-entropy6", 1920),
        ("survey-t0.2", 25_920),
        ("hospital-entropy4-k10", 2160),
        ("census-entropy6-process", 1920),
    ],
)
def test_a_table_has_the_lattice_that_the_page_says(name: str, nodes: int, tmp_path: Path) -> None:
    from benchmarks.questions import QUESTIONS, keys_of_search
    from benchmarks.tables import in_duckdb, written

    question = QUESTIONS[name]
    url = f"duckdb:///{in_duckdb(question.of, tmp_path, 2000)}"
    spec = written(question.spec(url, "main.rows", tmp_path, keys_of_search()), tmp_path / "spec.yaml")
    with open_task(load_spec(spec)) as task:
        assert len(task.lattice) == nodes
        assert task.source.rows == 2000
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{question.table}` |")]
    assert row.split(" | ")[1:4] == [f"{question.of.rows:,}", str(len(question.of.quasi)), f"{nodes:,}"]


def test_parts_are_other_draws_and_the_same_again() -> None:
    from benchmarks.tables import TABLES

    for table in TABLES.values():
        first = table.generate(500, 0)
        assert first.equals(table.generate(500, 0))
        assert not first.equals(table.generate(500, 1))
        assert set(first.column_names) == {*table.quasi, table.sensitive}


def test_a_table_that_grows_begins_with_the_smaller_ones(tmp_path: Path) -> None:
    from benchmarks.tables import MILLIONS, TABLES, in_duckdb

    of = [TABLES[f"retail-{millions}m"] for millions in MILLIONS]
    assert [table.rows * table.parts for table in of] == [millions * 10**6 for millions in MILLIONS]
    files = [in_duckdb(table, tmp_path, 100 * table.parts) for table in of]
    rows = []
    for file in files:
        with duckdb.connect(str(file), read_only=True) as connection:
            rows.append(connection.execute("FROM rows").fetchall())
    assert [len(found) for found in rows] == [100 * millions for millions in MILLIONS]
    assert all(large[: len(small)] == small for small, large in itertools.pairwise(rows))


def test_the_page_is_what_its_figures_say() -> None:
    from benchmarks import page, table
    from benchmarks.job import RUNS
    from benchmarks.questions import QUESTIONS

    figures, text = table.kept(), page.PAGE.read_text("utf-8")
    assert page.written(text, figures) == text, "python -m benchmarks --page"
    assert [result["question"] for result in figures] == list(table.ROWS)
    assert set(table.ROWS) <= {*QUESTIONS, *RUNS}
    figures[0]["cpu"] += 1
    assert page.written(text, figures) != text
    with pytest.raises(ValueError, match="written until here"):
        page.written(text.replace(page.ENDS, ""), figures)


def test_every_row_is_a_whole_command() -> None:
    from benchmarks import table
    from benchmarks.questions import QUESTIONS

    asked = [QUESTIONS[name] for name in table.ROWS if name in QUESTIONS]
    assert all(question.process for question in asked)
    assert {question.of.name for question in asked} >= {"retail", "survey", "tiny", "retail-16m"}
    assert set(table.IN_MEMORY) <= set(table.ROWS)


def figures_of(name: str, cpu: float, memory: int, status: str = "ok") -> dict[str, Any]:
    unit = {"seconds": 0.5, "cpu": 0.5}
    taken = {"cpu": cpu, "peak memory": memory << 20, "others": 0.25, "rows": 10**6}
    ok = {"seconds": cpu, "u": cpu / 0.5, "cu": cpu / 0.5, "unit": unit, "runs": 3} if status == "ok" else {}
    return {"question": name, "status": status, **taken, **ok}


def test_growth_is_the_slope_of_logarithms() -> None:
    from benchmarks.table import exponent, growth

    assert math.isclose(exponent({1: 3.0, 4: 6.0, 16: 12.0}), 0.5)
    assert math.isclose(exponent({1: 1, 4: 2, 16: 16}), 1)  # by hand: (1, 1), (4, 2), (16, 16) are on no line
    name = "retail-{}m-k6{}-process"
    every = [figures_of(name.format(m, ""), m, 100 * m) for m in (1, 4, 16)]
    two = [figures_of(name.format(m, "-map"), m * m, 100) for m in (1, 4)]
    late = figures_of(name.format(16, "-map"), 600, 9000, "not finished within 600 s")
    assert growth([*every, *two, late]) == [
        ["a search, DuckDB", "1.0", "4.0", "16.0", "1.00", "100", "400", "1,600", "1.00"],
        ["a map, DuckDB", "1.0", "16.0", "not finished", "2.00", "100", "100", "not finished", "0.00"],
        ["a search, PostgreSQL", *["not finished"] * 3, "", *["not finished"] * 3, ""],
    ]


def test_a_row_says_what_was_measured_and_what_was_not() -> None:
    from benchmarks.table import row

    found = figures_of("retail-k6-process", 2.0, 300)
    assert row(found) == ["`retail-k6-process`", "1,000,000", "2.0", "4.0", "2.0", "4.0", "300", "3", "0.2", "26"]
    small = {**found, "question": "tiny-k2-process", "unit": {"seconds": 0.001, "cpu": 0.001}}
    assert row(small)[2:6] == ["2.0", "", "2.0", ""]
    late = figures_of("retail-k6-map-process", 123.4, 9000, "not finished within 600 s")
    assert row(late)[2:8] == ["not finished within 600 s", "", "123", "", "9,000", "1"]


def test_a_row_that_is_measured_anew_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    from benchmarks.table import keep, kept

    file = tmp_path / "figures.json"
    assert kept(file) == []
    for cpu, name in ((1.0, "weekly-first"), (2.0, "retail-k6-process"), (3.0, "weekly-first")):
        keep({**figures_of(name, cpu, 100), "essence": {}}, file)
    assert [(found["question"], found["cpu"]) for found in kept(file)] == [
        ("retail-k6-process", 2.0),
        ("weekly-first", 3.0),
    ]
    assert all("essence" not in found and found["where"]["duckdb"] for found in kept(file))


def test_every_question_is_on_the_page() -> None:
    from benchmarks.questions import QUESTIONS

    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert [name for name in QUESTIONS if f"`{name}`" not in page] == []


def test_a_key_that_is_not_known_yet_is_not_written() -> None:
    from benchmarks.questions import QUESTIONS, keys_of_search

    assert keys_of_search() >= SEARCH
    every, best = QUESTIONS["survey-k5-suppress-all"], QUESTIONS["survey-k5-suppress-best"]
    before, after = frozenset(SEARCH), frozenset({*SEARCH, "answer"})
    assert (every.lacks(before), best.lacks(before), best.lacks(after)) == (None, "search.answer", None)
    where = ("duckdb:///t.duckdb", "main.rows", Path())
    assert "answer" not in every.spec(*where, before)["search"]
    assert [q.spec(*where, after)["search"]["answer"] for q in (every, best)] == ["all", "best"]


ANSWER: dict[str, Any] = {
    "minimal": [[1, 0], [0, 1]],
    "chosen": {"levels": [1, 0], "suppressed": 0, "metrics": {"loss": 0.25, "height": 1}},
}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda answer: answer["minimal"].reverse(), True),
        (lambda answer: answer["chosen"]["metrics"].update(loss=0.25 + 1e-15), True),
        (lambda answer: answer["chosen"]["metrics"].update(loss=0.25 + 1e-9), False),
        (lambda answer: answer["chosen"].update(levels=[0, 1]), False),
        (lambda answer: answer["chosen"].update(suppressed=1), False),
        (lambda answer: answer["minimal"].pop(), False),
        (lambda answer: answer.update(chosen=None), False),
    ],
)
def test_the_digest_tells_answers_apart(change: Any, same: bool) -> None:
    from benchmarks.answers import digest, essence

    other = copy.deepcopy(ANSWER)
    change(other)
    assert (digest(essence(other)) == digest(essence(ANSWER))) is same


def test_a_comparison_names_what_differs() -> None:
    from benchmarks.comparison import beside

    result = {"question": "q", "status": "ok", "digest": "a", "essence": {"minimal": [[1]], "chosen": [1]}}
    figures = dict.fromkeys(("seconds", "u", "cpu", "cu", "evaluated", "minimal", "queries", "peak memory"), 4)
    before = {**result, **figures, "unit": {"seconds": 1.0}}
    after = {**before, "digest": "b", "essence": {"minimal": [[1]], "chosen": [2]}, "seconds": 1, "rows read": 7}
    lines = beside({"results": [before]}, {"results": [after]}).splitlines()
    assert lines[0] == "q: ANOTHER ANSWER: chosen"
    assert ["seconds", "4", "1", "0.250"] in [line.split() for line in lines]
    assert ["rows", "read", "-", "7"] in [line.split() for line in lines]
    kept = [{name: value for name, value in result.items() if name != "essence"} for result in (before, after)]
    assert beside(*({"results": [result]} for result in kept)).startswith("q: ANOTHER ANSWER: its digest\n")
    runs = [{name: value for name, value in result.items() if name != "digest"} for result in kept]
    assert beside(*({"results": [result]} for result in runs)).startswith("q: answers are not compared\n")
    late = {"question": "q", "status": "not finished within 9 s"}
    assert beside({"results": [before]}, {"results": [late]}) == "q: ok; not finished within 9 s"


def test_beliefs_are_asked_of_the_table_and_of_a_larger_population(tmp_path: Path) -> None:
    from benchmarks import beliefs
    from benchmarks.tables import TABLES

    spec = beliefs._prepared(TABLES["retail"], tmp_path, tmp_path, 600)
    with duckdb.connect(str(tmp_path / "beliefs.duckdb"), read_only=True) as connection:
        (pairs,) = connection.execute("SELECT count(*) FROM (SELECT DISTINCT * FROM rows)").fetchone() or (0,)
        (others,) = connection.execute("SELECT count(*) FROM (FROM population EXCEPT ALL FROM rows)").fetchone() or (0,)
    assert others == 150
    for found in (beliefs._ask(str(spec), "top", "table"), beliefs._in_a_process(spec, "bottom", beliefs.POPULATION)):
        assert found["pairs"] == pairs
        assert min(found["seconds"], found["memory"]) > 0


def test_ledgers_are_opened_read_meanwhile_and_killed() -> None:
    given = ["--kills", "2", "--openings", "1", "--processes", "1", "--events", "2"]
    command = [sys.executable, "-m", "benchmarks.ledgers", *given]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    lines = dict(line.rsplit("? ", 1) for line in ended.stdout.splitlines() if "? " in line)
    read = {line.partition(":")[0]: answer for line, answer in lines.items() if "writes, can another read" in line}
    assert {store: answer.startswith("no, ") for store, answer in read.items()} == {
        "DuckDB": True,
        "SQLite (WAL)": False,
        "SQLite (rollback journal)": False,
    }
    assert ended.stdout.count("kills: 2, a file that could not be read: 0, an acknowledged event lost: 0") == 3


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE event SET run = 'another' WHERE number = 2", "half"),
        ("DELETE FROM guarantee WHERE number = 3 AND position = 1", "half"),
        ("UPDATE event SET previous_digest = digest WHERE number = 2", "chain"),
        ("DELETE FROM event WHERE number = 1", "missing"),
    ],
)
def test_a_ledger_that_was_damaged_is_told(damage: str, problem: str, tmp_path: Path) -> None:
    from benchmarks.ledger_files import STORES, create, length

    store, file = "SQLite (rollback journal)", tmp_path / "ledger"
    create(store, file, 3)
    assert length(store, file) == 3
    with STORES[store](file, False).begin() as connection:
        connection.exec_driver_sql(damage)
    with pytest.raises(ValueError, match=problem):
        length(store, file)


def test_openings_of_files_are_counted(tmp_path: Path) -> None:
    from benchmarks.ledger_files import STORES, create
    from benchmarks.openings import counted

    for store in STORES:
        file = tmp_path / store
        with counted() as opened:
            create(store, file)
            for _ in range(2):
                with STORES[store](file, True).connect():
                    pass
        assert opened[str(file)] == 3
        with STORES[store](file, True).connect():
            pass
        assert opened[str(file)] == 3
