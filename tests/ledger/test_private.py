"""Where the ledger is, and that nobody else gets in."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from qblock.errors import InputError, QblockError
from qblock.ledger.store import make_private
from qblock.ledger.stores import store_of, store_of_url


def spec(directory: Path, url: str) -> SimpleNamespace:
    source, publish = SimpleNamespace(url=SimpleNamespace(url=url), file=None), SimpleNamespace(url=None)
    return SimpleNamespace(directory=directory, source=source, publish=publish, private=None)


def test_specs_of_a_folder_share_a_ledger(tmp_path: Path) -> None:
    a, b = (store_of(spec(tmp_path, f"duckdb:///{name}.duckdb")) for name in "ab")
    assert a.url == b.url
    assert a.file == tmp_path / "qblock" / "ledger.sqlite"
    assert store_of_url(f"sqlite:///{a.file}", Path("/")).url == a.url
    assert not a.folder.exists()


def test_a_postgresql_ledger_is_in_the_sources_database(tmp_path: Path) -> None:
    place = store_of(spec(tmp_path, "postgresql://job:secret@host:5433/db?sslmode=require"))
    assert place.file is None
    assert place.url.render_as_string(False) == "postgresql+psycopg://job:secret@host:5433/db?sslmode=require"
    assert "secret" not in repr(place)
    assert store_of_url("postgresql://job:secret@host:5433/db?sslmode=require", tmp_path).url == place.url


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_a_source_is_not_taken_for_a_ledger(tmp_path: Path, scheme: str) -> None:
    with pytest.raises(InputError, match=r"warehouse is not a ledger; give the spec, or .* ledger.sqlite"):
        store_of_url(f"{scheme}:///warehouse", tmp_path)


def test_the_private_folder_is_closed_and_not_committed(tmp_path: Path) -> None:
    folder = make_private(tmp_path / "qblock")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"
    assert make_private(folder) == folder
    folder.chmod(0o750)
    with pytest.raises(QblockError, match=r"others have access to the private folder .*: chmod 700"):
        make_private(folder)


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "qblock").touch()
    with pytest.raises(QblockError, match="is not a folder"):
        make_private(tmp_path / "qblock")
    with pytest.raises(QblockError, match="cannot be made: No such file"):
        make_private(tmp_path / "absent" / "qblock")
