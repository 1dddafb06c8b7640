"""Which database URLs are accepted: those that can be read in only one way, since a password read as a host would be
printed."""

from __future__ import annotations

import re

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+_]*)://(.*)", re.DOTALL)
OF_FILES = ("duckdb", "sqlite")
"""Schemes whose URL names a file: no host, user or password is in it."""
OF_PROCESS = "spark:"
"""The URL without an address: what the process has opened."""
PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
MOST_PORT = 65535
ESCAPES = "@ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25"
REMEDY = f"percent-encode the special characters of user and password ({ESCAPES})"
FORM = "the database URL cannot be read; write duckdb:///FILE or postgresql://USER@HOST/DATABASE"
SEVERAL = (
    "the database URL names several hosts before its path; write "
    f"postgresql://USER@/DATABASE?host=HOST1:PORT1&host=HOST2:PORT2; or {REMEDY}"
)
_LITERAL = re.compile(r"[^:]+://[^/@:]*:([^@]+)@|[?&](?:ssl)?password=([^&]+)|;token=([^;]+)")


def url_problem(text: str) -> str | None:
    """What is wrong with a URL, and the remedy, without any part of the URL. None for one that can be read."""
    if text == OF_PROCESS:
        return None
    match = SCHEME.fullmatch(text)
    if match is None:
        return FORM
    engine, rest = match[1].partition("+")[0].lower(), match[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    after = rest[len(authority) :]
    if authority.count("@") > 1:
        return f"the database URL has more than one @ before the path; {REMEDY}"
    if engine in OF_FILES:
        return None
    if "@" in after:
        return f"the database URL has an @ after its first /, ? or #; {REMEDY}, and an @ further on as %40"
    if after.startswith("#"):
        return f"the database URL has a # before its path; {REMEDY}"
    address = authority.rpartition("@")[2]
    if "," in address:
        return SEVERAL
    return _port_problem(address)


def _port_problem(address: str) -> str | None:
    """About `host:port`, the host of which may be in [ ]."""
    host = re.match(r"\[[^\[\]]*\]|[^:\[\]]*", address)
    rest = address[host.end() if host else 0 :]
    if not rest:
        return None
    number = rest[1:] if rest.startswith(":") else ""
    if not PORT.fullmatch(number) or not 1 <= int(number) <= MOST_PORT:
        return f"the port of the database URL is not a number from 1 to {MOST_PORT}; correct it, or {REMEDY}"
    return None


def has_password(text: str) -> bool:
    """Whether a URL, as written in a file, has a password rather than a variable."""
    return any("${" not in "".join(password) for password in _LITERAL.findall(text))
