"""What the job knows about the place that a release is published to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa

from qblock.engines.registry import engine_of, parse_url
from qblock.engines.rights import Needs
from qblock.engines.session import Session
from qblock.engines.spark import ENGINE as SPARK
from qblock.engines.tables import TableName
from qblock.ledger.events import RecordedEvent, State
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.stamps import ObjectTag
from qblock.ledger.store import Store
from qblock.publish.copy import Copy
from qblock.publish.helpers import Shown
from qblock.spec import Spec

ON_SPARK = " on Spark"
Record = Callable[[sa.Connection, State], None]
"""Writes the event of a transition, and what goes with it, on a connection to the ledger, within its transaction."""


@dataclass(frozen=True)
class Identity:
    """Source and view of a release. source: `schema.table`, or None for a table that does not exist; database: a digest
    of the source's file or server, None where the ledger is in the source's database; target: the view, with a file of
    the spec's folder relative to that; readers: roles that may read it, or will.
    """

    source: str | None
    database: str | None
    target: str
    readers: tuple[str, ...] = ()

    def columns(self) -> dict[str, Any]:
        """The columns of an event that hold the identity."""
        return {
            "source": self.source,
            "source_database": self.database,
            "target": self.target,
            "readers": self.readers,
        }


def copied_source(spec: Spec) -> tuple[str, str]:
    """The table of a source that is not beside its release, and the digest of its database, whoever logs in there, or
    of its file by the path in the spec."""
    url, table = parse_url(spec.source.url.url), TableName.parse(spec.source.table)
    if engine_of(url) is SPARK:
        host, port = SPARK.place_of(url)
        table = TableName((table.schema or "default").casefold(), table.name.casefold(), table.catalog)
        text = table_text(table) if table.catalog is None else f"{table.catalog.casefold()}.{table_text(table)}"
        return text, hashlib.sha256(f"spark:{host}:{port}".encode()).hexdigest()
    place = f"{url.get_backend_name()}:{url.host}:{url.port}/{url.database}"
    return table_text(table), hashlib.sha256(place.encode()).hexdigest()


def table_text(table: TableName) -> str:
    """`schema.table`; a part that holds a dot or a quote in double quotes."""
    parts = [part for part in (table.schema, table.name) if part]
    return ".".join('"' + part.replace('"', '""') + '"' if set(part) & {".", '"'} else part for part in parts)


def named_view(target: str) -> TableName:
    """The view of an identity's target, which names a file or a server after it."""
    return TableName.parse(target.partition(" in ")[0].removesuffix(ON_SPARK))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that can be read."""

    session: Session
    rows: sa.FromClause


class Checked(Protocol):
    """A staged version that is being checked: its rows, and the way to publish it."""

    rows: Rows

    def publish(self, record: Record) -> list[str]:
        """Make it the version that readers see, together with its ledger rows; notes for the person who runs the job.

        Raises Refused where readers could reach what is private.
        """


class Target(Protocol):
    """Where versions are staged, published and kept."""

    @property
    def view(self) -> str:
        """What readers query, as a message names it."""

    @property
    def place_name(self) -> str:
        """What readers query, as the ledger keeps it: a file in the spec's folder relative to that, so that both can be
        moved."""

    def identity(self) -> Identity:
        """Source and view, as they are now. Raises QblockError where the database cannot be reached."""

    def check(self) -> list[str]:
        """Notes for the person who runs the job. Reads only; raises InputError for a target that cannot be used."""

    def needs(self, job: str | None = None, officer: str | None = None) -> Needs:
        """What the job, its readers and an officer need of others. job: the login, where it is not the one that is
        connected; officer: a role.

        Raises InputError for roles where the engine has none, and for an officer who is a reader.
        """

    def find_exposures(self) -> list[str]:
        """How readers could reach what is private besides the view, one sentence each."""

    def stage(self, session: Session, copy: Copy, shown: Shown, tag: ObjectTag, record: Record) -> None:
        """Build a version where no reader can see it, and record it as staged: the end of the first transaction.

        shown: what helper views show of it; tag: what the version carries from then on.

        Raises Refused when the copy does not have the rows that it must have.
        """

    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> AbstractContextManager[Checked]:
        """The second transaction, with a staged version to be checked."""

    def tags(self) -> list[ObjectTag]:
        """The versions of this release that exist, published or kept, by what they say about themselves."""

    def shows(self) -> bool:
        """Whether readers see anything by the objects alone, whatever the ledger says."""

    def holds(self, version: int) -> bool:
        """Whether the private copy of a version exists, and nothing else with it."""

    def is_live(self, version: int) -> bool:
        """Whether a version that was only recorded as checked did become the one that readers see before a crash."""

    def clear(self, kept: Sequence[int]) -> list[str]:
        """Remove what runs that did not end have left; kept: the versions to leave alone. Returns what was removed, in
        words.

        Whatever `kept` says, the version that readers see, or that the pointer row names, stays.
        """

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        """Whether readers see this version, as it was published."""

    def difference(self, version: int, columns: Sequence[PublishedColumn], digest: str | None) -> str:
        """What is wrong where they do not. digest: of the content that was published."""

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        """Raise InputError where readers cannot be given these columns, since something depends on the present ones."""

    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> AbstractContextManager[tuple[Session, str]]:
        """A session in which views with the names of the release's show a version that is kept, for the job alone, and
        the schema of these views. Raises Refused for one that was altered."""

    def published(self) -> AbstractContextManager[Rows]:
        """What readers see. Raises Refused when there is nothing."""

    def grant(self) -> list[str]:
        """Grant the named readers what they lack; returns what was granted, in words."""

    def close(self, record: Record) -> None:
        """Take what readers see away from them at once, recorded as retired_view."""

    def unpublish(self) -> None:
        """Finish `close` where the ledger already says so, and a run was stopped before it was done."""

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        """Drop old versions, each with its event in one transaction; says which could not be dropped yet, and why.

        The version that readers see, or that the pointer row names, is not among those that can.
        """

    def move(self, connection: sa.Connection, earlier: str, last: RecordedEvent) -> list[str]:
        """Give what exists of a release its names of now, in the transaction in which the ledger says that it was
        moved, where they share one; notes for the person who does it. earlier: its name before; last: the event that
        said what it was."""

    def finish_move(
        self, earlier: str, before: str, kept: Mapping[int, Sequence[PublishedColumn]], current: int | None
    ) -> None:
        """Do so after the ledger says that it was moved, where they share no transaction; twice is once. before: its
        view then, as the ledger has it; kept: the columns of each version that is kept; current: the version that
        readers see."""


STAYS = "version {} stays: it is the one that readers see"
SHOWN = 5
"""How many ways a message names: enough to know where to look."""


def retire_each(
    store: Store, versions: Mapping[int, Record], seen: Collection[int], drop: Callable[[int], None]
) -> list[str]:
    """`Target.retire` where versions and ledger have no transaction in common. seen: versions that stay."""
    for version, record in versions.items():
        if version not in seen:
            drop(version)
            with store.write() as ledger:
                record(ledger, "retired")
    return [STAYS.format(version) for version in versions if version in seen]


def exposure(ways: Sequence[str]) -> str:
    """The refusal of a publication whose readers could reach something besides the view."""
    more = f"; and {len(ways) - SHOWN} more" if len(ways) > SHOWN else ""
    return f"readers could reach what is private, nothing is published: {'; '.join(ways[:SHOWN])}{more}"
