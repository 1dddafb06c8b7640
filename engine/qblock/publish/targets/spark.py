"""Versions as Parquet tables of a Spark server, shown by a view."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn, cast

import sqlalchemy as sa

from qblock.errors import InputError, Refused
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.place import Place
from qblock.ledger.reader import ledger_reader
from qblock.ledger.writer import ledger_transaction
from qblock.publish.copy import Copy
from qblock.publish.digest import relation_digest
from qblock.publish.helpers import Shown, check_names
from qblock.publish.targets.identity import Identity, table_text
from qblock.publish.targets.mark import Mark, mark_text, read_mark
from qblock.publish.targets.protocol import STAYS, Record, Rows
from qblock.spec import Spec
from qblock.warehouse.connect import parse_url
from qblock.warehouse.protocol import Session, TableName
from qblock.warehouse.rights import Needs
from qblock.warehouse.spark import PATH, PATHS, SparkSession, SparkTables, SparkWarehouse, quoted
from qblock.warehouse.spark_catalog import Entry, SparkCatalog, within
from qblock.warehouse.spark_dialect import quote_name
from qblock.warehouse.spark_urls import DEFAULT_PORT

NAME = re.compile(r"[a-z0-9_]+", re.ASCII)
READERS = (
    "open-source Spark has no grants: the operator of the cluster must see to it that readers reach publish.path and "
    "neither private.path nor the source, and that nobody but the job reads the cluster's shuffle and spill files"
)


def spark_target(spec: Spec, place: Place) -> SparkTarget:
    """The target of a spec. Raises InputError for one that cannot be used, as far as the spec tells."""
    publish, private = spec.publish, spec.private
    assert private is not None  # the ledger's place asks for it
    if publish.url is not None:
        raise InputError(f"{spec.at('publish', 'url')}: a release from Spark is published there; remove it")
    if publish.path is None or publish.readers_checked is None:
        raise InputError(
            f"{spec.at('publish')}: {READERS}. Say where the published tables are stored, and that this was seen to: "
            'publish: {path: /where/readers/may/read, readers_checked: "by operator"}'
        )
    for key, path in (("publish.path", publish.path), ("private.path", private.path)):
        if not PATH.fullmatch(path):
            raise InputError(f"{key}: a folder of the cluster {PATHS}")
    if within(publish.path, private.path) or within(private.path, publish.path):
        raise InputError(
            f"{spec.at('publish', 'path')}: published and private tables must not be in one folder, nor one in the "
            "other: whoever reads files there reads both"
        )
    for place_, name in (
        (("publish", "schema"), publish.schema),
        (("publish", "view"), spec.view),
        (("release",), spec.release),
    ):
        if not NAME.fullmatch(name):
            raise InputError(
                f"{spec.at(*place_)}: catalogs of Spark know lower-case letters, digits and _ alone; rename it"
            )
    if publish.readers:
        raise InputError(f"{spec.at('publish', 'readers')}: Spark has no roles; remove it ({READERS})")
    if spec.checked_together:
        raise InputError(
            f"{spec.at('versions')}: versions from Spark are not checked together yet; leave out `entity`, so that "
            "only the same data is published again, or write `versions: {joint: none}`"
        )
    return SparkTarget(spec, place)


class SparkTarget:
    """The Target protocol for Spark.

    A version is the table `<release>_v<N>` in a schema of private.path; publishing copies it to `<view>_v<N>_<stamp>`
    in publish.schema, which is in publish.path, and changes the view, which is one change of the catalog.
    """

    def __init__(self, spec: Spec, place: Place) -> None:
        assert spec.private is not None
        assert spec.publish.path is not None
        self.spec = spec
        self.place = place
        self._url = parse_url(spec.source.url.url)
        self._home, self._published = spec.private.path, spec.publish.path
        self._private = f"qblock_{hashlib.sha256(self._home.rstrip('/').encode()).hexdigest()[:12]}"
        self._schema, self._view = spec.publish.schema, spec.view
        self._mine = re.compile(rf"{re.escape(spec.release)}_v(\d+)", re.ASCII)

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
            found = catalog.entries(self._schema).get(self._view)
            if found is not None and (not found.is_view or found.comment != self._mark):
                raise InputError(
                    f"{where}: {self.view} already exists and is not the view of release {self.spec.release}; name "
                    "another, or drop it"
                )
        return [READERS, "helper views are not made on Spark yet"]

    @property
    def _mark(self) -> str:
        return f"qblock release {self.spec.release}"

    def needs(self, job: str | None = None, officer: str | None = None) -> Needs:
        for option, role in (("--job", job), ("--officer", officer)):
            if role is not None:
                raise InputError(f"{option} {role}: Spark has no roles; leave it out. {READERS}")
        paths = f"the job writes in {self._home} and {self._published}; readers read {self._published} alone"
        return Needs("spark", self._published, None, notes=(READERS, paths))

    def exposed(self) -> list[str]:
        # What readers reach is the operator's to see to; the spec says that it was.
        return []

    def stage(self, session: Session, copy: Copy, shown: Shown, version: int, stamp: str, record: Record) -> None:
        source = cast(SparkSession, session)
        catalog, table = SparkCatalog(source.client), self._kept(version)
        catalog.make_schema(self._private, self._home)
        catalog.drop(self._private, [table])
        catalog.write(source.frame(copy.query), self._private, table)
        rows = catalog.count(self._private, table)
        if rows != copy.rows:
            raise Refused(f"the copy has {rows} rows, but {copy.rows} were counted: nothing is published")
        catalog.mark(self._private, table, mark_text(self.spec.release, version, stamp))
        with ledger_transaction(self.place) as ledger:
            record(ledger, "staged")

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[SparkChecked]:
        with self._open() as (session, catalog):
            yield SparkChecked(self, session, catalog, version)

    def marks(self) -> list[Mark]:
        with self._open() as (_, catalog):
            shown = self._shown(catalog)
            kept = [read_mark(entry.comment, self.spec.release) for entry in self._versions(catalog).values()]
        seen = [] if shown is None else [Mark(shown[1].version, shown[1].stamp, shown=True)]
        return seen + [Mark(*mark) for mark in kept if mark is not None]

    def digest_of(self, mark: Mark) -> str:
        with self._open() as (session, catalog):
            if mark.shown:
                return self._digest(session, *self._table_of(catalog))
            return self._digest(session, self._private, self._kept(mark.version))

    def holds(self, version: int) -> bool:
        with self._open() as (_, catalog):
            return version in self._marked(catalog)

    def landed(self, version: int) -> bool:
        with self._open() as (_, catalog):
            return self._has_landed(catalog, version)

    def clear(self, kept: Sequence[int]) -> list[str]:
        with self._open() as (_, catalog):
            seen = self._seen(catalog)
            left = [name for name, number in self._own(catalog).items() if number not in {*kept, *seen}]
            catalog.drop(self._private, left)
            shown = self._shown(catalog)
            entries = catalog.entries(self._schema).values()
            copies = [one.name for one in entries if read_mark(one.comment, self.spec.release) and not one.is_view]
            old = [name for name in copies if shown is None or name != shown[0]]
            catalog.drop(self._schema, old)
        return [*left, *old]

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        with self._open() as (session, catalog):
            if not self._has_landed(catalog, version):
                return False
            published = self._digest(session, *self._table_of(catalog))
            return published == self._digest(session, self._private, self._kept(version))

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        # ALTER VIEW takes other columns.
        return None

    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> NoReturn:
        raise InputError("reports about older versions are not made on Spark yet; leave out --version")

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
            if self._view in found and found[self._view].comment == self._mark:
                catalog.drop(self._schema, [self._view], "VIEW")
            marked = [one.name for one in found.values() if read_mark(one.comment, self.spec.release)]
            catalog.drop(self._schema, marked)

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        if not versions:
            return []
        with self._open() as (_, catalog):
            seen = self._seen(catalog)
            for version, record in versions.items():
                if version not in seen:
                    catalog.drop(self._private, [self._kept(version)])
                    with ledger_transaction(self.place) as ledger:
                        record(ledger, "retired")
        return [STAYS.format(version) for version in versions if version in seen]

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

    def _own(self, catalog: SparkCatalog) -> dict[str, int]:
        """The private tables of the release, whole or half made, with their versions."""
        found = {name: self._mine.fullmatch(name) for name in catalog.entries(self._private)}
        return {name: int(match[1]) for name, match in found.items() if match is not None}

    def _versions(self, catalog: SparkCatalog) -> dict[int, Entry]:
        entries, own = catalog.entries(self._private), self._own(catalog)
        return {number: entries[name] for name, number in own.items()}

    def _marked(self, catalog: SparkCatalog) -> dict[int, str | None]:
        """The stamps of the versions that are kept whole."""
        read = [read_mark(entry.comment, self.spec.release) for entry in self._versions(catalog).values()]
        return dict(mark for mark in read if mark is not None)

    def _shown(self, catalog: SparkCatalog) -> tuple[str, Mark] | None:
        """The table that the view shows, and what it says of itself; None where there is no view, or another one."""
        entries = catalog.entries(self._schema)
        view = entries.get(self._view)
        if view is None or not view.is_view or view.comment != self._mark:
            return None
        text = catalog.text_of(self._schema, self._view)
        for entry in entries.values():
            mark = read_mark(entry.comment, self.spec.release)
            if mark is not None and text == self._text(catalog, entry.name):
                return entry.name, Mark(*mark)
        return None

    def _table_of(self, catalog: SparkCatalog) -> tuple[str, str]:
        shown = self._shown(catalog)
        if shown is None:
            raise Refused(f"{self.view} does not exist, or shows something else: nothing is published")
        return self._schema, shown[0]

    def _text(self, catalog: SparkCatalog, table: str) -> str:
        names = ", ".join(quote_name(name) for name, _ in catalog.columns(self._schema, table))
        return f"SELECT {names} FROM {quoted(self._schema, table)}"

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

    def _digest(self, session: SparkTables, schema: str, table: str) -> str:
        return relation_digest(session, TableName(schema, table))


class SparkChecked:
    """A private version, open for reading until it is published."""

    rows: Rows

    def __init__(self, target: SparkTarget, session: SparkTables, catalog: SparkCatalog, version: int) -> None:
        self._target, self._session, self._catalog, self._version = target, session, catalog, version
        self._table = TableName(target._private, target._kept(version))
        rows: sa.FromClause = session.relation(self._table)
        self.rows = Rows(session, rows)

    def publish(self, record: Record) -> list[str]:
        target, catalog = self._target, self._catalog
        stamp = target._marked(catalog)[self._version]
        with ledger_transaction(target.place) as ledger:
            record(ledger, "checked")
        schema, table = target._schema, f"{target._view}_v{self._version}_{(stamp or '')[:8]}"
        catalog.make_schema(schema, target._published)
        catalog.drop(schema, [table])
        mark = mark_text(target.spec.release, self._version, stamp)
        catalog.write(catalog.rows(target._private, self._table.name), schema, table, mark)
        if target._digest(self._session, schema, table) != relation_digest(self._session, self._table):
            raise Refused("the published copy is not what was checked: nothing is published")
        catalog.show(schema, target._view, target._text(catalog, table), target._mark)
        with ledger_transaction(target.place) as ledger:
            record(ledger, "published")
        return []
