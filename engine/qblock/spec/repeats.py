"""Which columns look as if their values stood for people, so that a value that repeats is a person with several rows.

Nobody declared them as that (`entity`), so this is a guess, used for a note only. tests/spec/test_repeats.py has what
it says of the columns of the Adult data, of the demo and of tables of visits.
"""

from __future__ import annotations

import re

from qblock.spec.sections import Role

IDS = re.compile(
    r"(^|_)(id|ids|uid|uuid|guid|ssn|iban|mrn|email|e_mail|phone|person|patient|customer|client|user|member|account)($|_)",
    re.I,
)
"""Names and addresses are not among them: two people may share one."""
MOST_ROWS = 10
"""Rows of a person on average, where the name does not suggest an identifier: what repeats more often is a category."""


def may_stand_for_people(name: str, role: Role, kind: str, type_: str) -> bool:
    """Whether a column is worth counting, by what the spec and the database say about it.

    Quasi-identifiers and columns that are published as they are, if their names suggest an identifier; an identifying
    column of any name, since it was declared to identify. Values of a sensitive attribute are shared.
    """
    named = is_named_like_people(name, type_)
    if role == "identifying":
        return kind in ("integer", "text") or (named and kind == "decimal")
    return role != "sensitive" and named and kind in ("integer", "text", "decimal")


def repeats_people(name: str, role: Role, type_: str, rows: int, values: int, *, named: bool = False) -> bool:
    """Whether some values of a column repeat and all look like people's. rows: those with a value; values: distinct.

    There are many of them for so many rows (at least the square root), and, unless the name suggests an identifier that
    is not published, few rows for each. named: whether the name is known to suggest one.
    """
    if not values < rows <= values * values:
        return False
    return (role == "identifying" and (named or is_named_like_people(name, type_))) or rows <= MOST_ROWS * values


def is_named_like_people(name: str, type_: str) -> bool:
    """Whether a column's name, or its type, suggests an identifier."""
    return type_.lower() == "uuid" or IDS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)) is not None
