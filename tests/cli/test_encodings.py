"""Databases of other encodings than UTF-8: every one that PostgreSQL can convert works, SQL_ASCII is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from release.jobs import ATTRIBUTES, PEOPLE, Job, new_job

from qblock.cli.app import run
from qblock.release.rollback import rollback
from qblock.release.verify import verify

pytestmark = pytest.mark.every_postgresql

LETTERS = {"LATIN1": "é", "WIN1252": "€", "EUC_JP": "日", "KOI8R": "я"}


@pytest.fixture
def encoded(request: pytest.FixtureRequest, server: str, postgresql_url: str) -> Iterator[tuple[str, str]]:
    """URL of a database of another encoding, and a letter of it."""
    name = f"{sa.make_url(postgresql_url).database}_other"
    create = sql.SQL("CREATE DATABASE {} ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Literal(request.param)))
    url = sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    yield url, LETTERS.get(request.param, "é")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def filled(url: str, letter: str) -> None:
    """The people of the other tests, with a letter in every name and text."""
    names = sql.SQL(", ").join(sql.Identifier(name + letter) for name in PEOPLE)
    with psycopg.connect(url, client_encoding="utf8") as connection:
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name + letter), sql.SQL("integer" if name == "age" else "text"))
            for name in PEOPLE
        )
        table = sql.Identifier(f"people{letter}")
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, columns))
        insert = sql.SQL("INSERT INTO {} ({}) VALUES (%s, %s, %s, %s, %s)").format(table, names)
        for row in zip(*PEOPLE.values(), strict=True):
            texts = [value if isinstance(value, int) else letter + value[1:] for value in row]
            connection.execute(insert, [row[0] + letter, *texts[1:]])


def job_of(url: str, letter: str, tmp_path: Path) -> Job:
    attributes: dict[str, Any] = {name + letter: copy.deepcopy(value) for name, value in ATTRIBUTES.items()}
    made = new_job("postgresql", tmp_path, url, f'"people{letter}"', attributes=attributes, entity=f"name{letter}")
    made.settings["publish"] |= {"view": f"people{letter}", "schema": f"published{letter}"}
    return made


@pytest.mark.parametrize("encoded", LETTERS, indirect=True)
def test_names_and_values_beyond_ascii_in_other_encodings(encoded: tuple[str, str], tmp_path: Path) -> None:
    url, letter = encoded
    filled(url, letter)
    job = job_of(url, letter, tmp_path)
    assert [job.run(force=True).version for _ in range(2)] == [1, 2]
    assert rollback(job.spec, 1).status == "rolled_back"
    assert verify(job.spec).problems == ()
    with psycopg.connect(url, client_encoding="utf8") as connection:
        rows = connection.execute(f'SELECT * FROM "published{letter}"."people{letter}"').fetchall()  # type: ignore[arg-type]
    assert len(rows) == 12
    assert {row[-2:] for row in rows} == {(1, 1)}  # the weight, and the version that showed it first
    assert all(str(value).startswith(letter) for row in rows for value in (row[0], *row[4:-2]))


@pytest.mark.parametrize("encoded", ["SQL_ASCII"], indirect=True)
def test_a_database_without_an_encoding_is_refused_before_anything_is_written(
    encoded: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that are no UTF-8 ended in an internal error, and lengths were counted in bytes."""
    url, letter = encoded
    filled(url, letter)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA published")
        connection.execute(b'UPDATE "people\xc3\xa9" SET "ward\xc3\xa9" = E\'\\xe9\'')
        before = connection.execute("SELECT count(*) FROM pg_class").fetchone()
    monkeypatch.chdir(tmp_path)
    path = str(job_of(url, letter, tmp_path).write())
    table = f'"people{letter}"'
    commands: list[list[str]] = [
        ["init", url, table],
        ["hierarchy", "load", path],
        ["search", path],
        ["audit", path],
        ["audit", "--url", url, "--table", table, "-q", f"zip{letter}", "-s", f"disease{letter}"],
        ["compare", path],
        ["plan", path],
        ["release", path],
        ["verify", path],
        ["history", path],
        ["rollback", path, "1"],
        ["erase", path, "somebody"],
        ["retire", path],
        ["ledger", "upgrade", path],
        ["ledger", "upgrade", url],
        ["ledger", "retype", path],
        ["ledger", "rekey", path],
        ["ledger", "move", path, "--from", "people"],
        ["demo", "demo", "--url", url, "--rows", "1000"],
    ]
    for command in commands:
        assert run(command) == 2, command
        _, err = capfd.readouterr()
        assert f"database {sa.make_url(url).database} has the encoding SQL_ASCII" in err, (command, err)
        assert "ENCODING 'UTF8'" in err
        assert "internal" not in err
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_class").fetchone() == before
