"""What the people of each block want guarded: sets of sensitive values that another table lists per person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Blocks, Guards
from qblock.errors import InputError, counted
from qblock.frequency import FrequencySets, positions
from qblock.frequency.coding import Coding
from qblock.frequency.packing import packed
from qblock.lattice import Node
from qblock.source.table import SourceTable, Values
from qblock.spec import GuardTable
from qblock.warehouse import queries
from qblock.warehouse.protocol import Column, TableName


class GuardSets:
    """The predicates that the source's people guard, and which of them the people of each block guard, node by node.

    sets: each distinct predicate as ascending value codes, what Reference.guarded holds; warnings: for a person.
    """

    def __init__(
        self, source: SourceTable, guards: GuardTable, values: Values, place: str, prefix: str = "qblock_guards"
    ) -> None:
        self._source, self._place, self._prefix = source, place, prefix
        self._table = TableName.parse(guards.table)
        self._leaves = [d.leaves for d in source.dimensions]
        scan = self._scan(self._people(guards, values))
        texts = source.session.fetch(sa.select(scan.c.members).distinct())["members"].to_pylist()
        self.sets = tuple(sorted({_codes(text) for text in texts}))
        whole = sum(len(members) == values.reference.values > 1 for members in self.sets)
        if whole:
            raise InputError(
                f"{place}: a person of {self._table} guards every value of {values.name}; a set of values to guard "
                "must leave some out"
            )
        self.warnings = [] if texts else [f"{place}: nobody in the source is in {self._table}, so nothing is guarded"]
        self.frequency_sets = self._counts(scan, texts)

    def counted(self, node: Node, blocks: Blocks) -> Blocks:
        """The blocks with what their people guard."""
        theirs = self.frequency_sets.blocks(node, (0,))[0]
        assert blocks.keys is not None
        assert theirs.keys is not None
        place = positions(theirs.keys, blocks.keys, self._leaves)
        theirs = theirs.select(np.argsort(place))
        sizes = np.zeros(len(blocks), dtype=np.int64)
        sizes[np.sort(place)] = theirs.support
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return replace(blocks, guards=Guards(start, theirs.value))

    def _people(self, guards: GuardTable, values: Values) -> sa.TableClause:
        """Each person (e) with each of the person's sets of values (members: their codes as text)."""
        session, spec = self._source.session, self._source.spec
        assert spec.entity is not None
        columns = session.columns(self._table)
        for name in guards.columns:
            if name not in columns:
                raise InputError(
                    f"{self._place}: the table of predicates {self._table} has no column {name!r}; "
                    f"its columns are {', '.join(columns)}"
                )
        relation = session.relation(self._table)
        scanned = {
            "e": self._as(relation.c[guards.entity], columns[guards.entity], self._source.columns[spec.entity]),
            "v": self._as(relation.c[guards.value], columns[guards.value], values.column),
        }
        if guards.group is not None:
            scanned["g"] = session.comparable(relation.c[guards.group], columns[guards.group])
        raw = session.store(f"{self._prefix}_raw", queries.raw_scan(relation, scanned))
        keep = [name for name in scanned if name != "v"]
        coded = session.store(f"{self._prefix}_coded", queries.coded(raw, {"v": values.dimension}, [*keep, "n"]))
        self._check(coded, guards, values.name)
        code = sa.cast(coded.c.v, sa.Text)
        if guards.group is not None:
            members = sa.func.aggregate_strings(code, ",").aggregate_order_by(coded.c.v)
            query = sa.select(coded.c.e, members.label("members")).group_by(coded.c.e, coded.c.g)
        else:
            query = sa.select(coded.c.e, code.label("members")).distinct()
        people = session.store(f"{self._prefix}_people", query)
        for table in (raw, coded):
            session.drop(table)
        return people

    def _as(self, value: sa.ColumnElement[Any], theirs: Column, own: Column) -> sa.ColumnElement[Any]:
        """Another table's column in the type in which the source's column compares."""
        session = self._source.session
        same = session.comparable(value, theirs)
        return same if own.kind == theirs.kind else session.convert(session.text_of(same, theirs.kind), own)

    def _check(self, coded: sa.TableClause, guards: GuardTable, sensitive: str) -> None:
        names = {"e": guards.entity, "v": guards.value, "g": guards.group}
        there = [c.name for c in coded.columns if c.name != "n"]
        uncovered = self._source.session.fetch(queries.uncovered_rows(coded, there)).to_pylist()[0]
        for key in there:
            if uncovered[key]:
                what = f"NULL or not in the domain of {sensitive}" if key == "v" else "NULL"
                rows = counted(uncovered[key], "row")
                raise InputError(
                    f"{self._place}: column {names[key]} of {self._table} is {what} in {rows}; correct the table"
                )

    def _scan(self, people: sa.TableClause) -> sa.TableClause:
        """The raw quasi-identifiers of the people who guard something, by what they guard."""
        source = self._source
        assert source.spec.entity is not None
        expressions = {f"q{i}": source.expression(name) for i, name in enumerate(source.quasi_identifiers)}
        same = source.expression(source.spec.entity) == people.c.e
        columns = {**expressions, "members": people.c.members}
        query = sa.select(*(c.label(name) for name, c in columns.items())).select_from(
            source.relation.join(people, same)
        )
        scan = source.session.store(f"{self._prefix}_scan", query)
        source.session.drop(people)
        return scan

    def _counts(self, scan: sa.TableClause, texts: list[str]) -> FrequencySets:
        """A frequency set whose sensitive attribute is the predicate that somebody guards."""
        source, session = self._source, self._source.session
        codes = {members: code for code, members in enumerate(self.sets)}
        mapping = session.load(
            f"{self._prefix}_sets",
            pa.table(
                {
                    "members": pa.array(texts, pa.string()),
                    "s0": pa.array([codes[_codes(text)] for text in texts], pa.int64()),
                }
            ),
        )
        names = [f"q{i}" for i in range(len(source.dimensions))]
        query = sa.select(*(scan.c[name] for name in names), mapping.c.s0).select_from(
            scan.join(mapping, scan.c.members == mapping.c.members)
        )
        numbered = session.store(f"{self._prefix}_numbered", query)
        quasi = [(numbered.c[name], dimension) for name, dimension in zip(names, source.dimensions, strict=True)]
        coding = Coding(source.hierarchies, (len(self.sets),))
        base = session.store(f"{self._prefix}_base", packed(numbered, coding, quasi, [(numbered.c.s0, None)]))
        for table in (scan, mapping, numbered):
            session.drop(table)
        rows = int(session.scalar(sa.select(sa.func.count()).select_from(base)))
        return FrequencySets(session, base, coding, rows, name=f"{self._prefix}_set")


def _codes(members: str) -> tuple[int, ...]:
    return tuple(sorted({int(code) for code in members.split(",")}))
