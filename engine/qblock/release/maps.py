"""Finds what the next version takes from the one before: its recoding map, and how bounds are published."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from qblock.errors import InputError, QblockError, Refused
from qblock.lattice import Node
from qblock.ledger.events import PUBLISHING, RecordedEvent
from qblock.ledger.kept import Kept, PublishedColumn, kept_digest
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.spec import Spec
from qblock.spec.sections import RangesShown
from qblock.versions.recorded import UNPROTECTED

KEPT_MAP = "the published recoding map was kept: all versions that are checked together have the same boxes"
SWITCHED = (
    "version {} of release {} was published {}, and the spec asks for `recoding: {}`; nothing is published. Versions "
    "that are checked together have the same blocks. Write `recoding: {}`, or {unprotected}"
)
OTHER_NEWCOMERS = (
    "version {} of release {} was published with newcomers {}, and at a node all versions must show them so; nothing "
    "is published. {}, or write {unprotected}"
)
OTHER_NODE = (
    "{}: all versions must have one node, and version {} of release {} has {}; nothing is published. Pin that one, or "
    "write {unprotected}"
)


@dataclass(frozen=True)
class NamedMap:
    """The map of a version that a spec names. event: of the version; stated: the map as it is kept."""

    event: RecordedEvent
    stated: Mapping[str, Any]


def inherited_map(
    spec: Spec, store: Store, current: RecordedEvent | None, text: str | None = None
) -> Mapping[str, Any] | None:
    """The map that the next version has; None where one is to be searched for, or the release has a node. current: of
    the version that readers see, or saw last; text: of what is kept with it, if it was read.

    Raises Refused where the spec asks for another recoding than the published version has, another node, or newcomers
    in cohorts at a node that was published without them, QblockError for what is kept with it and was altered.
    """
    if current is None or current.version is None or spec.versions.joint == "none":
        return None
    stated = map_of(spec, store, current, text)
    full_domain = spec.search.recoding == "full_domain"
    split = stated is not None and bool(stated["splits"])
    if split if full_domain else stated is None:
        was = ("with a recoding map", "multidimensional") if split else ("at a node", "full_domain")
        wanted = spec.search.recoding
        raise Refused(SWITCHED.format(current.version, spec.release, was[0], wanted, was[1], unprotected=UNPROTECTED))
    # Of a version that was not checked together that is what is said.
    if (stated is not None) != spec.by_boxes and current.joint == "episodes":
        how = "by block" if stated is None else "in cohorts"
        remedy = _shown_alike(spec)
        raise Refused(OTHER_NEWCOMERS.format(current.version, spec.release, how, remedy, unprotected=UNPROTECTED))
    node = current.node if stated is None else tuple(stated["start"])
    if spec.lags and spec.pinned not in (None, node):
        where, shown = spec.at("search", "node"), list(node or ())
        raise Refused(OTHER_NODE.format(where, current.version, spec.release, shown, unprotected=UNPROTECTED))
    return stated


def _shown_alike(spec: Spec) -> str:
    """How newcomers are shown the other way than the spec says: by block, or in cohorts."""
    if spec.newcomers is not None:
        instead = "" if spec.versions.newcomers is None else " instead of `newcomers`"
        return f"Write `versions: {{cohort: auto}}`{instead}"
    if not spec.lags:
        return "Leave out `versions.on_refusal`"
    return f"Cohorts need {spec.without_cohorts}" if spec.without_cohorts else "Leave out `versions.cohort`"


def named_map(spec: Spec, store: Store) -> NamedMap | None:
    """The map that `search.node` names, None where it names none.

    Raises InputError where the version was never published, has a node, or is gone with its map, or its map is of other
    quasi-identifiers; QblockError where what
    is kept of it was altered.
    """
    number = spec.map_version
    if number is None:
        return None
    with store.read() as reader:
        events = [e for e in reader.history(spec.release) if e.version is not None and e.state in PUBLISHING]
        there = {e.version: e for e in events if e.node is None and reader.reference(spec.release, e.version or 0)}
    where, listed = spec.at("search", "node", "version"), ", ".join(map(str, sorted(v or 0 for v in there)))
    remedy = f"name one of {listed}" if listed else "leave search.node out, and a map is searched for"
    if number in there:
        stated = map_of(spec, store, there[number])
        assert stated is not None
        names = stated["quasi_identifiers"]
        if names != list(spec.quasi_identifiers):
            raise InputError(
                f"{where}: the recoding map of version {number} is of {', '.join(names)}, and the quasi-identifiers of "
                f"the spec are {', '.join(spec.quasi_identifiers)}. Write them as they were, in that order, or leave "
                "search.node out"
            )
        return NamedMap(there[number], stated)
    published = next((event for event in events if event.version == number), None)
    if published is None:
        raise InputError(f"{where}: version {number} of release {spec.release} was never published; {remedy}")
    if published.node is not None:
        raise InputError(f"{where}: version {number} was published at a node and has no recoding map; {remedy}")
    raise InputError(f"{where}: version {number} was retired, and its recoding map with it; {remedy}")


def map_named_by(spec: Spec) -> Mapping[str, Any] | None:
    """The map that `search.node` names, as it is kept, for whoever publishes nothing. Raises what `named_map` does."""
    if spec.map_version is None:
        return None
    named = named_map(spec, store_of(spec))
    return None if named is None else named.stated


def map_of(spec: Spec, store: Store, event: RecordedEvent, text: str | None = None) -> Mapping[str, Any] | None:
    """The map that a version was published with, None for a node. text: of what is kept with it, if it was read.

    Raises QblockError where it was altered.
    """
    if event.node is not None or event.version is None:
        return None
    if text is None:
        with store.read() as reader:
            text = reader.reference(spec.release, event.version)
    if text is None or kept_digest(text) != event.reference_digest:
        raise QblockError(f"the quantities kept with version {event.version}, its map among them, were altered")
    return Kept.of_text(text).map


def node_of(spec: Spec, store: Store, event: RecordedEvent) -> Node | None:
    """The node that a version was published at, also where it is kept as a map that splits nothing.

    None of another map, and of one that was altered or is gone, which is said where it is needed.
    """
    if event.node is not None:
        return event.node
    with suppress(QblockError):
        stated = map_of(spec, store, event)
        if stated is not None and not stated["splits"]:
            return tuple(stated["start"])
    return None


FIRST: RangesShown = "columns"


def ranges_of(event: RecordedEvent | None, kept: str | None) -> RangesShown:
    """How a version shows them, by the quantities kept with it; `columns` where there is no version."""
    if event is None:
        return FIRST
    try:
        return "text" if kept is None else Kept.of_text(kept).ranges
    except QblockError:  # which is said where the version is needed
        return "text"


def columns_kept(kept: str | None) -> tuple[PublishedColumn, ...]:
    """The columns of a version, by the quantities kept with it; none where there is no version."""
    try:
        return () if kept is None else Kept.of_text(kept).columns
    except QblockError:  # which is said where the version is needed
        return ()


def shown_now(spec: Spec, store: Store) -> tuple[RangesShown, tuple[PublishedColumn, ...]]:
    """How the next version would show bounds, and the columns that readers see."""
    if not store.exists:
        return spec.publish.ranges or FIRST, ()
    with store.read() as reader:
        current = reader.current(spec.release)
        kept = reader.reference(spec.release, current.version) if current else None
    ranges = spec.publish.ranges or ranges_of(current.event if current else None, kept)
    return ranges, columns_kept(kept)
