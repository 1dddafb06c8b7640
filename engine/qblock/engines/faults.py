"""Errors of the databases in our own words, by exception class and SQLSTATE, and what is printed of a database's URL.

The drivers' texts quote values of the source (a cast that fails, a duplicate key) and parts of the URL; they
are kept as the cause of our error, for `--debug` on a terminal, and go nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import sqlalchemy as sa

from qblock.errors import QblockError


class Unreachable(QblockError):
    """A database that cannot be reached, or not any more: nothing is known about what is in it."""


def shown_url(url: sa.URL) -> str:
    """The only text of a URL that may be printed: scheme, user, host, port and database; no password, no parameter."""
    engine = url.get_backend_name()
    database = url.database if engine in ("duckdb", "postgresql", "postgres") else None
    shown = sa.URL.create(engine, url.username, host=url.host, port=url.port, database=database)
    return shown.render_as_string(hide_password=True)


VIEW = "the source view casts or computes with a value that does not fit; correct the view, or the value in the table"

DENIED = "42501"


def original_of(error: BaseException) -> BaseException:
    """The driver's error that one of SQLAlchemy's wraps."""
    return getattr(error, "orig", None) or error


def denied(error: BaseException) -> bool:
    """Whether one of our errors says that PostgreSQL denied a privilege."""
    return error.__cause__ is not None and getattr(original_of(error.__cause__), "sqlstate", None) == DENIED


def of_client(engine: str, error: BaseException, where: str) -> QblockError:
    """For what the client could not do with an answer: a date after the year 9999, a text that is not UTF-8."""
    return QblockError(
        f"{engine}: a value of the answer could not be read{where} ({type(error).__name__}); cast it to text in a "
        "view, or correct it"
    )


CLIENT: tuple[type[Exception], ...] = (pa.ArrowException, UnicodeError, OverflowError)
"""What the clients raise, besides the drivers' errors, for an answer that they cannot read; their texts quote it."""


def said(what: str, more: str) -> str:
    """What happened, then more about it, then the cause or remedy."""
    happened, mark, remedy = re.fullmatch(r"(.*?)([:;]|\.(?= )|$)(.*)", what).groups()  # type: ignore[union-attr]
    return f"{happened}{more}{mark}{remedy}"


def while_reading(reading: Sequence[str]) -> str:
    return f" while reading table {', '.join(reading)}" if reading else ""
