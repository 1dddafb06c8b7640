"""What is known about the published columns before a source is searched: whether readers can be given them."""

from __future__ import annotations

from qblock.publish.bounds import bounds_of
from qblock.publish.copy import columns_of
from qblock.publish.targets import Target
from qblock.source.columns import checked_columns
from qblock.spec import Spec
from qblock.spec.model import RangesShown
from qblock.warehouse import warehouse_of
from qblock.warehouse.protocol import TableName


def check_view(spec: Spec, target: Target, ranges: RangesShown) -> None:
    """Raise InputError where the view of a release on PostgreSQL cannot be given the columns of the spec, since a view
    or function of somebody's own depends on it; for columns that the source lacks, and for names of bounds that are
    taken. No row is read. ranges: how bounds are published.
    """
    warehouse = warehouse_of(spec, rows=False)
    try:
        with warehouse.snapshot() as session:
            columns = checked_columns(spec, session, TableName.parse(spec.source.table))
            bounds = bounds_of(spec, columns, session.engine, ranges)
            published = columns_of(spec, columns, session.engine, bounds)
    finally:
        warehouse.close()
    target.check_columns(published)
