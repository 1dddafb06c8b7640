"""Row level security: a table whose policies would hide rows from the job is refused, not published in part."""

from __future__ import annotations

import re
from typing import Any

from qblock.errors import Refused

RAISED_BY = "check_enable_rls"
"""The server's function that raises it: the message is in the server's language, and other errors share its
SQLSTATE."""


def hidden_rows(error: Any) -> Refused | None:
    """The refusal for PostgreSQL's error that a policy would filter (row_security is off); None for any other error.

    error: of psycopg.
    """
    diagnostic: Any = getattr(error, "diag", None)
    if getattr(error, "sqlstate", None) != "42501" or getattr(diagnostic, "source_function", None) != RAISED_BY:
        return None
    quoted = re.search(r'["«„“](.+)["»“”]', diagnostic.message_primary or "")  # a name, and the only one in it
    table = f"table {quoted[1]}" if quoted else "a table that is read"
    return Refused(
        f"row level security of {table} would hide rows from the job's login, and what is not counted is not "
        "protected; let the job see every row: ALTER ROLE ... BYPASSRLS for its login, or let it own the table "
        "(without FORCE ROW LEVEL SECURITY), or name a view whose owner sees every row"
    )
