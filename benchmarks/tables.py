"""The tables of the benchmark, made once and kept in a folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks import census, hospital, retail, survey, tiny

EDITION = 1
"""Of all tables: raised when what is drawn changes, so that no older file is taken for them."""
MILLIONS = (1, 4, 16)
"""Of rows: the sizes at which growth is measured."""


@dataclass(frozen=True)
class Table:
    """rows: in each part; parts are made one after the other, so that a large table needs no more memory.

    generate(rows, part): the rows of a part. quasi: what the spec says of each quasi-identifier beside its role, where
    a file of a hierarchy is named without a folder. hierarchies(): the texts of these files.
    """

    name: str
    rows: int
    generate: Callable[[int, int], pa.Table]
    quasi: Mapping[str, Mapping[str, Any]]
    sensitive: str
    hierarchies: Callable[[], Mapping[str, str]] = dict
    parts: int = 1

    def kept_as(self, rows: int) -> str:
        return f"{self.name.replace('-', '_')}_{rows}_{EDITION}"

    def per_part(self, rows: int | None) -> int:
        """Rows of a part, of a table that is to have no more than so many."""
        return self.rows if rows is None else min(self.rows, -(-rows // self.parts))

    def attributes(self, directory: Path) -> dict[str, Any]:
        """`attributes` of a spec whose files of hierarchies are in the folder."""
        attributes: dict[str, Any] = {}
        for name, said in self.quasi.items():
            hierarchy = said["hierarchy"]
            if isinstance(hierarchy, dict) and "file" in hierarchy:
                hierarchy = {"file": str(directory / self.name / hierarchy["file"])}
            attributes[name] = {"role": "quasi_identifier", **said, "hierarchy": hierarchy}
        return attributes | {self.sensitive: "sensitive"}


TABLES = {
    table.name: table
    for table in (
        Table("retail", retail.ROWS, retail.generate, retail.QUASI, retail.SENSITIVE),
        Table("retail-x10", retail.ROWS, retail.generate, retail.QUASI, retail.SENSITIVE, parts=10),
        # One table of which each is the beginning of the next: all have the same first parts.
        *(
            Table(f"retail-{parts}m", 1_000_000, retail.generate, retail.QUASI, retail.SENSITIVE, parts=parts)
            for parts in MILLIONS
        ),
        Table("survey", survey.ROWS, survey.generate, survey.QUASI, survey.SENSITIVE, survey.hierarchies),
        Table("hospital", hospital.ROWS, hospital.generate, hospital.QUASI, hospital.SENSITIVE),
        Table("census", census.ROWS, census.generate, census.QUASI, census.SENSITIVE, census.hierarchies),
        Table("tiny", tiny.ROWS, tiny.generate, tiny.QUASI, tiny.SENSITIVE),
    )
}


def in_duckdb(table: Table, directory: Path, rows: int | None = None) -> Path:
    """The DuckDB file with the table `rows`, made where it is not there yet; its hierarchies are written beside."""
    beside = directory / table.name
    beside.mkdir(parents=True, exist_ok=True)
    for name, text in table.hierarchies().items():
        path = beside / f"{name}.csv"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    per_part = table.per_part(rows)
    file = directory / f"{table.kept_as(per_part * table.parts)}.duckdb"
    if not file.exists():
        # Made elsewhere: another run may make the same table, and one that is interrupted leaves no half of it.
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            new = Path(folder) / file.name
            with duckdb.connect(str(new)) as connection:
                connection.execute("SET enable_progress_bar = false")
                for part in range(table.parts):
                    connection.register("drawn", table.generate(per_part, part))
                    created = "CREATE TABLE rows AS" if part == 0 else "INSERT INTO rows"
                    connection.execute(f"{created} SELECT * FROM drawn")
                    connection.unregister("drawn")
            new.replace(file)
    return file


def written(spec: Mapping[str, Any], path: Path) -> Path:
    """A spec as a file; JSON is YAML, too."""
    path.write_text(json.dumps(spec, indent=1), "utf-8")
    return path
