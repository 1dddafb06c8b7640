"""Versions as Parquet tables of a Spark server, shown by a view."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import sqlalchemy as sa

from qblock.errors import InputError, Refused
from qblock.ledger.kept import Kept, PublishedColumn
from qblock.ledger.place import Place
from qblock.ledger.reader import ledger_reader
from qblock.ledger.writer import ledger_transaction
from qblock.publish.copy import Copy
from qblock.publish.digest import relation_digest
from qblock.publish.helpers import Shown, check_names
from qblock.publish.targets.identity import Identity, table_text
from qblock.publish.targets.mark import Mark, mark_text, read_mark
from qblock.publish.targets.protocol import Record, Rows, retire_each
from qblock.publish.targets.spark_helpers import BESIDE, SparkHelpers, beside
from qblock.publish.targets.spark_needs import READERS, check_spec, needs
from qblock.spec import Spec
from qblock.warehouse.connect import parse_url
from qblock.warehouse.protocol import Session, TableName
from qblock.warehouse.rights import Needs
from qblock.warehouse.spark import SparkSession, SparkTables, SparkWarehouse
from qblock.warehouse.spark_catalog import Entry, SparkCatalog
from qblock.warehouse.spark_client import quoted
from qblock.warehouse.spark_dialect import quote_name
from qblock.warehouse.spark_urls import DEFAULT_PORT


class SparkTarget:
    """The Target protocol for Spark.

    A version is the table `<release>_v<N>` in a schema of private.path; publishing copies it to `<view>_v<N>_<random>`
    in publish.schema, which is in publish.path, and changes the view, which is one change of the catalog. What helper
    views show is in a table beside each, named `..._shown`; they are changed after the view, one after another.
    """

    def __init__(self, spec: Spec, place: Place) -> None:
        check_spec(spec)
        assert spec.private is not None
        assert spec.publish.path is not None
        self.spec = spec
        self.place = place
        self._url = parse_url(spec.source.url.url)
        self._home, self._published = spec.private.path, spec.publish.path
        self._private = f"qblock_{hashlib.sha256(self._home.rstrip('/').encode()).hexdigest()[:12]}"
        self._schema, self._view = spec.publish.schema, spec.view
        self._mine = re.compile(rf"{re.escape(spec.release)}_v(\d+)({BESIDE})?", re.ASCII)
        self._helpers = SparkHelpers(spec)

    @property
    def view(self) -> str:
        return f"{self._schema}.{self._view}"

    @property
    def place_name(self) -> str:
        return f"{self.view} on Spark"

    def identity(self) -> Identity:
        server = f"spark:{self._url.host}:{self._url.port or DEFAULT_PORT}"
        table = TableName.parse(self.spec.source.table)
        known = TableName((table.schema or "default").casefold(), table.name.casefold())
        text = table_text(known) if table.catalog is None else f"{table.catalog.casefold()}.{table_text(known)}"
        database = hashlib.sha256(server.encode()).hexdigest()
        return Identity(text, database, self.place_name, self.place_name)

    def check(self) -> list[str]:
        where = self.spec.at("publish", "view")
        check_names(self.spec)
        with self._open() as (_, catalog):
            if not catalog.lasts:
                raise InputError(
                    "the catalog of this Spark server is in its memory, and a release there would be gone with it; "
                    "start it with a catalog that lasts: spark.sql.catalogImplementation=hive"
                )
            entries = catalog.entries(self._schema)
            found = entries.get(self._view)
            if found is not None and not self._helpers.is_view(found):
                raise InputError(
                    f"{where}: {self.view} already exists and is not the view of release {self.spec.release}; name "
                    "another, or drop it"
                )
            self._helpers.check(entries)
        return [READERS]

    def needs(self, job: str | None = None, officer: str | None = None) -> Needs:
        return needs(self.spec, job, officer)

    def exposed(self) -> list[str]:
        # What readers reach is the operator's to see to; the spec says that it was.
        return []

    def stage(self, session: Session, copy: Copy, shown: Shown, version: int, stamp: str, record: Record) -> None:
        source = cast(SparkSession, session)
        catalog, table = SparkCatalog(source.client), self._kept(version)
        catalog.make_schema(self._private, self._home)
        catalog.drop(self._private, [table, beside(table)])
        catalog.write(source.frame(copy.query), self._private, table)
        rows = catalog.count(self._private, table)
        if rows != copy.rows:
            raise Refused(f"the copy has {rows} rows, but {copy.rows} were counted: nothing is published")
        self._helpers.stage(source, catalog, shown, self._private, table)
        # Whatever has a mark is whole.
        catalog.mark(self._private, table, mark_text(self.spec.release, version, stamp))
        with ledger_transaction(self.place) as ledger:
            record(ledger, "staged")

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[SparkChecked]:
        with self._open() as (session, catalog):
            yield SparkChecked(self, session, catalog, version, columns)

    def marks(self) -> list[Mark]:
        with self._open() as (_, catalog):
            shown = self._shown(catalog)
            kept = self._marked(catalog)
        seen = [] if shown is None else [Mark(shown[1].version, shown[1].stamp, shown=True)]
        return seen + [Mark(version, stamp) for version, stamp in kept.items()]

    def digest_of(self, mark: Mark) -> str:
        with self._open() as (session, catalog):
            table = self._table_of(catalog) if mark.shown else self._private_table(mark.version)
            return relation_digest(session, table)

    def holds(self, version: int) -> bool:
        with self._open() as (_, catalog):
            return version in self._marked(catalog)

    def landed(self, version: int) -> bool:
        with self._open() as (_, catalog):
            return self._has_landed(catalog, version)

    def clear(self, kept: Sequence[int]) -> list[str]:
        with self._open() as (_, catalog):
            seen = self._seen(catalog)
            left = [entry.name for number, entry in self._own(catalog) if number not in {*kept, *seen}]
            catalog.drop(self._private, left)
            shown = self._shown(catalog)
            if shown is not None:
                # Helper views of copies that go now show the one that readers see first.
                self._finish(catalog, *shown)
            entries = catalog.entries(self._schema).values()
            copies = [one.name for one in entries if read_mark(one.comment, self.spec.release) and not one.is_view]
            stay = () if shown is None else (shown[0], beside(shown[0]))
            old = [name for name in copies if name not in stay]
            catalog.drop(self._schema, old)
        return [*left, *old]

    def _finish(self, catalog: SparkCatalog, table: str, mark: Mark) -> None:
        """What a run that was stopped after it had changed the view did not come to."""
        with ledger_reader(self.place) as reader:
            text = reader.reference(self.spec.release, mark.version)
        if text is not None:
            self._helpers.finish(catalog, table, Kept.of_text(text).columns)

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        with self._open() as (session, catalog):
            if not self._has_landed(catalog, version):
                return False
            table = self._table_of(catalog)
            same = relation_digest(session, table) == relation_digest(session, self._private_table(version))
            private = self._private, self._kept(version)
            return same and self._helpers.intact(catalog, private, table.name, columns)

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        # ALTER VIEW takes other columns.
        return None

    @contextmanager
    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[tuple[Session, str]]:
        with self._open() as (session, catalog):
            home, table = session.private_schema(), self._kept(version)
            texts = {self._view: self._text(catalog, table, self._private)}
            if beside(table) in catalog.entries(self._private):
                texts |= self._helpers.kept_texts(self._private, table)
            for name, text in texts.items():
                catalog.show(home, name, text, "", there=False)
            yield session, home

    @contextmanager
    def published(self) -> Iterator[Rows]:
        with self._open() as (session, catalog):
            self._table_of(catalog)
            yield Rows(session, session.relation(TableName(self._schema, self._view)))

    def grant(self) -> list[str]:
        return []

    def close(self, record: Record) -> None:
        # The ledger first: a run that finds the view gone, and no event about it, would publish it again.
        with ledger_transaction(self.place) as ledger:
            record(ledger, "retired_view")
        self.take_away()

    def take_away(self) -> None:
        with self._open() as (_, catalog):
            found = catalog.entries(self._schema)
            views = [self._view] if self._helpers.is_view(found.get(self._view)) else []
            catalog.drop(self._schema, [*views, *self._helpers.own(found)], "VIEW")
            marked = [one.name for one in found.values() if read_mark(one.comment, self.spec.release)]
            catalog.drop(self._schema, marked)

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        if not versions:
            return []
        with self._open() as (_, catalog):
            return retire_each(
                self.place,
                versions,
                self._seen(catalog),
                lambda one: catalog.drop(self._private, [self._kept(one), beside(self._kept(one))]),
            )

    @contextmanager
    def _open(self) -> Iterator[tuple[SparkTables, SparkCatalog]]:
        warehouse = SparkWarehouse(self._url)
        warehouse.copy_to(self._home)
        try:
            with warehouse.tables() as session:
                yield session, SparkCatalog(session.client)
        finally:
            warehouse.close()

    def _kept(self, version: int) -> str:
        return f"{self.spec.release}_v{version}"

    def _private_table(self, version: int) -> TableName:
        return TableName(self._private, self._kept(version))

    def _own(self, catalog: SparkCatalog) -> list[tuple[int, Entry]]:
        """The private tables of the release, whole or half made, with their versions."""
        found = [(self._mine.fullmatch(entry.name), entry) for entry in catalog.entries(self._private).values()]
        return [(int(match[1]), entry) for match, entry in found if match is not None]

    def _marked(self, catalog: SparkCatalog) -> dict[int, str | None]:
        """The stamps of the versions that are kept whole."""
        read = [read_mark(entry.comment, self.spec.release) for _, entry in self._own(catalog)]
        return dict(mark for mark in read if mark is not None)

    def _shown(self, catalog: SparkCatalog) -> tuple[str, Mark] | None:
        """The table that the view shows, and what it says of itself; None where there is no view, or another one."""
        entries = catalog.entries(self._schema)
        view = entries.get(self._view)
        if not self._helpers.is_view(view):
            return None
        text = catalog.text_of(self._schema, self._view)
        for entry in entries.values():
            mark = read_mark(entry.comment, self.spec.release)
            named = mark is not None and not entry.name.endswith(BESIDE)
            if mark is not None and named and text == self._text(catalog, entry.name, self._schema):
                return entry.name, Mark(*mark)
        return None

    def _table_of(self, catalog: SparkCatalog) -> TableName:
        """What the view shows. Raises Refused where that is no version."""
        shown = self._shown(catalog)
        if shown is None:
            raise Refused(f"{self.view} does not exist, or shows something else: nothing is published")
        return TableName(self._schema, shown[0])

    def _text(self, catalog: SparkCatalog, table: str, schema: str) -> str:
        names = ", ".join(quote_name(name) for name, _ in catalog.columns(schema, table))
        return f"SELECT {names} FROM {quoted(schema, table)}"

    def _has_landed(self, catalog: SparkCatalog, version: int) -> bool:
        shown = self._shown(catalog)
        if shown is None or shown[1].version != version:
            return False
        return self._marked(catalog).get(version, "") == shown[1].stamp

    def _seen(self, catalog: SparkCatalog) -> set[int]:
        """The versions that the view and the pointer row name."""
        shown = self._shown(catalog)
        with ledger_reader(self.place) as reader:
            pointer = reader.pointer(self.spec.release)
        return {version for version in (pointer, None if shown is None else shown[1].version) if version is not None}


class SparkChecked:
    """A private version, open for reading until it is published."""

    rows: Rows

    def __init__(
        self,
        target: SparkTarget,
        session: SparkTables,
        catalog: SparkCatalog,
        version: int,
        columns: Sequence[PublishedColumn],
    ) -> None:
        self._target, self._session, self._catalog, self._version = target, session, catalog, version
        self._columns = columns
        self._table = target._private_table(version)
        rows: sa.FromClause = session.relation(self._table)
        self.rows = Rows(session, rows)

    def publish(self, record: Record) -> list[str]:
        target, catalog = self._target, self._catalog
        stamp = target._marked(catalog)[self._version]
        with ledger_transaction(target.place) as ledger:
            record(ledger, "checked")
        # A name that no copy had: a reader's session remembers the files of one that was dropped.
        schema, table = target._schema, f"{target._view}_v{self._version}_{secrets.token_hex(4)}"
        catalog.make_schema(schema, target._published)
        mark, helpers, private = mark_text(target.spec.release, self._version, stamp), target._helpers, target._private
        said = helpers.comments(self._columns)
        catalog.write(catalog.rows(private, self._table.name), schema, table, mark, said)
        if relation_digest(self._session, TableName(schema, table)) != relation_digest(self._session, self._table):
            catalog.drop(schema, [table])
            raise Refused("the published copy is not what was checked: nothing is published")
        staged = beside(self._table.name) in catalog.entries(private)
        helpers.copy(catalog, (private, self._table.name), table, mark, staged=staged)
        catalog.show(schema, target._view, target._text(catalog, table, schema), helpers.comment)
        helpers.finish(catalog, table, self._columns)
        with ledger_transaction(target.place) as ledger:
            record(ledger, "published")
        return []
