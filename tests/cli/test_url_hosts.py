"""Hosts, ports and parameters of a PostgreSQL URL: what libpq takes works, the rest is told in one sentence."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from engines import create_table

from qblock.cli.app import run

SEVERAL = "names several hosts before its path; write postgresql://USER@/DATABASE?host=HOST1:PORT1&host="
PORT = "the port of the database URL is not a number from 1 to 65535"
PORTS = "A port is a number from 1 to 65535, and each host has one, or all have the same"
UNKNOWN = "a parameter that the PostgreSQL client does not know"
NONE = "none of 2 hosts answers; the first: the connection was refused"
LOGIN = "postgresql://job:s3cretpw@"
URLS = [
    ("host1:1,host2:2/db", 2, SEVERAL),
    ("host1,host2/db", 2, SEVERAL),
    ("host1:1,host2/db", 2, SEVERAL),
    ("[::1]:1,[::2]:5/db", 2, SEVERAL),
    ("127.0.0.1:abc/db", 2, PORT),
    ("127.0.0.1:/db", 2, PORT),
    ("127.0.0.1:99999/db", 2, PORT),
    ("127.0.0.1/db?port=abc", 2, PORTS),
    ("127.0.0.1/db?port=0", 2, PORTS),
    ("127.0.0.1:1/db?port=1,2", 2, PORTS),
    ("127.0.0.1:1/db?port=1&port=2", 2, PORTS),
    ("/db?host=a,b,c&port=1,2", 2, PORTS),
    ("/db?host=127.0.0.1:abc&host=127.0.0.1:2", 2, PORTS),
    ("/db?host=127.0.0.1:1,127.0.0.1:2", 2, PORTS),
    ("/db?host=127.0.0.1,127.0.0.1&port=1,2", 1, NONE),
    ("/db?host=127.0.0.1:1&host=127.0.0.1:2", 1, NONE),
    ("/db?hostaddr=127.0.0.1,127.0.0.1&port=1", 1, NONE),
    ("127.0.0.1:1/db?hostaddr=nonsense", 1, "no host of that name is found"),
    ("host%00a:1/db", 1, "no host of that name is found"),
    (f"{'a' * 300}:1/db", 1, "the host cannot be reached"),
    ("127.0.0.1:1/d%00b", 2, "a NUL character"),
    ("127.0.0.1:1/db?nonsense=1", 2, UNKNOWN),
    ("127.0.0.1:1/db?row_factory=1", 2, UNKNOWN),
    ("127.0.0.1:1/db?connect_timeout=abc", 2, UNKNOWN),
]


@pytest.mark.parametrize(("address", "status", "says"), URLS, ids=[address[:40] for address, *_ in URLS])
def test_a_url_is_never_an_internal_error(
    address: str, status: int, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for command in (["init", LOGIN + address, "people"], ["ledger", "upgrade", LOGIN + address]):
        assert run(command) == status
        err = capfd.readouterr().err
        assert says in err
        assert "cretpw" not in err


@pytest.mark.parametrize(
    "form", ["/{db}?host=127.0.0.1:1&host={host}:{port}", "/{db}?host=127.0.0.1,{host}&port=1,{port}"]
)
def test_the_second_host_is_used_where_the_first_does_not_answer(
    form: str, postgresql_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create_table(postgresql_url, "people", {"zip": ["1", "2"], "ill": ["a", "b"]})
    there = sa.make_url(postgresql_url)
    host = there.query.get("host", there.host)
    address = form.format(db=there.database, host=host, port=there.port or 5432)
    login = f"{there.username}:{there.password or ''}@"
    table = ["--table", "people", "-q", "zip", "-s", "ill"]
    assert run(["audit", "--url", f"postgresql://{login}{address}", *table]) == 0
    assert "k_anonymity" in capfd.readouterr().out
