"""Counts of a population in another table of the warehouse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Blocks
from qblock.errors import InputError
from qblock.frequency import FrequencySets, number
from qblock.frequency.coding import Coding
from qblock.frequency.packing import packed
from qblock.hierarchy import TOP
from qblock.lattice import Node
from qblock.source.columns import check_covered
from qblock.source.local import beside
from qblock.source.recoded import Recoding
from qblock.source.table import SourceTable
from qblock.warehouse.protocol import TableName
from qblock.warehouse.queries import Expression, whole


class Population:
    """The blocks of a population table over the same quasi-identifiers, node by node."""

    def __init__(self, source: SourceTable, table_name: str, place: str, prefix: str = "qblock_population") -> None:
        session, spec = source.session, source.spec
        table = TableName.parse(table_name)
        columns = session.columns(table)
        missing = [name for name in spec.quasi_identifiers if name not in columns]
        if missing:
            raise InputError(
                f"{place}: the population {table} has no column {missing[0]!r}; it needs every quasi-identifier"
            )
        relation = session.relation(table)
        quasi = dict(zip(spec.quasi_identifiers, source.dimensions, strict=True))

        def value(name: str) -> Expression:
            own, theirs = source.columns[name], columns[name]
            expression = session.comparable(relation.c[name], theirs)
            return (
                expression
                if own.kind == theirs.kind
                else session.convert(session.text_of(expression, theirs.kind), own)
            )

        coded = {name: (value(name), dimension) for name, dimension in quasi.items()}
        coding = Coding(source.hierarchies, ())
        base = session.store(f"{prefix}_base", packed(relation, coding, list(coded.values()), ()))
        session.analyze(base)
        try:
            rows = check_covered(spec, session, base, coding.words, relation, coded, source.columns, False)
        except InputError as error:
            said = (f"{place}: in the population {table}: {line}" for line in error.args)
            raise InputError(*said) from None
        self._leaves = [d.leaves for d in source.dimensions]
        sets = FrequencySets(session, base, coding, rows, name=f"{prefix}_set")
        self.frequency_sets = beside(source, sets, f"{prefix}_set")
        bottom = self.frequency_sets.lattice.bottom
        mine = self.counted(bottom, source.frequency_sets.blocks(bottom, ())[0])
        lost = 0 if mine.population is None else int(np.count_nonzero(mine.population == 0))
        if lost:
            raise InputError(
                f"{place}: {lost} combinations of quasi-identifiers of the source are not in the population {table}; "
                "a population must hold everybody who is in the source"
            )

    def counted(self, node: Node, blocks: Blocks) -> Blocks:
        """The blocks with the population's rows in each, and the sizes of the population's other blocks."""
        theirs = self.frequency_sets.blocks(node, ())[0]
        assert blocks.keys is not None
        assert theirs.keys is not None
        numbers, _ = number(np.concatenate([blocks.keys, theirs.keys]), self._leaves)
        rows = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
        rows[numbers[len(blocks) :]] = theirs.rows
        alone = ~np.isin(numbers[len(blocks) :], numbers[: len(blocks)])
        return replace(blocks, population=rows[numbers[: len(blocks)]], population_only=theirs.rows[alone])


class RecodedPopulation:
    """The same of a source that a recoding map shows, by which the population is recoded, too."""

    def __init__(self, source: SourceTable, table_name: str, place: str) -> None:
        session, spec = source.session, source.spec
        table = TableName.parse(table_name)
        assert source.recoding is not None
        recoding = Recoding(source.recoding.spec, source.recoding.stated)
        try:
            labelled = recoding.relation(session, session.relation(table), session.columns(table))
        except InputError as error:
            raise InputError(f"{place}: in the population {table}: {error}") from None
        names = [labelled.c[name] for name in spec.quasi_identifiers]
        columns = [name.label(f"t{i}") for i, name in enumerate(names)]
        combinations = session.fetch(sa.select(*columns, whole(sa.func.count()).label("n")).group_by(*names))
        session.drop(labelled)
        self._labels = [hierarchy.labels for hierarchy in source.hierarchies]
        texts = zip(*(combinations[f"t{i}"].to_pylist() for i in range(len(names))), strict=True)
        self._rows = dict(zip(texts, combinations["n"].to_pylist(), strict=True))

    def counted(self, node: Node, blocks: Blocks) -> Blocks:
        """As of `Population`."""
        assert blocks.keys is not None
        rows: dict[tuple[str, ...], int] = {}
        for texts, n in self._rows.items():
            key = tuple(TOP if level else text for level, text in zip(node, texts, strict=True))
            rows[key] = rows.get(key, 0) + n
        shown = [labels[level] for labels, level in zip(self._labels, node, strict=True)]
        keys = [tuple(str(text[code]) for text, code in zip(shown, key, strict=True)) for key in blocks.keys.tolist()]
        counted = np.array([rows.pop(key, 0) for key in keys], dtype=np.int64)
        return replace(blocks, population=counted, population_only=np.array(sorted(rows.values()), dtype=np.int64))
