"""Which columns look as if their values stood for people, so that a value that repeats is a person with several rows.

Nobody declared them as that (`entity`), so this is a guess, made for a note and for nothing else. What it says of the
columns of the Adult data, of the demo and of tables of visits is held by tests/spec/test_repeats.py.
"""

from __future__ import annotations

import re

from qblock.spec.model import Role

IDS = re.compile(
    r"(^|_)(id|ids|uid|uuid|guid|ssn|iban|mrn|email|e_mail|phone|person|patient|customer|client|user|member|account)($|_)",
    re.I,
)
"""Names and addresses are not among them: two people may share one."""
MOST_ROWS = 10
"""Of a person on average, where no name speaks of an identifier: what repeats more often is a category."""


def may_stand_for_people(name: str, role: Role, kind: str, type_: str) -> bool:
    """Whether a column is worth counting, by what the spec and the database say of it.

    Quasi-identifiers and columns that are published as they are, if their names speak of an identifier; an identifying
    one of any name, since whoever declared it said that it identifies. Values of a sensitive attribute are shared.
    """
    named = _named(name, type_)
    if role == "identifying":
        return kind in ("integer", "text") or (named and kind == "decimal")
    return role != "sensitive" and named and kind in ("integer", "text", "decimal")


def repeats_people(name: str, role: Role, type_: str, rows: int, values: int) -> bool:
    """Whether some values of a column repeat and all look like people's. rows: those with a value; values: distinct.

    There are many of them for so many rows (at least the square root), and, where the name alone does not speak of an
    identifier that nobody sees, few rows for each.
    """
    if not values < rows <= values * values:
        return False
    return (role == "identifying" and _named(name, type_)) or rows <= MOST_ROWS * values


def _named(name: str, type_: str) -> bool:
    return type_.lower() == "uuid" or IDS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)) is not None
