"""What a release is: one source and one view. The ledger knows both, and another one under the same name is refused.

The newest event that published or moved the release says which they are. A ledger from before these columns says its
view; the crosswalk has a mark of its source where versions are checked together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.joint.crosswalk import crosswalk_of
from qblock.joint.tables import tables
from qblock.ledger import migrate
from qblock.ledger.events import IDENTIFYING, RecordedEvent
from qblock.ledger.place import Place, create_engine, translated
from qblock.ledger.reader import LedgerReader, ledger_reader
from qblock.ledger.writer import opened
from qblock.resources import sql_text
from qblock.warehouse.connect import duckdb_path, parse_url
from qblock.warehouse.postgresql import quote
from qblock.warehouse.postgresql_session import home
from qblock.warehouse.protocol import TableName

if TYPE_CHECKING:
    from qblock.spec import Spec

DUCKDB_SCHEMA = "main"


class Published(Protocol):
    """What is read of a target."""

    @property
    def view(self) -> str: ...
    @property
    def place_name(self) -> str: ...


@dataclass(frozen=True)
class Identity:
    """Source and view of a release. source: `schema.table`, or None for a table that is not there; database: a digest
    of the DuckDB file, None on PostgreSQL, where the ledger is in the source's database; target: the view, with a file
    of the spec's folder relative to that; view: the same as messages name it; readers: roles that may read it, or will.
    """

    source: str | None
    database: str | None
    target: str
    view: str
    readers: tuple[str, ...] = ()

    def columns(self) -> dict[str, Any]:
        """The columns of an event that say it."""
        return {
            "source": self.source,
            "source_database": self.database,
            "target": self.target,
            "readers": self.readers,
        }


def identity_of(spec: Spec, place: Place, target: Published) -> Identity:
    """What a spec says. Raises QblockError where the database cannot be reached."""
    table = TableName.parse(spec.source.table)
    if place.engine == "duckdb":
        file = duckdb_path(parse_url(spec.source.url.url), spec.directory)
        database = hashlib.sha256(f"duckdb:{place.within(file)}".encode()).hexdigest()
        # Names of DuckDB differ by more than their case, quoted or not.
        known = TableName((table.schema or DUCKDB_SCHEMA).casefold(), table.name.casefold())
        return Identity(table_text(known), database, target.place_name, target.view, spec.publish.readers)
    engine = create_engine(place, read_only=True)
    try:
        with translated(place), engine.connect() as connection:
            found = home_of(connection, table)
            readers = _readers(connection, spec)
    finally:
        engine.dispose()
    return Identity(None if found is None else table_text(found), None, target.place_name, target.view, readers)


def _readers(connection: sa.Connection, spec: Spec) -> tuple[str, ...]:
    """The readers of the spec, and whoever else was given something on the view (PUBLIC is everybody)."""
    view = {"schema": spec.publish.schema, "name": spec.view}
    facts = connection.execute(sa.text(sql_text("relation_facts", "postgresql")), view).one_or_none()
    given: tuple[str, ...] = ()
    if facts is not None:
        rows = connection.execute(sa.text(sql_text("relation_grantees", "postgresql")), {"oid": facts.oid})
        given = tuple(sorted("PUBLIC" if row.grantee is None else row.grantee for row in rows))
    return tuple(dict.fromkeys([*spec.publish.readers, *given]))


def home_of(connection: sa.Connection, table: TableName) -> TableName | None:
    """A table of PostgreSQL with its schema, as the job's login finds it; None where there is none."""
    table = home(connection, table)
    if table.schema is None:
        return None
    name = ".".join(quote(part) for part in (table.schema, table.name) if part)
    row = connection.execute(sa.text(sql_text("relation_home", "postgresql")), {"name": name}).one_or_none()
    return None if row is None else TableName(row.schema, row.name)


def table_text(table: TableName) -> str:
    """`schema.table`; a part that holds a dot or a quote in double quotes."""
    parts = [part for part in (table.schema, table.name) if part]
    return ".".join(quote(part) if set(part) & {".", '"'} else part for part in parts)


def check_identity(spec: Spec, place: Place, found: Identity) -> None:
    """Raise Refused where the release is published from another source, as another view, or under another name now."""
    with ledger_reader(place) as reader:
        problem = difference(reader, spec, place, found)
    if problem is not None:
        raise Refused(problem)


def difference(reader: LedgerReader, spec: Spec, place: Place, found: Identity) -> str | None:
    """Why this is another release than the ledger's of that name, or None."""
    release = spec.release
    successor = reader.successor(release)
    if successor is not None:
        return (
            f"release {release} was moved, and is {successor} now; write `release: {successor}` in the spec, or give a "
            "new release a name that no release has had"
        )
    last = reader.last_event(release, *IDENTIFYING)
    if last is None:
        return None
    source = _other_source(last, spec, place, found)
    view = _other_view(last, found)
    if source is None and view is None:
        return None
    table = last.source or "another table"
    other = " of another database" if source and last.source == found.source else ""
    was = f"{table}{other} as {last.target or last.view}"
    return (
        f"release {release} is published from {was}, and this spec would publish it from {found.source} as "
        f"{found.target}: one release has one source and one view, or readers of the one would be shown the other; "
        f"nothing is done. Give this spec a release name of its own, or move the release on purpose: qblock ledger "
        f"move SPEC --from {release}"
    )


def _other_source(last: RecordedEvent, spec: Spec, place: Place, found: Identity) -> bool | None:
    if found.source is None:
        return None  # the source's check says which names are near
    if last.source is not None:
        return (last.source, last.source_database) != (found.source, found.database) or None
    kept = _crosswalk_mark(spec, place)
    return None if kept is None else (kept not in _marks(spec, found.source)) or None


def _other_view(last: RecordedEvent, found: Identity) -> bool | None:
    if last.target is not None:
        return last.target != found.target or None
    if last.view is None or last.view == found.view:
        return None
    # An event from before the target was recorded names a DuckDB file by its whole path, which may have moved.
    view, _, file = last.view.partition(" in ")
    wanted, _, here = found.target.partition(" in ")
    return not (view == wanted and bool(here) and Path(file).name == Path(here).name) or None


def _crosswalk_mark(spec: Spec, place: Place) -> str | None:
    """What the crosswalk has of the source of the newest version: a digest of its name, as a spec wrote it."""
    crosswalk = crosswalk_of(place)
    if crosswalk.file is not None and not crosswalk.file.exists():
        return None
    with opened(crosswalk, read_only=True) as connection, translated(place):
        there = migrate.revision(connection) is not None
        if there and place.engine == "postgresql":
            may = "SELECT has_table_privilege(to_regclass('qblock.crosswalk_version'), 'SELECT')"
            there = bool(connection.scalar(sa.text(may)))
        if not there:
            return None
        version = tables(place.engine).version
        query = sa.select(version.c.source).where(version.c.release == spec.release)
        return connection.scalar(query.order_by(version.c.position.desc()).limit(1))


def _marks(spec: Spec, source: str) -> Sequence[str]:
    """Marks of a source in crosswalks from before: of the name as a spec may have written it."""
    table = TableName.parse(source)
    names = {spec.source.parts, (table.name,), tuple(part for part in (table.schema, table.name) if part)}
    return [hashlib.sha256(".".join(parts).encode()).hexdigest() for parts in names]
