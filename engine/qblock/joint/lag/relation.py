"""What stands for the source while the steady job makes a version: everybody, as that version shows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import sqlalchemy as sa

from qblock.joint.admission import Admission, part_of
from qblock.joint.crosswalk import fresh_name, open_book
from qblock.joint.lag.memory import Layout, Row
from qblock.joint.versions import DIGEST
from qblock.warehouse.protocol import Column, Session


@dataclass(eq=False)
class Shown(Admission):
    """The hook of `open_source` that gives the state shown: `open_source(spec, session, relation=Shown(...))`.

    layout: its columns; gone: digests of the units of the snapshot that are in it no more; rows: units that are new,
    or shown otherwise than in the snapshot.
    """

    layout: Layout = field(default_factory=partial(Layout, (), (), ()))
    gone: Collection[str] = ()
    rows: Mapping[str, Row] | None = None

    def __call__(self, session: Session, table: sa.TableClause, columns: dict[str, Column]) -> sa.FromClause:
        """The state as a query with the columns that a release reads, and digests."""
        rows = self.rows or {}
        with open_book(self.place, session) as book:
            t, own = book.tables.shown, book.own
            query = sa.select(t.c.entity, t.c.place, t.c.value).where(t.c.release == self.spec.release)
            without = sorted({*self.gone, *rows})
            if without:
                loaded = own.load(fresh_name(), pa.table({"entity": pa.array(without, pa.string())}))
                query = query.where(t.c.entity.not_in(sa.select(loaded.c.entity)))
            kept = book.lend(query)
        texts = {
            "entity": pa.array(list(rows), pa.string()),
            "place": pa.array([row.place for row in rows.values()], pa.string()),
            "value": pa.array([str(row.unit.values[-1]) for row in rows.values()], pa.string()),
        }
        new = session.load(fresh_name(), pa.table(texts))
        one = sa.union_all(
            sa.select(kept.c.entity, kept.c.place, kept.c.value), sa.select(new.c.entity, new.c.place, new.c.value)
        ).subquery("qblock_state")
        named = [(name, one.c.place, i) for i, name in enumerate(self.layout.quasi)]
        named += [(name, one.c.value, i) for i, name in enumerate(self.layout.valued)]
        values = [session.convert(part_of(text, i), columns[name]).label(name) for name, text, i in named]
        shown = sa.select(one.c.entity.label(DIGEST), *values).subquery("qblock_shown")
        self.everybody = shown
        return shown
