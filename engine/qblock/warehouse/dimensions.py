"""Hierarchies and domains as dimension tables of a session."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from qblock.errors import InputError, quoted
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.labels import all_match, places, texts, whole
from qblock.warehouse.arrow import whole_numbers
from qblock.warehouse.protocol import Column, Session
from qblock.warehouse.queries import Dimension
from qblock.warehouse.texts import canonical_text
from qblock.warehouse.values import all_fit, fits
from qblock.warehouse.values import is_value as is_value

IN_UTC = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?\+00"


def load_dimension(
    session: Session,
    name: str,
    hierarchy: Hierarchy,
    column: Column,
    origin: str,
    *,
    nulls: bool = False,
    uncovered: bool = False,
    observed: bool = False,
) -> Dimension:
    """Load a hierarchy as a temporary dimension table whose leaves compare as the column does.

    origin says where the hierarchy comes from, for messages. nulls, uncovered: the hierarchy's leaf None stands for
    NULL, and for values that it does not cover. observed: its leaves are the column's own values. Raises InputError for
    leaves that are not values of the column's type, or that are equal as such.
    """
    levels, codes, parts = hierarchy.columns, hierarchy.codes, hierarchy.paths
    leaves = levels[0].column
    if not observed and not all_fit(leaves, column):
        for position, leaf in enumerate(hierarchy.leaves):
            if leaf is not None and not fits(leaf, column):
                raise InputError(
                    f"{origin}: leaf {position + 1}, {quoted(leaf)}, is not a value of column {column.name} of type "
                    f"{column.type}; correct or remove it"
                )
    null = int(whole(pc.indices_nonzero(leaves.is_null()))[0]) if leaves.null_count else None
    value, columns_of = leaves, [labels.column for labels in levels]
    numbers = [*codes, *(part.codes for part in parts)]
    if hierarchy.cells is not None:
        # A row for each value of the column, with the codes of its cell.
        values, of = hierarchy.values
        value, columns_of = texts(values), [labels.take(places(of)) for labels in columns_of]
        numbers = [codes[of] for codes in numbers]
    named = [*(f"c{h}" for h in range(len(levels))), *(f"p{i}" for i in range(len(parts)))]
    arrays: dict[str, Any] = {name: whole_numbers(codes) for name, codes in zip(named, numbers, strict=True)}
    arrays |= {f"t{h}": labels for h, labels in enumerate(columns_of)}
    if column.kind == "timestamptz" and not all_match(value.drop_null(), IN_UTC):
        # A leaf without a zone is in UTC, whatever the session's zone is.
        value = texts([None if leaf is None else canonical_text(leaf, column) for leaf in value.to_pylist()])
    arrays["v"] = value
    text = session.load(f"{name}_text", pa.table(arrays))
    size: Any = sa.SmallInteger if len(leaves) < 2**15 else sa.Integer
    leaf_value = session.convert(text.c.v, column)
    columns = [leaf_value.label("leaf")]
    columns += [sa.cast(text.c[f"c{h}"], size).label(f"c{h}") for h in range(len(levels))]
    columns += [text.c[f"p{i}"].label(f"p{i}") for i in range(len(parts))]
    # A value as its column has it; a cell as it is.
    shown = session.text_of(leaf_value, column.kind) if hierarchy.cells is None else text.c.t0
    columns += [shown.label("t0")]
    columns += [text.c[f"t{h}"].label(f"t{h}") for h in range(1, len(levels))]
    table = session.store(name, sa.select(*columns))
    session.drop(text)
    session.analyze(table)
    twice = session.fetch(
        sa.select(session.text_of(table.c.leaf, column.kind).label("value"))
        .where(table.c.leaf.is_not(None))
        .group_by(table.c.leaf)
        .having(sa.func.count() > 1)
        .limit(5)
    )
    if len(twice):
        values = ", ".join(quoted(v) for v in twice["value"].to_pylist())
        raise InputError(
            f"{origin}: duplicate leaf {values}: equal as a value of column {column.name} of type {column.type}; "
            "keep one line for each value"
        )
    top = () if null is None else tuple(int(part.codes[null]) for part in parts)
    height = len(levels) - 1
    return Dimension(table, height, len(leaves), null if nulls else None, null if uncovered else None, top)
