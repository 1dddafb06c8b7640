"""Errors of Spark Connect as ours: of their text only the name of the condition is shown, which quotes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from qblock.errors import InputError, QblockError
from qblock.warehouse.addresses import Unreachable
from qblock.warehouse.faults import while_reading

CONDITION = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)*")
_DENIED = ("UNAUTHENTICATED", "PERMISSION_DENIED")
# The client closes its session when the server says that it is another one, and asks it once more: NO_ACTIVE_SESSION.
_GONE = ("UNAVAILABLE", "INVALID_HANDLE", "NO_ACTIVE_SESSION", "DEADLINE_EXCEEDED", "INVALID_CONNECT_URL")
# Without a catalog of that name a name of three parts is a schema of two.
_ABSENT = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def conditions(error: BaseException) -> list[str]:
    """The names of what happened, by Spark and by gRPC, of an error and of those that led to it."""
    names = []
    for cause in _chain(error):
        condition = getattr(cause, "getCondition", lambda: None)()
        code = getattr(cause, "code", None)
        status = getattr(code() if callable(code) else None, "name", None)
        names += [text for text in (condition, status) if isinstance(text, str) and CONDITION.fullmatch(text)]
    return list(dict.fromkeys(names))


def is_absent(error: BaseException) -> bool:
    """Whether a table or its schema does not exist."""
    return any(text.startswith(_ABSENT) for text in conditions(error))


def is_lost(error: BaseException) -> bool:
    """Whether there is no session any more."""
    return any(text.startswith(_GONE) for text in conditions(error))


def explain_spark(error: Exception, reading: Sequence[str] = ()) -> QblockError:
    """The error to show for one of the client's. reading: the tables that the statement reads."""
    if isinstance(error, QblockError):
        return error
    names, where = conditions(error), while_reading(reading)
    if any(text.startswith(_DENIED) for text in names):
        return Unreachable(f"the Spark server refused the login{where}: the token is wrong, or it may not do this")
    if any(text.startswith(_ABSENT) for text in names):
        return InputError(f"a table does not exist, or the login may not read it{where}; check the names in the spec")
    if is_lost(error):
        return Unreachable(f"the connection to the Spark server was lost{where}; run again when the server is there")
    return QblockError(f"Spark did not carry out a statement{where} ({', '.join(names) or type(error).__name__})")
