"""Releases that one reader may hold: none may publish what another protects.

Two releases are held together where one names the other as its `audience`, or where both are of one table and have a
reader in common. An attribute is a column of a table of a database: through views columns cannot be matched. By the
attacker of releases.md section 1, who knows everybody's quasi-identifiers and holds everything that was ever published:

- sensitive in one, and insensitive or a quasi-identifier in the other: the other shows the value beside blocks that
  were never checked for it. Void.
- sensitive in both, without one joint check of both (both need the same `entity`): blocks that intersect may leave one
  value. Void. With the joint check it is the gate, J1 (releases.md section 2).
- a quasi-identifier in one that the other publishes as is: where the other shows anything sensitive beside it, its
  blocks are finer, for a reader who knows the attribute, than those that were checked; where it shows a column beside
  it that both publish as it is, the rows of the first can be told apart by that column. Void. With neither it tells
  only what that attacker knows already: weaker than it looks, which is noted.
- a quasi-identifier in both, insensitive in both: nothing that the joint check does not see.

Only the release whose attribute is exposed can waive it (`versions: {joint: none}`): then it is noted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import sqlalchemy as sa

from qblock.engines.from_spec import engine_of_place
from qblock.engines.tables import TableName
from qblock.errors import Busy, InputError, Refused
from qblock.files import read_input
from qblock.ledger.events import PUBLISHING, UNFINISHED, RecordedEvent
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import Store
from qblock.publish.targets import Identity
from qblock.resources import sql_text
from qblock.spec import Spec

PUBLIC = "PUBLIC"
AS_IS = ("sensitive", "insensitive")
"""Roles whose values a release shows as they are."""


@dataclass(frozen=True)
class Publication:
    """What a version of a release shows, of which table, to whom.

    who: how a message names it; columns: role by name; entity: by which versions are checked together, or None where
    they are not; waived: `joint: none`; audience: the releases that it names.
    """

    who: str
    source: tuple[str | None, str | None]
    columns: dict[str, str]
    entity: str | None
    waived: bool
    audience: Sequence[str] = ()


def published_columns(spec: Spec) -> tuple[tuple[str, str], ...]:
    """Name and role of every column that a spec publishes."""
    return tuple((name, a.role) for name, a in spec.attributes.items() if a.role != "identifying")


def entity_checked(spec: Spec) -> str | None:
    """The column by which versions are checked together, where they are."""
    return spec.entity if spec.checked_together else None


def conflicts(protector: Publication, publisher: Publication, *, own: bool = False) -> tuple[list[str], list[str]]:
    """What one release shows that another protects: what voids the protection, and what only weakens it.

    own: two versions of one release, which are compared by their content or by the joint check.
    """
    void: list[str] = []
    weak: list[str] = []
    of = protector.source[0]
    if of is None or protector.source != publisher.source:
        return void, weak
    for name, role in protector.columns.items():
        other = publisher.columns.get(name)
        if other is None:
            continue
        pair = f"{protector.who} protects {name} of {of} as {_role(role)}, and {publisher.who} publishes it as"
        if role == "sensitive" and other != "sensitive":
            void.append(f"{pair} {_role(other)}")
        elif role == "sensitive" and not own and (protector.entity is None or protector.entity != publisher.entity):
            why = "one of them names no `entity`" if None in (protector.entity, publisher.entity) else "by `entity`"
            void.append(f"{pair} sensitive, but the two cannot be checked together ({why}; both need the same)")
        elif role == "quasi_identifier" and other == "insensitive":
            beside = [n for n in publisher.columns if n != name and _shown_beside(protector, publisher, n)]
            problems = void if beside else weak
            problems.append(f"{pair} it is" + (f", beside {', '.join(beside)}" if beside else ""))
    return void, weak


def _shown_beside(protector: Publication, publisher: Publication, name: str) -> bool:
    role = publisher.columns[name]
    return role == "sensitive" or (role == "insensitive" and protector.columns.get(name) in AS_IS)


def _role(role: str) -> str:
    return {"quasi_identifier": "a quasi-identifier"}.get(role, role)


def judge(
    spec: Spec, store: Store, identity: Identity, *, running: bool = False, earlier: str | None = None
) -> list[str]:
    """Notes on what else the readers of this release may hold.

    running: whether to count what other runs are about to publish, as a run asks that is about to publish itself.
    earlier: the name that the release is being moved from. Raises InputError for an audience that the ledger does not
    know where it knows one of a similar name, and Refused where two releases that one reader may hold void each other's
    protection.
    """
    if not store.exists:
        return check_audience(spec, [])
    with store.opened(read_only=True) as connection:
        judged = _Judged(spec, store, _of_spec(spec, identity), identity.readers, connection, earlier)
        known = judged.reader.releases()
        notes = check_audience(spec, known, judged.reader)
        for release in judged.all_releases(known):
            judged.compare(release, _versions(judged.reader, release))
        if running:
            # Another run may have written of a release for the first time since.
            for release in judged.all_releases(judged.reader.releases())[1:]:
                staged = [e for e in judged.reader.last_events(release).values() if e.state in UNFINISHED]
                if staged and _running(store, release):
                    judged.compare(release, staged)
    if judged.problems:
        raise Refused("; ".join(dict.fromkeys(judged.problems)) + ". Nothing is published")
    return list(dict.fromkeys([*notes, *judged.notes]))


def find_problems(spec: Spec, store: Store, event: RecordedEvent, releases: Sequence[str]) -> list[str]:
    """What voids the protection of the version that readers see, by what other releases have published and who can read
    both now. event: which published it; releases: of the ledger."""
    if set(releases) <= {spec.release}:
        return []
    with store.opened(read_only=True) as connection:
        judged = _Judged(spec, store, _of_event(event), event.readers or (), connection)
        for release in judged.all_releases(releases)[1:]:
            judged.compare(release, _versions(judged.reader, release))
    return list(dict.fromkeys(judged.problems))


def _of_spec(spec: Spec, identity: Identity) -> Publication:
    """What a spec would publish."""
    return Publication(
        f"release {spec.release}",
        (identity.source, identity.database),
        dict(published_columns(spec)),
        entity_checked(spec),
        spec.versions.joint == "none",
        spec.versions.audience,
    )


def _of_event(event: RecordedEvent) -> Publication:
    """What a version of a release shows."""
    return Publication(
        f"release {event.release}",
        (event.source, event.source_database),
        dict(event.columns or ()),
        event.entity,
        event.joint == "none",
        event.audience or (),
    )


def _running(store: Store, release: str) -> bool:
    """Whether another run of a release is in progress: what one that was killed has staged is never published."""
    try:
        with store.lock(release):
            return False
    except Busy:
        return True


def _versions(reader: LedgerReader, release: str) -> list[RecordedEvent]:
    """The newest event that published each version."""
    history = reader.history(release)
    return list({e.version: e for e in history if e.version is not None and e.state in PUBLISHING}.values())


class _Judged:
    """The release of a spec and the others of its ledger. mine: what it shows; readers: who may read it, or will."""

    def __init__(
        self,
        spec: Spec,
        store: Store,
        mine: Publication,
        readers: Sequence[str],
        connection: sa.Connection,
        earlier: str | None = None,
    ) -> None:
        self.spec, self.store, self.mine, self.readers = spec, store, mine, readers
        self.connection = connection
        self.reader = LedgerReader(connection)
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.names = list(dict.fromkeys([*self.reader.names(earlier or spec.release), spec.release]))

    def all_releases(self, releases: Sequence[str]) -> list[str]:
        """Itself first: what its own readers hold already; then every other release that still has its name."""
        return [self.spec.release] + [
            name for name in releases if name not in self.names and self.reader.successor(name) is None
        ]

    def compare(self, release: str, events: Sequence[RecordedEvent]) -> None:
        """Compare with the versions of one release."""
        if not events:
            return
        own = release == self.spec.release
        how = self._held(release, events[-1])
        if own or how is not None:
            self._roles(release, how or "readers hold already", events, own)
        else:
            self._same_reader(release, events)

    def _held(self, release: str, newest: RecordedEvent) -> str | None:
        if release in self.mine.audience:
            return "versions.audience names"
        return "names this one as its audience" if set(newest.audience or ()) & set(self.names) else None

    def _roles(self, release: str, how: str, events: Sequence[RecordedEvent], own: bool) -> None:
        waived = events[-1].joint == "none"
        for event in events:
            who = (
                f"its version {event.version}" if own else f"version {event.version} of release {release}, which {how},"
            )
            source = (event.source, event.source_database)
            other = Publication(who, source, dict(event.columns or ()), event.entity, waived)
            for protector, publisher in ((self.mine, other), (other, self.mine)):
                void, weak = conflicts(protector, publisher, own=own)
                if protector.waived or (own and self.mine.waived):
                    self.notes += [f"not protected (versions.joint: none): {text}" for text in void]
                else:
                    self.problems += [
                        f"{text}: people who hold both learn what is to be hidden{REMEDY}" for text in void
                    ]
                self.notes += [
                    f"{text}: people who know everybody's quasi-identifiers know that anyway" for text in weak
                ]

    def _same_reader(self, release: str, events: Sequence[RecordedEvent]) -> None:
        table, source = self.mine.source[0], self.mine.source
        same = [e for e in events if (e.source, e.source_database) == source and table is not None]
        if not same:
            return
        shared = self._shared(release, {name for e in same for name in e.readers or ()})
        if shared is None:
            return
        reader, back = shared
        text = (
            f"release {release} publishes {table} as {same[-1].view}, too, and {reader} can read both: together they "
            "may reveal what neither reveals alone"
        )
        if self.mine.waived:
            self.notes.append(
                f"{text}; not protected (versions.joint: none), and release {release} is refused from now on unless it "
                "says so as well"
            )
        else:
            self.problems.append(
                f"{text}; {back}name it (`versions: {{audience: [{release}]}}`), which has both checked together, "
                "publish to other readers, or write `versions: {joint: none}` to go without that protection"
            )

    def _shared(self, release: str, recorded: set[str]) -> tuple[str, str] | None:
        """Who can read both, as a message says it, and how that is taken back where somebody else gave it; on DuckDB
        whoever has both files. recorded: who could read the other one when it was published."""
        engine = engine_of_place(self.spec)
        if not engine.adapter.has_roles:
            return "people with both files" if engine.is_file else "the same people", ""
        here, there = (self._current_readers.get(name, {}) for name in (self.spec.release, release))
        mine, theirs = {*self.readers, *here}, {*recorded, *there}
        role = PUBLIC if PUBLIC in mine & theirs else self._common(mine, theirs)
        if role is None:
            return None
        given = {name: back for name, back in there.items() if name not in recorded}
        given |= {name: back for name, back in here.items() if name not in self.spec.publish.readers}
        back = next((f"take it back ({given[name]}), " for name in (role, PUBLIC) if name in given), "")
        if role == PUBLIC:
            return "everybody", back
        return f"{'reader' if role in mine | theirs else 'role'} {role}", back

    def _common(self, mine: set[str], theirs: set[str]) -> str | None:
        """A role that can read what was given to some roles and what was given to others."""
        table = TableName.parse(self.mine.source[0] or "")
        values = {
            "mine": sorted(mine),
            "theirs": sorted(theirs),
            "source": table.quoted,
        }
        return self.connection.scalar(sa.text(sql_text("shared_readers", "postgresql")), values)

    @cached_property
    def _current_readers(self) -> dict[str, dict[str, str]]:
        """Who may read the views of each release of the ledger, whoever has given it to them, and the statement that
        takes it back."""
        readers: dict[str, dict[str, str]] = {}
        for row in self.connection.execute(sa.text(sql_text("published_readers", "postgresql"))):
            readers.setdefault(row.release, {})[row.reader] = row.back
        return readers


REMEDY = (
    ". Give the column one role in both and both the same `entity`, or leave it out of one of them. What was "
    "published once stays known"
)


def check_audience(spec: Spec, known: Sequence[str], reader: LedgerReader | None = None) -> list[str]:
    """Notes on releases of the audience that have not been published yet.

    A name that the ledger does not know is a slip where it knows a similar one that the spec does not name, unless a
    spec in the same folder has that name: two releases that name each other must begin with one of them. Raises
    InputError.
    """
    notes = []
    for name in spec.versions.audience:
        successor = reader.successor(name) if reader is not None else None
        where = spec.at("versions", "audience")
        if successor is not None:
            raise InputError(f"{where}: release {name} was moved, and is {successor} now; name that one")
        if name in known:
            continue
        candidates = [other for other in known if other != spec.release and other not in spec.versions.audience]
        near = difflib.get_close_matches(name, candidates, n=1)
        if near and name not in _specs_beside(spec):
            raise InputError(
                f"{where}: the ledger knows no release {name}; did you mean {near[0]}? It knows "
                f"{', '.join(candidates)}. A release that is yet to be published can be named as soon as its spec "
                "is in the folder of this one"
            )
        notes.append(f"release {name}, which versions.audience names, has not been published from this ledger yet")
    return notes


def _specs_beside(spec: Spec) -> set[str]:
    """The names of releases whose specs are in the same folder."""
    names = set()
    for file in sorted([*spec.directory.glob("*.yaml"), *spec.directory.glob("*.yml")]):
        try:
            text = read_input(file)
        except InputError:
            continue
        names |= set(re.findall(r"(?m)^release:\s*[\"']?([^\s\"'#]+)", text))
    return names
