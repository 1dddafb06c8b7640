"""Where a release is published, by the engine of its source; a new engine is an entry of TARGETS."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from qblock.errors import InputError
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.publish.targets.duckdb import DuckdbTarget
from qblock.publish.targets.protocol import Checked, Identity, Record, Rows, Target, exposure
from qblock.spec import Spec
from qblock.warehouse.engines import database_file, engine_of, engine_of_place, is_copied, parse_url

__all__ = ["TARGETS", "Checked", "Identity", "Record", "Rows", "Target", "exposure", "target_of", "write_dimensions"]


def _file(spec: Spec, store: Store) -> Target:
    where = spec.at("publish", "url")
    if spec.publish.url is None:
        raise InputError(
            f"{spec.at('publish')}: a release from DuckDB needs `publish.url`, a DuckDB file of its own, since "
            "whoever can read a DuckDB file reads everything in it"
        )
    url = parse_url(spec.publish.url.url)
    if not engine_of(url).is_file:
        raise InputError(f"{where}: the source is DuckDB, so the release is a DuckDB file: duckdb:///release.duckdb")
    source = None if is_copied(spec) else database_file(parse_url(spec.source.url.url), spec.directory)
    return DuckdbTarget(spec, store, source, database_file(url, spec.directory))


def _view(spec: Spec, store: Store) -> Target:
    from qblock.publish.targets.postgresql import PostgresqlTarget

    return PostgresqlTarget(spec, store)


def _tables(spec: Spec, store: Store) -> Target:
    from qblock.publish.targets.spark import SparkTarget

    return SparkTarget(spec, store)


def write_dimensions(spec: Spec, tables: Mapping[str, pa.Table]) -> list[str] | None:
    """Write dimension tables where they are not written to the ledger's database (`spark_versions.write_dimensions`);
    the names, or None."""
    if engine_of_place(spec).stores:
        return None
    from qblock.publish.targets.spark_versions import write_dimensions

    return write_dimensions(spec, tables)


TARGETS: dict[str, Callable[[Spec, Store], Target]] = {"duckdb": _file, "postgresql": _view, "spark": _tables}


def target_of(spec: Spec, store: Store | None = None) -> Target:
    """The target of a spec. Raises InputError where source and target do not match."""
    store = store or store_of(spec)
    engine = engine_of_place(spec)
    if spec.publish.storage_version is not None and not engine.is_file:
        where = spec.at("publish", "storage_version")
        raise InputError(f"{where}: publish.storage_version is for releases from DuckDB; remove it")
    if engine.stores:
        for key in ("path", "readers_checked"):
            if getattr(spec.publish, key) is not None:
                raise InputError(f"{spec.at('publish', key)}: publish.{key} is for sources on Spark; remove it")
    return TARGETS[engine.name](spec, store)
