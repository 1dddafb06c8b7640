"""A table that a program holds or names, and what is asked of it, in the words of a spec."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qblock.engines.from_spec import copied, warehouse_of
from qblock.engines.session import Warehouse
from qblock.engines.spark.frame import SparkFrame
from qblock.errors import InputError
from qblock.results.tables import Library
from qblock.spec import Spec, spec_of
from qblock.spec.sections import ROLES
from qblock.spec.source_file import ending
from qblock.tables.frames import FRAME, FrameTable, is_spark

Names = Sequence[str] | Mapping[str, Any]
"""Columns by name, or each with its entry as in a spec."""
UNOPENED = {"url": f"duckdb:///{FRAME}", "table": f'"{FRAME}"'}
"""In place of a source that is in memory."""


class TableRequest:
    """A table with what is asked of it. caller: what messages begin with; table: of a database.

    Raises InputError for what is not a table, path or URL.
    """

    def __init__(
        self,
        caller: str,
        data: Any,
        *,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
        databases: bool = True,
    ) -> None:
        self.caller = caller
        self.frame: FrameTable | SparkFrame | None = None
        path = os.fspath(data) if isinstance(data, str | os.PathLike) else None
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        is_url = path is not None and "://" in path
        if table is not None and not is_url:
            raise InputError(f"{caller}: table: it names a table of a database, whose URL comes first; remove it")
        if path is None:
            self.frame = SparkFrame(data, FRAME) if is_spark(data) else FrameTable(data)
            self.source: dict[str, Any] = dict(UNOPENED)
        elif is_url and ending(path or "") is not None:
            raise InputError(f"{caller}: files of a network are not read; copy them to this machine, and name the path")
        elif is_url:
            if not databases:
                raise InputError(
                    f"{caller}: a table of a database is published by a release: write a spec, then `qblock release`"
                )
            if table is None:
                raise InputError(f"{caller}: which table of the database? Name it: table='schema.table'")
            self.source = {"url": path, "table": table}
        else:
            self.source = {"file": path}
        if types:
            if "file" not in self.source:
                raise InputError(f"{caller}: types: they are those of the columns of a CSV file; remove them")
            self.source["types"] = types

    @property
    def library(self) -> Library:
        """That the rows are given back in."""
        return "pandas" if self.frame is None else self.frame.library

    @property
    def spark(self) -> Any:
        """The session that gives them back, where they came from one of Spark."""
        return None if self.frame is None else self.frame.session

    def spec(self, attributes: Mapping[str, Any], privacy: Any, **more: Any) -> Spec:
        """The spec. Raises InputError that names the key."""
        given = {key: value for key, value in more.items() if value is not None}
        document = {
            "version": 1,
            "release": "table",
            "source": self.source,
            "attributes": dict(attributes),
            "privacy": privacy,
            **given,
        }
        return spec_of(document, self.caller)

    def warehouse(self, spec: Spec) -> Warehouse:
        """Where the table is, with the columns of the spec alone where it is copied."""
        return warehouse_of(spec, asks_rights=True) if self.frame is None else copied(self.frame, spec)


def attributes_of(caller: str, roles: Mapping[str, Iterable[tuple[str, Any]]]) -> dict[str, Any]:
    """The attributes of a spec: for each role its columns with their entries. A column has one role."""
    attributes: dict[str, Any] = {}
    for role, columns in roles.items():
        for name, entry in columns:
            if not isinstance(name, str):
                raise InputError(
                    f"{caller}: {name!r} is not the name of a column: names are texts; rename the columns: "
                    "frame.columns = frame.columns.map(str)"
                )
            if name in attributes:
                before = attributes[name]["role"]
                raise InputError(f"{caller}: column {name} is {before} and {role}; a column has one role: name it once")
            attributes[name] = {"role": role, **entry}
    assert roles.keys() <= set(ROLES)
    return attributes


def named(caller: str, key: str, columns: Names) -> list[tuple[str, dict[str, Any]]]:
    """Columns that are listed, or given with their entries."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | Mapping):
        raise InputError(f"{caller}: {key}: write a list of columns: [{columns!r}]")
    if not isinstance(columns, Mapping):
        return [(name, {}) for name in columns]
    for name, entry in columns.items():
        if not isinstance(entry, Mapping):
            raise InputError(f"{caller}: {key}.{name}: write its entry as in a spec: {{'nulls': 'value'}}")
    return [(name, dict(entry)) for name, entry in columns.items()]


def with_hierarchies(caller: str, columns: Names) -> list[tuple[str, dict[str, Any]]]:
    """Quasi-identifiers with a hierarchy each, or with a whole entry, which has the key `hierarchy`."""
    if not isinstance(columns, Mapping):
        raise InputError(
            f"{caller}: quasi_identifiers: write a mapping of columns to hierarchies, "
            "{'age': {'ranges': [5, 10]}, 'sex': 'suppress'}, or a list of columns: ['age', 'sex']"
        )
    return [
        (name, dict(given) if isinstance(given, Mapping) and "hierarchy" in given else {"hierarchy": given})
        for name, given in columns.items()
    ]


def written(columns: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Columns with their entries, in values that JSON has."""
    return {name: _plain(entry) for name, entry in columns}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
