"""Values that are replaced where the rows of the source are read, so that nothing else knows of any other: codes for
unknown (`unknown`), spellings of one value (`same`), and sensitive values as they are published (`publish_as`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock.canonical import decimal_text
from qblock.engines.condition import Where
from qblock.engines.session import Session
from qblock.engines.spelled import Rows, Same, Spellings
from qblock.engines.tables import Column, TableName
from qblock.engines.values import EXACT, NUMERIC, canonical_text, fits
from qblock.errors import InputError, quoted
from qblock.hierarchy import Hierarchy, from_csv
from qblock.hierarchy.core import MOST_EDGES
from qblock.spec.sources import CsvFile, DimensionTable, Edges, Ranges, cells_of

Expression = sa.ColumnElement[Any]


@dataclass(frozen=True)
class Unknown:
    """Codes for unknown, which are read as NULL. place: of `unknown`, for messages; None of another table than the
    source, whose type may lack some of the codes."""

    codes: Sequence[str]
    place: str | None

    def expression(self, session: Session, value: Expression, column: Column) -> Expression:
        """NULL for a code, any other value as it is. Raises InputError for a code that is no value of the column."""
        unfit = [code for code in self.codes if not fits(code, column)]
        if unfit and self.place is not None:
            raise InputError(
                f"{self.place}: {quoted(unfit[0])} is not a value of column {column.name} of type {column.type}, so no "
                "row can have it; correct or remove it"
            )
        codes = [_value(session, code, column) for code in self.codes if code not in unfit]
        return sa.case((session.comparable(value, column).in_(codes), sa.null()), else_=value)


@dataclass(frozen=True)
class PublishedRanges:
    """The ranges that numbers are published as. place: of `publish_as`, for messages."""

    source: Ranges | Edges
    place: str

    def expression(self, session: Session, value: Expression, column: Column) -> Expression:
        """The label of each value; NaN and infinity, which no range holds, as they are. Raises InputError for a column
        of no numbers."""
        if column.kind not in NUMERIC:
            raise InputError(
                f"{self.place}: column {column.name} is of type {column.type}, and ranges are of numbers. Cast it in a "
                f"view, or for a CSV file write `types: {{{column.name}: integer}}` below source"
            )
        whens, last = self._below(session, value, column)
        if fits("-Infinity", column):
            whens.insert(0, (value == _number(session, "-Infinity", column), _text("-Infinity")))
        beyond = next((text for text in ("Infinity", "NaN") if fits(text, column)), None)
        if beyond is None:
            return sa.case((value.is_(None), sa.null()), *whens, else_=last)
        whens.append((value < _number(session, beyond, column), last))
        return sa.case((value.is_(None), sa.null()), *whens, else_=session.text_of(value, column.kind))

    def _below(
        self, session: Session, value: Expression, column: Column
    ) -> tuple[list[tuple[Expression, Expression]], Expression]:
        """For each range the values below its end, in ascending order, and the label of those above them all."""
        begins, labels = cells_of(self.source)
        whens: list[tuple[Expression, Expression]] = []
        for begin, below in zip(begins, labels, strict=False):
            number = _rounded_up(begin, column)
            if fits(number, column):
                whens.append((value < _number(session, number, column), _text(below)))
            elif begin > 0:  # no value of the type is as large
                return whens, _text(below)
        return whens, _text(labels[-1])


@dataclass(frozen=True)
class PublishedLevel:
    """The level of a taxonomy that values are published as. file: the taxonomy's, where it has one."""

    taxonomy: CsvFile | DimensionTable
    file: Path | None
    level: int
    place: str

    def expression(self, session: Session, value: Expression, column: Column) -> Expression:
        """The label of each leaf; a value that is no leaf as it is, which the domain then lacks."""
        leaves: dict[str, list[str]] = {}
        for leaf, label in self._labels(session, column).items():
            leaves.setdefault(label, []).append(leaf)
        whens = [
            (value.in_([_value(session, leaf, column) for leaf in of]), _text(label)) for label, of in leaves.items()
        ]
        return sa.case((value.is_(None), sa.null()), *whens, else_=session.text_of(value, column.kind))

    def _labels(self, session: Session, column: Column) -> dict[str, str]:
        """The label of each leaf. Raises InputError for what is no leaf of the column, or for too many of them."""
        pairs = self._of_file(column.name) if self.file is not None else self._of_table(session)
        for leaf in pairs:
            if not fits(leaf, column):
                raise InputError(
                    f"{self.place}: leaf {quoted(leaf)} of the taxonomy is not a value of column {column.name} of type "
                    f"{column.type}; correct or remove it"
                )
        if len(pairs) > MOST_EDGES:
            raise InputError(
                f"{self.place}: the taxonomy of {column.name} has {len(pairs):,} leaves; valid with "
                f"publish_as: at most {MOST_EDGES:,}. Publish its level in a view of the source"
            )
        return pairs

    def _of_file(self, name: str) -> dict[str, str]:
        assert isinstance(self.taxonomy, CsvFile)
        assert self.file is not None
        hierarchy = from_csv(self.file, name, self.taxonomy.layout)
        check_level(hierarchy, self.level, self.place)
        return {
            str(leaf): str(label) for leaf, label in zip(hierarchy.leaves, hierarchy.labels[self.level], strict=True)
        }

    def _of_table(self, session: Session) -> dict[str, str]:
        """Of its columns alone: what makes a hierarchy of them is checked where the domain is read."""
        assert isinstance(self.taxonomy, DimensionTable)
        table, names = TableName.parse(self.taxonomy.table), self.taxonomy.levels
        columns = session.columns(table)
        if self.level >= len(names) or not {names[0], names[self.level]} <= columns.keys():
            return {}
        relation = session.relation(table)
        texts = [
            session.text_of(relation.c[name], columns[name].kind).label(as_)
            for name, as_ in ((names[0], "leaf"), (names[self.level], "label"))
        ]
        rows = session.fetch(sa.select(*texts).distinct()).to_pylist()
        return {row["leaf"]: row["label"] for row in rows if None not in row.values()}


def check_level(taxonomy: Hierarchy, level: int, place: str) -> None:
    """Raise InputError for a level of which nothing could be published."""
    if level < taxonomy.height:
        return
    if taxonomy.height > 1:
        remedy = f"write 1 to {taxonomy.height - 1}" if taxonomy.height > 2 else "write 1"
    else:
        remedy = "add a level to it, or leave publish_as out"
    raise InputError(
        f"{place}: level {level} of the taxonomy of {taxonomy.attribute} is not there, or has no label but `*`; "
        f"{remedy}"
    )


@dataclass(frozen=True)
class RowsPublished:
    """The Restriction of a table of which values are replaced. where: the rows that it keeps, if not all; names: as of
    Where, and None for all."""

    where: Where | None
    unknown: Mapping[str, Unknown]
    same: Mapping[str, Same]
    coarser: Mapping[str, PublishedRanges | PublishedLevel]
    names: Sequence[str] | None

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.where is None else self.where.columns

    def kept(
        self, session: Session, table: sa.FromClause, columns: Mapping[str, Column], names: Sequence[str] | None
    ) -> sa.FromClause:
        read = self.names if names is None else names
        rows = sa.select().select_from(table)
        if self.where is not None:
            rows = rows.where(self.where.clause(session, table, columns))
        shown = [self._shown(session, table, rows, columns[n]) for n in columns if read is None or n in read]
        return rows.with_only_columns(*shown).subquery("qblock_kept")

    def _shown(self, session: Session, table: sa.FromClause, rows: Rows, column: Column) -> Expression:
        """A column as it is read: what is unknown is NULL before anything becomes of it."""
        name = column.name
        value: Expression = table.c[name]
        unknown, spellings = self.unknown.get(name), self._spellings(session, table, rows, column)
        if unknown is not None:
            if spellings is not None:
                unknown = replace(unknown, codes=spellings.of_same(unknown.codes))
            value = unknown.expression(session, value, column)
        if spellings is not None:
            value = spellings.expression(session.comparable(value, column))
            column = _as_text(column, column.compare_as)
        if name in self.coarser:
            value = self.coarser[name].expression(session, session.comparable(value, column), column)
        return value if value is table.c[name] else value.label(name)

    def _spellings(self, session: Session, table: sa.FromClause, rows: Rows, column: Column) -> Spellings | None:
        """Those of a column, which are asked for once in a snapshot."""
        if column.name not in self.same:
            return None
        place = (id(self), column.name)
        if place not in session.spellings:
            value = session.comparable(table.c[column.name], column)
            session.spellings[place] = self.same[column.name].spellings(session, value, rows, column)
        spellings: Spellings = session.spellings[place]
        return spellings

    def shown(self, columns: dict[str, Column], text_type: str) -> dict[str, Column]:
        texts = {*self.same, *self.coarser}
        return {name: _as_text(column, text_type) if name in texts else column for name, column in columns.items()}

    def divided(self) -> tuple[Where | RowsPublished | None, RowsPublished | None]:
        """Spellings are those of the rows; nothing else looks at other values than its own."""
        return (self.where, replace(self, where=None)) if self.same else (self, None)


def _as_text(column: Column, text_type: str) -> Column:
    return Column(column.name, text_type, "text", text_type)


def _rounded_up(number: Fraction, column: Column) -> str:
    """The least number of the column's type that is not below, as text: values are below both or below none."""
    exact = EXACT.fullmatch(column.compare_as.lower()) if column.kind == "decimal" else None
    if column.kind != "integer" and exact is None:
        return decimal_text(number)
    unit = Fraction(1) if exact is None else Fraction(10) ** -int(exact[2])
    return decimal_text(-(-number // unit) * unit)


def _number(session: Session, text: str, column: Column) -> Expression:
    return session.convert(_text(text), column)


def _value(session: Session, leaf: str, column: Column) -> Expression:
    text = _text(canonical_text(leaf, column) or leaf)
    return text if column.kind == "text" else session.convert(text, column)


def _text(text: str) -> Expression:
    return sa.literal(text, sa.Text)
