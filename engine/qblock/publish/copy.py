"""The copy that is published: one statement over the source, generalized, without failing blocks, ordered by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.engines.arrow import whole_numbers
from qblock.engines.from_spec import published_type, warehouse_of
from qblock.engines.queries import Query, whole
from qblock.engines.registry import ENGINES
from qblock.engines.session import Session
from qblock.engines.tables import Column, RawType, TableName
from qblock.errors import InputError, Refused
from qblock.hierarchy.core import TOP
from qblock.ledger.kept import PublishedColumn
from qblock.publish.bounds import Bound, bounds_of, check_copied, kept_types, loaded, source_bounds
from qblock.publish.typical import Means, means_of, numbers_of
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.source.columns import SINCE, WEIGHT, checked_columns
from qblock.spec import Spec
from qblock.spec.sections import SINCE_NAME, WEIGHTS_NAME, RangesShown

SUPPRESSED = "qblock_suppressed"
REPEATED = "qblock rows"
BOUNDS = "qblock_bounds"
PEOPLE = "people"
OF_STATE = {"weight": WEIGHT, "since": SINCE}
"""What is published of the state of a row, by the column that has it."""


@dataclass(frozen=True, eq=False)
class Copy:
    """What a version will hold. query: its rows, without an order; order: the expressions that order them; bounds: of
    its labels, which are among its columns; different: rows that differ in the source as a map shows it, each with how
    many there are (REPEATED), where that is quicker to digest; means: of its blocks."""

    columns: tuple[PublishedColumn, ...]
    query: Query
    rows: int
    order: tuple[sa.ColumnElement[Any], ...]
    bounds: tuple[Bound, ...] = ()
    different: Query | None = None
    means: Means | None = None

    @property
    def ordered(self) -> Query:
        """The rows ordered by all that is published, bytewise: a copy in the source's order would reveal that order."""
        return self.query.order_by(*self.order)

    def check(self, session: Session, rows: sa.FromClause) -> None:
        """Raise Refused where rows that were copied have other bounds than their labels say, or other means than their
        blocks can have."""
        check_copied(session, rows, self.bounds)
        if self.means is not None and self.means.numbers:
            self.means.check(session, rows, self.columns)

    def with_texts(self, session: Session, kinds: Collection[str]) -> Query:
        """The ordered rows, with values of these kinds as their canonical text. session: that the rows are read in."""
        values = self.query.selected_columns
        shown = [
            session.text_of(values[c.name].element, c.kind).label(values[c.name].key)
            if c.kind in kinds
            else values[c.name]
            for c in self.columns
        ]
        return self.ordered.with_only_columns(*shown)


def columns_of(
    spec: Spec,
    columns: Mapping[str, Column],
    engine: str,
    bounds: Mapping[str, Bound],
    typed: Mapping[str, Column] | None = None,
    means: Collection[str] = (),
) -> tuple[PublishedColumn, ...]:
    """The columns of a spec that are published, in its order, from the columns that the source has; identifying and
    unnamed columns are not. bounds: of quasi-identifiers, published beside them; typed: those that keep their type;
    means: those that have one in each block."""
    text = ENGINES[engine].adapter.text_type
    labels = Column("", text, "text", text)
    published: list[PublishedColumn] = []
    for name, attribute in spec.attributes.items():
        column = columns[name]
        if attribute.role == "quasi_identifier":
            shown = (typed or {}).get(name, labels)
            published.append(PublishedColumn(name, attribute.role, shown.compare_as, shown.kind))
            published += bounds[name].columns if name in bounds else ()
            if name in means:
                taken = [*columns, *spec.attributes, *(other.name for other in published)]
                mean = _own_name(spec, f"{name}_mean", f"the means of {name}", taken)
                published.append(PublishedColumn(mean, "mean", ENGINES[engine].adapter.double_type, "float"))
        elif column.kind == "timestamptz" and attribute.role != "identifying":
            # As text in UTC: a reader's session would show it in a zone of its own.
            published.append(PublishedColumn(name, attribute.role, text, "text"))
        elif attribute.role != "identifying":
            published.append(PublishedColumn(name, attribute.role, column.compare_as, column.kind))
    people = _people_column(spec, columns, ENGINES[engine].adapter.whole_type, [column.name for column in published])
    if people is not None:
        published.append(people)
    if spec.shows_weights:
        name = _own_name(spec, WEIGHTS_NAME, "weights", [column.name for column in published])
        published.append(PublishedColumn(name, "weight", ENGINES[engine].adapter.double_type, "float"))
    if spec.shows_since:
        name = _own_name(spec, SINCE_NAME, "first versions", [column.name for column in published])
        published.append(PublishedColumn(name, "since", ENGINES[engine].adapter.whole_type, "integer"))
    return tuple(replace(column, type=published_type(spec, column.name, column.type)) for column in published)


def _own_name(spec: Spec, own: str, what: str, taken: Collection[str]) -> str:
    """The name of a column that qblock adds. Raises InputError for one that is taken."""
    name = spec.publish.names.get(own, own)
    if name.casefold() in map(str.casefold, taken):
        raise InputError(
            f"{spec.at('publish', 'names')}: {what} would be published as {name}, and that is a column already. "
            f"Give them another name: publish: {{names: {{{own}: {own}_of_row}}}}"
        )
    return name


def _people_column(
    spec: Spec, columns: Mapping[str, Column], type_: str, beside: Collection[str]
) -> PublishedColumn | None:
    """The column of the people of a row's block, where the spec asks for it. columns: of the source; type_: of whole
    numbers, by the engine's own name; beside: names that are published. Raises InputError for a name that is taken.

    Where versions are checked together nothing in it is news to the attackers that releases are tried against: they see
    the linked rows of each person, though not whose they are (docs/steady-job.md), and that is how many people a block
    has. Elsewhere it would tell values, and a spec cannot ask for it (`spec/checks.py`).
    """
    if not spec.publish.people:
        return None
    assert spec.bundles
    assert spec.checked_together
    name = spec.publish.names.get(PEOPLE, PEOPLE)
    if name.casefold() in {other.casefold() for other in (*columns, *spec.attributes, *beside)}:
        raise InputError(
            f"{spec.at('publish', 'people')}: the people of each block would be published as {name}, and that is a "
            f"column already. Give them another name: publish: {{names: {{{PEOPLE}: people_of_block}}}}"
        )
    return PublishedColumn(name, "people", type_, "integer")


def new_rows(since: sa.ColumnElement[int], version: int) -> sa.ColumnElement[int]:
    """How many rows a version is the first to show as they are. since: the column that says which one that is."""
    return sa.func.count(sa.case((since == version, 1)))


def columns_ahead(spec: Spec, ranges: RangesShown, kept: Sequence[PublishedColumn]) -> tuple[PublishedColumn, ...]:
    """The columns that will be published, from the columns of the source alone: no row is read.

    ranges: how bounds are published; kept: the columns that readers see, of which some keep their type. Raises
    InputError for columns that the source lacks, and for names of bounds that are taken.
    """
    warehouse = warehouse_of(spec, rows=False)
    try:
        with warehouse.snapshot() as session:
            columns = checked_columns(spec, session, TableName.parse(spec.source.table))
            bounds = bounds_of(spec, columns, session.engine, ranges)
            as_it_is = [c.name for c in kept if c.role == "quasi_identifier" and c.kind != "text"]
            typed = {name: columns[name] for name in as_it_is if name in spec.quasi_identifiers}
            bounds = {name: bound for name, bound in bounds.items() if name not in typed}
            means = [of.name for of in numbers_of(spec, columns) if of.name not in typed]
            return columns_of(spec, columns, session.engine, bounds, typed, means)
    finally:
        warehouse.close()


def copy_of(task: Task, chosen: Assessment, ranges: RangesShown = "text", version: int = 1) -> Copy:
    """The copy of a node that satisfies, as a version of this number has it. Loads the codes of failing blocks, and
    bounds, into the session that the source is in."""
    source = task.source
    typed = kept_types(source, chosen.node)
    bounds = {
        name: bound.without_columns if name in typed else bound for name, bound in source_bounds(source, ranges).items()
    }
    beside = {
        name: loaded(source.session, "_".join([BOUNDS, str(i), *map(str, chosen.node)]), bounds[name], h, level)
        for i, (name, h, level) in enumerate(
            zip(source.quasi_identifiers, source.hierarchies, chosen.node, strict=True)
        )
        if name in bounds and bounds[name].columns and level != source.dimensions[i].height
    }
    failing = _failing(source.session, chosen) if chosen.suppressed else None
    build = partial(
        _made,
        chosen=chosen,
        bounds=bounds,
        typed=typed,
        beside=beside,
        means=means_of(source, chosen.node, typed),
        failing=failing,
        version=version,
    )
    copy = build(source)
    different = _different(source, copy.columns)
    if different is None:
        return copy
    return replace(copy, different=build(different).query.add_columns(different.relation.c[REPEATED]))


def _different(source: SourceTable, columns: Sequence[PublishedColumn]) -> SourceTable | None:
    """The source with each of its different rows once, and how often it is there; None where that would take longer, or
    where equal values may read differently. columns: that are published."""
    names = [name for name, attribute in source.spec.attributes.items() if attribute.role != "identifying"]
    alike = source.compared or all(source.columns[name].compare_as == source.columns[name].type for name in names)
    by_people = any(column.role == "people" for column in columns)
    if source.recoding is None or not source.session.embedded or not alike or by_people:
        return None
    stated = [OF_STATE[column.role] for column in columns if column.role in OF_STATE]
    read = [c for c in source.relation.c if c.name in (*names, *stated)]
    query = sa.select(*read, whole(sa.func.count()).label(REPEATED)).select_from(source.relation).group_by(*read)
    return replace(source, relation=query.subquery("qblock_different"))


def _made(
    source: SourceTable,
    chosen: Assessment,
    bounds: Mapping[str, Bound],
    typed: Mapping[str, Column],
    beside: Mapping[str, sa.FromClause],
    means: Means,
    failing: sa.FromClause | None,
    version: int,
) -> Copy:
    """The copy. beside: the tables of bounds; means: of the blocks; failing: the codes of the blocks that are left out;
    version: that all rows are first shown by, where no state says another one."""
    session, relation = source.session, source.relation
    joined: sa.FromClause = relation
    codes: dict[str, sa.ColumnElement[Any]] = {}
    values: dict[str, sa.ColumnElement[Any]] = {}
    constant = set()
    for i, (name, level) in enumerate(zip(source.quasi_identifiers, chosen.node, strict=True)):
        if level == source.dimensions[i].height:
            values[name] = sa.literal_column(f"'{TOP}'", sa.Text)
            constant.add(name)
            if name in bounds:
                values |= {c.name: o for c, o in zip(bounds[name].columns, bounds[name].open, strict=True)}
            continue
        shown = source.labels(i, level)
        joined = joined.outerjoin(shown.table, shown.leaf)
        values[name] = sa.cast(shown.label, sa.Text)
        if name in typed:
            values[name] = session.convert(values[name], typed[name])
        codes[f"q{i}"] = shown.code
        if name in beside:
            table = beside[name]
            joined = joined.outerjoin(table, table.c.c == shown.code)
            for number, (column, at_worst) in enumerate(zip(bounds[name].columns, bounds[name].open, strict=True)):
                values[column.name] = sa.func.coalesce(bounds[name].read(table.c[f"t{number}"], column), at_worst)
    columns = columns_of(source.spec, source.columns, session.engine, bounds, typed, [of.name for of in means.numbers])
    joined, of_blocks = means.beside(joined, codes)
    for column, mean in zip((c for c in columns if c.role == "mean"), of_blocks, strict=True):
        values[column.name] = sa.cast(mean, RawType(column.type))
    for column in columns:
        if column.role != "quasi_identifier" and not column.derived:
            value, kind = source.expression(column.name), source.columns[column.name].kind
            values[column.name] = session.text_of(value, kind) if kind == "timestamptz" else value
    if (people := next((c for c in columns if c.role == "people"), None)) is not None:
        of_block = _people_of_blocks(source, joined, codes)
        same_block = sa.and_(sa.true(), *(of_block.c[name] == code for name, code in codes.items()))
        joined, values[people.name] = joined.join(of_block, same_block), of_block.c.n
    of_state = [c for c in columns if c.role in OF_STATE]
    for column in of_state:
        stated, otherwise = OF_STATE[column.role], "1" if column.role == "weight" else str(version)
        text: sa.ColumnElement[Any] = sa.literal_column(f"'{otherwise}'", sa.Text)
        if stated in relation.c:
            text = sa.func.coalesce(relation.c[stated], text)
        values[column.name] = sa.cast(text, RawType(column.type))
    selected = [values[c.name].label(quoted_name(c.name, quote=True)) for c in columns]
    query = sa.select(*selected).select_from(joined)
    if failing is not None:
        same = [failing.c[name] == codes[name] for name in codes]
        query = query.where(~sa.exists(sa.select(sa.literal_column("1")).select_from(failing).where(*same)))
    # DuckDB refuses to order by a constant, which a column at its top level is.
    varying = [
        c for c in columns if c.name not in constant and (not c.derived or OF_STATE.get(c.role, c.role) in relation.c)
    ]
    texts = [session.text_of(values[c.name], c.kind) if c.kind != "text" else values[c.name] for c in varying]
    order = tuple(session.bytewise(text).nulls_first() for text in texts)
    rows = int(chosen.counts.rows.sum()) - chosen.suppressed
    return Copy(columns, query, rows, order, tuple(bounds.values()), means=means)


def _people_of_blocks(
    source: SourceTable, joined: sa.FromClause, codes: Mapping[str, sa.ColumnElement[int]]
) -> sa.Subquery:
    """A query for the people of each block, by its codes. joined: the source with its dimension tables; codes: of the
    quasi-identifiers that are not suppressed, which are its columns beside n."""
    assert source.spec.entity is not None
    whose = source.expression(source.spec.entity)
    selected = [code.label(name) for name, code in codes.items()]
    query: Query = sa.select(*selected, sa.func.count(sa.distinct(whose)).label("n")).select_from(joined)
    return query.group_by(*codes.values()).subquery("qblock_people")


def _failing(session: Session, chosen: Assessment) -> sa.TableClause:
    """The codes of the blocks that are left out."""
    keys = chosen.counts.keys[~chosen.kept]
    arrays = {f"q{i}": whole_numbers(keys[:, i]) for i in range(keys.shape[1])}
    # Several nodes may be tried in one session.
    return session.load("_".join([SUPPRESSED, *map(str, chosen.node)]), pa.table(arrays))


def label_codes(task: Task, node: Sequence[int]) -> list[dict[str, int]]:
    """For each quasi-identifier the code of each label of the node's level, as it reads when published.

    Raises Refused when two labels would read the same, which would merge blocks that were counted separately.
    """
    source = task.source
    codes = []
    for i, (name, level) in enumerate(zip(source.quasi_identifiers, node, strict=True)):
        table = source.dimensions[i].table
        pairs = source.session.fetch(
            sa.select(table.c[f"c{level}"].label("c"), table.c[f"t{level}"].label("t")).distinct()
        )
        labels: dict[str, int] = {}
        for code, label in zip(pairs["c"].to_pylist(), pairs["t"].to_pylist(), strict=True):
            shown = TOP if label is None else label
            if labels.setdefault(shown, code) != code:
                raise Refused(
                    f"two values of {name} read the same when published at level {level}; round them in the source, "
                    "or pin a coarser level"
                )
        codes.append(labels)
    return codes
