"""Which private tables are the versions of a release on Spark, and which table its view shows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager

from qblock.errors import Refused
from qblock.publish.targets.mark import Mark, read_mark
from qblock.publish.targets.spark_helpers import BESIDE, SparkHelpers
from qblock.spec import Spec
from qblock.warehouse.connect import parse_url
from qblock.warehouse.protocol import TableName
from qblock.warehouse.spark import SparkTables, SparkWarehouse
from qblock.warehouse.spark_catalog import Entry, SparkCatalog
from qblock.warehouse.spark_client import quoted
from qblock.warehouse.spark_dialect import quote_name


@contextmanager
def opened(spec: Spec) -> Iterator[tuple[SparkTables, SparkCatalog]]:
    """A session on the server of a spec, whose private schema is in private.path, and its catalog."""
    assert spec.private is not None
    warehouse = SparkWarehouse(parse_url(spec.source.url.url))
    warehouse.copy_to(spec.private.path)
    try:
        with warehouse.tables() as session:
            yield session, SparkCatalog(session.client)
    finally:
        warehouse.close()


class SparkVersions:
    """What the catalog says, asked anew each time. private: the schema of private.path."""

    def __init__(self, spec: Spec) -> None:
        assert spec.private is not None
        assert spec.private.path is not None
        self.release, self.schema, self.view = spec.release, spec.publish.schema, spec.view
        self.private = f"qblock_{hashlib.sha256(spec.private.path.rstrip('/').encode()).hexdigest()[:12]}"
        self._mine = re.compile(rf"{re.escape(spec.release)}_v(\d+)({BESIDE})?", re.ASCII)
        self._helpers = SparkHelpers(spec)

    def name(self, version: int) -> str:
        """Of a version's private table."""
        return f"{self.release}_v{version}"

    def table(self, version: int) -> TableName:
        """A version's private table."""
        return TableName(self.private, self.name(version))

    def own(self, catalog: SparkCatalog) -> list[tuple[int, Entry]]:
        """The private tables of the release, whole or half made, with their versions."""
        matches = [(self._mine.fullmatch(entry.name), entry) for entry in catalog.entries(self.private).values()]
        return [(int(match[1]), entry) for match, entry in matches if match is not None]

    def marked(self, catalog: SparkCatalog) -> dict[int, str | None]:
        """The stamps of the versions that are kept whole."""
        read = [read_mark(entry.comment, self.release) for _, entry in self.own(catalog)]
        return dict(mark for mark in read if mark is not None)

    def shown(self, catalog: SparkCatalog) -> tuple[str, Mark] | None:
        """The table that the view shows, and what it says of itself; None where there is no view, or another one."""
        entries = catalog.entries(self.schema)
        view = entries.get(self.view)
        if not self._helpers.is_view(view):
            return None
        text = catalog.text_of(self.schema, self.view)
        for entry in entries.values():
            mark = read_mark(entry.comment, self.release)
            named = mark is not None and not entry.name.endswith(BESIDE)
            if mark is not None and named and text == self.text(catalog, entry.name, self.schema):
                return entry.name, Mark(*mark)
        return None

    def table_shown(self, catalog: SparkCatalog) -> TableName:
        """What the view shows. Raises Refused where that is no version."""
        shown = self.shown(catalog)
        if shown is None:
            raise Refused(f"{self.schema}.{self.view} does not exist, or shows something else: nothing is published")
        return TableName(self.schema, shown[0])

    def text(self, catalog: SparkCatalog, table: str, schema: str) -> str:
        """What the view says where it shows a table."""
        names = ", ".join(quote_name(name) for name, _ in catalog.columns(schema, table))
        return f"SELECT {names} FROM {quoted(schema, table)}"

    def has_landed(self, catalog: SparkCatalog, version: int) -> bool:
        """Whether the view shows the copy of the private version of that number."""
        shown = self.shown(catalog)
        if shown is None or shown[1].version != version:
            return False
        return self.marked(catalog).get(version, "") == shown[1].stamp
