"""The catalog of a Spark server: schemas with a folder, the tables of versions and the view that shows one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from qblock.engines.spark.adapter import quote_name, quote_text
from qblock.engines.spark.client import Client, Frame, explained, path_literal, quoted, rows_of, whole
from qblock.errors import InputError

LONGEST = 256
"""Characters of a column's comment, of which Hive's catalog keeps no more."""


@dataclass(frozen=True)
class Entry:
    """A table or view of a schema. comment: what it says of itself; is_view: whether it is one."""

    name: str
    comment: str
    is_view: bool


class SparkCatalog:
    """What a client may do to the catalog. Names and comments are quoted."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def lasts(self) -> bool:
        """Whether the catalog outlives the server's process."""
        with explained():
            return str(self._client.conf.get("spark.sql.catalogImplementation", "in-memory")) != "in-memory"

    def location(self, schema: str) -> str | None:
        """The folder of a schema; None where there is no such schema."""
        with explained():
            if not self._is_there(schema):
                return None
            return str(self._client.catalog.getDatabase(quote_name(schema)).locationUri)

    def _is_there(self, schema: str) -> bool:
        return bool(self._client.catalog.databaseExists(quote_name(schema)))

    def make_schema(self, schema: str, path: str) -> None:
        """Make a schema in a folder, where there is none. Raises InputError for one that is elsewhere."""
        folder = self.location(schema)
        if folder is None:
            with explained():
                self._client.sql(f"CREATE SCHEMA IF NOT EXISTS {quote_name(schema)} LOCATION {path_literal(path)}")
        elif not same_path(folder, path):
            raise InputError(f"schema {schema} is stored in another folder than {path}; name the one that it has")

    def entries(self, schema: str) -> dict[str, Entry]:
        """The tables and views of a schema by name; none where there is no such schema."""
        with explained():
            if not self._is_there(schema):
                return {}
            tables = self._client.catalog.listTables(quote_name(schema))
        entries = [
            Entry(table.name, table.description or "", table.tableType == "VIEW")
            for table in tables
            if not table.isTemporary
        ]
        return {entry.name: entry for entry in entries}

    def text_of(self, schema: str, view: str) -> str | None:
        """The text of a view, as it was given."""
        with explained():
            rows = whole(self._client.sql(f"DESCRIBE TABLE EXTENDED {quoted(schema, view)}")).to_pylist()
        names = [row["col_name"] for row in rows]
        # Columns come first, and one of them may have any name.
        start = names.index("# Detailed Table Information") if "# Detailed Table Information" in names else len(names)
        return next((row["data_type"] for row in rows[start:] if row["col_name"] == "View Text"), None)

    def columns(self, schema: str, table: str) -> list[tuple[str, str]]:
        """Names and types of a table's columns."""
        with explained():
            fields = self._client.table(quoted(schema, table)).schema.fields
        return [(field.name, field.dataType.simpleString()) for field in fields]

    def write(
        self, frame: Frame, schema: str, table: str, mark: str = "", said: Mapping[str, str] | None = None
    ) -> None:
        """Make a table of rows, sorted and spread by their content alone: neither a file nor its name tells an order.

        mark: its comment; said: those of its columns, which are those of a view that shows it, too. The table is there
        before its files, so that whatever a killed run leaves has a name.
        """
        with explained():
            comments = {name: _comment(text[:LONGEST]) for name, text in (said or {}).items()}
            names = [quote_name(f.name) for f in frame.schema.fields]
            columns = ", ".join(
                f"{name} {f.dataType.simpleString()}{comments.get(f.name, '')}"
                for name, f in zip(names, frame.schema.fields, strict=True)
            )
            self._client.sql(f"CREATE TABLE {quoted(schema, table)} ({columns}) USING PARQUET{_comment(mark)}")
            spread = frame.repartition(*names).sortWithinPartitions(*names)
            spread.write.insertInto(quoted(schema, table))

    def make_empty(self, schema: str, table: str, columns: Sequence[str], mark: str) -> None:
        """Make a table of texts without rows."""
        with explained():
            typed = ", ".join(f"{quote_name(name)} STRING" for name in columns)
            self._client.sql(f"CREATE TABLE {quoted(schema, table)} ({typed}) USING PARQUET{_comment(mark)}")

    def mark(self, schema: str, table: str, mark: str) -> None:
        """Have a table say what it is."""
        with explained():
            self._client.sql(f"COMMENT ON TABLE {quoted(schema, table)} IS {quote_text(mark)}")

    def rows(self, schema: str, table: str) -> Frame:
        """The rows of a table, to be written."""
        with explained():
            return self._client.table(quoted(schema, table))

    def count(self, schema: str, table: str) -> int:
        """How many rows a table has."""
        with explained():
            rows = whole(rows_of(self._client, f"SELECT count(*) AS n FROM {quoted(schema, table)}", {}))
        return int(rows.column(0)[0].as_py())

    def show(self, schema: str, view: str, text: str, mark: str, *, there: bool | None = None) -> None:
        """Have a view show something else, by one change of the catalog; make it where there is none. there: whether
        there is one, where that is known."""
        if there is None:
            there = view in self.entries(schema)
        # CREATE OR REPLACE drops and makes: readers would meet no view, and a run that is killed would leave none.
        begin, comment = ("ALTER", "") if there else ("CREATE", _comment(mark))
        with explained():
            self._client.sql(f"{begin} VIEW {quoted(schema, view)}{comment} AS {text}")

    def say(self, schema: str, view: str, mark: str) -> None:
        """Have a view say something else of itself."""
        with explained():
            self._client.sql(f"ALTER VIEW {quoted(schema, view)} SET TBLPROPERTIES ('comment' = {quote_text(mark)})")

    def showing(self, schema: str, texts: Mapping[str, tuple[str, str]]) -> set[str]:
        """Those views that say and show what they should, by one statement. texts: comment and text by name."""
        if not texts:
            return set()
        with explained():
            like = quote_text("|".join(texts))
            rows = whole(self._client.sql(f"SHOW TABLE EXTENDED IN {quote_name(schema)} LIKE {like}")).to_pylist()
        told = {row["tableName"]: row["information"] for row in rows}
        return {name for name, (mark, text) in texts.items() if _tells(told.get(name, ""), mark, text)}

    def differ(self, left: tuple[str, str], right: tuple[str, str]) -> bool:
        """Whether two tables with the same columns have other rows, or one of them more often. Each by schema and
        name."""
        columns = ", ".join(quote_name(name) for name, _ in self.columns(*left))
        sides = [f"SELECT {columns}, {n} AS `qblock side` FROM {quoted(*of)}" for of, n in ((left, 1), (right, -1))]
        query = f"SELECT 1 AS n FROM ({' UNION ALL '.join(sides)}) GROUP BY {columns} HAVING sum(`qblock side`) <> 0"
        with explained():
            return whole(rows_of(self._client, f"{query} LIMIT 1", {})).num_rows > 0

    def drop(self, schema: str, names: Sequence[str], kind: str = "TABLE") -> None:
        """Drop tables with their files, or views."""
        for name in names:
            with explained():
                self._client.sql(f"DROP {kind} IF EXISTS {quoted(schema, name)}")


def _comment(text: str) -> str:
    return f" COMMENT {quote_text(text)}" if text else ""


def _tells(information: str, mark: str, text: str) -> bool:
    """Whether what is told of a view has this comment and text, where nothing that others wrote stands before them."""
    told = information.partition("\nType: VIEW\n")[2]
    return told.startswith(f"Comment: {mark}\nView Text: {text}\nView Original Text: ")


def same_path(left: str, right: str) -> bool:
    """Whether two paths are one folder, where either may leave out the file system that is the server's own."""
    first, second = urlsplit(left), urlsplit(right)
    near = not (first.netloc and second.netloc) or first.netloc == second.netloc
    return near and _plain(first.path) == _plain(second.path)


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or in it."""
    inner, outer = _plain(urlsplit(path).path), _plain(urlsplit(folder).path)
    return inner == outer or inner.startswith(f"{outer}/") or outer == ""


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))
