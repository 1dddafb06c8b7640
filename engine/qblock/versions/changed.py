"""Whose sensitive value changed since the newest versions: said where versions fail for those who know that."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import PUBLISHED, VersionKey
from qblock.versions.gate import members
from qblock.versions.versions import Candidate, recorded


@dataclass(frozen=True)
class Changed:
    """How many of those whom a version shows are in the candidate as well, and of them, how many with another value."""

    key: VersionKey
    stayed: int
    changed: int

    def __str__(self) -> str:
        return (
            f"of {self.stayed} people whom version {self.key.version} of {self.key.release} shows and who stay, "
            f"{self.changed} have another sensitive value (a column that is recoded changes everybody)"
        )


def changed_values(crosswalk: Crosswalk, spec: Spec, candidate: Candidate) -> Changed | None:
    """What changed since the newest version of the first release that the audience may hold, its own before others, of
    which anything has."""
    newest = {v.key.release: v.key for v in members(spec, recorded(crosswalk)) if v.key != candidate.about.key}
    keys = sorted(newest.values(), key=lambda key: key.release != spec.release)
    return next((since for key in keys if (since := _since(crosswalk, candidate, key)).changed), None)


def _since(crosswalk: Crosswalk, candidate: Candidate, key: VersionKey) -> Changed:
    t = crosswalk.tables.row
    before = (
        sa.select(t.c.entity, t.c.value)
        .where(t.c.release == key.release, t.c.version == key.version, t.c.shown == PUBLISHED)
        .subquery("before")
    )
    both = before.join(candidate.rows, candidate.rows.c.entity == before.c.entity)
    differs = sa.func.coalesce(sa.func.sum(sa.case((before.c.value != candidate.rows.c.value, 1), else_=0)), 0)
    query = sa.select(sa.func.count().label("stayed"), sa.cast(differs, sa.BigInteger).label("changed"))
    (row,) = crosswalk.own.fetch(query.select_from(both)).to_pylist()
    return Changed(key, int(row["stayed"]), int(row["changed"]))
