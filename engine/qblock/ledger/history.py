"""The ledger of a release as an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qblock.ledger.events import LISTS, PUBLISHING, RecordedEvent, time_text
from qblock.ledger.reader import LedgerReader
from qblock.ledger.stores import place_of
from qblock.spec import Spec

UNFINISHED = ("staged", "checked")
"""States of a version whose run has not ended yet."""


def history(spec: Spec) -> dict[str, Any]:
    """Every event of a release, oldest first, and the guarantees of each version.

    current: the version that readers see; age_seconds, stale: since it was published, and whether that is longer than
    the spec allowed (None: it allowed any). retired_at: when the view was taken away, if it was. margin_trend: how
    the distance between asked and satisfied changes.
    """
    with place_of(spec).read() as reader:
        events = reader.history(spec.release)
        current = reader.current(spec.release)
        guarantees = [
            {"version": event.version, "state": event.state, **vars(guarantee)}
            for event in events
            if event.state in ("published", "rolled_back")
            for guarantee in reader.guarantees(spec.release, event.number)
        ]
        head = reader.head(spec.release)
        retired = retired_by(reader, spec.release)
        freshness = reader.freshness(spec.release) or {"age_seconds": None, "stale": None}
        trend = reader.margin_trend(spec.release)
    return {
        "release": spec.release,
        "current": None if current is None else current.version,
        **freshness,
        "retired_at": None if retired is None else time_text(retired.recorded_at),
        "ledger_head": head,
        "events": [_json(event) for event in events],
        "guarantees": guarantees,
        "margin_trend": [{name: row[name] for name in row if name != "release"} for row in trend],
    }


def retired_by(reader: LedgerReader, release: str) -> RecordedEvent | None:
    """The event by which a release was retired, if nothing was published since."""
    last = reader.last_event(release, "published", "rolled_back", "retired_view")
    return last if last is not None and last.state == "retired_view" else None


def _json(event: RecordedEvent) -> dict[str, Any]:
    row = dict(vars(event))
    row["recorded_at"] = time_text(event.recorded_at)
    row["stale_after"] = None if event.stale_after is None else int(event.stale_after.total_seconds())
    for name in LISTS:
        row[name] = None if row[name] is None else list(row[name])
    row["detail"] = dict(event.detail)
    return row


def last_events(reader: LedgerReader, release: str) -> dict[int, RecordedEvent]:
    """The newest event of each version."""
    return {event.version: event for event in reader.history(release) if event.version is not None}


def published_versions(events: Iterable[RecordedEvent]) -> list[int]:
    """The versions that were published and not dropped since; a rollback to one that failed does not undo that."""
    kept: dict[int, None] = {}
    for event in events:
        if event.version is not None and event.state in PUBLISHING:
            kept[event.version] = None
        elif event.version is not None and event.state == "retired":
            kept.pop(event.version, None)
    return list(kept)
