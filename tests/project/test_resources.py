"""Statements and migrations are found in a checkout, in an installed package, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from qblock import resources
from qblock.errors import QblockError

ROOT = Path(__file__).resolve().parents[2]


def make(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(file.parent))


@pytest.fixture
def statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resources, "directory", lambda name: tmp_path / name)
    resources.sql_text.cache_clear()
    yield tmp_path / "sql"
    resources.sql_text.cache_clear()


def test_a_checkout_uses_its_own_files(tmp_path: Path) -> None:
    package = tmp_path / "engine" / "qblock"
    make(tmp_path / "pyproject.toml", tmp_path / "sql" / "a.sql", package / "sql" / "a.sql")
    assert resources.directory("sql", package) == tmp_path / "sql"


def test_an_installed_package_uses_its_own_files_whatever_lies_beside(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "site-packages" / "qblock"
    make(tmp_path / "lib" / "pyproject.toml", tmp_path / "lib" / "sql" / "a.sql", package / "sql" / "a.sql")
    assert resources.directory("sql", package) == package / "sql"


def test_an_installation_without_the_files_says_so(tmp_path: Path) -> None:
    with pytest.raises(QblockError, match="install qblock again"):
        resources.directory("sql", tmp_path / "engine" / "qblock")


def test_the_statement_of_the_engine_goes_before_the_common_one(statements: Path) -> None:
    make(statements / "a.sql", statements / "b.sql", statements / "duckdb" / "a.sql")
    assert resources.sql_text("a", "duckdb") == str(statements / "duckdb")
    assert resources.sql_text("a", "postgresql") == str(statements)
    assert resources.sql_text("b", "duckdb") == str(statements)
    assert resources.sql_text("a") == str(statements)


def test_a_statement_that_does_not_exist_is_named(statements: Path) -> None:
    make(statements / "duckdb" / "a.sql")
    with pytest.raises(QblockError, match=r"no statement 'a' .* for postgresql"):
        resources.sql_text("a", "postgresql")


def test_this_checkout_is_one() -> None:
    assert resources.directory("sql") == ROOT / "sql"
    assert resources.migrations_directory() == ROOT / "migrations"
