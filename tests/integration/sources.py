"""Specs over tables of a test, and what their values are at every level, said apart from the engine."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import yaml
from attached import duckdb_file
from spark_tables import spark_database_of

from qblock.blocks import Blocks
from qblock.search.run import open_task
from qblock.search.task import Task
from qblock.spec import Spec, read_spec

Node = tuple[int, ...]
Labels = tuple[str | None, ...]


def escaped(value: Any) -> Any:
    """A document whose texts are meant literally: a dollar sign would name a variable."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, Mapping):
        return {key: escaped(item) for key, item in value.items()}
    return [escaped(item) for item in value] if isinstance(value, list | tuple) else value


def quoted(*parts: str) -> str:
    """A table name as a spec takes it, whatever is in it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def spec_text(table: str, attributes: Mapping[str, Any], privacy: Sequence[Any], **more: Any) -> str:
    """The text of a spec whose source is ${URL}."""
    document = {
        "version": 1,
        "release": "tested",
        **escaped({"source": {"url": "", "table": table}, "attributes": attributes, "privacy": privacy, **more}),
    }
    document["source"]["url"] = "${URL}"
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10**6)


def make_spec(
    url: str, table: str, attributes: Mapping[str, Any], privacy: Sequence[Any], directory: Path, **more: Any
) -> Spec:
    """A spec as if its file stood in `directory`."""
    return read_spec(spec_text(table, attributes, privacy, **more), directory / "spec.yaml", {"URL": url})


@contextmanager
def opened(
    url: str,
    table: str,
    attributes: Mapping[str, Any],
    directory: Path,
    privacy: Sequence[Any] = ({"k_anonymity": {"k": 1}},),
    name_values: bool = True,
    **more: Any,
) -> Iterator[Task]:
    """The task of a spec, open."""
    with open_task(make_spec(url, table, attributes, privacy, directory, **more), name_values=name_values) as task:
        yield task


@dataclass(frozen=True)
class Column:
    """A column of a test's table: its raw values, SQL type and entry in the spec.

    paths: for a quasi-identifier, what each raw value is called at each level, level 0 first; NULL is `*` throughout.
    """

    name: str
    values: Sequence[Any]
    entry: Any
    paths: Mapping[Any, Labels] = field(default_factory=dict)
    type: str | None = None

    @property
    def height(self) -> int:
        return len(next(iter(self.paths.values()))) - 1

    def label(self, raw: Any, level: int) -> str | None:
        return self.paths[raw][level]


@dataclass(frozen=True)
class Rows:
    """A table of a test and how to count it by hand."""

    quasi: Sequence[Column]
    sensitive: Sequence[Column] = ()
    others: Sequence[Column] = ()

    @property
    def columns(self) -> list[Column]:
        return [*self.quasi, *self.sensitive, *self.others]

    @property
    def size(self) -> int:
        return len(self.quasi[0].values)

    def attributes(self) -> dict[str, Any]:
        return {column.name: column.entry for column in self.columns}

    def fill(self, warehouse: Callable[..., str], table: str, schema: str | None = None) -> str:
        """Create the table; returns the URL."""
        types = {column.name: column.type for column in self.columns if column.type}
        return warehouse(table, {column.name: column.values for column in self.columns}, types, schema)

    def nodes(self) -> list[Node]:
        return list(itertools.product(*(range(column.height + 1) for column in self.quasi)))

    def keys(self, node: Node) -> list[Labels]:
        """The generalized quasi-identifiers of each row."""
        return [
            tuple(column.label(column.values[row], level) for column, level in zip(self.quasi, node, strict=True))
            for row in range(self.size)
        ]

    def sizes(self, node: Node, entity: Sequence[Any] | None = None) -> dict[Labels, int]:
        """Rows (or distinct entities) of each block."""
        pairs = zip(self.keys(node), range(self.size) if entity is None else entity, strict=True)
        return dict(Counter(key for key, _ in set(pairs)))

    def joint(
        self, node: Node, chosen: Sequence[int], entity: Sequence[Any] | None = None
    ) -> dict[tuple[Labels, Labels], int]:
        """Rows (or distinct entities) of each block with each combination of sensitive values, as text."""
        values = [tuple(text_of(self.sensitive[i].values[row]) for i in chosen) for row in range(self.size)]
        who = range(self.size) if entity is None else entity
        return dict(Counter((key, value) for key, value, _ in set(zip(self.keys(node), values, who, strict=True))))


def text_of(value: Any) -> str | None:
    """The text form of a raw value; None for NULL."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def keys_of(task: Task, node: Node, codes: np.ndarray) -> list[Labels]:
    """The labels behind codes int64[R, Q] of a node; NULL reads `*` at level 0 too."""
    labels = [h.labels[level] for h, level in zip(task.source.hierarchies, node, strict=True)]
    return [
        tuple("*" if label[code] is None else label[code] for label, code in zip(labels, row, strict=True))
        for row in codes.tolist()
    ]


def counted(task: Task, node: Node, blocks: Blocks, sensitive: int) -> dict[tuple[Labels, Labels], int]:
    """Blocks in the form of Rows.joint."""
    domain = list(task.source.sensitives.values())[sensitive].reference.domain
    assert blocks.keys is not None
    return {
        (key, (domain[value],)): count
        for b, key in enumerate(keys_of(task, node, blocks.keys))
        for value, count in blocks.histogram(b).items()
    }


def from_file(name: str, values: Sequence[Any], paths: Mapping[Any, Labels], file: Path, **more: Any) -> Column:
    """A quasi-identifier whose hierarchy is a CSV file written here. None among the values needs `nulls: top`."""
    height = len(next(iter(paths.values()))) - 1
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, quoting=csv.QUOTE_ALL)
        writer.writerow([f"level_{level}" for level in range(height + 1)])
        writer.writerows([text_of(raw), *path[1:]] for raw, path in paths.items() if raw is not None)
    return quasi(name, values, {"file": str(file)}, paths, **more)


def quasi(
    name: str, values: Sequence[Any], hierarchy: Any, paths: Mapping[Any, Labels], type_: str | None = None
) -> Column:
    """A quasi-identifier."""
    entry: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": hierarchy}
    known = dict(paths)
    if None in values:
        entry["nulls"] = "top"
        known[None] = ("*",) * len(next(iter(paths.values())))
    return Column(name, values, entry, known, type_)


def sensitive(name: str, values: Sequence[Any], type_: str | None = None, **more: Any) -> Column:
    """A sensitive attribute."""
    entry = {"role": "sensitive", **({"nulls": "value"} if None in values else {}), **more}
    return Column(name, values, entry, type=type_)


def distinct(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(value for value in values if value is not None))


def suppressed(name: str, values: Sequence[Any], type_: str | None = None) -> Column:
    paths = {value: (text_of(value), "*") for value in distinct(values)} or {None: ("*", "*")}
    return quasi(name, values, "suppress", paths, type_)


def in_digits(name: str, values: Sequence[str], n: int, side: str = "right") -> Column:
    def path(text: str) -> Labels:
        masked = [text[: n - i] + "*" * i if side == "right" else "*" * i + text[i:] for i in range(n)]
        return (*masked, "*")

    return quasi(name, values, {"digits": n, "from": side}, {value: path(value) for value in distinct(values)})


def in_ranges(
    name: str, values: Sequence[int], widths: Sequence[int], start: int = 0, type_: str | None = None
) -> Column:
    def label(value: int, width: int) -> str:
        low = start + (value - start) // width * width
        high = low + width - 1
        if low == high:
            return str(low)
        return f"{low}-{high}" if low >= 0 else f"{low} to {high}"

    paths = {v: (str(v), *(label(v, width) for width in widths), "*") for v in distinct(values)}
    return quasi(name, values, {"ranges": list(widths), "start": start}, paths, type_)


def in_months(name: str, values: Sequence[date]) -> Column:
    def path(day: date) -> Labels:
        return (str(day), f"{day:%Y-%m}", f"{day.year}-Q{(day.month - 1) // 3 + 1}", f"{day:%Y}", "*")

    return quasi(name, values, {"dates": ["month", "quarter", "year"]}, {v: path(v) for v in distinct(values)})


def in_weeks(name: str, values: Sequence[date]) -> Column:
    paths = {v: (str(v), f"{v:%G-W%V}", f"{v:%G}", "*") for v in distinct(values)}
    return quasi(name, values, {"dates": ["week", "iso_year"]}, paths)


def execute(url: str, *statements: str) -> None:
    """Run statements against the database of a URL, on each engine."""
    if url.startswith("sc://"):
        for statement in statements:
            spark_database_of(url).execute(statement)
        return
    if url.startswith("duckdb"):
        with duckdb_file(Path(url.removeprefix("duckdb:///"))) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]
