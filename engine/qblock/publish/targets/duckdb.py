"""A release as a DuckDB file that holds nothing else: built privately, checked beside its place, renamed into it."""

from __future__ import annotations

import filecmp
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.dialect import Catalogs, check_database, logs_of
from qblock.engines.duckdb.faults import explain_duckdb, of_newer_duckdb
from qblock.engines.quoting import quote, quote_plain, quote_text
from qblock.engines.rights import FileNeed, Needs
from qblock.engines.session import Session
from qblock.engines.source_files import found_files
from qblock.engines.sql_session import SqlSession, sql_of
from qblock.engines.tables import TableName
from qblock.errors import Busy, InputError, QblockError, Refused
from qblock.ledger.events import RecordedEvent
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.stamps import TAGGED, ObjectTag
from qblock.ledger.store import FOLDER, Store, make_private
from qblock.publish.copy import Copy
from qblock.publish.digest import content_digest
from qblock.publish.helpers import Shown, check_names, reserved_schema
from qblock.publish.targets.duckdb_files import (
    comments_on_helpers,
    copy_file,
    copy_tables,
    finish,
    kept_tags,
    reading,
    remove,
    remove_logs,
    said,
    same_file,
    shown_tags,
    store_helpers,
    sync,
    tags_of,
    umask,
)
from qblock.publish.targets.protocol import Identity, Record, Rows, copied_source, retire_each, table_text
from qblock.spec import Spec

MAIN = "main"
ALIAS = "qblock_target"
VERSIONS = "versions"
RESERVED = re.compile(r"temp|system|memory|pg_catalog|information_schema|v[0-9]+", re.IGNORECASE)
"""Schemas that are views of the catalog, and names of databases: the session's own, and the file of a version."""
WHOLE = "people who can read a DuckDB file read everything in it. DuckDB has no GRANT: the file system decides"
PUBLISH_AGAIN = "what readers see is checked apart; publish again for a whole copy: qblock release SPEC --force"
OFFICER = (
    "an officer reads the ledger as the user that the job runs as, or is given the output of `qblock history SPEC`. "
    "The private folder is closed to everybody else, since the crosswalk is there, too"
)


class DuckdbTarget:
    """The Target protocol for DuckDB.

    A version is `versions/<release>/v<N>.duckdb` in the private folder; publishing copies it beside the target and
    renames it, so that a reader has the file before or the file after.
    """

    def __init__(self, spec: Spec, store: Store, source: Path | None, file: Path) -> None:
        self.spec = spec
        self.store = store
        self.source = source
        self.file = file
        self.folder = store.folder / VERSIONS / spec.release
        self.catalogs = Catalogs()

    @property
    def view(self) -> str:
        return f"{quote_plain(self.spec.publish.schema)}.{quote_plain(self.spec.view)} in {self.file}"

    @property
    def storage(self) -> str:
        """The oldest version of DuckDB that can read what is published."""
        return self.spec.publish.storage_version or duckdb_session.STORAGE

    @property
    def place_name(self) -> str:
        return (
            f"{quote_plain(self.spec.publish.schema)}.{quote_plain(self.spec.view)} in {self.store.within(self.file)}"
        )

    def identity(self) -> Identity:
        if self.source is None:
            return Identity(*copied_source(self.spec), self.place_name, self.spec.publish.readers)
        database = hashlib.sha256(f"duckdb:{self.store.within(self.source)}".encode()).hexdigest()
        table = TableName.parse(self.spec.source.table)
        # Names of DuckDB differ by more than their case, quoted or not.
        known = TableName((table.schema or MAIN).casefold(), table.name.casefold())
        return Identity(table_text(known), database, self.place_name, self.spec.publish.readers)

    def check(self) -> list[str]:
        where = self.spec.at("publish", "url")
        if self.source is not None and same_file(self.file, self.source):
            raise InputError(
                f"{where}: the target is the source's file {self.source}, and readers of a DuckDB file read all of it. "
                "Give the release a file of its own"
            )
        if FOLDER in (part.name for part in (self.file.parent, *self.file.parent.parents)) and self.file.is_relative_to(
            self.store.folder
        ):
            raise InputError(f"{where}: {self.file} is in qblock's private folder; publish somewhere else")
        if not self.file.parent.is_dir():
            raise InputError(
                f"{where}: {self.file} is in a folder that does not exist; name a file in a folder that exists"
            )
        check_names(self.spec)
        reserved_schema(self.spec, "DuckDB", RESERVED)
        schema = self.spec.publish.schema
        if self.file.stem.casefold() == schema.casefold():
            # Readers would have to write published.published.people.
            raise InputError(
                f"{where}: the file {self.file.name} has the name of the schema {schema} in it, so DuckDB takes "
                f"{schema}.{self.spec.view} for ambiguous. Give the file another name: publish: {{url: "
                "'duckdb:///release.duckdb'}"
            )
        if not duckdb_session.knows_storage(self.storage):
            raise InputError(
                f"{self.spec.at('publish', 'storage_version')}: DuckDB {duckdb.__version__} cannot write for "
                f"{self.storage}; name a version that it knows: {duckdb_session.STORAGE}"
            )
        check_database(self.file, "name another file", InputError, where)
        if not os.access(self.file.parent, os.W_OK):
            raise InputError(f"{where}: the job has no permission to write in {self.file.parent}")
        if self.file.exists():
            self._check_replaceable(where)
        if not self.spec.publish.readers:
            return []
        return ["DuckDB has no roles: `readers` has no effect here. People who can read the file read the release"]

    def _check_replaceable(self, where: str) -> None:
        try:
            tags = [comment for _, comment in said(self.catalogs, self.file) if comment.startswith(TAGGED)]
        except duckdb.Error as error:
            raised = explain_duckdb(error, file=self.file)
            if isinstance(raised, Busy) or of_newer_duckdb(error):
                raise raised from None
            tags = []
        if [comment.rsplit(" version ", 1)[0] for comment in tags] != [f"{TAGGED}{self.spec.release}"]:
            raise InputError(
                f"{where}: {self.file} already exists and is not a version of release {self.spec.release}; it would "
                "be replaced: name another file, or move it away"
            )

    def needs(self, job: str | None = None, officer: str | None = None) -> Needs:
        """The files and folders of the release. Raises InputError for a role, and for a source that names no file."""
        for option, role in (("--job", job), ("--officer", officer)):
            if role is not None:
                raise InputError(f"{option} {role}: DuckDB has no roles; leave it out. {OFFICER}")
        files = tuple(_files(self.spec, self.store, self.source, self.file))
        return Needs("duckdb", str(self.file.parent), None, files=files, notes=(WHOLE, OFFICER))

    def find_exposures(self) -> list[str]:
        # The file holds what is published and nothing else; the file system decides who may open it.
        return []

    def stage(self, session: Session, copy: Copy, shown: Shown, tag: ObjectTag, record: Record) -> None:
        session = sql_of(session)
        path = self.version_file(tag.version)
        for folder in (self.store.folder, self.folder.parent, self.folder):
            make_private(folder)
        remove(path)
        schema = quoted_name(f"{ALIAS}.{quote(self.spec.publish.schema)}", quote=False)
        name = f"{self.spec.view}_v{tag.version}"
        session.run(f"ATTACH {quote_text(str(path))} AS {ALIAS} (STORAGE_VERSION {quote_text(self.storage)})")
        session.run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        session.run(sa.CreateTableAs(copy.ordered, quoted_name(name, quote=True), schema=schema))
        store_helpers(session, self.spec, schema, shown)
        rows = session.scalar(f"SELECT count(*) FROM {schema}.{quote(name)}")
        session.connection.commit()
        session.run(f"CHECKPOINT {ALIAS}")
        session.connection.commit()
        session.run(f"DETACH {ALIAS}")
        session.connection.commit()
        if rows != copy.rows:
            raise Refused(f"the copy has {rows} rows, but {copy.rows} were counted: nothing is published")
        self._add_view(path, name, copy.columns, tag)
        path.chmod(0o600)
        sync(path)
        with self.store.write() as ledger:
            record(ledger, "staged")

    def _add_view(self, path: Path, table: str, columns: Sequence[PublishedColumn], tag: ObjectTag) -> None:
        """Make the views of a file that holds a version, with these columns of the table, and tag it."""
        schema = quote(self.spec.publish.schema)
        view = f"{schema}.{quote(self.spec.view)}"
        names = ", ".join(quote(column.name) for column in columns)
        # In a session of its own: a view keeps the name under which its database was attached.
        with duckdb_session.connect(path) as connection:
            connection.execute(f"CREATE VIEW {view} AS SELECT {names} FROM {schema}.{quote(table)}")
            connection.execute(f"COMMENT ON TABLE {schema}.{quote(table)} IS {quote_text(tag.text)}")
            finish(connection, self.spec, table, columns)
            connection.execute("CHECKPOINT")

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[DuckdbChecked]:
        beside = self.file.with_name(f".{self.file.name}.qblock-v{version}")
        try:
            remove(beside)
            copy_file(self.version_file(version), beside)
            checked = DuckdbChecked(self, beside)
            with checked.opened():
                yield checked
        finally:
            remove(beside)

    def tags(self) -> list[ObjectTag]:
        return shown_tags(self.catalogs, self.file, self.spec.release) + kept_tags(
            self.catalogs, self.folder, self.spec.release
        )

    def shows(self) -> bool:
        return any(tag.shown for tag in self.tags())

    def holds(self, version: int) -> bool:
        path, schema = self.version_file(version), self.spec.publish.schema
        if not path.is_file():
            return False
        try:
            comments = dict(said(self.catalogs, path))
        except duckdb.Error as error:
            if of_newer_duckdb(error):
                raise explain_duckdb(error, file=path) from error
            return False
        own = {TableName(schema, f"{self.spec.view}_v{version}"), TableName(schema, self.spec.view)}
        helpers = set(comments_on_helpers(self.spec.view))
        return own <= set(comments) and all(comment in helpers for name, comment in comments.items() if name not in own)

    def is_live(self, version: int) -> bool:
        path = self.version_file(version)
        return path.exists() and self.file.exists() and filecmp.cmp(path, self.file, shallow=False)

    def clear(self, kept: Sequence[int]) -> list[str]:
        removed = []
        names = {self.version_file(version).name for version in (*kept, *self._seen())}
        for path in sorted(self.folder.glob("v*")) if self.folder.is_dir() else []:
            # A version that is kept is complete: what is beside it belongs to no run.
            if path.name not in names:
                path.unlink()
                removed.append(path.name)
        if self.file.parent.is_dir():
            for path in sorted(self.file.parent.iterdir()):
                if path.name.startswith(f".{self.file.name}.qblock-v"):
                    path.unlink()
                    removed.append(path.name)
        return removed

    def _seen(self) -> set[int]:
        """The versions that the release file and the pointer row name."""
        versions = {tag.version for tag in shown_tags(self.catalogs, self.file, self.spec.release)}
        with self.store.read() as reader:
            pointer = reader.pointer(self.spec.release)
        return versions if pointer is None else versions | {pointer}

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        return self.is_live(version) and not any(log.exists() for log in logs_of(self.file))

    def difference(self, version: int, columns: Sequence[PublishedColumn], digest: str | None) -> str:
        copy = self.version_file(version)
        logs = [log for log in logs_of(self.file) if log.exists()]
        if logs:
            return f"{self.view} is not as version {version} was published: {logs[0]} is beside it"
        if not copy.exists():
            return f"the private copy {copy} of version {version} is gone; {PUBLISH_AGAIN}"
        digests = []
        for file in (self.file, copy):
            try:
                with reading(file) as session:
                    rows = self._rows(session)
                    whole = all(column.name in rows.c for column in columns)
                    digests.append(content_digest(session, rows, columns) if whole else None)
            except QblockError as error:
                return f"{error}; {PUBLISH_AGAIN}" if file == copy else str(error)
        published, kept = (own == digest for own in digests)
        if published and kept:
            return (
                f"{self.view} is not as version {version} was published, or its private copy {copy} is not, though "
                f"both hold its rows; {PUBLISH_AGAIN}"
            )
        if published:
            return f"the private copy {copy} of version {version} was altered; {PUBLISH_AGAIN}"
        return f"{self.view} is not as version {version} was published"

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        # Each version is a file of its own, with a view of its own.
        return None

    @contextmanager
    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[tuple[SqlSession, str]]:
        with reading(self.version_file(version)) as session:
            yield session, self.spec.publish.schema

    @contextmanager
    def published(self) -> Iterator[Rows]:
        if not self.file.exists():
            raise Refused(f"the release file {self.file} does not exist: nothing is published")
        with reading(self.file) as session:
            yield Rows(session, self._rows(session))

    def _rows(self, session: SqlSession) -> sa.FromClause:
        return session.relation(TableName(self.spec.publish.schema, self.spec.view))

    def grant(self) -> list[str]:
        return []

    def close(self, record: Record) -> None:
        # The ledger first: a run that finds the file gone, and no event about it, would publish it again.
        with self.store.write() as ledger:
            record(ledger, "retired_view")
        self.unpublish()

    def unpublish(self) -> None:
        if self.file.exists():
            self._check_replaceable(self.spec.at("publish", "url"))
        remove(self.file)
        sync(self.file.parent)

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        seen = self._seen() if versions else set()
        return retire_each(self.store, versions, seen, lambda version: remove(self.version_file(version)))

    def move(self, connection: sa.Connection, earlier: str, last: RecordedEvent) -> list[str]:
        return []

    def finish_move(
        self, earlier: str, before: str, kept: Mapping[int, Sequence[PublishedColumn]], current: int | None
    ) -> None:
        folder = self.folder.parent / earlier
        for version, columns in kept.items():
            self._move_version(earlier, folder / f"v{version}.duckdb", version, columns)
        self._move_file(earlier, before, current)
        if folder != self.folder and folder.is_dir():
            shutil.rmtree(folder)

    def _move_version(self, earlier: str, before: Path, version: int, columns: Sequence[PublishedColumn]) -> None:
        """The private copy of a version under the names of the spec: a file of its own, as nothing is renamed in
        one."""
        path = self.version_file(version)
        if not before.exists() or (path.exists() and (path != before or self.holds(version))):
            return
        for folder in (self.folder.parent, self.folder):
            make_private(folder)
        beside = path.with_name(f".{path.name}.new")
        remove(beside)
        name = f"{self.spec.view}_v{version}"
        try:
            copy_tables(before, beside, self.spec, name, self.storage)
            stamp = next((tag.stamp for tag in tags_of(self.catalogs, before, earlier)), None)
        except duckdb.Error as error:
            raise explain_duckdb(error) from error
        self._add_view(beside, name, columns, ObjectTag(self.spec.release, version, stamp))
        beside.chmod(0o600)
        sync(beside)
        beside.replace(path)
        remove_logs(beside)
        sync(path.parent)

    def _move_file(self, earlier: str, before: str, current: int | None) -> None:
        """Make the release file under the names of the spec, and remove the one that readers had until now."""
        _, _, name = before.partition(" in ")
        old = self.store.folder.parent / name
        if current is not None and not self.is_live(current):
            beside = self.file.with_name(f".{self.file.name}.qblock-v{current}")
            remove(beside)
            copy_file(self.version_file(current), beside)
            shown = next((file for file in (self.file, old) if file.exists()), None)
            if shown is not None:
                beside.chmod(shown.stat().st_mode & 0o777)
            remove_logs(self.file)
            beside.replace(self.file)
            sync(self.file.parent)
        if old.resolve() != self.file.resolve() and old.exists():
            DuckdbTarget(replace(self.spec, release=earlier), self.store, self.source, old).unpublish()

    def version_file(self, version: int) -> Path:
        """The private copy of a version."""
        return self.folder / f"v{version}.duckdb"


class DuckdbChecked:
    """A version beside its place, open for reading until it is published."""

    rows: Rows

    def __init__(self, target: DuckdbTarget, file: Path) -> None:
        self._target = target
        self._file = file

    @contextmanager
    def opened(self) -> Iterator[None]:
        with reading(self._file) as session:
            self.rows = Rows(session, self._target._rows(session))
            yield

    def publish(self, record: Record) -> list[str]:
        store, target = self._target.store, self._target.file
        with store.write() as ledger:
            record(ledger, "checked")
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask()
        # DuckDB would replay what an earlier writer left beside the old file into the new one.
        remove_logs(target)
        self._file.chmod(mode)
        self._file.replace(target)
        sync(target.parent)
        with store.write() as ledger:
            record(ledger, "published")
        return []


def _files(spec: Spec, store: Store, source: Path | None, file: Path) -> Iterator[FileNeed]:
    """What job and readers need of the file system: files have no rights of their own, and no roles."""
    sources = [] if source is None else [source]
    if spec.source.file is not None:
        sources = found_files(spec.source.file, spec.directory, spec.at("source", "file"))
    if spec.path.is_file():
        yield FileNeed("job", "read", spec.path, "the spec")
    for name, attribute in spec.attributes.items():
        for kind in ("hierarchy", "taxonomy"):
            form = getattr(attribute, kind)
            stated = spec.file(form) if form is not None and not isinstance(form, str | tuple) else None
            if stated is not None:
                yield FileNeed("job", "read", stated, f"the {kind} of {name}")
    for path in sources:
        yield FileNeed("job", "read", path, "the source")
    yield FileNeed("job", "write", store.folder, "ledger, crosswalk and versions; made with mode 0700, and kept so")
    yield FileNeed("job", "write", file.parent, "a version is copied there and renamed into its place")
    yield FileNeed("reader", "read", file, "the release")
    yield FileNeed("reader", "none", store.folder, "ledger, crosswalk and versions")
    for path in sources:
        yield FileNeed("reader", "none", path, "the source")
