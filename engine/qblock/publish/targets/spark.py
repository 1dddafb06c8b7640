"""Versions as Parquet tables of a Spark server, shown by a view."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from qblock.errors import InputError, Refused
from qblock.ledger.kept import Kept, PublishedColumn
from qblock.ledger.store import Store
from qblock.publish.copy import Copy
from qblock.publish.digest import relation_digest
from qblock.publish.helpers import Shown, check_names, names
from qblock.publish.targets.identity import ON_SPARK, Identity, Mark, mark_text, read_mark, table_text
from qblock.publish.targets.protocol import Record, Rows, retire_each
from qblock.publish.targets.spark_helpers import SparkHelpers, beside
from qblock.publish.targets.spark_versions import SparkChecked, SparkVersions, opened
from qblock.spec import Spec
from qblock.warehouse.engines import parse_url
from qblock.warehouse.protocol import Session, TableName
from qblock.warehouse.rights import Needs
from qblock.warehouse.spark import SparkSession
from qblock.warehouse.spark_catalog import SparkCatalog, within
from qblock.warehouse.spark_client import DEFAULT_PORT, PATH, PATHS

NAME = re.compile(r"[a-z0-9_]+", re.ASCII)
READERS = (
    "open-source Spark has no grants: the operator of the cluster must see to it that readers reach publish.path and "
    "neither private.path nor the source, and that nobody but the job reads the cluster's shuffle and spill files"
)


class SparkTarget:
    """The Target protocol for Spark.

    A version is the table `<release>_v<N>` in a schema of private.path; publishing copies it to `<view>_v<N>_<random>`
    in publish.schema, which is in publish.path, and changes the view, which is one change of the catalog. What helper
    views show is in a table beside each, named `..._shown`; they are changed after the view, one after another.
    """

    def __init__(self, spec: Spec, place: Store) -> None:
        check_spec(spec)
        assert spec.private is not None
        assert spec.publish.path is not None
        self.spec = spec
        self.place = place
        self._url = parse_url(spec.source.url.url)
        self._home = spec.private.path
        self._versions, self._helpers = SparkVersions(spec), SparkHelpers(spec)
        self._private, self._schema, self._view = self._versions.private, spec.publish.schema, spec.view

    @property
    def view(self) -> str:
        return f"{self._schema}.{self._view}"

    @property
    def place_name(self) -> str:
        return f"{self.view}{ON_SPARK}"

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
        with opened(self.spec) as (_, catalog):
            if not catalog.lasts:
                raise InputError(
                    "the catalog of this Spark server is in its memory, and a release there would be gone with it; "
                    "start it with a catalog that lasts: spark.sql.catalogImplementation=hive"
                )
            entries = catalog.entries(self._schema)
            entry = entries.get(self._view)
            if entry is not None and not self._helpers.is_view(entry):
                raise InputError(
                    f"{where}: {self.view} already exists and is not the view of release {self.spec.release}; name "
                    "another, or drop it"
                )
            self._helpers.check(entries)
        return [READERS]

    def needs(self, job: str | None = None, officer: str | None = None) -> Needs:
        """The folders of the release. Raises InputError for a role."""
        for option, role in (("--job", job), ("--officer", officer)):
            if role is not None:
                raise InputError(f"{option} {role}: Spark has no roles; leave it out. {READERS}")
        assert self.spec.private is not None
        home, published = self.spec.private.path, self.spec.publish.path or ""
        paths = f"the job writes in {home} and {published}; readers read {published} alone"
        return Needs("spark", published, None, notes=(READERS, paths))

    def find_exposures(self) -> list[str]:
        # What readers reach is the operator's to see to; the spec says that it was.
        return []

    def stage(self, session: Session, copy: Copy, shown: Shown, version: int, stamp: str, record: Record) -> None:
        source = cast(SparkSession, session)
        catalog, table = SparkCatalog(source.client), self._versions.name(version)
        catalog.make_schema(self._private, self._home)
        catalog.drop(self._private, [table, beside(table)])
        catalog.write(source.frame(copy.query), self._private, table)
        rows = catalog.count(self._private, table)
        if rows != copy.rows:
            raise Refused(f"the copy has {rows} rows, but {copy.rows} were counted: nothing is published")
        self._helpers.stage(source, catalog, shown, self._private, table)
        # Whatever has a mark is whole.
        catalog.mark(self._private, table, mark_text(self.spec.release, version, stamp))
        with self.place.write() as ledger:
            record(ledger, "staged")

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[SparkChecked]:
        with opened(self.spec) as (session, catalog):
            yield SparkChecked(self.spec, self.place, session, catalog, version, columns)

    def marks(self) -> list[Mark]:
        with opened(self.spec) as (_, catalog):
            shown = self._versions.shown(catalog)
            kept = self._versions.marked(catalog)
        seen = [] if shown is None else [Mark(shown[1].version, shown[1].stamp, shown=True)]
        return seen + [Mark(version, stamp) for version, stamp in kept.items()]

    def shows(self) -> bool:
        return any(mark.shown for mark in self.marks())

    def holds(self, version: int) -> bool:
        with opened(self.spec) as (_, catalog):
            return version in self._versions.marked(catalog)

    def is_live(self, version: int) -> bool:
        with opened(self.spec) as (_, catalog):
            return self._versions.has_landed(catalog, version)

    def clear(self, kept: Sequence[int]) -> list[str]:
        with opened(self.spec) as (_, catalog):
            seen = self._seen(catalog)
            left = [entry.name for number, entry in self._versions.own(catalog) if number not in {*kept, *seen}]
            catalog.drop(self._private, left)
            shown = self._versions.shown(catalog)
            if shown is not None:
                # Helper views of copies that go now show the one that readers see first.
                self._finish(catalog, *shown)
            entries = catalog.entries(self._schema).values()
            copies = [
                entry.name for entry in entries if read_mark(entry.comment, self.spec.release) and not entry.is_view
            ]
            stay = () if shown is None else (shown[0], beside(shown[0]))
            old = [name for name in copies if name not in stay]
            catalog.drop(self._schema, old)
        return [*left, *old]

    def _finish(self, catalog: SparkCatalog, table: str, mark: Mark) -> None:
        """What a run that was stopped after it had changed the view did not come to."""
        with self.place.read() as reader:
            text = reader.reference(self.spec.release, mark.version)
        if text is not None:
            self._helpers.finish(catalog, table, Kept.of_text(text).columns)

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        with opened(self.spec) as (session, catalog):
            if not self._versions.has_landed(catalog, version):
                return False
            table = self._versions.table_shown(catalog)
            same = relation_digest(session, table) == relation_digest(session, self._versions.table(version))
            private = self._private, self._versions.name(version)
            return same and self._helpers.intact(catalog, private, table.name, columns)

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        # ALTER VIEW takes other columns.
        return None

    @contextmanager
    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[tuple[Session, str]]:
        with opened(self.spec) as (session, catalog):
            home, table = session.private_schema(), self._versions.name(version)
            texts = {self._view: self._versions.text(catalog, table, self._private)}
            if beside(table) in catalog.entries(self._private):
                texts |= self._helpers.kept_texts(self._private, table)
            for name, text in texts.items():
                catalog.show(home, name, text, "", there=False)
            yield session, home

    @contextmanager
    def published(self) -> Iterator[Rows]:
        with opened(self.spec) as (session, catalog):
            self._versions.table_shown(catalog)
            yield Rows(session, session.relation(TableName(self._schema, self._view)))

    def grant(self) -> list[str]:
        return []

    def close(self, record: Record) -> None:
        # The ledger first: a run that finds the view gone, and no event about it, would publish it again.
        with self.place.write() as ledger:
            record(ledger, "retired_view")
        self.unpublish()

    def unpublish(self) -> None:
        with opened(self.spec) as (_, catalog):
            entries = catalog.entries(self._schema)
            views = [self._view] if self._helpers.is_view(entries.get(self._view)) else []
            catalog.drop(self._schema, [*views, *self._helpers.own(entries)], "VIEW")
            marked = [entry.name for entry in entries.values() if read_mark(entry.comment, self.spec.release)]
            catalog.drop(self._schema, marked)

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        if not versions:
            return []
        with opened(self.spec) as (_, catalog):
            return retire_each(
                self.place,
                versions,
                self._seen(catalog),
                lambda number: catalog.drop(
                    self._private, [self._versions.name(number), beside(self._versions.name(number))]
                ),
            )

    def _seen(self, catalog: SparkCatalog) -> set[int]:
        """The versions that the view and the pointer row name."""
        shown = self._versions.shown(catalog)
        with self.place.read() as reader:
            pointer = reader.pointer(self.spec.release)
        return {version for version in (pointer, None if shown is None else shown[1].version) if version is not None}


def check_spec(spec: Spec) -> None:
    """Raise InputError for a spec that cannot be published on Spark, as far as it tells by itself."""
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
        *((("publish", "names"), name) for name in names(spec.view, publish.names).values()),
    ):
        if not NAME.fullmatch(name):
            raise InputError(
                f"{spec.at(*place_)}: catalogs of Spark know lower-case letters, digits and _ alone; rename it"
            )
    if publish.readers:
        raise InputError(f"{spec.at('publish', 'readers')}: Spark has no roles; remove it ({READERS})")
