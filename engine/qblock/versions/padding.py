"""Rows of nobody beside those of the people who wait, so that their number is not told by how many rows there are.

PostgreSQL tells every login how many rows each table has, how many were written and how large it is, whoever may read
it. So whoever waits is written anew as a whole, filled up to a size class with random digests of no release.
"""

from __future__ import annotations

import secrets
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from qblock.versions.crosswalk import HEXADECIMAL, Crosswalk, fresh_name

LEAST = 256
"""Rows of the smallest class; each other one has twice those of the class before."""


def nobody(release: str) -> str:
    """What the rows of nobody that stand beside a release have as theirs: the name of none."""
    return f"-{release}"


def size_class(rows: int) -> int:
    """How many rows there are where these are of people."""
    return max(LEAST, 1 << (rows - 1).bit_length()) if rows else LEAST


def clear(crosswalk: Crosswalk, table: sa.Table, release: str) -> None:
    """Delete the rows of a release, and those of nobody beside it."""
    crosswalk.own.run(sa.delete(table).where(table.c.release.in_((release, nobody(release)))))


def pad(crosswalk: Crosswalk, table: sa.Table, release: str, **same: Any) -> None:
    """Fill up the rows of a release, which `clear` has cleared, to their size class. same: further columns."""
    own = crosswalk.own
    rows = own.scalar(sa.select(sa.func.count()).select_from(table).where(table.c.release == release))
    text = secrets.token_hex(HEXADECIMAL // 2 * (size_class(rows) - rows))
    digests = [text[at : at + HEXADECIMAL] for at in range(0, len(text), HEXADECIMAL)]
    loaded = own.load(fresh_name(), pa.table({"entity": pa.array(digests, pa.string())}))
    values = {"release": nobody(release), **same}
    columns = [sa.cast(sa.literal(value), table.c[name].type).label(name) for name, value in values.items()]
    own.run(sa.insert(table).from_select([*values, "entity"], sa.select(*columns, loaded.c.entity)))
    own.drop(loaded)
