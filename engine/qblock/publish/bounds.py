"""Bounds of labels as columns of their own, beside the text of a numeric or date quasi-identifier, and the values that
are shown as they are (`publish.exact`).

Both are read from the label alone: whether a value is there in the source now changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.comparison import Kind
from qblock.engines.arrow import whole_numbers
from qblock.engines.from_spec import published_type
from qblock.engines.registry import ENGINES
from qblock.engines.session import Session
from qblock.engines.tables import Column, RawType
from qblock.engines.values import canonical_text
from qblock.errors import InputError, Refused
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.bounds import Ends, Reader, date_texts, double_texts, range_text
from qblock.hierarchy.labels import texts
from qblock.lattice import Node
from qblock.ledger.kept import PublishedColumn
from qblock.source import SourceTable, reader_of
from qblock.spec import Spec
from qblock.spec.sections import RangesShown

LARGEST = {"int4range": 2**31 - 1, "int8range": 2**63 - 1}
LONGEST = 63
"""Bytes of a name, of which PostgreSQL keeps no more."""


Texts = tuple[str | None, ...]


@dataclass(frozen=True)
class Bound:
    """The columns that stand beside one quasi-identifier: its bounds, and the value that is shown as it is.

    written: the texts of the bounds of a label; engine: that the texts are read on; exact: the column of the source
    whose values have one of their own, the last; nulls: whether an open end is NULL.
    """

    attribute: str
    reader: Reader
    columns: tuple[PublishedColumn, ...]
    written: Callable[[Ends], Texts]
    engine: str
    exact: Column | None = None
    nulls: bool = False

    def texts_of(self, label: str | None) -> Texts:
        ends, value = self.reader.bounds(label), () if self.exact is None else (self.value_of(label),)
        return self._open(ends, self.written(ends)) + value

    def _open(self, ends: Ends, texts_: Texts) -> Texts:
        if not self.nulls or not self.ends:
            return texts_
        return tuple(None if end is None else text for end, text in zip(ends, texts_, strict=True))

    @property
    def without_columns(self) -> Bound:
        """It for a column that is published as it is, which says itself what its bounds would."""
        return replace(self, columns=(), written=lambda _: (), exact=None)

    @property
    def ends(self) -> tuple[PublishedColumn, ...]:
        """The columns of the bounds alone."""
        return self.columns if self.exact is None else self.columns[:-1]

    def value_of(self, label: str | None) -> str | None:
        """The value that a label is; None for a label of several."""
        assert self.exact is not None
        return label if label is not None and _is_value(label, self.exact, self.reader) else None

    def ends_of(self, label: str) -> tuple[str | None, str | None]:
        """The bounds of a label as texts that read as numbers or dates, whatever the columns are."""
        ends = self.reader.bounds(label)
        low, high = self._open(ends, date_texts(ends) if self.reader.of == "dates" else double_texts(ends))
        return low, high

    def place_of(self, label: str) -> float:
        """Where a label stands among the others, by its lower end."""
        low = self.reader.bounds(label)[0]
        return -math.inf if low is None else float(low.toordinal() if isinstance(low, date) else low)

    def read(self, text: sa.ColumnElement[Any], column: PublishedColumn) -> sa.ColumnElement[Any]:
        """A text of a bound as its column has it."""
        facts = ENGINES[self.engine].adapter()
        if column.role == "exact" and column.kind in ("date", "timestamp"):
            text = facts.calendar_value(text)
        if column.kind == "date":
            text = facts.endless(text)
        return sa.cast(text, RawType(column.type))

    @property
    def open(self) -> tuple[sa.ColumnElement[Any], ...]:
        """What a label that cannot be read has."""
        texts_ = [sa.null() if t is None else sa.literal_column(f"'{t}'", sa.Text) for t in self.texts_of(None)]
        return tuple(self.read(text, column) for text, column in zip(texts_, self.columns, strict=True))


def bounds_of(
    spec: Spec,
    columns: Mapping[str, Column],
    engine: str,
    ranges: RangesShown,
    stated: Mapping[str, Hierarchy] | None = None,
    *,
    joined: bool = False,
) -> dict[str, Bound]:
    """The bounds that are published, by quasi-identifier.

    columns: of the source; stated: the hierarchies, where labels are to be read; joined: into boxes. Raises InputError
    for ranges on an engine that has none, and for a name that another column has.
    """
    if ranges == "text" and not spec.publish.exact:
        return {}
    if ranges == "native" and not ENGINES[engine].adapter.range_types:
        raise InputError(
            f"{spec.at('publish', 'ranges')}: {ENGINES[engine].title} has no types of ranges; write `columns` for two "
            "columns of bounds, or `text` for none"
        )
    bounds: dict[str, Bound] = {}
    for name in spec.quasi_identifiers:
        bound = _bound(spec, name, columns[name], engine, ranges, (stated or {}).get(name), joined)
        if bound is not None:
            bounds[name] = bound
    _check_names(spec, columns, bounds)
    return bounds


def _bound(
    spec: Spec, name: str, column: Column, engine: str, ranges: RangesShown, hierarchy: Hierarchy | None, joined: bool
) -> Bound | None:
    reader = reader_of(spec, name, column.kind, hierarchy, joined=joined)
    if reader is None:
        return None
    shown, written = _ends(spec, name, column, engine, ranges, dates=reader.of == "dates")
    nulls = ranges == "columns" and spec.publish.open_ends is None
    # A moment of any zone is published as text in UTC.
    if not spec.publish.exact or column.kind == "timestamptz":
        return Bound(name, reader, shown, written, engine, nulls=nulls) if shown else None
    exact = _column(spec, f"{name}_exact", column.compare_as, column.kind, "exact")
    return Bound(name, reader, (*shown, exact), written, engine, column, nulls)


def _ends(
    spec: Spec, name: str, column: Column, engine: str, ranges: RangesShown, *, dates: bool
) -> tuple[tuple[PublishedColumn, ...], Callable[[Ends], Texts]]:
    """The columns of bounds, and how the bounds of a label are written in them."""
    facts = ENGINES[engine].adapter
    if ranges == "text":
        return (), lambda _: ()
    if ranges == "native":
        kind = "date" if dates else column.type if column.type in facts.range_types else "number"
        type_ = facts.range_types[kind]
        return (_column(spec, f"{name}_range", type_),), _ranges(LARGEST.get(type_))
    if dates:
        return tuple(_column(spec, f"{name}_{end}", facts.date_type, "date") for end in ("from", "until")), date_texts
    return tuple(_column(spec, f"{name}_{end}", facts.double_type, "float") for end in ("low", "high")), double_texts


def _ranges(most: int | None) -> Callable[[Ends], Texts]:
    return lambda ends: (range_text(ends, most),)


def _column(
    spec: Spec, name: str, type_: str, kind: Kind = "text", role: Literal["bound", "exact"] = "bound"
) -> PublishedColumn:
    return PublishedColumn(spec.publish.names.get(name, name), role, published_type(spec, name, type_), kind)


def _check_names(spec: Spec, columns: Mapping[str, Column], bounds: Mapping[str, Bound]) -> None:
    taken = {name.casefold() for name in (*columns, *spec.attributes)}
    for attribute, column in [(of, column) for of, bound in bounds.items() for column in bound.columns]:
        name = column.name
        what, without = ("bounds", "ranges: text") if column.role == "bound" else ("values", "exact: false")
        if name.casefold() in taken:
            raise InputError(
                f"{spec.at('publish')}: the {what} of {attribute} would be published as {name}, and that is a column "
                f"already. Give them another name (publish: {{names: {{{name}: {name}_of_range}}}}), or write "
                f"`{without}`"
            )
        if len(name.encode()) > LONGEST:
            raise InputError(
                f"{spec.at('publish')}: {name}, a bound of {attribute}, has more than {LONGEST} bytes; give it a "
                f"shorter name: publish: {{names: {{{name}: ...}}}}"
            )
        taken.add(name.casefold())


def source_bounds(source: SourceTable, ranges: RangesShown) -> dict[str, Bound]:
    """The bounds of a source that is open, whose labels can be read."""
    recoding = source.recoding
    spec, columns = (source.spec, source.columns) if recoding is None else (recoding.spec, recoding.before)
    stated = {hierarchy.attribute: hierarchy for hierarchy in source.origins}
    return bounds_of(spec, columns, source.session.engine, ranges, stated, joined=recoding is not None)


def kept_types(source: SourceTable, node: Node) -> dict[str, Column]:
    """The quasi-identifiers that keep their type, with their columns in the source: those of no text that every row
    shows as they are. None where other data may be published later, which may not be shown so: a type that changed from
    version to version would break what readers have written."""
    recoding = source.recoding
    spec, columns = (source.spec, source.columns) if recoding is None else (recoding.spec, recoding.before)
    if not spec.published_once:
        return {}
    kept = {}
    shown = zip(source.quasi_identifiers, source.hierarchies, source.origins, node, strict=True)
    for name, hierarchy, origin, level in shown:
        column, labels = columns[name], hierarchy.columns[level].distinct.to_pylist()
        reader = reader_of(spec, name, column.kind, origin)
        # A moment of any zone is published as text in UTC, and NULL cannot be a value of a quasi-identifier.
        fits = column.kind not in ("text", "timestamptz") and origin.cells is None and None not in labels
        if fits and all(_is_value(label, column, reader) for label in labels):
            kept[name] = column
    return kept


def _is_value(label: str, column: Column, reader: Reader | None) -> bool:
    """Whether a label is one value of a column as it is written, and stands for no other."""
    return canonical_text(label, column) == label and (reader is None or reader.is_value(label))


def loaded(session: Session, name: str, bound: Bound, hierarchy: Hierarchy, level: int) -> sa.TableClause:
    """The bounds of the labels of a level, by code: c, and t0, t1 as text."""
    labels = hierarchy.columns[level]
    codes = hierarchy.codes[level][labels.first]
    written = [bound.texts_of(label) for label in labels.distinct.to_pylist()]
    arrays = {"c": whole_numbers(codes.astype(np.int64))}
    arrays |= {f"t{i}": texts([text[i] for text in written]) for i in range(len(bound.columns))}
    return session.load(name, pa.table(arrays))


def check_copied(session: Session, rows: sa.FromClause, bounds: Sequence[Bound]) -> None:
    """Raise Refused where rows of a copy have other bounds than their labels say."""
    for bound in filter(lambda bound: bound.columns, bounds):
        label = rows.c[bound.attribute]
        shown = [session.text_of(rows.c[c.name], c.kind) for c in bound.columns]
        query = sa.select(label.label("t"), *(text.label(f"t{i}") for i, text in enumerate(shown)))
        for row in session.fetch(query.select_from(rows).distinct()).to_pylist():
            ends = tuple(row[f"t{i}"] for i in range(len(shown)))
            if not _same(ends, bound.texts_of(row["t"]), bound.columns):
                raise Refused(f"the copy holds other bounds of {bound.attribute} than its labels have")


def _same(shown: Texts, expected: Texts, columns: Sequence[PublishedColumn]) -> bool:
    for left, right, column in zip(shown, expected, columns, strict=True):
        if left is None or right is None or column.kind != "float":
            if left != right:
                return False
        elif float(left) != float(right):
            return False
    return True
