"""Joint cells that no batch touches any more, while a release is not lagging: kept as the digests of their people.

A release that lags, is published otherwise for a while, and lags again must not try these cells again.
"""

from __future__ import annotations

import json

import sqlalchemy as sa

from qblock.ledger.events import canonical
from qblock.versions.crosswalk import Crosswalk, clear, pad

SET_DOWN = 3
"""Form of what is kept of a release that lagged (`lag.memory` has the others)."""
HAS_STATE = 1


def set_down(crosswalk: Crosswalk, release: str) -> None:
    """Forget what a release that lagged shows and who waits, but for who is in a frozen cell."""
    t, own = crosswalk.tables, crosswalk.own
    text = own.scalar(sa.select(t.steady.c.state).where(t.steady.c.release == release))
    state = {} if text is None else json.loads(text)
    if state.get("form") == SET_DOWN:
        return
    clear(crosswalk, t.waiting, release)
    if state.get("form") == HAS_STATE:
        frozen = [t.shown.c.release == release, t.shown.c.cell.in_(state["frozen"])]
        people = sa.select(t.shown.c.release, t.shown.c.entity).where(*frozen)
        own.run(sa.insert(t.waiting).from_select(["release", "entity"], people))
        pad(crosswalk, t.waiting, release)
        kept = canonical({"form": SET_DOWN})
        own.run(sa.update(t.steady).where(t.steady.c.release == release).values(state=kept))
    else:
        own.run(sa.delete(t.steady).where(t.steady.c.release == release))
    own.run(sa.delete(t.shown).where(t.shown.c.release == release))


def stuck(crosswalk: Crosswalk, release: str) -> set[str]:
    """The digests of people who were in a frozen cell when a release was set down."""
    t = crosswalk.tables
    text = crosswalk.own.scalar(sa.select(t.steady.c.state).where(t.steady.c.release == release))
    if text is None or json.loads(text)["form"] != SET_DOWN:
        return set()
    people = crosswalk.own.fetch(sa.select(t.waiting.c.entity).where(t.waiting.c.release == release))
    return set(people["entity"].to_pylist())
