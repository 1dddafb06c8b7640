"""No part of a password is in what is printed of a database URL, wherever its special characters stand."""

from __future__ import annotations

import itertools
import json
import random
import re
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import qblock
from qblock.cli.app import run
from qblock.engines.faults import shown_url
from qblock.engines.registry import open_warehouse, parse_url
from qblock.errors import InputError, QblockError
from qblock.ledger.stores import store_of_url
from qblock.spec import read_spec
from qblock.spec.urls import has_password, url_problem

SPECIAL = "@:/?#%[]&=+;,!$'()* \\\"<>^`{}|~.-_"
PIECE = 4
SPEC = """version: 1
release: people
source: {url: "${WAREHOUSE_URL}", table: people}
attributes: {zip: {role: quasi_identifier, hierarchy: suppress}, ill: sensitive}
privacy: [{k_anonymity: {k: 2}}]
publish: {schema: published, view: people}
"""
TEMPLATES = (
    "postgresql://job:{}@127.0.0.1:1/clinic",
    "postgresql+psycopg://job:{}@127.0.0.1:1/clinic?sslmode=disable",
    "postgresql://job@127.0.0.1:1/clinic?password={}",
    "postgresql://job@127.0.0.1:1/clinic?sslmode=disable&sslpassword={}&service={}",
    "postgresql://job@127.0.0.1:1/clinic?passfile=/{}",
)


def passwords(rng: random.Random) -> list[str]:
    """Each special character in each position of a password of its own, and two of them together."""
    found = []
    for special, place in itertools.product(SPECIAL, range(9)):
        word = "".join(rng.sample(string.ascii_uppercase + string.digits, 8))
        found.append(word[:place] + special + word[place:])
    for one, other in itertools.product("@:/?#%", repeat=2):
        word = "".join(rng.sample(string.ascii_uppercase + string.digits, 12))
        found.append(word[:4] + one + word[4:8] + other + word[8:])
    return found


def leaked(password: str, text: str) -> list[str]:
    pieces = {password[i : i + PIECE] for i in range(len(password) - PIECE + 1)}
    return [piece for piece in pieces if piece in text]


def said_of(url: str, tmp_path: Path, in_spec: bool) -> str:
    """All that the layers say of a URL: shown, opened, and as text and as variable of a spec."""
    said = [url_problem(url) or ""]
    written = SPEC.replace("${WAREHOUSE_URL}", url.replace("\\", "\\\\").replace('"', '\\"'))
    readings: list[Callable[[], Any]] = [
        lambda: shown_url(parse_url(url)),
        lambda: store_of_url(url, tmp_path),
        lambda: open_warehouse(url, tmp_path),
    ]
    if in_spec:
        readings.append(lambda: read_spec(SPEC, "spec.yaml", {"WAREHOUSE_URL": url}))
        readings.append(lambda: read_spec(written, "spec.yaml", {}))
    for read in readings:
        try:
            said.append(repr(read()))
        except InputError as error:
            said.append(str(error))
    # The folder of a test has a number, which may be in a password too.
    return "\n".join(said).replace(str(tmp_path), "(folder)")


@pytest.mark.parametrize("template", TEMPLATES)
def test_no_piece_of_a_password_is_said_of_any_url(template: str, tmp_path: Path) -> None:
    found = [
        (password, pieces)
        for number, password in enumerate(passwords(random.Random(7)))
        for url in [template.format(*[password] * template.count("{}"))]
        if (pieces := leaked(password, said_of(url, tmp_path, in_spec=number % 9 == 0)))
    ]
    assert found == []


@pytest.mark.parametrize("special", ["@", ":", "/", "?", "#", "%", " ", "[", "@@", "@/", "/@", ":@", "#@", "?@"])
def test_no_piece_of_a_password_is_in_output_or_result(
    special: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    password = f"Xk3{special}W0rdTail9"
    url = f"postgresql://job:{password}@127.0.0.1:1/clinic"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAREHOUSE_URL", url)
    (tmp_path / "spec.yaml").write_text(SPEC, "utf-8")
    commands: list[list[str]] = [
        ["release", "spec.yaml", "--result", "result.json", "--log-format", "json", "--json"],
        ["search", "spec.yaml"],
        ["search", url],
        ["verify", "spec.yaml", url],
        ["init", url, "people"],
        ["init", "people", url],
        ["audit", "--url", url, "--table", "people", "-q", "zip", "-s", "ill"],
        ["ledger", "upgrade", url],
        ["demo", "demo", "--url", url, "--rows", "10"],
        [f"--urll={url}"],
    ]
    for command in commands:
        assert run(command) in (1, 2), command
        out, err = capfd.readouterr()
        assert leaked(password, out + err) == [], (command, err)
    assert leaked(password, (tmp_path / "result.json").read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://job:p@ssw0rd@host/db", "more than one @ before the path"),
        ("postgresql://job:p/ss@host/db", "an @ after its first"),
        ("postgresql://job:p?ss@host/db", "an @ after its first"),
        ("postgresql://job:p#ss@host/db", "an @ after its first"),
        ("postgresql://host/db?user=a@b", "an @ after its first"),
        ("postgresql://job:ssw0rd/db", "port"),
        ("postgresql://job@host:/db", "port"),
        ("postgresql://job@host:0/db", "port"),
        ("postgresql://job@host:65536/db", "port"),
        ("postgresql://job@host:5432,other:5432/db", "several hosts"),
        ("postgresql://job@[::1]x/db", "port"),
        ("postgresql://job@host:5\u0664/db", "port"),
    ],
)
def test_a_url_that_can_be_read_in_two_ways_is_refused_with_the_remedy(url: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        parse_url(url)
    assert "percent-encode" in str(caught.value)
    assert "%40" in str(caught.value)
    assert "ssw0rd" not in str(caught.value)
    with pytest.raises(InputError, match=r"spec\.yaml:3: source\.url: .*" + problem):
        read_spec(SPEC, "spec.yaml", {"WAREHOUSE_URL": url})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("duckdb:////data/a@b@c.duckdb", "duckdb:////data/a%40b%40c.duckdb"),
        ("postgresql://job:p%40ss%3Aw@host:5433/db?sslmode=require", "postgresql://job@host:5433/db"),
        ("postgresql+psycopg://job:x@[::1]:5433/db", "postgresql://job@[::1]:5433/db"),
        ("postgresql://host/a%40b", "postgresql://host/a%40b"),
        ("duckdb:///w.duckdb?motherduck_token=abc", "duckdb:///w.duckdb"),
    ],
)
def test_what_is_shown_of_a_url(url: str, shown: str) -> None:
    assert shown_url(parse_url(url)) == shown


def test_of_another_scheme_no_path_is_shown() -> None:
    url = sa.make_url("databricks://token@host:443/default;PWD=abc?http_path=/sql")
    assert shown_url(url) == "databricks://token@host:443"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("postgresql://job:word@host/db", True),
        ("postgresql://job:${WORD}@host/db", False),
        ("postgresql://job@host/db?password=word", True),
        ("postgresql://job@host/db?sslmode=x&sslpassword=${WORD}", False),
        ("${WAREHOUSE_URL}", False),
    ],
)
def test_a_password_in_the_file_is_seen(text: str, warned: bool) -> None:
    assert has_password(text) == warned


def test_a_login_that_fails_is_told_in_our_words(postgresql_url: str) -> None:
    """libpq's own text names the host, the database and the login as it has read them."""
    gone = sa.make_url(postgresql_url).set(database="no_such_database")
    unknown = sa.make_url(postgresql_url).set(username="no_such_login")
    reasons = {}
    for name, url in (("gone", gone), ("unknown", unknown)):
        opened = open_warehouse(url.render_as_string(False), Path())
        with pytest.raises(QblockError) as caught, opened.snapshot():
            pass
        reasons[name] = str(caught.value)
        assert str(caught.value).startswith(f"database not reachable: {shown_url(url)}: ")
        assert "FATAL" not in str(caught.value)
    assert reasons["gone"].endswith("there is no database of that name on the server")
    assert "login" in reasons["unknown"]


def test_a_server_that_is_not_there_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").write_text(
        SPEC.replace("${WAREHOUSE_URL}", "postgresql://job:abcd@127.0.0.1:1/x"), "utf-8"
    )
    file = tmp_path / "result.json"
    assert run(["release", str(tmp_path / "spec.yaml"), "--result", str(file)]) == 1
    reason: Any = json.loads(file.read_text("utf-8"))["reason"]
    assert reason == (
        "database not reachable: postgresql://job@127.0.0.1:1/x: the connection was refused: no server listens there"
    )
    assert f"qblock: {reason}" in capfd.readouterr().err


def test_one_function_renders_urls() -> None:
    """Whatever else made text of a URL could print a password or a parameter."""
    engine = Path(qblock.__file__).parent
    renders = [
        str(file.relative_to(engine))
        for file in sorted(engine.rglob("*.py"))
        if re.search(
            r"render_as_string|\{(place\.|self\.)?_?url(\.url)?(![rs])?\}|str\((\w+\.)*url\)", file.read_text("utf-8")
        )
    ]
    assert renders == ["engines/faults.py"]
