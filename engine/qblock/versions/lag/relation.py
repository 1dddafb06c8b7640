"""What stands for the source while the steady job makes a version: everybody, as that version shows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from qblock.versions.admission import Admission
from qblock.versions.crosswalk import fresh_name, open_crosswalk
from qblock.versions.lag.memory import Layout, Row
from qblock.versions.recorded import DIGEST, UNIT
from qblock.versions.texts import owner, part_of, row_of, rows_of, size
from qblock.warehouse.protocol import Column, Session


@dataclass(eq=False)
class Shown(Admission):
    """The hook of `open_source` that gives the state shown: `open_source(spec, session, relation=Shown(...))`.

    layout: its columns; gone: digests of the units of the snapshot that are in it no more; rows: units that are new,
    or shown otherwise than in the snapshot.
    """

    instead = True
    layout: Layout = field(default_factory=partial(Layout, (), (), ()))
    gone: Collection[str] = ()
    rows: Mapping[str, Row] | None = None

    def __call__(self, session: Session, table: sa.TableClause, columns: dict[str, Column]) -> sa.FromClause:
        """The state as a query with the columns that a release reads, and digests."""
        rows = self.rows or {}
        with open_crosswalk(self.place, session) as crosswalk:
            t, own = crosswalk.tables.shown, crosswalk.own
            query = sa.select(t.c.entity, t.c.place, t.c.value).where(t.c.release == self.spec.release)
            without = sorted({*self.gone, *rows})
            if without:
                loaded = own.load(fresh_name(), pa.table({"entity": pa.array(without, pa.string())}))
                query = query.where(t.c.entity.not_in(sa.select(loaded.c.entity)))
            kept = crosswalk.lend(query)
            longest = crosswalk.own.scalar(
                sa.select(sa.func.max(size(t.c.value))).where(t.c.release == self.spec.release)
            )
        texts = {
            "entity": pa.array(list(rows), pa.string()),
            "place": pa.array([row.place for row in rows.values()], pa.string()),
            "value": pa.array([str(row.unit.values[-1]) for row in rows.values()], pa.string()),
        }
        new = session.load(fresh_name(), pa.table(texts))
        state = sa.union_all(
            sa.select(kept.c.entity, kept.c.place, kept.c.value), sa.select(new.c.entity, new.c.place, new.c.value)
        ).subquery("qblock_state")
        if self.spec.bundles:
            shown = self._rows(session, state, columns, max(int(longest or 1), *(map(_length, rows.values())), 1))
        else:
            shown = sa.select(state.c.entity.label(DIGEST), *self._values(session, state, columns)).subquery(
                "qblock_shown"
            )
        self.everybody = shown
        return shown

    def _values(self, session: Session, state: sa.FromClause, columns: dict[str, Column]) -> list[sa.Label[Any]]:
        named = [(name, state.c.place, i) for i, name in enumerate(self.layout.quasi)]
        named += [(name, state.c.value, i) for i, name in enumerate(self.layout.valued)]
        return [session.convert(part_of(text, i), columns[name]).label(name) for name, text, i in named]

    def _rows(self, session: Session, units: sa.FromClause, columns: dict[str, Column], longest: int) -> sa.Subquery:
        """The rows of units, each with the name of its unit; in the place of the entity the digest of its person."""
        assert self.spec.entity is not None
        numbers = session.load(fresh_name(), pa.table({"n": pa.array(range(1, longest + 1), pa.int64())}))
        joined = units.join(numbers, numbers.c.n <= size(units.c.value))
        row = row_of(units.c.value, numbers.c.n)
        rows = sa.select(units.c.entity, units.c.place, row.label("value")).select_from(joined).subquery("qblock_rows")
        person = owner(rows.c.entity)
        who = [rows.c.entity.label(UNIT), person.label(DIGEST), person.label(self.spec.entity)]
        return sa.select(*who, *self._values(session, rows, columns)).subquery("qblock_shown")


def _length(row: Row) -> int:
    return len(rows_of(str(row.unit.values[-1])))
