"""A source as a recoding map shows it: a table whose quasi-identifiers are the labels of the boxes.

So all that comes after the search is what it is for a node: blocks, copy, crosswalk and recheck see such a table at the
bottom of hierarchies of two levels, the label and `*`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock import comparison
from qblock.blocks import Ints
from qblock.engines.arrow import whole_numbers
from qblock.engines.queries import Expression, Query
from qblock.engines.registry import ENGINES
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.errors import Refused
from qblock.frequency.coding import Coding, packed
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.cuts import shown
from qblock.hierarchy.labels import texts, whole
from qblock.recoding import Keys, Label, Ladder, PartedLeaves, Tree, replay
from qblock.source.columns import (
    Coded,
    Scan,
    check_covered,
    code_quasi_identifiers,
    columns_read,
    nothing_left,
    rows_uncovered,
    without_uncovered,
)
from qblock.source.levels import reader_of
from qblock.spec import Attribute, Spec
from qblock.spec.sources import Cuts, Suppress

NAMES = itertools.count()
LEAF = "qblock leaf"
"""How the columns are named that have the values of quasi-identifiers as the source writes them, where newcomers with
several rows are told apart by these."""
AS_NUMBER = "qblock number"
"""How the columns are named that have the numbers of quasi-identifiers, where means of these are published."""
PERSON = "qblock person"
"""The column that says who a row is of."""
Boxes = dict[tuple[str, ...], int]
"""The part of the tree that each box is, by its labels."""


def recoded_spec(spec: Spec) -> Spec:
    """The spec of a table whose quasi-identifiers are labels: nothing of them is left to be searched."""
    attributes = {
        name: Attribute(role="quasi_identifier", hierarchy=Suppress(), unknown=of.unknown, same=of.same)
        if name in spec.quasi_identifiers
        else of
        for name, of in spec.attributes.items()
    }
    node = (0,) * len(spec.quasi_identifiers)
    return replace(spec, attributes=attributes, search=replace(spec.search, node=node))


def recoded_columns(spec: Spec, columns: Mapping[str, Column], engine: str) -> dict[str, Column]:
    """The columns of a source whose quasi-identifiers are labels."""
    text = ENGINES[engine].adapter.text_type
    return {
        name: Column(name, text, "text", text) if name in spec.quasi_identifiers else column
        for name, column in columns.items()
    }


def ladders_of(
    spec: Spec, hierarchies: Sequence[Hierarchy], columns: Mapping[str, Column], finest: Sequence[int] | None = None
) -> tuple[Ladder, ...]:
    """The labels of each quasi-identifier. Of a grid of cuts the cells are the finest: no label is a value.

    finest: the levels of the finest labels, where they are not those of the values.
    """
    ladders = []
    levels = finest or [0] * len(hierarchies)
    for name, hierarchy, least in zip(spec.quasi_identifiers, hierarchies, levels, strict=True):
        form, kind = spec.attributes[name].hierarchy, columns[name].kind
        grid = form.cuts.grid if isinstance(form, Cuts) else None
        ladders.append(
            Ladder(
                hierarchy,
                kind,
                finest=max(least, 0 if grid is None else 1),
                half_open=getattr(form, "labels", "plain") == "half_open",
                reader=reader_of(spec, name, kind, hierarchy),
                ends=None if grid is None else (shown(grid.low), shown(grid.high)),
            )
        )
    return tuple(ladders)


class Recoding:
    """The hook of `open_source` that recodes it. spec: the release's own; stated: the map as JSON (Tree.to_json, and
    `boxes`: the part of each box and its labels).

    After the first call: hierarchies and columns (before), of the source as it is; tree; read: how the labels of its
    boxes read; quarantined: rows that were left out since a hierarchy does not cover them yet.
    """

    hierarchies: tuple[Hierarchy, ...] = ()
    tree: Tree
    read: Mapping[Label, str]

    def __init__(self, spec: Spec, stated: Mapping[str, Any]) -> None:
        self.spec, self.stated = spec, dict(stated)
        self.quarantined = 0
        self.before: dict[str, Column] = {}
        self._seen: Boxes = {}
        """Of the map, and those that somebody who came later is the first in."""
        self._of_cohorts: list[dict[str, Label]] = [{} for _ in spec.quasi_identifiers]

    def columns(self, columns: Mapping[str, Column], engine: str) -> dict[str, Column]:
        self.before = dict(columns)
        return recoded_columns(self.spec, columns, engine)

    def part(self, labels: tuple[str, ...]) -> int | None:
        """The part of the tree that a box is; None for one that nobody of the source is in now."""
        return self._seen.get(labels)

    def add_cohorts(self, maps: Sequence[Mapping[str, Any]]) -> None:
        """Let boxes be those of the maps of cohorts, too. maps: all of them, as they are kept."""
        self.stated = {name: kept for name, kept in self.stated.items() if name != "cohorts"}
        if maps:
            self.stated["cohorts"] = list(maps)
        nothing = np.zeros(0, dtype=np.int64)
        for stated in maps:
            for of, labels in zip(self._of_cohorts, stated["labels"], strict=True):
                for text, level, form, leaves in labels:
                    of[text] = Label(level, nothing, leaves, form)

    def rests(self, ladders: Sequence[Ladder]) -> list[dict[str, frozenset[str | None]]]:
        """For each quasi-identifier, how the rests of all maps so far read and the leaves that each stands for."""
        rests: list[dict[str, frozenset[str | None]]] = [{} for _ in ladders]
        trees = [Tree.of_json(stated, ladders) for stated in self.stated.get("cohorts", ())]
        for tree in (self._tree_over(ladders), *trees):
            for i, (of, ladder) in enumerate(zip(rests, tree.ladders, strict=True)):
                known = (label for label in tree.used(i) if label.rest and label.stated is not None)
                of |= {str(label.stated): ladder.leaves_of(label) for label in known}
        return rests

    def _tree_over(self, ladders: Sequence[Ladder]) -> Tree:
        """The map over the labels of hierarchies: as it is, where those of the source are the same."""
        pairs = zip(self.tree.ladders, ladders, strict=True)
        if all(own.is_like(ladder) for own, ladder in pairs):
            return self.tree
        return Tree.of_json(self.stated, ladders)

    def labels(self, texts: tuple[str, ...]) -> tuple[tuple[Label, str], ...] | None:
        """The labels of a box with their texts; None where they are of no map."""
        part = self.part(texts)
        if part is not None:
            return tuple(zip(self.tree.labels[part], texts, strict=True))
        known = [of.get(text) for of, text in zip(self._of_cohorts, texts, strict=True)]
        labels = tuple(label for label in known if label is not None)
        return tuple(zip(labels, texts, strict=True)) if len(labels) == len(texts) else None

    def path(self, labels: tuple[str, ...]) -> list[int]:
        """The parts that a box was split from, the whole table first and itself last; none where that is not known."""
        part = self.part(labels)
        return [] if part is None else self.tree.path(part)

    def relation(self, session: Session, base: sa.FromClause, columns: Mapping[str, Column]) -> sa.TableClause:
        """The rows of a table of the warehouse with the columns that a release reads, quasi-identifiers as labels.

        Raises InputError as opening the source does.
        """
        spec, names, prefix = self.spec, self.spec.quasi_identifiers, f"qblock_map_{next(NAMES)}"
        scan = Scan(spec, session, base, dict(columns))
        quasi = code_quasi_identifiers(scan, f"{prefix}_dimension_")
        self.hierarchies = tuple(hierarchy for hierarchy, _ in quasi.values())
        self.quarantined = rows_uncovered(scan, quasi)
        if self.quarantined:
            scan = without_uncovered(scan, quasi)
        read = [name for name in columns_read(spec) if name in columns and name not in names]
        kept: dict[str, Expression] = {f"c{i}": scan.relation.c[name] for i, name in enumerate(read)}
        leaf = leaf_texts(scan) if spec.by_leaves else []
        kept |= {f"l{i}": text for i, text in enumerate(leaf)}
        means = spec.publish.typical != "none"
        numbers = [i for i, name in enumerate(names) if means and columns[name].kind in comparison.NUMBERS]
        kept |= {f"n{i}": scan.expression(names[i]) for i in numbers}
        coding, rows, there = _coded_rows(scan, quasi, f"{prefix}_rows", kept)
        if not there:  # hierarchies of no values may lack levels that the map has
            raise Refused(nothing_left(spec, uncovered=self.quarantined > 0))
        words = [f"k{i}" for i in range(coding.words)]
        combinations: Query = sa.select(
            *(rows.c[word] for word in words), sa.cast(sa.func.count(), sa.BigInteger).label("n")
        ).group_by(*(rows.c[word] for word in words))
        leaves = PartedLeaves(session, session.store(f"{prefix}_keys", combinations), range(coding.words))
        self.tree = Tree.of_json(self.stated, ladders_of(spec, self.hierarchies, columns))
        labels = self._labels(session, f"{prefix}_labels", replay(self.tree, leaves, Keys(coding, range(coding.words))))
        parts = leaves.table
        joined = rows.join(parts, sa.and_(*(rows.c[word] == parts.c[word] for word in words)))
        joined = joined.join(labels, labels.c.part == parts.c.part)
        selected: dict[str, Expression] = {name: rows.c[f"c{i}"] for i, name in enumerate(read)}
        selected |= {name: sa.cast(labels.c[f"t{i}"], sa.Text) for i, name in enumerate(names)}
        ordered = [name for name in columns if name in selected]
        as_written = [rows.c[f"l{i}"].label(quoted_name(f"{LEAF} {i}", quote=True)) for i in range(len(leaf))]
        as_written += [rows.c[f"n{i}"].label(quoted_name(f"{AS_NUMBER} {i}", quote=True)) for i in numbers]
        query = sa.select(*(selected[name].label(quoted_name(name, quote=True)) for name in ordered), *as_written)
        labelled = session.store(f"{prefix}_recoded", query.select_from(joined))
        leaves.drop()
        for table in (rows, labels, *(dimension.table for _, dimension in quasi.values())):
            session.drop(table)
        return labelled

    def _labels(self, session: Session, name: str, parts: list[int]) -> sa.TableClause:
        tree, read = self.tree, self.tree.texts(parts)
        self.read = read
        labels_of = {part: tuple(read[label] for label in tree.labels[part]) for part in parts}
        self._seen |= {labels: part for part, labels in labels_of.items()}
        width = len(self.spec.quasi_identifiers)
        arrays = {"part": whole_numbers(np.array(parts, dtype=np.int64))}
        arrays |= {f"t{i}": texts([labels_of[part][i] for part in parts]) for i in range(width)}
        table = session.load(name, pa.table(arrays))
        session.analyze(table)
        return table


def leaf_texts(scan: Scan) -> list[Expression]:
    """The quasi-identifiers of rows as texts, as the source writes them."""
    names = scan.spec.quasi_identifiers
    return [scan.session.text_of(scan.expression(name), scan.columns[name].kind) for name in names]


def leaf_codes(
    spec: Spec,
    session: Session,
    relation: sa.FromClause,
    columns: Mapping[str, Column],
    person: str,
    wanted: sa.FromClause,
) -> tuple[tuple[Hierarchy, ...], list[str], Ints]:
    """Code the quasi-identifiers of rows, for a map that is made in memory.

    Args:
        relation: all rows with the columns that a release reads, and one that says who each of them is of: hierarchies
            that are made of values are those of the whole source.
        columns: of the source.
        person: the name of that column.
        wanted: the people whose rows are coded, by its first column; a second one has what stands for them in the
            answer.

    Returns:
        The hierarchies, what each row has in the column, ascending, and int64[N, Q], the codes of its leaves. Rows that
        wait for their hierarchies are left out.

    Raises:
        InputError: A value is in no hierarchy.
    """
    prefix = f"qblock_leaves_{next(NAMES)}"
    scan = Scan(spec, session, relation, dict(columns))
    quasi = code_quasi_identifiers(scan, f"{prefix}_dimension_")
    if rows_uncovered(scan, quasi):
        scan = without_uncovered(scan, quasi)
    who, *named = wanted.c
    chosen = scan.relation.join(wanted, who == scan.relation.c[person])
    called = (named[0] if named else scan.relation.c[person]).label(PERSON)
    read = [column for column in scan.relation.c if column.name != person]
    scan = replace(scan, relation=sa.select(*read, called).select_from(chosen).subquery(f"{prefix}_wanted"))
    coding, rows, _ = _coded_rows(scan, quasi, f"{prefix}_rows", {"person": scan.relation.c[PERSON]})
    names = ["person", *(f"k{i}" for i in range(coding.words))]
    fetched = session.fetch(sa.select(*(rows.c[name] for name in names))).sort_by(
        [(name, "ascending") for name in names]
    )
    for table in (rows, *(dimension.table for _, dimension in quasi.values())):
        session.drop(table)
    words = [whole(fetched[name].combine_chunks()).astype(np.int64) for name in names[1:]]
    return coding.hierarchies, fetched["person"].to_pylist(), coding.keys((0,) * len(quasi), words)


def _coded_rows(
    scan: Scan, quasi: Mapping[str, Coded], name: str, kept: Mapping[str, Expression]
) -> tuple[Coding, sa.TableClause, int]:
    """Rows with the keys of their quasi-identifiers, stored under a name, and how many they are. kept: what stands
    beside the keys."""
    coding = Coding([hierarchy for hierarchy, _ in quasi.values()], ())
    coded = {name: (scan.expression(name), dimension) for name, (_, dimension) in quasi.items()}
    rows = scan.session.store(name, packed(scan.relation, coding, list(coded.values()), (), kept))
    return coding, rows, check_covered(scan, rows, coding.words, coded, name_values=False)


def stated_map(tree: Tree, read: Mapping[Any, str], boxes: list[int]) -> dict[str, Any]:
    """A map as it is kept: its splits, and the part of each box with its labels."""
    listed = [[part, [read[label] for label in tree.labels[part]]] for part in boxes]
    return {**tree.to_json(read), "boxes": listed}
