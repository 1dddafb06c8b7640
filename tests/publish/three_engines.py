"""One release of the same rows on DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml

from publish.spark_releases import ON_SPARK, written
from qblock.api import Release
from qblock.demo.tables import load_table

SEEN = ("status", "version", "node", "rows", "suppressed", "digest", "tightest", "optimality", "boxes", "waiting")
"""What a run says, but for where and when it was, and of which ledger."""


@dataclass
class Three:
    """client, server: of Spark, whose schemas are in `home`; postgresql: the URL of a database; folder: of all else."""

    client: Any
    server: str
    home: Path
    postgresql: str
    folder: Path

    def become(self, name: str, rows: pa.Table) -> None:
        """The rows are the table `name` of each engine from now on."""
        with duckdb.connect(self.folder / "w.duckdb") as connection:
            connection.register("given", rows)
            connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        load_table(self.postgresql, rows, schema="clinic", table=name)
        types = [pa.string() if pa.types.is_dictionary(field.type) else field.type for field in rows.schema]
        plain = rows.cast(pa.schema(list(zip(rows.column_names, types, strict=True))))
        self.client.createDataFrame(plain).write.mode("overwrite").saveAsTable(f"clinic.{name}")

    def releases(self, name: str, spec: Mapping[str, Any]) -> dict[str, Release]:
        """The release of that table on each engine, by a spec without its source and its place."""
        ledger = f"sqlite:///{self.folder}/ledger/ledger.sqlite"
        places = {
            "duckdb": ("duckdb:///w.duckdb", name, 'publish: {url: "duckdb:///out.duckdb", schema: main}'),
            "postgresql": (self.postgresql, f"clinic.{name}", "publish: {schema: published}"),
            "spark": (self.server, f"clinic.{name}", ON_SPARK.format(ledger=ledger, folder=self.home)),
        }
        made = {}
        for engine, (url, table, place) in places.items():
            whole = {"version": 1, "release": name, "source": {"url": url, "table": table}, **spec}
            text = f"{yaml.safe_dump(whole, sort_keys=False)}{place}\n"
            made[engine] = written(self.folder / f"{name}_{engine}.yaml", text)
        return made

    def published(self, name: str, spec: Mapping[str, Any], **given: Any) -> dict[str, Any]:
        """What a run says, which is the same on all engines."""
        return self.same({engine: said(one, **given) for engine, one in self.releases(name, spec).items()})

    @staticmethod
    def same(found: Mapping[str, Any]) -> Any:
        assert set(found) == {"duckdb", "postgresql", "spark"}
        for engine in ("postgresql", "spark"):
            assert found[engine] == found["duckdb"], engine
        return found["duckdb"]


def said(release: Release, **given: Any) -> dict[str, Any]:
    """What a run of a release says of its version."""
    found = release.publish(**given).to_dict()
    assert release.verify().problems == ()
    lag = {name: value for name, value in found["lag"].items() if name != "oldest_seconds"}
    return {name: found[name] for name in SEEN if name in found} | {"lag": lag}


def searched(release: Release) -> dict[str, Any]:
    """What a search says, but for how many statements it took, and how long."""
    found = release.search().to_dict()
    return {name: value for name, value in found.items() if name not in ("seconds", "queries")}
