"""URLs of Spark Connect, `sc://host:15002/;token=...;use_ssl=true`, as its client takes them."""

from __future__ import annotations

from urllib.parse import quote

import sqlalchemy as sa

from qblock.errors import InputError

DEFAULT_PORT = 15002
FORM = "write sc://HOST:15002/;token=${SPARK_TOKEN};use_ssl=true, each parameter as ;NAME=VALUE"


def parameters(url: sa.URL) -> dict[str, str]:
    """What follows the path, in order and decoded: a value may hold `=`, as a padded token does. Raises InputError."""
    text = url.database or ""
    if not url.host:
        raise InputError(f"the Spark URL names no host; {FORM}")
    if url.query or url.username or url.password or (text and not text.startswith(";")):
        raise InputError(f"the Spark URL has a user, a path or a ?, which Spark Connect does not know; {FORM}")
    given: dict[str, str] = {}
    for part in filter(None, text.split(";")):
        name, mark, value = part.partition("=")
        if not name or not mark or name in given:
            raise InputError(f"a parameter of the Spark URL has no name or no value, or is given twice; {FORM}")
        given[name] = value  # decoded already
    if any("\0" in value or "\n" in value or "\r" in value for value in given.values()):
        raise InputError("a parameter of the Spark URL holds a NUL character or a line break; remove it")
    if given.get("use_ssl", "true").lower() not in ("true", "false"):
        raise InputError("use_ssl of the Spark URL is neither true nor false; correct it")
    return given


def connect_url(url: sa.URL) -> str:
    """The URL for the client, which splits at every `=`: values are percent-encoded. It holds the token."""
    host = f"[{url.host}]" if ":" in (url.host or "") else url.host
    rest = "".join(f";{name}={quote(value, safe='')}" for name, value in parameters(url).items())
    return f"sc://{host}:{url.port or DEFAULT_PORT}/{rest}"


def check_url(url: sa.URL) -> None:
    """Raise InputError for a URL that cannot be used; nothing of it is said."""
    parameters(url)
