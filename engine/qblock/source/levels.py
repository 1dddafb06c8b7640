"""Hierarchies and domains of a source's attributes, from files, tables or the values of the source."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from qblock import comparison
from qblock.blocks import Reference
from qblock.comparison import Matcher
from qblock.engines import queries
from qblock.engines.arrow import whole_numbers
from qblock.engines.from_spec import warehouse_of
from qblock.engines.published import check_level
from qblock.engines.queries import Dimension
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.engines.values import NUMERIC, is_value
from qblock.errors import InputError, counted, quoted, shows_values
from qblock.frequency import FrequencySets
from qblock.hierarchy import TOP, Hierarchy, UnfitValuesError, flat, from_columns, from_csv, from_rows
from qblock.hierarchy.bounds import Reader
from qblock.hierarchy.labels import all_match, as_texts, one_text
from qblock.spec import Attribute, Spec
from qblock.spec.sources import CsvFile, Cuts, Dates, Digits, DimensionTable, TaxonomyLevel, build, cells_of

WRITTEN = r"[ -&(-\[\]-~\x{c0}-\x{24f}]*"
"""Texts that Python writes between apostrophes as they are; there are others, of whose characters it knows more."""
NAMED = 10
"""Values that a message names."""
MOST = 50_000
"""Leaves that are marked one by one."""
MARK = 16
"""Hexadecimal digits of a mark: the chance that two of 50,000 leaves have the same one is 1 in 10^10."""
ANY = Column("", "", "text", "")
"""In place of a column of the source, whose type does not matter in a stated hierarchy."""


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct values of columns of a relation, read by one statement and only if somebody asks. columns: value and
    kind by name."""

    session: Session
    relation: sa.FromClause
    columns: Mapping[str, tuple[sa.ColumnElement[Any], comparison.Kind]]

    @cached_property
    def texts(self) -> dict[str, pa.ChunkedArray]:
        """All of them."""
        each = [
            queries.distinct_values(self.relation, value, partial(self.session.text_of, kind=kind))
            for value, kind in self.columns.values()
        ]
        if len(each) == 1:
            return dict(zip(self.columns, [self.session.fetch(each[0])["value"]], strict=True))
        numbered = [query.add_columns(sa.literal_column(str(i)).label("i")) for i, query in enumerate(each)]
        rows = self.session.fetch(sa.union_all(*numbered))
        numbers = whole_numbers(np.arange(len(each)))
        return {
            name: rows.filter(pc.equal(rows["i"], i))["value"] for name, i in zip(self.columns, numbers, strict=True)
        }


@dataclass(frozen=True, eq=False)
class Observed:
    """The distinct values of a relation's column. together: what reads them, and those of other columns."""

    name: str
    value: sa.ColumnElement[Any]
    kind: comparison.Kind
    together: Distinct

    @property
    def texts(self) -> pa.ChunkedArray:
        """All of them."""
        return self.together.texts[self.name]

    def rows(self, values: Sequence[str]) -> Mapping[str, int]:
        """In how many rows each of a few is."""
        session, relation = self.together.session, self.together.relation
        text = session.text_of(self.value, self.kind)
        counts = sa.select(text.label("value"), sa.func.count().label("n")).select_from(relation)
        rows = session.fetch(counts.where(text.in_(values)).group_by(sa.literal_column("1"))).to_pylist()
        return {row["value"]: row["n"] for row in rows}


def build_hierarchy(
    spec: Spec, session: Session, name: str, column: Column, seen: Observed, part: str = "hierarchy"
) -> Hierarchy:
    """The hierarchy of an attribute: from its file or table, or built over the values that the source holds."""
    source = getattr(spec.attributes[name], part)
    if isinstance(source, DimensionTable):
        return _from_table(spec, session, name, source)
    if isinstance(source, CsvFile):
        return from_csv(spec.directory / source.file, name, source.layout)
    values = seen.texts.drop_null()
    try:
        try:
            return build(source, name, values, column.kind)
        except UnfitValuesError as error:
            if spec.attributes[name].uncovered == "refuse":
                raise InputError(_naming(error, seen)) from None
            # They get no leaf, and are what the hierarchy does not cover.
            fit = pc.invert(pc.is_in(values, as_texts(error.values)))
            return build(source, name, values.filter(fit), column.kind)
    except InputError as error:
        raise InputError(f"{spec.at('attributes', name)}: {error}") from None


def is_made_of_values(attribute: Attribute) -> bool:
    """Whether the leaves of its hierarchy or domain are the values that the source holds."""
    if attribute.role == "quasi_identifier":
        return not isinstance(attribute.hierarchy, CsvFile | DimensionTable)
    if attribute.taxonomy is not None:
        return not isinstance(attribute.taxonomy, CsvFile | DimensionTable)
    return attribute.domain in (None, "observed") and not isinstance(attribute.order, tuple)


def listed(rows: Mapping[str, int], more: int) -> str:
    """Values with their rows, as a message names them; more: how many others there are."""
    named = ", ".join(f"{value!r} ({counted(n, 'row')})" for value, n in rows.items())
    return named + (f" and {more} more" if more > 0 else "")


def _naming(error: UnfitValuesError, seen: Observed) -> str:
    """The message with the values and their rows, where it may name them, else with what does."""
    if not shows_values():
        return f"{error}; `qblock hierarchy check` lists them"
    first = error.values[:NAMED]
    known = seen.rows(first)
    rows = {value: known.get(value, 0) for value in first}
    return f"{error.problem}: {listed(rows, len(error.values) - len(first))}; {error.remedy}"


def hierarchy_of(
    spec: Spec, session: Session, name: str, column: Column, seen: Observed, *, published: bool = True
) -> Hierarchy:
    """The hierarchy of a quasi-identifier, with the leaf that stands for NULL and for values that it does not cover,
    where these are published as `*`. Where nothing is published, there may be a leaf `*` as well.

    Raises InputError where it cannot be built, or `max` is above its top.
    """
    attribute, hierarchy = spec.attributes[name], build_hierarchy(spec, session, name, column, seen)
    if attribute.highest is not None and attribute.highest > hierarchy.height:
        place, most = spec.at("attributes", name, "hierarchy", "max"), hierarchy.height
        raise InputError(
            f"{place}: max {attribute.highest} of {name} is above the top of its hierarchy, which is level {most} "
            f"(`*`); write 0 to {most}"
        )
    if "top" not in (attribute.nulls, attribute.uncovered):
        return hierarchy
    return hierarchy.add_null_leaf() if published or TOP not in hierarchy.leaves else hierarchy.with_null()


def reader_of(
    spec: Spec, name: str, kind: comparison.Kind, hierarchy: Hierarchy | None, *, joined: bool = False
) -> Reader | None:
    """What reads the bounds of a quasi-identifier's labels, None where these are neither numbers nor dates. kind: of
    its column; joined: into boxes."""
    form = spec.attributes[name].hierarchy
    dates = isinstance(form, Dates) or kind in ("date", "timestamp", "timestamptz")
    dates = dates or (isinstance(form, Cuts) and form.cuts.grid.of_dates)
    if isinstance(form, Digits) or not (dates or kind in comparison.NUMBERS):
        return None
    own = hierarchy if isinstance(form, CsvFile | DimensionTable) else None
    weeks = isinstance(form, Dates) and "iso_year" in form.dates
    return Reader("dates" if dates else "numbers", kind, weeks, own, joined)


def require_columns(what: str, columns: Collection[str], names: Iterable[str], hint: str = "") -> None:
    """Raise InputError for a column that is missing in a table beside the source. hint: what to say beside that."""
    for name in names:
        if name not in columns:
            raise InputError(f"{what} has no column {name!r}; {hint or 'its columns are ' + ', '.join(columns)}")


def _from_table(spec: Spec, session: Session, name: str, source: DimensionTable) -> Hierarchy:
    table = TableName.parse(source.table)
    columns = session.columns(table)
    require_columns(f"{spec.at('attributes', name)}: the dimension table {table}", columns, source.levels)
    relation = session.relation(table)
    texts = [session.text_of(relation.c[level], columns[level].kind).label(level) for level in source.levels]
    table_of_texts = session.fetch(sa.select(*texts).distinct())
    arrays = [table_of_texts[level] for level in source.levels]
    order = _as_written(arrays)
    if order is not None:
        hierarchy = from_columns(source.levels, [array.take(order) for array in arrays], name)
        if hierarchy is not None:
            return hierarchy
    rows = sorted(zip(*(array.to_pylist() for array in arrays), strict=True), key=str)
    return from_rows(source.levels, rows, attribute=name, origin=f"table {table}")


def _as_written(arrays: Sequence[pa.ChunkedArray]) -> pa.Array | None:
    """The places of rows of texts in the order in which Python writes them, which is that of the leaves; None where
    that takes more than quotes."""
    columns = [as_texts(array) for array in arrays]
    if any(column.null_count or not all_match(column, WRITTEN) for column in columns):
        return None
    mark, rows = one_text("'"), columns[0]
    for column in columns[1:]:
        rows = pc.binary_join_element_wise(rows, column, one_text("', '"))
    return pc.array_sort_indices(pc.binary_join_element_wise(rows, mark, one_text("")))


def domain_of(spec: Spec, session: Session, name: str, column: Column, seen: Observed) -> Hierarchy:
    """dom(S) with its taxonomy if it has one: the leaves in the order of the list `order`, else ascending.

    A declared domain and a taxonomy are sets: the order in which they are written means nothing. NULL is a value where
    the spec says so; of an observed domain only when there is one; it comes last unless the list places it. A column
    without a name stands for one of any type (source.stated).
    """
    attribute = spec.attributes[name]
    kind = column.kind if column.name else None
    declared = _declared(spec, name, attribute, kind)
    null = attribute.nulls == "value"
    if attribute.taxonomy is not None:
        domain = _taxonomy_of(spec, session, name, column, seen)
        if declared is not None:
            leaves = Matcher(domain.leaves, kind)
            declared_leaves = [(v, leaves.find(v)) for v in declared]
            unknown = [v for v, leaf in declared_leaves if leaf is None]
            if unknown:
                raise InputError(
                    f"{spec.at('attributes', name)}: {quoted(unknown[0])} is not a leaf of the taxonomy of {name}"
                )
            domain = domain.select(list(dict.fromkeys(leaf for _, leaf in declared_leaves if leaf is not None)))
    else:
        values = seen.texts.to_pylist() if declared is None else [*declared]
        if declared is None:
            null = null and None in values
        domain = flat(name, [value for value in values if value is not None])
        _check_in_ranges(spec, name, domain.leaves)
    return _in_order(domain.add_null_leaf() if null else domain, attribute, kind)


def _taxonomy_of(spec: Spec, session: Session, name: str, column: Column, seen: Observed) -> Hierarchy:
    """The taxonomy of a sensitive attribute, from the level on that is published."""
    taxonomy = build_hierarchy(spec, session, name, column, seen, "taxonomy")
    published = spec.attributes[name].publish_as
    if not isinstance(published, TaxonomyLevel):
        return taxonomy
    check_level(taxonomy, published.level, spec.at("attributes", name, "publish_as"))
    return taxonomy.above(published.level)


def _check_in_ranges(spec: Spec, name: str, values: Iterable[str | None]) -> None:
    """Raise InputError for observed values that no range of `publish_as` holds."""
    labels = ranges_published(spec.attributes[name])
    lost = sorted({value for value in values if value is not None} - set(labels)) if labels else []
    if lost:
        raise InputError(
            f"{spec.at('attributes', name, 'publish_as')}: column {name} has {' and '.join(lost)}, which no range "
            "holds; leave these rows out in a view"
        )


def ranges_published(attribute: Attribute) -> tuple[str, ...]:
    """The labels of the ranges that a sensitive attribute is published as, ascending."""
    published = attribute.publish_as
    return () if published is None or isinstance(published, TaxonomyLevel) else tuple(cells_of(published)[1])


def _declared(spec: Spec, name: str, attribute: Attribute, kind: str | None) -> list[str] | None:
    """The values that `order` or `domain` lists, NULL left out."""
    domain = None if attribute.domain in (None, "observed") else [v for v in attribute.domain or () if v is not None]
    order = [v for v in attribute.order if v is not None] if isinstance(attribute.order, tuple) else None
    if domain is not None and order is not None:
        in_domain, in_order = Matcher(domain, kind), Matcher(order, kind)
        if any(in_domain.find(v) is None for v in order) or any(in_order.find(v) is None for v in domain):
            raise InputError(
                f"{spec.at('attributes', name, 'order')}: order and domain of {name} do not list the same values"
            )
    return order if order is not None else domain


def _in_order(domain: Hierarchy, attribute: Attribute, kind: str | None) -> Hierarchy:
    """The leaves as the list `order` has them, else ascending as the column compares; NULL comes last unless it is
    listed."""
    leaves = domain.leaves
    ascending = sorted(range(len(leaves)), key=lambda i: (leaves[i] is None, comparison.key(leaves[i] or "", kind)))
    order = attribute.order if isinstance(attribute.order, tuple) else ranges_published(attribute)
    if not order:
        return domain.select(ascending)
    listed = Matcher(order, kind)
    place = [listed.find(leaf) for leaf in leaves]
    return domain.select(sorted(ascending, key=lambda i: len(order) if (p := place[i]) is None else p))


def ordered(attribute: Attribute, column: Column, domain: Sequence[str | None]) -> bool:
    """Whether the values have an order: a list, or that of numbers, dates and times, which only numbers have without
    being asked, and the ranges that these are published as. Text has only that of the list. The place of NULL among
    numbers has to be given: `order: ascending` puts it last.
    """
    if isinstance(attribute.order, tuple):
        return True
    numbers = column.kind in NUMERIC or bool(ranges_published(attribute))
    if attribute.order == "ascending":
        return column.kind != "text" or numbers
    return numbers and None not in domain


def reference_of(
    session: Session, sets: FrequencySets, number: int, domain: Hierarchy, dimension: Dimension, column: Column
) -> Reference:
    """The quantities of the whole table of the sensitive attribute of this number."""
    names = session.fetch(sa.select(dimension.table.c.c0, dimension.table.c.t0))
    texts: list[str | None] = [None] * dimension.leaves
    for code, text in zip(names["c0"].to_pylist(), names["t0"].to_pylist(), strict=True):
        texts[code] = text
    totals = np.zeros(dimension.leaves, dtype=np.int64)
    codes, counted = sets.totals(number)
    totals[codes] = counted
    known = [text for text in texts if text is not None]
    numeric = column.kind in NUMERIC and len(known) == len(texts) and all(is_value(t, "decimal") for t in known)
    return Reference(
        rows=sets.rows,
        domain=tuple(texts),
        totals=totals,
        numbers=tuple(map(Fraction, known)) if numeric else None,
        taxonomy=np.asarray(domain.codes, dtype=np.int64).T if domain.height else None,
        kind=column.kind,
        people=sets.people() if sets.entities else None,
    )


def stated_attributes(spec: Spec) -> dict[str, CsvFile | DimensionTable]:
    """The attributes whose hierarchy (or taxonomy) is a file or a table."""
    sources = {name: attribute.hierarchy or attribute.taxonomy for name, attribute in spec.attributes.items()}
    return {name: source for name, source in sources.items() if isinstance(source, CsvFile | DimensionTable)}


def leaf_marks(hierarchy: Hierarchy) -> list[str]:
    """A short digest of each leaf with all its labels, sorted: a hierarchy that has only gained leaves still has all of
    these. For more leaves than MOST the digest of the whole, which shows any change.
    """
    paths = list(zip(*hierarchy.labels, strict=True))
    if len(paths) > MOST:
        return [hierarchy.digest()]
    return sorted(hashlib.sha256(repr(path).encode()).hexdigest()[:MARK] for path in paths)


def stated_hierarchies(spec: Spec) -> dict[str, Hierarchy]:
    """The stated hierarchies, as a run would read them now. Raises InputError for one that cannot be read, QblockError
    for a fault."""
    stated = stated_attributes(spec)
    nothing: Any = None  # what a source holds does not matter to them
    hierarchies = {}
    with ExitStack() as stack:
        session = nothing
        if any(isinstance(source, DimensionTable) for source in stated.values()):
            warehouse = warehouse_of(spec)
            stack.callback(warehouse.close)
            session = stack.enter_context(warehouse.snapshot())
        for name in stated:
            attribute = spec.attributes[name]
            if attribute.role == "sensitive":
                hierarchies[name] = domain_of(spec, session, name, ANY, nothing)
                continue
            hierarchies[name] = hierarchy_of(spec, session, name, ANY, nothing)
    return hierarchies
