"""The unit: one leaf-level GROUP BY of a spec's table, over all raw quasi-identifiers and sensitive attributes."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from benchmarks.clock import Clock, Taken, medians
from benchmarks.runner import url_of
from qblock.engines.from_spec import warehouse_of
from qblock.engines.tables import TableName
from qblock.spec import load_spec


def one_group_by(path: Path, runs: int = 5) -> Taken:
    """Medians of several such GROUP BYs."""
    return medians(group_bys(path, runs))


def group_bys(path: Path, runs: int = 3) -> list[Taken]:
    """What the GROUP BY alone takes, each time in a new session with the settings of the spec's."""
    spec = load_spec(path)
    clock = Clock(url_of(spec))
    names = [*spec.quasi_identifiers, *spec.sensitives]
    timed = []
    for _ in range(runs):
        warehouse = warehouse_of(spec)
        with warehouse.snapshot() as session:
            relation = session.relation(TableName.parse(spec.source.table))
            columns = [relation.c[name] for name in names]
            query = sa.select(*columns, sa.func.count().label("qblock_rows")).group_by(*columns)
            timed.append(clock.measured(lambda s=session, q=query: s.store("qblock_unit", q)))
        warehouse.close()
    return timed
