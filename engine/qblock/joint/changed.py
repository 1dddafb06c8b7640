"""Where more than a tenth of the people who stay have another value at once, J1-linked must hold as well.

J1 takes a changed value for one person who left and another who came: sound where nobody knows whose value changed, and
releases.md section 2 has the histories that it lets through where somebody does (v1 b,a,a all change; v2 a,a,b,b with
one newcomer: the newcomer is a). A recode of the column changes everybody at once, so that everybody knows; and every
episode of the version before ends with it, so that what both versions tell together is no longer checked.

What it costs: in J1-linked one person who changed alone, among people with equal labels, is a joint cell of one and
refuses the version; a change in a tenth of the people or fewer is checked as the spec says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.joint.crosswalk import Book
from qblock.joint.episodes import PUBLISHED, VersionKey
from qblock.joint.gate import Verdict, check, members
from qblock.joint.versions import Candidate, recorded
from qblock.spec import Spec

ONE_IN = 10
"""More than one in so many of those who stay: then it counts as known who changed."""


@dataclass(frozen=True)
class Changed:
    """How many of those whom a version shows are in the candidate as well, and of them, how many with another value."""

    key: VersionKey
    stayed: int
    changed: int

    @property
    def too_many(self) -> bool:
        return ONE_IN * self.changed > self.stayed

    @property
    def detail(self) -> dict[str, int]:
        """For the private ledger."""
        return {"stayed": self.stayed, "values_changed": self.changed}

    def __str__(self) -> str:
        return (
            f"of {self.stayed} people whom version {self.key.version} of {self.key.release} shows and who stay, "
            f"{self.changed} have another sensitive value, more than a tenth: it counts as known who changed (a column "
            "that is recoded changes everybody)"
        )


def check_changed(
    book: Book, spec: Spec, references: Sequence[Sequence[Reference]], found: Candidate, verdict: Verdict
) -> tuple[Verdict, Changed | None]:
    """The verdict of J1-linked where too many values changed and it fails, else the verdict given.

    verdict: of `check`, with the same arguments. Also what was counted, where too many values changed.
    """
    if not verdict.passed or verdict.mode == "linked":
        return verdict, None
    counted = [one for one in changes(book, spec, found) if one.too_many]
    if not counted:
        return verdict, None
    linked = check(book, spec, references, found, mode="linked")
    return verdict if linked.passed else linked, counted[0]


def changes(book: Book, spec: Spec, found: Candidate) -> list[Changed]:
    """What changed since the newest version of each release that the audience may hold, its own first."""
    newest = {v.key.release: v.key for v in members(spec, recorded(book)) if v.key != found.about.key}
    return [_since(book, found, key) for key in sorted(newest.values(), key=lambda key: key.release != spec.release)]


def _since(book: Book, found: Candidate, key: VersionKey) -> Changed:
    t = book.tables.row
    before = (
        sa.select(t.c.entity, t.c.value)
        .where(t.c.release == key.release, t.c.version == key.version, t.c.shown == PUBLISHED)
        .subquery("before")
    )
    both = before.join(found.rows, found.rows.c.entity == before.c.entity)
    differs = sa.func.coalesce(sa.func.sum(sa.case((before.c.value != found.rows.c.value, 1), else_=0)), 0)
    query = sa.select(sa.func.count().label("stayed"), sa.cast(differs, sa.BigInteger).label("changed"))
    (row,) = book.own.fetch(query.select_from(both)).to_pylist()
    return Changed(key, int(row["stayed"]), int(row["changed"]))
