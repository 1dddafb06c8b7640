"""A release job on each engine: a table of people, a spec beside it, and what readers see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
import yaml

from qblock.release.apply import release
from qblock.release.result import ReleaseResult
from qblock.spec import Spec, load_spec

PEOPLE: dict[str, list[Any]] = {
    "name": [f"person {i}" for i in range(12)],
    "zip": ["13053", "13068", "13068", "13053", "14853", "14853", "14850", "14850", "13053", "13053", "13068", "13068"],
    "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
    "disease": [
        "heart",
        "heart",
        "viral",
        "viral",
        "cancer",
        "heart",
        "viral",
        "viral",
        "cancer",
        "viral",
        "flu",
        "heart",
    ],
    "ward": ["A", "B", "A", "B", "A", "B", "A", "B", "A", "B", "A", "B"],
}
"""LD Figure 1, but for four sensitive values."""
ATTRIBUTES: dict[str, Any] = {
    "name": "identifying",
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
    "disease": "sensitive",
    "ward": "insensitive",
}


@dataclass
class Job:
    """One release of a table: `spec` is written anew for each run from `settings`."""

    engine: str
    folder: Path
    url: str
    settings: dict[str, Any]

    @property
    def target(self) -> Path:
        return self.folder / "release.duckdb"

    @property
    def spec(self) -> Spec:
        path = self.folder / "spec.yaml"
        path.write_text(yaml.safe_dump(self.settings, sort_keys=False, allow_unicode=True), "utf-8")
        return load_spec(path)

    def set(self, **settings: Any) -> Job:
        self.settings |= settings
        return self

    def run(self, **options: Any) -> ReleaseResult:
        return release(self.spec, **options)

    def query(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Ask what is published, as the owner (or as the login of another URL)."""
        if self.engine == "duckdb":
            with duckdb.connect(str(self.target), read_only=True) as connection:
                return connection.execute(statement).fetchall()
        with psycopg.connect(url or self.url) as connection:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]

    def change(self, statement: str) -> None:
        """Change the source."""
        if self.engine == "duckdb":
            with duckdb.connect(str(self.folder / "warehouse.duckdb")) as connection:
                connection.execute(statement)
            return
        with psycopg.connect(self.url) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def published(self) -> list[tuple[Any, ...]]:
        """The rows of the view as they come."""
        publish = self.settings["publish"]
        schema, view = (f'"{name}"'.replace('""', '"') for name in (publish["schema"], publish["view"]))
        return self.query(f"SELECT * FROM {schema}.{view}")


MakeJob = Callable[..., Job]


@pytest.fixture
def make_job(engine_name: str, warehouse: Callable[..., str], tmp_path: Path) -> MakeJob:
    """`make_job(columns=PEOPLE, types=None, table="people", schema=None, **settings)`: a table and its job."""

    def make(
        columns: Mapping[str, Sequence[Any]] = PEOPLE,
        types: Mapping[str, str] | None = None,
        table: str = "people",
        schema: str | None = None,
        **settings: Any,
    ) -> Job:
        url = warehouse(table, columns, types, schema)
        publish = {"schema": "published", "view": "people"}
        if engine_name == "duckdb":
            publish["url"] = f"duckdb:///{tmp_path}/release.duckdb"
        quoted = ".".join(f'"{part}"' for part in (schema, table) if part)
        return Job(
            engine_name,
            tmp_path,
            url,
            {
                "version": 1,
                "release": "people",
                "source": {"url": url, "table": quoted},
                "attributes": ATTRIBUTES,
                "privacy": [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}],
                "publish": publish,
                **settings,
            },
        )

    return make


@pytest.fixture
def job(make_job: MakeJob) -> Job:
    """The job over PEOPLE."""
    return make_job()
