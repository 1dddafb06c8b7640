"""The column types of a version, kept with it: the same value must read the same in every version."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from qblock.engines.session import Session
from qblock.engines.tables import Column, RawType
from qblock.engines.values import MIDNIGHT, canonical_text, carried, type_class
from qblock.errors import InputError, QblockError, Refused
from qblock.ledger.events import canonical
from qblock.spec import Spec

RETYPE = "`qblock ledger retype SPEC`"
ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")
"""DuckDB's name of such a type lists its values."""


@dataclass(frozen=True)
class First:
    """How the entities of a release are written before they are digested: in the type of the first version, for good.

    column: of the source when the types were recorded; hashed: whether the digests are of the text's SHA-256, and not
    of the text (`crosswalk.Crosswalk.entity`).
    """

    column: Column
    hashed: bool = False


@dataclass(frozen=True)
class Types:
    """columns: the entity, quasi-identifiers and sensitive attributes of a version; entity: the column that said who a
    row is about; coarser: what sensitive attributes were published as, and replaced: how columns were read, both in the
    words of the spec."""

    columns: Mapping[str, Column]
    entity: str
    first: First
    coarser: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Canonical JSON."""
        columns = {name: _plain(column) for name, column in self.columns.items()}
        first = {"column": self.first.column.name, **_plain(self.first.column)}
        if self.first.hashed:
            first["hashed"] = True
        said = {"coarser": dict(self.coarser), "replaced": dict(self.replaced)}
        said = {name: of for name, of in said.items() if of}
        return canonical({"columns": columns, "entity": self.entity, "first": first, **said})

    @classmethod
    def of_text(cls, text: str) -> Types:
        """What `text` wrote. Raises QblockError for anything else."""
        try:
            content = json.loads(text)
            first, entity = dict(content["first"]), content["entity"]
            name, hashed = first.pop("column"), bool(first.pop("hashed", False))
            columns = {name: Column(name, **column) for name, column in content["columns"].items()}
            coarser, replaced = (dict(content.get(name, {})) for name in ("coarser", "replaced"))
            return cls(columns, columns[entity].name, First(Column(name, **first), hashed), coarser, replaced)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise QblockError("the column types in the crosswalk cannot be read: they were altered") from None


def types_of(spec: Spec, columns: Mapping[str, Column], first: First) -> Types:
    """The types of a source's columns as a version keeps them."""
    assert spec.entity is not None
    names = dict.fromkeys((spec.entity, *spec.quasi_identifiers, *spec.sensitives))
    return Types({name: named(columns[name]) for name in names}, spec.entity, first, spec.coarser, spec.replaced)


def check_coarser(spec: Spec, known: Types, version: str) -> None:
    """Raise InputError where a version shows other labels of a sensitive attribute than the spec asks for now: versions
    are compared by labels, and those of one would be values beside those of the other, which they overlap."""
    for name in spec.sensitives:
        before, now = known.coarser.get(name), spec.coarser.get(name)
        if name in known.columns and before != now:
            shown = f"`publish_as: {before}`" if before else "its values as they are"
            raise InputError(
                f"{spec.at('attributes', name, 'publish_as')}: {version} shows of {name} {shown}, and versions with "
                "other labels cannot be checked together; nothing is published. "
                f"{f'Write {shown} again' if before else 'Remove publish_as'}, or, unprotected: `versions: {{joint: "
                "none}`. With that, people who hold several versions may learn more than each one guarantees"
            )
    _check_replaced(spec, known, version)


def _check_replaced(spec: Spec, known: Types, version: str) -> None:
    """Raise InputError where a version was read otherwise: its values and those of now are the same people's, and
    would be compared as values that changed."""
    for name in (*spec.quasi_identifiers, *spec.sensitives):
        before, now = known.replaced.get(name), spec.replaced.get(name)
        if before != now and name in known.columns:
            shown = f"with `{before}`" if before else "as it is in the source"
            raise InputError(
                f"{spec.at('attributes', name)}: {version} shows {name} {shown}, and versions that are read otherwise "
                "cannot be checked together; nothing is published. "
                f"{f'Write `{before}` again' if before else f'Remove `{now}`'}, or, unprotected: `versions: {{joint: "
                "none}`. With that, people who hold several versions may learn more than each one guarantees"
            )


def named(column: Column) -> Column:
    """A column whose type is named without values."""
    return replace(column, type=ENUM.sub("ENUM", column.type), base=column.base and ENUM.sub("ENUM", column.base))


def _plain(column: Column) -> dict[str, Any]:
    return {key: value for key, value in asdict(column).items() if key != "name" and value is not None}


def entity_text(session: Session, value: sa.ColumnElement[Any], now: Column, first: First) -> sa.ColumnElement[Any]:
    """The text of an entity as in its first type, for a value in the type that it compares in now.

    A value that the first type cannot hold keeps its present text, which no value of the first type has.
    """
    kind = first.column.kind
    text = session.text_of(value, now.kind)
    if kind == now.kind or not {now.kind, kind} <= {"date", "timestamp", "timestamptz"}:
        # Other types write the values that they share alike.
        return text
    moment = session.text_of(_moment(value, now), "timestamp")
    if kind == "date":
        midnight = sa.func.right(moment, sa.literal_column(str(len(MIDNIGHT)))) == _literal(MIDNIGHT)
        return sa.case((midnight, sa.func.replace(moment, _literal(MIDNIGHT), _literal(""))), else_=text)
    if kind == "timestamp":
        return moment
    zoned = sa.func.timezone(_literal("UTC"), _moment(value, now))
    return session.text_of(zoned, "timestamptz")


def entity_text_of(text: str, now: Column, first: First) -> str:
    """The text of an entity as in its first type, for one that is given by its text."""
    plain = canonical_text(text, now)
    if plain is None:
        return text
    there = carried(plain, now.kind, first.column.kind)
    return there if canonical_text(there, first.column) == there else plain


def _moment(value: sa.ColumnElement[Any], now: Column) -> sa.ColumnElement[Any]:
    return (
        sa.func.timezone(_literal("UTC"), value) if now.kind == "timestamptz" else sa.cast(value, RawType("TIMESTAMP"))
    )


def _literal(text: str) -> sa.ColumnElement[str]:
    return sa.literal_column("'" + text + "'", sa.Text)


def changed(spec: Spec, known: Types, columns: Mapping[str, Column]) -> list[tuple[str, str, str]]:
    """Name, type before and type of now of each column whose type writes values otherwise."""
    now = {name: named(column) for name, column in columns.items()}
    names = dict.fromkeys((*spec.quasi_identifiers, *spec.sensitives))
    pairs = [(name, known.columns[name], now[name]) for name in names if name in known.columns]
    if spec.entity is not None:
        pairs.insert(0, (spec.entity, known.columns[known.entity], now[spec.entity]))
    by_name = {name: (before, column) for name, before, column in reversed(pairs)}
    return [
        (name, before.type, column.type)
        for name, (before, column) in reversed(by_name.items())
        if type_class(before.base or before.type) != type_class(column.base or column.type)
    ]


def remedy(spec: Spec) -> str:
    """What to do about a column of another type."""
    # What is kept of several rows of somebody is not converted.
    return "Give the column its type again" + ("" if spec.bundles else f", or convert what is kept of it: {RETYPE}")


def cannot_hold(column: Column) -> Refused:
    """The refusal of a column whose type has become too narrow: a cast in a query would fail, quote a value or round
    it."""
    return Refused(
        f"column {column.name} has become {column.type}, and values that were published are not values of that type; "
        "nothing is published. Give the column its type again"
    )
