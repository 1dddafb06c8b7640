"""Newcomers whose batch passed by the joint cells of their own release, and who fail together with another one."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from qblock.versions.crosswalk import COHORT, OUT, Crosswalk, fresh_name
from qblock.versions.episodes import PUBLISHED
from qblock.versions.lag.memory import cells_of, load, save, units_in
from qblock.versions.people import set_apart
from qblock.warehouse.queries import Query


def never_shown(crosswalk: Crosswalk, release: str, people: Query, shown: Collection[int]) -> frozenset[str]:
    """Those of some people (entity) whom no version that readers saw has shown. shown: these versions."""
    t, own = crosswalk.tables.row, crosswalk.own
    stored = own.store(fresh_name(), people)
    known = sa.select(t.c.entity).where(
        t.c.release == release, t.c.version.in_(list(shown)), t.c.shown == PUBLISHED, t.c.entity == stored.c.entity
    )
    new = frozenset(own.fetch(sa.select(stored.c.entity).where(~known.exists()).distinct())["entity"].to_pylist())
    own.drop(stored)
    return new


def let_fail(crosswalk: Crosswalk, release: str, people: Collection[str]) -> None:
    """Set everybody in the batches of some newcomers apart for good. In a transaction of its own."""
    kept = load(crosswalk, release)
    assert kept is not None
    members = list(units_in(crosswalk, release, cells_of(crosswalk, release, people)))
    save(crosswalk, release, kept, members)
    set_apart(crosswalk, release, members, COHORT, OUT, None)
