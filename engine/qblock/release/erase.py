"""Erasure: people who withdraw wait for a batch that closes by size, or leave at once with their whole joint cells."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from qblock.errors import InputError, QblockError, Refused
from qblock.joint.crosswalk import open_book, own_book, prepare
from qblock.joint.excluded import FAILED, LEAVING, OUT, entities_apart
from qblock.joint.excluded import QUEUED as WAITING
from qblock.joint.named import kept_people, looked_up
from qblock.joint.withdrawals import NOT_RECALLED, Removal, take_out, whole_cells, withdraw
from qblock.ledger.lock import release_lock
from qblock.ledger.migrate import upgrade_ledger
from qblock.ledger.place import Place, place_of
from qblock.ledger.reader import ledger_reader
from qblock.publish.targets import target_of
from qblock.release import move, stamps, together
from qblock.release.apply import release, retire
from qblock.release.identity import check_identity, identity_of
from qblock.release.log import Entries
from qblock.release.outcome import outcome
from qblock.release.plan import plan
from qblock.release.recover import kept_versions
from qblock.release.result import ReleaseResult
from qblock.release.retire import retired_by
from qblock.release.run import Run
from qblock.search import Progress
from qblock.spec import Spec
from qblock.warehouse import open_warehouse

QUEUED = (
    "they stay in the versions until a batch of their block closes, so the source must keep their rows as long; the "
    "next releases see to it"
)
RECORDED = "the withdrawal was recorded"
STUCK = "{} of them were in a batch that failed, which is not topped up: they can leave at once only (--now)"
NOBODY = (
    "{} of {} {} nobody, neither in the source nor in any earlier version; nothing is done, for those found either. "
    "People are named by the text of column {}, to the letter: numbers plain (7, not 007), dates as 2026-01-31; look "
    "the names up there, correct the list and give it again whole"
)
STILL_SHOWN = (
    "they are out of every later version, but none could be published without them now, and version {version}, which "
    "shows them, is still what readers see"
)


@dataclass(frozen=True)
class EraseResult:
    """Counts alone. asked: people named; shown: of them, whom any version has shown; companions: others that left with
    them, as they shared a joint cell; retired: versions dropped; published: the version without them, if there is one.
    """

    status: str
    release: str
    asked: int
    shown: int
    companions: int = 0
    retired: list[int] = field(default_factory=list)
    published: ReleaseResult | None = None
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "published": self.published.to_json() if self.published else None}


def erase(
    spec: Spec,
    entities: Sequence[str],
    *,
    now: bool = False,
    wait: float = 0,
    progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
    entries: Entries | None = None,
) -> EraseResult:
    """People withdraw from a release, named by the text of its entity column.

    Whoever was never shown is out at once. The others are queued: k of a block leaving together could still share a
    value, so a batch closes by size and must pass the joint check on both sides. now: they leave at once, with
    everybody who shares a joint cell with them; a version without them is published, and those that show them are
    dropped. Raises InputError for a release without entities, and where a name is nobody's (then nothing is done: a
    list in another form may name others, who could never be shown again), and what `release` raises; what was set apart
    stays so.
    """
    named = list(dict.fromkeys(entities))
    if not named:
        raise InputError("nobody is named: give the values of the entity column, or a file with one on each line")
    if not together.applies(spec):
        raise InputError(
            f"{spec.at('versions')}: people can withdraw where the spec says who a row is about and versions are "
            "checked together: write `entity: COLUMN`, with `count: rows` and without `joint: none`"
        )
    place = place_of(spec)
    with release_lock(place, spec.release, wait):
        upgrade_ledger(place)
        target = target_of(spec, place)
        check_identity(spec, place, identity_of(spec, place, target))
        move.finish(spec, place, target)
        try:
            stamps.check(spec, place, target, joint=True)
        except Refused as error:
            stamps.record_refusal(place, spec.release, secrets.token_hex(8), error)
            raise
        prepare(place)
        found = _people(place, spec, named)
        with outcome().doing(RECORDED, partial(_recorded, place, spec, found, now)):
            shown, stuck, removal = _set_apart(place, spec, found, now)
        if removal is not None:
            people = {"people": shown, "companions": len(removal.companions)}
            together.record_erasure(place, spec.release, secrets.token_hex(8), people)
    if removal is None:
        notes = [QUEUED] if shown > stuck else []
        notes += [STUCK.format(stuck)] if stuck else []
        return EraseResult("queued", spec.release, len(named), shown, notes=[*notes, NOT_RECALLED])
    return _publish_without(spec, len(named), shown, removal, wait, progress, log, entries)


def _people(place: Place, spec: Spec, names: Sequence[str]) -> list[str]:
    """The digests of all who are named. Raises InputError where a name is nobody's: how many are, never which."""
    with own_book(place) as book:
        found = kept_people(book, spec.release, names)
    if found is None:
        warehouse = open_warehouse(spec.source.url.url, spec.directory, spec.search.memory_limit)
        try:
            with warehouse.snapshot() as session, open_book(place, session, read_only=True) as book:
                found, unknown = looked_up(book, spec, session, names)
        finally:
            warehouse.close()
        if unknown:
            raise InputError(NOBODY.format(unknown, *_matching(unknown, len(names)), spec.entity))
    return [digest for digest in found if digest is not None]


def _matching(unknown: int, given: int) -> tuple[str, str]:
    return f"{given} {'name' if given == 1 else 'names'}", "matches" if unknown == 1 else "match"


def _recorded(place: Place, spec: Spec, digests: Sequence[str], now: bool) -> str | None:
    """RECORDED where everybody of these is out, or waits to be."""
    with own_book(place) as book:
        states = [OUT] if now else [OUT, LEAVING, FAILED, WAITING]
        return RECORDED if set(digests) <= set(entities_apart(book, spec.release, states)) else None


def _set_apart(place: Place, spec: Spec, digests: Sequence[str], now: bool) -> tuple[int, int, Removal | None]:
    """How many of those named were ever shown, how many are of batches that failed, and what is taken out."""
    with own_book(place) as book:
        shown = withdraw(book, spec, digests)
        stuck = len(set(digests) & set(entities_apart(book, spec.release, [FAILED])))
        if not now:
            return shown, stuck, None
        removal = whole_cells(book, spec, digests)
        take_out(book, spec, removal)
        return shown, stuck, removal


def is_retired(run: Run) -> bool:
    """Whether the release shows nothing, as it was retired: then no version without the people is to be published."""
    with ledger_reader(run.place) as reader:
        return retired_by(reader, run.spec.release) is not None


def _publish_without(
    spec: Spec,
    asked: int,
    shown: int,
    removal: Removal,
    wait: float,
    progress: Progress | None,
    log: Callable[[str], None] | None,
    entries: Entries | None,
) -> EraseResult:
    run = Run(plan(spec, wait=wait, judge=False))
    concerned = {version.version for version in removal.versions}
    published = None
    if concerned and not is_retired(run):
        try:
            published = release(spec, wait=wait, progress=progress, log=log, entries=entries)
        except QblockError as error:
            run.read_ledger()
            with release_lock(run.place, spec.release, wait):
                retire(run, spec.versions.keep)
            if run.current is not None and run.current.version in concerned:
                raise type(error)(f"{STILL_SHOWN.format(version=run.current.version)}: {error}") from error
            raise
    with release_lock(run.place, spec.release, wait):
        left = retire(run, spec.versions.keep) if published is None or published.status == "unchanged" else []
    kept = set(kept_versions(run))
    return EraseResult(
        "erased",
        spec.release,
        asked,
        shown,
        companions=len(removal.companions),
        retired=sorted(concerned - kept),
        published=published,
        notes=[*left, NOT_RECALLED],
    )
