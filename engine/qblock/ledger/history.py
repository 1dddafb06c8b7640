"""The ledger of a release as an answer."""

from __future__ import annotations

from typing import Any

from qblock.ledger.events import LISTS, PUBLISHING, RecordedEvent, time_text
from qblock.ledger.stores import store_of
from qblock.spec import Spec


def history(spec: Spec) -> dict[str, Any]:
    """Every event of a release, oldest first, and the guarantees of each version.

    current: the version that readers see; age_seconds, stale: since it was published, and whether that is longer than
    the spec allowed (None: it allowed any). retired_at: when the view was taken away, if it was. margin_trend: how
    the distance between asked and satisfied changes.
    """
    with store_of(spec).read() as reader:
        events = reader.history(spec.release)
        current = reader.current(spec.release)
        guarantees = [
            {"version": event.version, "state": event.state, **vars(guarantee)}
            for event in events
            if event.state in PUBLISHING
            for guarantee in reader.guarantees(spec.release, event.number)
        ]
        head = reader.head(spec.release)
        retired = reader.retired_by(spec.release)
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


def _json(event: RecordedEvent) -> dict[str, Any]:
    row = dict(vars(event))
    row["recorded_at"] = time_text(event.recorded_at)
    row["stale_after"] = None if event.stale_after is None else int(event.stale_after.total_seconds())
    for name in LISTS:
        row[name] = None if row[name] is None else list(row[name])
    row["detail"] = dict(event.detail)
    del row["private_state"]  # of events that are not listed
    return row
