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
        self._spec, self._place = spec, place
        self._session, self._catalog, self._version, self._columns = session, catalog, version, columns
        rows: sa.FromClause = session.relation(SparkVersions(spec).table(version))
        self.rows = Rows(session, rows)

    def publish(self, record: Record) -> list[str]:
        with ledger_transaction(self._place) as ledger:
            record(ledger, "checked")
        show_version(self._spec, self._session, self._catalog, self._version, self._columns)
        with ledger_transaction(self._place) as ledger:
            record(ledger, "published")
        return []


def show_version(
    spec: Spec, session: SparkTables, catalog: SparkCatalog, version: int, columns: Sequence[PublishedColumn]
) -> None:
    """Copy a private version to where readers reach, and have the view and then its helper views show the copy.

    Raises Refused where there is no such version, or the copy is not what it is.
    """
    assert spec.publish.path is not None
    versions, helpers = SparkVersions(spec), SparkHelpers(spec)
    schema, private, kept = spec.publish.schema, versions.private, versions.table(version)
    stamps = versions.marked(catalog)
    if version not in stamps:
        raise Refused(f"version {version} of release {spec.release} is not kept in private.path: nothing is published")
    # A name that no copy had: a reader's session remembers the files of one that was dropped.
    table = f"{spec.view}_v{version}_{secrets.token_hex(4)}"
    catalog.make_schema(schema, spec.publish.path)
    mark, said = mark_text(spec.release, version, stamps[version]), helpers.comments(columns)
    catalog.write(catalog.rows(private, kept.name), schema, table, mark, said)
    if relation_digest(session, TableName(schema, table)) != relation_digest(session, kept):
        catalog.drop(schema, [table])
        raise Refused("the published copy is not what was checked: nothing is published")
    staged = beside(kept.name) in catalog.entries(private)
    helpers.copy(catalog, (private, kept.name), table, mark, staged=staged)
    catalog.show(schema, spec.view, versions.text(catalog, table, schema), helpers.comment)
    helpers.finish(catalog, table, columns)
