"""Newcomers wait in cohorts that close by size alone (`versions.on_refusal: hold_back`).

Waiting "until diverse" discloses: if two newcomers, enough by number, still wait, they share a value. So who waits
depends on sizes and quasi-identifiers only. The newcomers of a block are all people in it who were never shown. When
there are `cohort` of them, they form a cohort and are released; one that fails its check stays out for good, and is
never topped up. The job's turn: open the source; `newcomers`; open it again with Admission(admitted=found.admitted);
check; where it refuses, `failing`, `keep_out`, and begin again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.joint.admission import Admission
from qblock.joint.crosswalk import Book
from qblock.joint.excluded import COHORT, OUT, set_apart
from qblock.joint.gate import Verdict, members_of
from qblock.joint.versions import Candidate, coded, entity_of, least_rows
from qblock.lattice import Node
from qblock.source import SourceTable
from qblock.spec import Spec


@dataclass(frozen=True)
class Cohort:
    """Newcomers of one block who are released together. block: its codes; members: their digests."""

    block: tuple[int, ...]
    members: tuple[str, ...]


@dataclass(frozen=True)
class Newcomers:
    """Everybody who was never shown. waiting: how many do not form a cohort yet."""

    cohorts: tuple[Cohort, ...]
    waiting: int

    @property
    def admitted(self) -> list[str]:
        """The digests that an Admission lets in."""
        return [member for cohort in self.cohorts for member in cohort.members]


def check_cohorts(spec: Spec) -> None:
    """Raise InputError where newcomers are to wait and the spec does not say until when."""
    if spec.checked_together and (spec.versions.on_refusal == "hold_back" or spec.versions.cohort is not None):
        cohort_size(spec)


def cohort_size(spec: Spec) -> int:
    """The size that closes a cohort. Raises InputError where there is none, or one smaller than any block must be."""
    least, asked = least_rows(spec.privacy), spec.versions.cohort
    if asked is None or asked < least:
        raise InputError(
            f"{spec.at('versions', 'cohort')}: newcomers wait until there are `cohort` of them; give a number of at "
            f"least {least}, the rows that every block must have; several times as many make it likely that a cohort "
            "passes"
        )
    return asked


def newcomers(book: Book, source: SourceTable, admission: Admission, node: Node) -> Newcomers:
    """The newcomers of each block of a node and the cohorts that they form, by sizes and quasi-identifiers alone.

    source: opened by `admission` with newcomers let in. node: the one that all versions keep. Raises as `cohort_size`.
    """
    size = cohort_size(source.spec)
    blocks = by_block(book, source, node, admission.known, known=False)
    closing = [Cohort(key, found) for key, found in sorted(blocks.items()) if len(found) >= size]
    waiting = sum(len(found) for found in blocks.values() if len(found) < size)
    return Newcomers(tuple(closing), waiting)


def by_block(
    book: Book, source: SourceTable, node: Node, others: sa.FromClause | None, *, known: bool
) -> dict[tuple[int, ...], tuple[str, ...]]:
    """The digests of people in each block of a node who are in another relation (`known`), or who are not."""
    joined, codes = coded(source, node)
    columns = [entity_of(book, source).label("entity"), *(c.label(f"q{i}") for i, c in codes.items())]
    rows = sa.select(*columns).select_from(joined).subquery("rows")
    query = sa.select(*rows.c)
    if others is not None:
        joining = rows.outerjoin(others, others.c.entity == rows.c.entity)
        query = query.select_from(joining).where(others.c.entity.is_not(None) == known)
    found: dict[tuple[int, ...], list[str]] = {}
    for row in source.session.fetch(query.order_by(rows.c.entity)).to_pylist():
        found.setdefault(tuple(int(row.get(f"q{i}", 0)) for i in range(len(node))), []).append(row["entity"])
    return {key: tuple(entities) for key, entities in found.items()}


def failing(
    book: Book, spec: Spec, verdict: Verdict, candidate: Candidate, cohorts: Sequence[Cohort]
) -> tuple[list[Cohort], set[str]]:
    """The cohorts that are in cells that fail, right after the check, and the other people in such cells.

    Somebody whose value changed begins an episode in the cells of newcomers, and cannot be held back: that would reveal
    it.
    """
    query = members_of(book, spec, verdict.names, candidate, verdict.mode)
    entities = set(book.own.fetch(query)["entity"].to_pylist())
    waited = {member for cohort in cohorts for member in cohort.members}
    return [cohort for cohort in cohorts if entities & set(cohort.members)], entities - waited


def keep_out(book: Book, spec: Spec, failed: Sequence[Cohort], version: int) -> None:
    """Keep cohorts out for good. In a book of its own, so that it outlasts a run that is refused."""
    entities = [member for cohort in failed for member in cohort.members]
    set_apart(book, spec.release, entities, COHORT, OUT, version)
