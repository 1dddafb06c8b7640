"""Tables of a release on Spark: private versions, the copy that its view shows, and dimension tables."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.from_spec import place_of
from qblock.engines.spark.adapter import quote_name
from qblock.engines.spark.catalog import Entry, SparkCatalog
from qblock.engines.spark.client import quoted
from qblock.engines.spark.session import SparkTables, SparkWarehouse
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.stamps import ObjectTag
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.publish.helpers import column_comments
from qblock.publish.targets.protocol import Record, Rows
from qblock.publish.targets.spark_helpers import BESIDE, SparkHelpers
from qblock.spec import Spec

SAYS = "qblock dimension table {name}"
"""The comment on a view, and on the table that it shows."""


def private_path(spec: Spec) -> str:
    """Where the cluster stores what nobody but the job may read: the store of a spec on Spark asks for it."""
    assert spec.private is not None
    assert spec.private.path is not None
    return spec.private.path


@contextmanager
def opened(spec: Spec) -> Iterator[tuple[SparkTables, SparkCatalog]]:
    """A session on the server of a spec, whose private schema is in private.path, and its catalog."""
    warehouse = SparkWarehouse(place_of(spec))
    warehouse.copy_to(private_path(spec))
    try:
        with warehouse.tables() as session:
            yield session, SparkCatalog(session.client)
    finally:
        warehouse.close()


class SparkVersions:
    """What the catalog says, asked anew each time. private: the schema of private.path."""

    def __init__(self, spec: Spec) -> None:
        self.release, self.schema, self.view = spec.release, spec.publish.schema, spec.view
        self.private = f"qblock_{hashlib.sha256(private_path(spec).rstrip('/').encode()).hexdigest()[:12]}"
        self._mine = re.compile(rf"{re.escape(spec.release)}_v(\d+)({BESIDE})?", re.ASCII)
        self._helpers = SparkHelpers(spec)

    def name(self, version: int) -> str:
        """Of a version's private table."""
        return f"{self.release}_v{version}"

    def table(self, version: int) -> TableName:
        """A version's private table."""
        return TableName(self.private, self.name(version))

    def own(self, catalog: SparkCatalog) -> list[tuple[int, Entry]]:
        """The private tables of the release, whole or half made, with their versions."""
        matches = [(self._mine.fullmatch(entry.name), entry) for entry in catalog.entries(self.private).values()]
        return [(int(match[1]), entry) for match, entry in matches if match is not None]

    def marked(self, catalog: SparkCatalog) -> dict[int, str | None]:
        """The stamps of the versions that are kept whole."""
        tags = [ObjectTag.read(entry.comment, self.release) for _, entry in self.own(catalog)]
        return {tag.version: tag.stamp for tag in tags if tag is not None}

    def shown(self, catalog: SparkCatalog) -> tuple[str, ObjectTag] | None:
        """The table that the view shows, and what it says of itself; None where there is no view, or another one."""
        entries = catalog.entries(self.schema)
        view = entries.get(self.view)
        if not self._helpers.is_view(view):
            return None
        text = catalog.text_of(self.schema, self.view)
        for entry in entries.values():
            tag = ObjectTag.read(entry.comment, self.release)
            if tag is None or entry.name.endswith(BESIDE):
                continue
            if text == self.text(catalog, entry.name, self.schema):
                return entry.name, replace(tag, shown=True)
        return None

    def table_shown(self, catalog: SparkCatalog) -> TableName:
        """What the view shows. Raises Refused where that is no version."""
        shown = self.shown(catalog)
        if shown is None:
            raise Refused(f"{self.schema}.{self.view} does not exist, or shows something else: nothing is published")
        return TableName(self.schema, shown[0])

    def text(self, catalog: SparkCatalog, table: str, schema: str) -> str:
        """What the view says where it shows a table."""
        names = ", ".join(quote_name(name) for name, _ in catalog.columns(schema, table))
        return f"SELECT {names} FROM {quoted(schema, table)}"

    def has_landed(self, catalog: SparkCatalog, version: int) -> bool:
        """Whether the view shows the copy of the private version of that number."""
        shown = self.shown(catalog)
        if shown is None or shown[1].version != version:
            return False
        return self.marked(catalog).get(version, "") == shown[1].stamp


class SparkChecked:
    """A private version, open for reading until it is published."""

    rows: Rows

    def __init__(
        self,
        spec: Spec,
        store: Store,
        session: SparkTables,
        catalog: SparkCatalog,
        version: int,
        columns: Sequence[PublishedColumn],
    ) -> None:
        self._spec, self._place = spec, store
        self._catalog, self._version, self._columns = catalog, version, columns
        rows: sa.FromClause = session.relation(SparkVersions(spec).table(version))
        self.rows = Rows(session, rows)

    def publish(self, record: Record) -> list[str]:
        with self._place.write() as ledger:
            record(ledger, "checked")
        show_version(self._spec, self._catalog, self._version, self._columns)
        with self._place.write() as ledger:
            record(ledger, "published")
        return []


def show_version(spec: Spec, catalog: SparkCatalog, version: int, columns: Sequence[PublishedColumn]) -> None:
    """Copy a private version to where readers reach, and have the view and then its helper views show the copy.

    Raises Refused where there is no such version, or the copy is not what it is.
    """
    assert spec.publish.path is not None
    versions, helpers = SparkVersions(spec), SparkHelpers(spec)
    schema, private, kept = spec.publish.schema, versions.private, versions.table(version)
    stamps = versions.marked(catalog)
    if version not in stamps:
        raise Refused(f"version {version} of release {spec.release} is not kept in private.path: nothing is published")
    # A name that no copy had: a reader's session remembers the files of one that was dropped.
    table = f"{spec.view}_v{version}_{secrets.token_hex(4)}"
    catalog.make_schema(schema, spec.publish.path)
    comment = ObjectTag(spec.release, version, stamps[version]).text
    catalog.write(catalog.rows(private, kept.name), schema, table, comment, column_comments(spec, columns))
    if catalog.differ((private, kept.name), (schema, table)):
        catalog.drop(schema, [table])
        raise Refused("the published copy is not what was checked: nothing is published")
    helpers.copy(catalog, (private, kept.name), table, comment)
    catalog.show(schema, spec.view, versions.text(catalog, table, schema), helpers.comment)
    helpers.finish(catalog, table, columns)


def write_dimensions(spec: Spec, tables: Mapping[str, pa.Table]) -> list[str]:
    """Write dimension tables of texts by name, replacing older ones; returns the names with their schema.

    Each is a view, which shows a new table by one change of the catalog: whoever reads an older one while it is
    replaced, as a spec that names it does, finds one or the other. Raises InputError for a name of something else.
    """
    store_of(spec)
    named = {re.sub("[^a-z0-9_]", "_", name.casefold()): name for name in tables}
    if len(named) < len(tables):
        missing = sorted(set(tables) - set(named.values()))
        raise InputError(
            f"catalogs of Spark know lower-case letters, digits and _ alone, and {missing[0]} has the name of another "
            "one there; rename the attribute"
        )
    versions = SparkVersions(spec)
    with opened(spec) as (session, catalog):
        catalog.make_schema(versions.private, private_path(spec))
        _check(catalog, versions.private, list(named))
        for name, given in named.items():
            says, table, rows = SAYS.format(name=name), f"{name}_{secrets.token_hex(4)}", tables[given]
            if rows.num_rows:
                catalog.write(session.client.createDataFrame(rows), versions.private, table, says)
            else:
                catalog.make_empty(versions.private, table, rows.column_names, says)
            catalog.show(versions.private, name, versions.text(catalog, table, versions.private), says)
            entries = catalog.entries(versions.private).values()
            old = [entry.name for entry in entries if entry.comment == says and entry.name not in (name, table)]
            catalog.drop(versions.private, old)
    return [f"{versions.private}.{name}" for name in named]


def _check(catalog: SparkCatalog, schema: str, names: list[str]) -> None:
    entries = catalog.entries(schema)
    for name in names:
        if name in entries and entries[name].comment != SAYS.format(name=name):
            raise InputError(f"{schema}.{name} already exists and is no dimension table of qblock; rename or drop it")
