"""The coded table in an embedded database of this process, where nodes are counted in a fraction of the time."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.frequency import FrequencySets
from qblock.source.table import SourceTable
from qblock.warehouse import queries
from qblock.warehouse.engines import ENGINES
from qblock.warehouse.local import gather
from qblock.warehouse.memory import in_bytes
from qblock.warehouse.protocol import Session

MEMORY = "1GiB"
"""The limit that is reckoned with where the spec gives none."""
SHARE = 4
"""The coded table may take one of so many parts of it; hubs take the rest."""
BYTES = 8
"""Of a word of a key, or of the number of an entity."""
FEW = 3
"""Nodes that are counted in the warehouse before the table has been brought here."""
LEAST_ROWS = 20_000
"""Below, a statement of the embedded database costs as much as one of a server, where each is not a job."""


def fits(rows: int, words: int, *, entities: bool, limit: str | None) -> bool:
    """Whether so many coded rows take a quarter of the memory limit at most."""
    return rows * BYTES * (words + entities) * SHARE <= in_bytes(limit or MEMORY)


def pays(source: SourceTable) -> bool:
    """Whether a search is quicker with the coded table here, and the table small enough for that."""
    jobs = ENGINES[source.session.engine].facts.statements_are_jobs
    return (jobs or source.rows >= LEAST_ROWS) and len(source.lattice) > FEW and _fits(source)


def _fits(source: SourceTable, further: int = 0) -> bool:
    """further: rows with the same keys."""
    sets, limit = source.frequency_sets, source.spec.search.memory_limit
    return fits(source.rows + further, sets.coding.words, entities=sets.entities, limit=limit)


def local_frequency_sets(source: SourceTable, local: Session) -> SourceTable:
    """The same source with its coded table in an embedded database from here on.

    Entities are numbered in the warehouse: what identifies them stays there.
    """
    sets, session = source.frequency_sets, source.session
    coded = sets.base
    if sets.entities:
        number = queries.whole(sa.func.dense_rank().over(order_by=coded.c.e)).label("e")
        words = [column for column in coded.c if column.key != "e"]
        coded = session.store("qblock_numbered", sa.select(*words, number))
    moved = _brought(sets, coded, session, local)
    if coded is not sets.base:
        session.drop(coded)
    return replace(source, frequency_sets=moved)


def beside(source: SourceTable, sets: FrequencySets, name: str) -> FrequencySets:
    """Frequency sets of another table of the warehouse, where those of the source are counted, if they fit there.

    name: of its temporary tables. sets: whose rows are counted, not entities.
    """
    session, local = source.session, source.frequency_sets.session
    if local is session or not _fits(source, sets.rows):
        return sets
    return _brought(sets, sets.base, session, local, name)


def _brought(
    sets: FrequencySets, coded: sa.TableClause, session: Session, local: Session, name: str = "qblock_frequency_set"
) -> FrequencySets:
    base = gather(local, sets.base.name, [column.name for column in coded.c], session.pull(coded))
    rows = int(local.scalar(sa.select(sa.func.count()).select_from(base)))
    if rows != sets.rows:
        raise QblockError(
            f"{rows} of {sets.rows} coded rows were brought here; this is a fault of qblock or of the database, and "
            "nothing may be published from it"
        )
    moved = FrequencySets(local, base, sets.coding, rows, entities=sets.entities, name=name, memory=sets.memory)
    moved.rows_read = sets.rows_read + rows
    return moved
