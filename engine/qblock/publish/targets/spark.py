"""Versions as Parquet tables of a Spark server, shown by a view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import sqlalchemy as sa

from qblock.engines.from_spec import is_elsewhere
from qblock.engines.rights import Needs
from qblock.engines.session import Session
from qblock.engines.spark.catalog import SparkCatalog, within
from qblock.engines.spark.client import PATH, PATHS, Frame
from qblock.engines.spark.copied import send_rows
from qblock.engines.spark.session import SparkSession
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused
from qblock.ledger.events import RecordedEvent
from qblock.ledger.kept import Kept, PublishedColumn
from qblock.ledger.stamps import ObjectTag
from qblock.ledger.store import Store
from qblock.publish.copy import Copy
from qblock.publish.helpers import Shown, check_names, names
from qblock.publish.targets.protocol import ON_SPARK, Identity, Record, Rows, copied_source, named_view, retire_each
from qblock.publish.targets.spark_helpers import SparkHelpers, beside
from qblock.publish.targets.spark_versions import SparkChecked, SparkVersions, opened, private_path, show_version
from qblock.spec import Spec

NAME = re.compile(r"[a-z0-9_]+", re.ASCII)
READERS = (
    "open-source Spark has no grants: the operator of the cluster must see to it that readers reach publish.path, and "
    "neither private.path nor the source. Nobody but the job may read the cluster's shuffle and spill files"
)


class SparkTarget:
    """The Target protocol for Spark.

    A version is the table `<release>_v<N>` in a schema of private.path; publishing copies it to `<view>_v<N>_<random>`
    in publish.schema, which is in publish.path, and changes the view, which is one change of the catalog. What helper
    views show is in a table beside each, named `..._shown`; they are changed after the view, one after another.
    """

    def __init__(self, spec: Spec, store: Store) -> None:
        check_spec(spec)
        assert spec.publish.path is not None
        self.spec = spec
        self.store = store
        self._home = private_path(spec)
        self._versions, self._helpers = SparkVersions(spec), SparkHelpers(spec)
        self._private, self._schema, self._view = self._versions.private, spec.publish.schema, spec.view

    @property
    def view(self) -> str:
        return f"{self._schema}.{self._view}"

    @property
    def place_name(self) -> str:
        return f"{self.view}{ON_SPARK}"

    def identity(self) -> Identity:
        return Identity(*copied_source(self.spec), self.place_name)

    def check(self) -> list[str]:
        where = self.spec.at("publish", "view")
        check_names(self.spec)
        with opened(self.spec) as (_, catalog):
            if not catalog.lasts:
                raise InputError(
                    "the catalog of this Spark server is in its memory, and a release there would be gone with it. "
                    "Start it with a catalog that lasts: spark.sql.catalogImplementation=hive"
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
        home, published = private_path(self.spec), self.spec.publish.path or ""
        paths = f"the job writes in {home} and {published}; readers read {published} alone"
        return Needs("spark", published, None, notes=(READERS, paths))

    def find_exposures(self) -> list[str]:
        # What readers reach is the operator's to see to; the spec says that it was.
        return []

    def stage(self, session: Session, copy: Copy, shown: Shown, tag: ObjectTag, record: Record) -> None:
        if isinstance(session, SparkSession):
            self._stage(session, session.frame(copy.query), copy, shown, tag)
        else:
            with opened(self.spec) as (own, _):
                columns = {column.name: column.type for column in copy.columns}
                self._stage(own, send_rows(session, copy.query, own, columns), copy, shown, tag)
        with self.store.write() as ledger:
            record(ledger, "staged")

    def _stage(self, session: SparkSession, rows: Frame, copy: Copy, shown: Shown, tag: ObjectTag) -> None:
        catalog, table = SparkCatalog(session.client), self._versions.name(tag.version)
        catalog.make_schema(self._private, self._home)
        catalog.drop(self._private, [table, beside(table)])
        catalog.write(rows, self._private, table)
        there = catalog.count(self._private, table)
        if there != copy.rows:
            raise Refused(f"the copy has {there} rows, but {copy.rows} were counted: nothing is published")
        self._helpers.stage(session, catalog, shown, self._private, table)
        # Whatever has a tag is whole.
        catalog.mark(self._private, table, tag.text)

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[SparkChecked]:
        with opened(self.spec) as (session, catalog):
            yield SparkChecked(self.spec, self.store, session, catalog, version, columns)

    def tags(self) -> list[ObjectTag]:
        with opened(self.spec) as (_, catalog):
            shown = self._versions.shown(catalog)
            kept = self._versions.marked(catalog)
        seen = [] if shown is None else [shown[1]]
        return seen + [ObjectTag(self.spec.release, version, stamp) for version, stamp in kept.items()]

    def shows(self) -> bool:
        return any(tag.shown for tag in self.tags())

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
            copies = [e.name for e in entries if ObjectTag.read(e.comment, self.spec.release) and not e.is_view]
            stay = () if shown is None else (shown[0], beside(shown[0]))
            old = [name for name in copies if name not in stay]
            catalog.drop(self._schema, old)
        return [*left, *old]

    def _finish(self, catalog: SparkCatalog, table: str, tag: ObjectTag) -> None:
        """What a run that was stopped after it had changed the view did not come to."""
        with self.store.read() as reader:
            text = reader.reference(self.spec.release, tag.version)
        if text is not None:
            self._helpers.finish(catalog, table, Kept.of_text(text).columns)

    def difference(self, version: int, columns: Sequence[PublishedColumn], digest: str | None) -> str:
        return f"{self.view} is not as version {version} was published"

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        with opened(self.spec) as (_, catalog):
            if not self._versions.has_landed(catalog, version):
                return False
            table = self._versions.table_shown(catalog)
            private = self._private, self._versions.name(version)
            if catalog.differ(private, (self._schema, table.name)):
                return False
            return self._helpers.intact(catalog, private, table.name, columns)

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        # ALTER VIEW takes other columns.
        return None

    @contextmanager
    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[tuple[Session, str]]:
        with opened(self.spec) as (session, catalog):
            home, table = session.private_schema(), self._versions.name(version)
            texts = {self._view: self._versions.text(catalog, table, self._private)}
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
        with self.store.write() as ledger:
            record(ledger, "retired_view")
        self.unpublish()

    def unpublish(self) -> None:
        with opened(self.spec) as (_, catalog):
            entries = catalog.entries(self._schema)
            views = [self._view] if self._helpers.is_view(entries.get(self._view)) else []
            catalog.drop(self._schema, [*views, *self._helpers.own(entries)], "VIEW")
            release = self.spec.release
            catalog.drop(self._schema, [e.name for e in entries.values() if ObjectTag.read(e.comment, release)])

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        if not versions:
            return []
        with opened(self.spec) as (_, catalog):
            return retire_each(
                self.store,
                versions,
                self._seen(catalog),
                lambda number: catalog.drop(
                    self._private, [self._versions.name(number), beside(self._versions.name(number))]
                ),
            )

    def move(self, connection: sa.Connection, earlier: str, last: RecordedEvent) -> list[str]:
        return []

    def finish_move(
        self, earlier: str, before: str, kept: Mapping[int, Sequence[PublishedColumn]], current: int | None
    ) -> None:
        spec, view = self.spec, named_view(before)
        schema = view.schema or spec.publish.schema
        old = replace(spec, release=earlier, publish=replace(spec.publish, schema=schema, view=view.name))
        with opened(spec) as (_, catalog):
            if earlier != spec.release:
                for version in kept:
                    self._move_version(catalog, SparkVersions(old), version)
            if current is not None:
                self._move_view(catalog, current, kept[current])
            self._unpublish_old(catalog, old)

    def _move_version(self, catalog: SparkCatalog, old: SparkVersions, version: int) -> None:
        """The private tables of a version under the names of the spec: copies, which are whole once they have a tag."""
        versions = self._versions
        schema, before, table = versions.private, old.name(version), versions.name(version)
        stamps = old.marked(catalog)
        if version in versions.marked(catalog) or version not in stamps:
            return
        catalog.drop(schema, [table, beside(table)])
        catalog.write(catalog.rows(schema, before), schema, table)
        if catalog.differ((schema, before), (schema, table)):
            raise Refused(f"the copy of version {version} has changed since it was made: run it again")
        catalog.write(catalog.rows(schema, beside(before)), schema, beside(table))
        if catalog.differ((schema, beside(before)), (schema, beside(table))):
            raise Refused(f"what helper views show of version {version} was not copied as it was: run it again")
        catalog.mark(schema, table, ObjectTag(self.spec.release, version, stamps[version]).text)

    def _move_view(self, catalog: SparkCatalog, version: int, columns: Sequence[PublishedColumn]) -> None:
        """Have the view of the spec and its helper views show the version, which readers see under the old names so
        far."""
        if self._versions.has_landed(catalog, version):
            self._helpers.finish(catalog, self._versions.table_shown(catalog).name, columns)
        else:
            show_version(self.spec, catalog, version, columns)

    def _unpublish_old(self, catalog: SparkCatalog, old: Spec) -> None:
        """Drop what readers had until now, and the private tables under the earlier name."""
        schema, helpers = old.publish.schema, SparkHelpers(old)
        entries = catalog.entries(schema)
        if (schema, old.view) != (self._schema, self._view):
            views = [old.view] if helpers.is_view(entries.get(old.view)) else []
            catalog.drop(schema, [*views, *helpers.own(entries)], "VIEW")
        shown = self._versions.shown(catalog)
        stay = () if shown is None or schema != self._schema else (shown[0], beside(shown[0]))
        copies = [e.name for e in entries.values() if ObjectTag.read(e.comment, old.release) and not e.is_view]
        catalog.drop(schema, [name for name in copies if name not in stay])
        if old.release != self.spec.release:
            catalog.drop(self._private, [entry.name for _, entry in SparkVersions(old).own(catalog)])

    def _seen(self, catalog: SparkCatalog) -> set[int]:
        """The versions that the view and the pointer row name."""
        shown = self._versions.shown(catalog)
        with self.store.read() as reader:
            pointer = reader.pointer(self.spec.release)
        return {version for version in (pointer, None if shown is None else shown[1].version) if version is not None}


def check_spec(spec: Spec) -> None:
    """Raise InputError for a spec that cannot be published on Spark, as far as it tells by itself."""
    publish, private = spec.publish, private_path(spec)
    if publish.url is not None and not is_elsewhere(spec):
        raise InputError(
            f"{spec.at('publish', 'url')}: the source is on this server, where its release is published; remove it"
        )
    if publish.path is None or publish.readers_checked is None:
        raise InputError(
            f"{spec.at('publish')}: {READERS}. Say where the published tables are stored, and that this was seen to: "
            'publish: {path: /where/readers/may/read, readers_checked: "by operator"}'
        )
    for key, path in (("publish.path", publish.path), ("private.path", private)):
        if not PATH.fullmatch(path):
            raise InputError(f"{key}: a folder of the cluster {PATHS}")
    if within(publish.path, private) or within(private, publish.path):
        raise InputError(
            f"{spec.at('publish', 'path')}: published and private tables must not be in one folder, nor one in the "
            "other: people who read files there read both"
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
