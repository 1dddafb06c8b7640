"""The wheel and the sdist carry everything that a checkout has, and find it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from qblock.demo.examples import example_names

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="the build backend hatchling is not installed: pip install .[dev]",
)


def build(target: str, project: Path, directory: Path) -> Path:
    """Build without isolation, which would ask the network for the backend."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(directory)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
    (built,) = directory.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def shipped() -> set[str]:
    """The files that the wheel must hold."""
    files = {path.relative_to(ROOT / "engine") for path in (ROOT / "engine" / "qblock").rglob("*")}
    files |= {
        Path("qblock") / path.relative_to(ROOT) for name in ("sql", "migrations") for path in (ROOT / name).rglob("*")
    }
    examples = {Path("qblock/examples") / name for name in example_names(ROOT / "examples")}
    wanted = {".py", ".sql", ".typed", ".template", ".mako", ".j2", ".toml", ".html", ".css", ".js", ".json"}
    files = {file for file in files if file.suffix in wanted and "__pycache__" not in file.parts}
    return {file.as_posix() for file in files | examples}


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_code_statements_migrations_and_the_mark_of_types(wheel: Path) -> None:
    names = contents(wheel)
    assert {"qblock/py.typed", "qblock/sql/duckdb/demo_people.sql", "qblock/demo/release.yaml.template"} <= names
    assert any(name.startswith("qblock/migrations/") for name in names)
    assert shipped() - names == set()
    assert not [name for name in names if not name.startswith("qblock/")]


def test_the_installed_package_finds_its_own_statements(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "from qblock import resources, demo\n"
        "print(resources.directory('sql'), resources.migrations_directory(), sep='\\n')\n"
        "print(resources.sql_text('demo_people', 'duckdb'), end='')"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    sql, migrations, *text = done.stdout.splitlines(keepends=True)
    assert Path(sql.strip()) == tmp_path / "qblock" / "sql"
    assert Path(migrations.strip()) == tmp_path / "qblock" / "migrations"
    assert "".join(text) == (ROOT / "sql" / "duckdb" / "demo_people.sql").read_text("utf-8")


def test_the_installed_command_writes_the_examples_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    # The libraries of this environment, but for its own qblock, which a .pth file within it names.
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(venv), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    ran = subprocess.run(
        [venv / "bin" / "qblock", "examples", "written", "--json"], cwd=tmp_path, check=True, capture_output=True
    )
    names = example_names(ROOT / "examples")
    assert json.loads(ran.stdout)["files"] == [f"written/{name}" for name in names]
    assert (packages / "qblock" / "examples").is_dir()
    assert sorted(path for path in (tmp_path / "written").rglob("*") if path.is_file()) == [
        tmp_path / "written" / name for name in names
    ]
    for name in names:
        assert (tmp_path / "written" / name).read_bytes() == (ROOT / "examples" / name).read_bytes()


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    source = build("sdist", ROOT, tmp_path)
    # tarfile's own filter is missing in Debian's 3.11 and asked for with a warning since 3.12.
    subprocess.run(["tar", "-xf", str(source), "-C", str(tmp_path)], check=True)
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert contents(build("wheel", unpacked, tmp_path / "again")) == contents(wheel)
    assert (unpacked / "LICENSE").is_file()
