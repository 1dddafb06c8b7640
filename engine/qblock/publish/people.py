"""How many people the rows of each q*-block are about, published beside them (`publish.people`).

Where versions are checked together nothing in it is news to the attackers that releases are tried against: they see the
linked rows of each person, though not whose they are (docs/steady-job.md), and that is how many people a block has.
Elsewhere it would tell values, and a spec cannot ask for it (`spec/checks.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.ledger.kept import PublishedColumn
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.warehouse.protocol import Column
from qblock.warehouse.queries import Query

PEOPLE = "people"


def people_column(
    spec: Spec, columns: Mapping[str, Column], type_: str, beside: Collection[str]
) -> PublishedColumn | None:
    """The column of the people of a row's block, where the spec asks for it. columns: of the source; type_: of whole
    numbers, by the engine's own name; beside: names that are published. Raises InputError for a name that is taken."""
    if not spec.publish.people:
        return None
    assert spec.bundles
    assert spec.checked_together
    name = spec.publish.names.get(PEOPLE, PEOPLE)
    if name.casefold() in {other.casefold() for other in (*columns, *spec.attributes, *beside)}:
        raise InputError(
            f"{spec.at('publish', 'people')}: the people of each block would be published as {name}, and that is a "
            f"column already; give them another name: publish: {{names: {{{PEOPLE}: people_of_block}}}}"
        )
    return PublishedColumn(name, "people", type_, "integer")


def people_of_blocks(
    source: SourceTable, joined: sa.FromClause, codes: Mapping[str, sa.ColumnElement[int]]
) -> sa.Subquery:
    """A query for the people of each block, by its codes. joined: the source with its dimension tables; codes: of the
    quasi-identifiers that are not suppressed, which are its columns beside n."""
    assert source.spec.entity is not None
    whose = source.expression(source.spec.entity)
    selected = [code.label(name) for name, code in codes.items()]
    query: Query = sa.select(*selected, sa.func.count(sa.distinct(whose)).label("n")).select_from(joined)
    return query.group_by(*codes.values()).subquery("qblock_people")


def block_of(codes: Mapping[str, sa.ColumnElement[int]], people: sa.Subquery) -> sa.ColumnElement[bool]:
    """Whether a row is of a block of `people_of_blocks`."""
    return sa.and_(sa.true(), *(people.c[name] == code for name, code in codes.items()))


def column_of(columns: Sequence[PublishedColumn]) -> PublishedColumn | None:
    """The column of the people among those of a version, if it has one."""
    return next((column for column in columns if column.role == "people"), None)
