"""The column types of a version, kept with it: the same value must read the same in every version."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.events import canonical
from qblock.spec import Spec
from qblock.warehouse.protocol import TEXT_FORM, Column, Session
from qblock.warehouse.session import RawType
from qblock.warehouse.texts import MIDNIGHT, canonical_text, carried
from qblock.warehouse.values import EXACT, NUMERIC

ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")
"""DuckDB's name of such a type lists its values."""


@dataclass(frozen=True)
class First:
    """How the entities of a release are written before they are digested: in the type of the first version, for good.

    column: of the source when the types were recorded; form: of the canonical text; hashed: whether the digests are of
    the text's SHA-256, and not of the text (`crosswalk.Book.entity`).
    """

    column: Column
    form: int
    hashed: bool = False


@dataclass(frozen=True)
class Types:
    """columns: the entity, quasi-identifiers and sensitive attributes of a version; form: of the texts kept of them;
    entity: the column that said who a row is about."""

    form: int
    columns: Mapping[str, Column]
    entity: str
    first: First

    def text(self) -> str:
        """Canonical JSON."""
        columns = {name: _plain(column) for name, column in self.columns.items()}
        first = {"column": self.first.column.name, "form": self.first.form, **_plain(self.first.column)}
        if self.first.hashed:
            first["hashed"] = True
        return canonical({"form": self.form, "columns": columns, "entity": self.entity, "first": first})

    @classmethod
    def of_text(cls, text: str) -> Types:
        """What `text` wrote. Raises QblockError for anything else, and for a form that this program does not know."""
        try:
            found = json.loads(text)
            first, entity = dict(found["first"]), found["entity"]
            name, form, hashed = first.pop("column"), first.pop("form"), bool(first.pop("hashed", False))
            columns = {name: Column(name, **column) for name, column in found["columns"].items()}
            made = cls(found["form"], columns, columns[entity].name, First(Column(name, **first), form, hashed))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise QblockError("the column types in the crosswalk cannot be read: they were altered") from None
        if max(made.form, made.first.form) > TEXT_FORM:
            raise QblockError("the crosswalk was written by a newer qblock; install that one, or a later one")
        return made


def types_of(spec: Spec, columns: Mapping[str, Column], first: First) -> Types:
    """The types of a source's columns as a version keeps them."""
    assert spec.entity is not None
    names = dict.fromkeys((spec.entity, *spec.quasi_identifiers, *spec.sensitives))
    return Types(TEXT_FORM, {name: named(columns[name]) for name in names}, spec.entity, first)


def named(column: Column) -> Column:
    """A column whose type is named without values."""
    return replace(column, type=ENUM.sub("ENUM", column.type), base=column.base and ENUM.sub("ENUM", column.base))


def _plain(column: Column) -> dict[str, Any]:
    return {key: value for key, value in asdict(column).items() if key != "name" and value is not None}


def entity_text(session: Session, value: sa.ColumnElement[Any], now: Column, first: First) -> sa.ColumnElement[Any]:
    """The text of an entity as in its first type, for a value in the type that it compares in now.

    A value that the first type cannot hold keeps its present text, which no value of the first type has.
    """
    own, kind = first.column, first.column.kind
    text = session.text_of(value, now.kind)
    if {now.kind, kind} <= NUMERIC:
        if first.form > 1 or kind != "decimal":
            return text
        return _first_decimal(session, value, text, own)
    if kind == now.kind or not {now.kind, kind} <= {"date", "timestamp", "timestamptz"}:
        # Other types write the values that they share alike.
        return text
    moment = session.text_of(_moment(value, now), "timestamp")
    if kind == "date":
        midnight = sa.func.right(moment, sa.literal_column(str(len(MIDNIGHT)))) == _literal(MIDNIGHT)
        return sa.case((midnight, sa.func.replace(moment, _literal(MIDNIGHT), _literal(""))), else_=text)
    return moment if kind == "timestamp" else session.text_of(_zoned(_moment(value, now)), "timestamptz")


def entity_text_of(text: str, now: Column, first: First) -> str:
    """The text of an entity as in its first type, for one that is given by its text."""
    plain = canonical_text(text, now)
    if plain is None:
        return text
    if {now.kind, first.column.kind} <= NUMERIC and first.form == 1 and first.column.kind == "decimal":
        found = EXACT.fullmatch(first.column.compare_as.lower())
        if canonical_text(plain, first.column) is None or found is None:
            return text
        scale = int(found[2])
        whole, _, digits = plain.partition(".")
        return f"{whole}.{digits.ljust(scale, '0')}" if scale else plain
    there = carried(plain, now.kind, first.column.kind)
    return there if canonical_text(there, first.column) == there else plain


def _first_decimal(
    session: Session, value: sa.ColumnElement[Any], text: sa.ColumnElement[Any], first: Column
) -> sa.ColumnElement[Any]:
    cast = sa.cast(value, RawType(first.compare_as))
    shown = sa.case((cast == value, session.text_of(cast, "decimal", 1)), else_=text)
    found = EXACT.fullmatch(first.compare_as.lower())
    if found is None:
        return shown
    limit: sa.ColumnElement[int] = sa.literal_column(str(10 ** (int(found[1]) - int(found[2]))))
    return sa.case((sa.func.abs(value) < limit, shown), else_=text)


def _moment(value: sa.ColumnElement[Any], now: Column) -> sa.ColumnElement[Any]:
    return (
        sa.func.timezone(_literal("UTC"), value) if now.kind == "timestamptz" else sa.cast(value, RawType("TIMESTAMP"))
    )


def _zoned(moment: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.timezone(_literal("UTC"), moment)


def _literal(text: str) -> sa.ColumnElement[str]:
    return sa.literal_column("'" + text + "'", sa.Text)
