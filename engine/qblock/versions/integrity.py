"""The digests of the crosswalk by part, which the ledger keeps (`ledger.parts`).

A part is what a table holds of a release, or of one version of it. Its digest is the number of rows and two sums of 60
bits each over the SHA-256 of every row: it depends on no order, and one statement computes all of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from operator import add, sub
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from qblock.engines.queries import Query
from qblock.engines.sql_session import SqlSession
from qblock.ledger.chain import Head
from qblock.ledger.parts import Changes, KeptParts, Parts, keep_parts, kept_parts, set_settled, set_unsettled
from qblock.ledger.store import Store

if TYPE_CHECKING:
    from qblock.versions.crosswalk import Crosswalk, Tables

Touched = Collection[tuple[sa.Table, str | None, int | None]]
"""What statements have changed: a table, of which release and version (None: of any)."""
KEY = "crosswalk_key"
DIGITS = 15
"""Hexadecimal digits of a sum's numbers: as many as fit a BIGINT."""
WORDS = {
    "crosswalk": "who is shown where in version {}",
    "crosswalk_block": "the labels of version {}",
    "crosswalk_version": "what is kept of version {}",
    "crosswalk_frozen": "the quasi-identifiers of who came with version {}",
    "crosswalk_episode": "the joint cells of people",
    "crosswalk_signature": "the joint cells of people",
    "crosswalk_rolled": "how far joint cells are known",
    "crosswalk_apart": "who is out, leaves or failed",
    "crosswalk_turnover": "who was new or gone in the last run",
    "crosswalk_shown": "the shown state",
    "crosswalk_waiting": "who waits",
    "crosswalk_steady": "what the job remembers",
    "crosswalk_cohort": "the maps of cohorts",
    "crosswalk_rekeyed": "changes of the key",
    KEY: "the key",
}
"""What a part is, by its table."""


class Sums(NamedTuple):
    """A digest as numbers, which those of further rows can be added to."""

    rows: int = 0
    first: int = 0
    second: int = 0

    def plus(self, more: Sums) -> Sums:
        """With further rows."""
        return Sums(*map(add, self, more))

    def minus(self, less: Sums) -> Sums:
        """Without some rows."""
        return Sums(*map(sub, self, less))

    @classmethod
    def of_text(cls, digest: str | None) -> Sums:
        """What the ledger has; of nothing where it has none."""
        return cls(*map(int, digest.split(":"))) if digest else cls()

    @property
    def text(self) -> str | None:
        """As the ledger has it; None of nothing."""
        return ":".join(map(str, self)) if self.rows else None


def sums_of(own: SqlSession, table: sa.Table, *where: sa.ColumnElement[bool]) -> Sums:
    """Of some rows of a table that is one part."""
    return Sums.of_text(_read(own, [_rows(own, table, *where)]).get(table.name))


def all_parts(
    own: SqlSession, t: Tables, release: str, *, quick: bool = False, without: Collection[sa.Table] = ()
) -> Parts:
    """The digest of every part of a release. quick: of rows and labels of versions before the newest, which no run
    changes, only how many there are; without: tables of which no digest is computed."""
    newest = _newest(t, release)
    rows, counts = [_rows(own, t.key)], []
    for table in t.of_releases:
        same = [t.rows_of(table, release)]
        if quick and table in (t.row, t.block):
            counts.append(_counts(table).where(*same, table.c.version < newest))
            same.append(table.c.version >= newest)
        if table not in without:
            rows.append(_rows(own, table, *same, by_version=table in t.of_versions))
    return _read(own, rows, counts)


def _newest(t: Tables, release: str) -> sa.ScalarSelect[Any]:
    return sa.select(sa.func.max(t.version.c.version)).where(t.version.c.release == release).scalar_subquery()


def marks(own: SqlSession, t: Tables, release: str) -> dict[str, list[str]] | None:
    """Of each table that has a row for each person: how many there are, the sum of their hashes, and whose hash it is.
    None where the engine has no hash.

    Of the crosswalk proper the rows of the newest version. A mark takes a tenth of a digest's time, and stays the same
    with a chance of 1 in 2^64 where rows are altered, but for whoever looks for such rows (decision 0031).
    """
    if own.row_hash is None:
        return None
    name, library = own.row_hash
    of_row, queries = getattr(sa.func, name), []
    for table in t.of_people:
        total = sa.cast(sa.func.sum(of_row(of_row(*(c for c in table.c if c.key != "release")))), sa.Text)
        query = sa.select(_part(table), sa.func.count().label("n"), total.label("total")).where(
            t.rows_of(table, release)
        )
        queries.append(query.where(table.c.version >= _newest(t, release)) if table is t.row else query)
    return {row.part: [str(row.n), str(row.total), library] for row in own.rows(sa.union_all(*queries))}


def is_as_marked(own: SqlSession, t: Tables, release: str) -> bool:
    """Whether these tables are as they were when a run last said what the next one comes to if nothing changes."""
    if own.row_hash is None:
        return False
    state = json.loads(own.scalar(sa.select(t.steady.c.state).where(t.steady.c.release == release)) or "{}")
    kept = json.loads(state.get("quiet", "{}")).get("marks")
    return kept is not None and kept == marks(own, t, release)


def with_marked(kept: KeptParts, parts: Parts, t: Tables, newest: int | None) -> Parts:
    """Parts, with what the ledger has of tables that are as they were marked. newest: version in the crosswalk."""
    names = {table.name for table in t.of_people if table is not t.row}
    marked = {
        name: digest
        for name, digest in kept.now.items()
        if name.partition("/")[0] in names or name == _name(t.row.name, newest)
    }
    return {**marked, **parts}


def record_digests(store: Store, crosswalk: Crosswalk) -> dict[str, Head]:
    """Record what a transaction of the crosswalk has changed, in that transaction: for a ledger in its database."""
    own = crosswalk.own.connection
    changes = _changes(store, crosswalk)
    return {release: keep_parts(own, release, parts, store.heads.get(release)) for release, parts in changes.items()}


@contextmanager
def digests_kept(store: Store, crosswalk: Crosswalk) -> Iterator[None]:
    """Record in the ledger what a transaction of the crosswalk has changed, which is committed within."""
    if store.one_database:
        heads = record_digests(store, crosswalk)
        yield
        store.heads.update(heads)
        return
    changes = _changes(store, crosswalk)
    if not changes:
        yield
        return
    with store.write() as ledger:
        set_unsettled(ledger, {release: keep_parts(ledger, release, parts) for release, parts in changes.items()})
    yield
    with store.write() as ledger:
        set_settled(ledger, changes)


def _changes(store: Store, crosswalk: Crosswalk) -> dict[str, Changes]:
    """The parts of each release that are not as the ledger has them."""
    own, t = crosswalk.own, crosswalk.tables
    releases = {release for _, release, _ in crosswalk.touched if release is not None}
    releases |= {release for _, release in crosswalk.moved}
    if any(release is None for _, release, _ in crosswalk.touched):
        known = sa.union(*(sa.select(table.c.release) for table in t.of_releases if table not in t.padded))
        releases |= set(own.fetch(known)["release"].to_pylist())
    changes = {}
    for release in sorted(releases):
        kept = _kept(store, own, release)
        touched = [entry for entry in crosswalk.touched if entry[1] in (None, release)]
        if kept.before is not None:  # either state may be there
            touched += [(table, release, None) for table, of in crosswalk.moved if of == release]
        moved = _moved(crosswalk, release, touched, kept)
        changes[release] = kept.changed({**moved, **changed_parts(own, t, release, touched, kept.now)})
    return {release: changed for release, changed in changes.items() if changed}


def _moved(crosswalk: Crosswalk, release: str, touched: Touched, kept: KeptParts) -> Changes:
    """The parts of which the rows that were taken away and added are known, by what the ledger has of them.

    So what somebody else has altered there since the run compared them is in no digest, and the next run finds it.
    """
    written = {table for table, _, _ in touched}
    moved = {table: sums for (table, of), sums in crosswalk.moved.items() if of == release and table not in written}
    return {table.name: Sums.of_text(kept.now.get(table.name)).plus(sums).text for table, sums in moved.items()}


def _kept(store: Store, own: SqlSession, release: str) -> KeptParts:
    if store.one_database:
        return kept_parts(own.connection, release)
    with store.read() as reader:
        return reader.kept_parts(release)


def changed_parts(own: SqlSession, t: Tables, release: str, touched: Touched, known: Parts) -> Changes:
    """The digests of the parts that these statements may have changed. known: what there was."""
    versions: dict[sa.Table, set[int | None]] = {}
    for table, _, version in touched:
        versions.setdefault(table, set()).add(version)
    rows = [_rows(own, t.key)]
    for table, numbers in sorted(versions.items(), key=lambda entry: entry[0].name):
        if table is t.key:
            continue
        same = [t.rows_of(table, release)]
        if table in t.of_versions and None not in numbers:
            same.append(table.c.version.in_(sorted(number for number in numbers if number is not None)))
        rows.append(_rows(own, table, *same, by_version=table in t.of_versions))
    parts = _read(own, rows)
    names = {table.name: numbers for table, numbers in versions.items()}
    gone = {name: None for name in known if _is_of(name, names) and name not in parts}
    return {**parts, **gone}


def _is_of(name: str, versions: Mapping[str, Collection[int | None]]) -> bool:
    """Whether a part is one of these."""
    table, _, version = name.partition("/")
    numbers = versions.get(table, ())
    return None in numbers or (bool(version) and int(version) in numbers)


def problems(kept: KeptParts, parts: Parts) -> list[str]:
    """What is not as the ledger has it, one sentence each."""
    if kept.before is not None and not _differing(kept.before, parts):
        return []
    differing = _differing(kept.now, parts)
    if KEY in differing:
        return ["the crosswalk has another key than the one that its digests of people were made with"]
    return list(dict.fromkeys(_sentence(name, kept.now.get(name), parts.get(name)) for name in differing))


def settle(store: Store, release: str, parts: Parts) -> None:
    """Under the release's lock, where `problems` has none: settle what a stopped run has left open."""
    with store.read() as reader:
        kept = reader.kept_parts(release)
    if kept.before is None:
        return
    back = {name: kept.before.get(name) for name in {*kept.now, *kept.before}}
    with store.write() as ledger:
        if _differing(kept.now, parts):
            keep_parts(ledger, release, kept.changed(back))
        set_settled(ledger, [release])


def _differing(expected: Parts, parts: Parts) -> list[str]:
    # The key is of all releases, and there before anything of this one is.
    names = sorted({*expected, *parts} - ({KEY} - set(expected)))
    return [name for name in names if not _same(expected.get(name, ""), parts.get(name, ""))]


def _same(expected: str, part: str) -> bool:
    # Of older versions only the rows were counted.
    return expected == part or (part.endswith(":") and expected.startswith(part))


def _sentence(name: str, expected: str | None, part: str | None) -> str:
    table, _, version = name.partition("/")
    what = WORDS[table].format(version)
    before, now = (int(digest.partition(":")[0]) if digest else 0 for digest in (expected, part))
    if before > now:
        return f"the crosswalk lacks {before - now:,} of {before:,} rows of {what}"
    return (
        f"rows of {what} in the crosswalk were altered"
        if before == now
        else (f"the crosswalk has {now - before:,} rows too many of {what}")
    )


def _rows(own: SqlSession, table: sa.Table, *where: sa.ColumnElement[bool], by_version: bool = False) -> sa.Select[Any]:
    """Rows of a table as texts, with the part that they are of."""
    version = table.c.version if by_version else sa.cast(sa.null(), sa.BigInteger)
    # One function: to plan a length and two concatenations of each column takes longer than to compute them.
    text = own.json_array([column for column in table.c if column.key != "release"])
    columns = [_part(table), version.label("version"), text.label("text")]
    return sa.select(*columns).select_from(table).where(*where)


def _digests(own: SqlSession, rows: Collection[sa.Select[Any]]) -> sa.Select[Any]:
    """The digests of rows (`_rows`) by part."""
    texts = sa.union_all(*rows).subquery("qblock_texts")
    # In a query of its own, a digest is computed once.
    each = sa.select(texts.c.part, texts.c.version, own.sha256(texts.c.text).label("digest")).subquery("qblock_digests")
    sums = [sa.func.sum(own.hex_number(sa.func.substr(each.c.digest, at, DIGITS))) for at in (1, 1 + DIGITS)]
    columns = [sa.cast(total, sa.Text).label(name) for total, name in zip(sums, ("a", "b"), strict=True)]
    by = each.c.part, each.c.version
    return sa.select(*by, sa.func.count().label("n"), *columns).group_by(*by)


def _counts(table: sa.Table) -> sa.Select[Any]:
    nothing = sa.cast(sa.null(), sa.Text)
    columns = [_part(table), table.c.version, sa.func.count().label("n"), nothing.label("a"), nothing.label("b")]
    return sa.select(*columns).group_by(table.c.version)


def _part(table: sa.Table) -> sa.Label[str]:
    name: sa.ColumnElement[str] = sa.literal_column(f"'{table.name}'", sa.Text)
    return name.label("part")


def _read(own: SqlSession, rows: Collection[sa.Select[Any]], counts: Collection[Query] = ()) -> dict[str, str]:
    return {
        _name(row.part, row.version): f"{row.n}:" + (f"{row.a}:{row.b}" if row.a else "")
        for row in own.rows(sa.union_all(_digests(own, rows), *counts))
    }


def _name(table: str, version: int | None) -> str:
    return table if version is None else f"{table}/{version}"
