"""The helper views of a release on Spark: views of one table beside the version's own, and of the version's blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from qblock.engines.spark.adapter import quote_name, quote_text
from qblock.engines.spark.catalog import Entry, SparkCatalog
from qblock.engines.spark.client import quoted
from qblock.engines.spark.session import SparkSession
from qblock.errors import InputError, Refused
from qblock.ledger.kept import PublishedColumn
from qblock.publish.helpers import (
    BLOCKS_SAY,
    KEPT,
    RELEASED,
    Helper,
    Kind,
    Shown,
    Type,
    block_columns,
    names,
    view_comment,
)
from qblock.publish.midpoints import MIDPOINTS_SAY, midpoints_of
from qblock.spec import Spec

TYPES: dict[Type, str] = {
    "text": "STRING",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP_NTZ",
    "date": "DATE",
}
BESIDE = "_shown"
VALUES = [f"c{i}" for i in range(max(len(helper.columns) for helper in KEPT))]
COLUMNS = ["kind", "position", *VALUES]
"""Of the table with the rows of all helper views: values are texts, by the place of their column."""
Texts = dict[str, tuple[str, str]]
"""Comment and text of each view by name."""


def beside(table: str) -> str:
    """The table with what helper views show, beside that of a version."""
    return f"{table}{BESIDE}"


class SparkHelpers:
    """What stands beside the view of a release, in the same schema."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.schema, self.view = spec.publish.schema, spec.view
        self.names = names(spec.view, spec.publish.names)
        self.says: dict[Kind, str] = {helper.kind: helper.says.format(view=spec.view) for helper in KEPT}
        self.says |= {"blocks": BLOCKS_SAY.format(view=spec.view), "midpoints": MIDPOINTS_SAY.format(view=spec.view)}
        self.comment = view_comment(spec)

    def is_view(self, entry: Entry | None) -> bool:
        """Whether it is the view of the release."""
        begins = RELEASED.format(release=self.spec.release)
        return entry is not None and entry.is_view and entry.comment.startswith(begins)

    def own(self, entries: Mapping[str, Entry]) -> list[str]:
        """The helper views that are there, under whatever names."""
        return [entry.name for entry in entries.values() if entry.is_view and entry.comment in self.says.values()]

    def check(self, entries: Mapping[str, Entry]) -> None:
        """Raise InputError for a name of a helper view that stands for something else."""
        own = self.own(entries)
        for kind, name in self.names.items():
            if name in entries and name not in own:
                what = "view" if entries[name].is_view else "table"
                raise InputError(
                    f"{self.spec.at('publish', 'names')}: {self.schema}.{name} already exists, a {what} that does not "
                    f"belong to release {self.spec.release}. Give the helper view of its {kind} another name (publish: "
                    f"{{names: {{{kind}: ...}}}}), or move the other one away"
                )

    def stage(self, session: SparkSession, catalog: SparkCatalog, shown: Shown, schema: str, table: str) -> None:
        """Make the table beside a private one."""
        catalog.write(session.client.createDataFrame(rows_of(shown)), schema, beside(table))

    def copy(self, catalog: SparkCatalog, private: tuple[str, str], table: str, comment: str) -> None:
        """Make the table beside a published one. private: schema and name of the version's. Raises Refused where it is
        not what was staged."""
        source = private[0], beside(private[1])
        catalog.write(catalog.rows(*source), self.schema, beside(table), comment)
        if catalog.differ(source, (self.schema, beside(table))):
            catalog.drop(self.schema, [table, beside(table)])
            raise Refused("what helper views would show is not what was staged: nothing is published")

    def texts(self, table: str, columns: Sequence[PublishedColumn]) -> Texts:
        """What each helper view says and shows. table: the published one of the version."""
        kept = {self.names[helper.kind]: (self.says[helper.kind], _of(helper, self.schema, table)) for helper in KEPT}
        selected, grouped = block_columns(self.spec, columns, quote_name, quote_name, "CAST({} AS BIGINT)")
        text = f"SELECT {selected} FROM {quoted(self.schema, table)} GROUP BY {grouped}"
        spread = f"({kept[self.names['spread']][1]})"
        midpoints = midpoints_of(self.spec, columns).select(quoted(self.schema, table), spread, quote_name, quote_text)
        return kept | {
            self.names["blocks"]: (self.says["blocks"], text),
            self.names["midpoints"]: (self.says["midpoints"], midpoints),
        }

    def kept_texts(self, schema: str, table: str) -> dict[str, str]:
        """What each helper view but those of blocks and midpoints shows of a private version."""
        return {self.names[helper.kind]: _of(helper, schema, table) for helper in KEPT}

    def intact(
        self, catalog: SparkCatalog, private: tuple[str, str], table: str, columns: Sequence[PublishedColumn]
    ) -> bool:
        """Whether readers see the helper views of a published table with what was staged. private: as of `copy`."""
        entries, texts = catalog.entries(self.schema), self.texts(table, columns)
        source, published = (private[0], beside(private[1])), (self.schema, beside(table))
        if published[1] not in entries or source[1] not in catalog.entries(source[0]):
            return False
        if not set(self.own(entries)) == set(texts) == catalog.showing(self.schema, texts):
            return False
        return not catalog.differ(source, published)

    def finish(self, catalog: SparkCatalog, table: str, columns: Sequence[PublishedColumn]) -> None:
        """Have the helper views show what is beside a published table, each by one change of the catalog; drop those
        that have other names now."""
        entries = catalog.entries(self.schema)
        self.check(entries)
        texts = self.texts(table, columns)
        right = catalog.showing(self.schema, texts)
        for name, (says, text) in texts.items():
            if name in right:
                continue
            there = name in entries
            catalog.show(self.schema, name, text, says, there=there)
            if there and entries[name].comment != says:
                catalog.say(self.schema, name, says)
        catalog.drop(self.schema, [name for name in self.own(entries) if name not in texts], "VIEW")
        if self.view in entries and entries[self.view].comment != self.comment:
            catalog.say(self.schema, self.view, self.comment)


def rows_of(shown: Shown) -> pa.Table:
    """The rows of all helper views that are kept, with their kinds."""
    parts = []
    for helper in KEPT:
        table = shown.table(helper)
        kind = pa.array([helper.kind] * table.num_rows, pa.string())
        values = [column.cast(pa.string()) for column in table.columns[1:]]
        empty = [pa.nulls(table.num_rows, pa.string())] * (len(VALUES) - len(values))
        position = table.column(0).cast(pa.string())
        parts.append(pa.table([kind, position, *values, *empty], names=COLUMNS))
    return pa.concat_tables(parts)


def _of(helper: Helper, schema: str, table: str) -> str:
    """What a helper view shows of the table beside a version's."""
    columns = zip(VALUES, helper.columns.items(), strict=False)
    chosen = ", ".join(f"CAST(`{value}` AS {TYPES[type_]}) AS {quote_name(name)}" for value, (name, type_) in columns)
    return (
        f"SELECT {chosen} FROM {quoted(schema, beside(table))} WHERE `kind` = {quote_text(helper.kind)} "
        "ORDER BY CAST(`position` AS BIGINT)"
    )
