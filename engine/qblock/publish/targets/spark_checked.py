"""A private version on Spark that is read, and published where it is what was searched."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.place import Place
from qblock.ledger.writer import ledger_transaction
from qblock.publish.digest import relation_digest
from qblock.publish.targets.mark import mark_text
from qblock.publish.targets.protocol import Record, Rows
from qblock.publish.targets.spark_helpers import SparkHelpers, beside
from qblock.publish.targets.spark_versions import SparkVersions
from qblock.spec import Spec
from qblock.warehouse.protocol import TableName
from qblock.warehouse.spark import SparkTables
from qblock.warehouse.spark_catalog import SparkCatalog


class SparkChecked:
    """A private version, open for reading until it is published."""

    rows: Rows

    def __init__(
        self,
        spec: Spec,
        place: Place,
        session: SparkTables,
        catalog: SparkCatalog,
        version: int,
        columns: Sequence[PublishedColumn],
    ) -> None:
        assert spec.publish.path is not None
        self._spec, self._place, self._folder = spec, place, spec.publish.path
        self._session, self._catalog, self._version = session, catalog, version
        self._versions, self._helpers, self._columns = SparkVersions(spec), SparkHelpers(spec), columns
        self._table = self._versions.table(version)
        rows: sa.FromClause = session.relation(self._table)
        self.rows = Rows(session, rows)

    def publish(self, record: Record) -> list[str]:
        catalog, helpers, private = self._catalog, self._helpers, self._versions.private
        stamp = self._versions.marked(catalog)[self._version]
        with ledger_transaction(self._place) as ledger:
            record(ledger, "checked")
        schema, view = self._spec.publish.schema, self._spec.view
        # A name that no copy had: a reader's session remembers the files of one that was dropped.
        table = f"{view}_v{self._version}_{secrets.token_hex(4)}"
        catalog.make_schema(schema, self._folder)
        mark, said = mark_text(self._spec.release, self._version, stamp), helpers.comments(self._columns)
        catalog.write(catalog.rows(private, self._table.name), schema, table, mark, said)
        if relation_digest(self._session, TableName(schema, table)) != relation_digest(self._session, self._table):
            catalog.drop(schema, [table])
            raise Refused("the published copy is not what was checked: nothing is published")
        staged = beside(self._table.name) in catalog.entries(private)
        helpers.copy(catalog, (private, self._table.name), table, mark, staged=staged)
        catalog.show(schema, view, self._versions.text(catalog, table, schema), helpers.comment)
        helpers.finish(catalog, table, self._columns)
        with ledger_transaction(self._place) as ledger:
            record(ledger, "published")
        return []
