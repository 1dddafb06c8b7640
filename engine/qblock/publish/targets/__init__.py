"""Where a release is published, by the engine of its source; a new engine is an entry of TARGETS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from qblock.errors import InputError
from qblock.ledger.store import Store
from qblock.ledger.stores import place_of
from qblock.publish.targets.duckdb import DuckdbTarget
from qblock.publish.targets.duckdb_move import finish_move
from qblock.publish.targets.identity import Identity, Mark, new_stamp
from qblock.publish.targets.protocol import Checked, Record, Rows, Target, exposure
from qblock.spec import Spec
from qblock.warehouse.engines import database_file, engine_of, engine_of_source, parse_url

__all__ = [
    "TARGETS",
    "Checked",
    "Identity",
    "Mark",
    "Record",
    "Rows",
    "Target",
    "exposure",
    "kind_of",
    "new_stamp",
    "target_of",
]


@dataclass(frozen=True)
class TargetKind:
    """build: the target of a spec, raises InputError where source and target do not go together; move: a release to
    another name or view in the ledger's transaction (postgresql_move); finish_move: after it (duckdb_move, spark_move);
    write_dimensions: where dimension tables are not written to the ledger's database (spark_versions)."""

    build: Callable[[Spec, Store], Target]
    move: Callable[..., list[str]] | None = None
    finish_move: Callable[..., None] | None = None
    write_dimensions: Callable[[Spec, Mapping[str, pa.Table]], list[str]] | None = None


def _file(spec: Spec, place: Store) -> Target:
    where = spec.at("publish", "url")
    if spec.publish.url is None:
        raise InputError(
            f"{spec.at('publish')}: a release from DuckDB needs `publish.url`, a DuckDB file of its own, since "
            "whoever can read a DuckDB file reads everything in it"
        )
    url = parse_url(spec.publish.url.url)
    if not engine_of(url).is_file:
        raise InputError(f"{where}: the source is DuckDB, so the release is a DuckDB file: duckdb:///release.duckdb")
    source = database_file(parse_url(spec.source.url.url), spec.directory)
    return DuckdbTarget(spec, place, source, database_file(url, spec.directory))


def _view(spec: Spec, place: Store) -> Target:
    if spec.publish.url is not None:
        url: Any = parse_url(spec.publish.url.url)
        if engine_of(url).is_file or any(
            getattr(url, part) != getattr(place.url, part) for part in ("host", "port", "database", "query")
        ):
            raise InputError(
                f"{spec.at('publish', 'url')}: source and target must be the same PostgreSQL database; remove "
                "publish.url, and give publish.schema instead"
            )
    from qblock.publish.targets.postgresql import PostgresqlTarget

    return PostgresqlTarget(spec, place)


def _tables(spec: Spec, place: Store) -> Target:
    from qblock.publish.targets.spark import SparkTarget

    return SparkTarget(spec, place)


def _move_view(*given: Any) -> list[str]:
    from qblock.publish.targets.postgresql_move import move_view

    return move_view(*given)


def _finish_move(*given: Any) -> None:
    from qblock.publish.targets.spark_move import finish_move

    finish_move(*given)


def _write_dimensions(spec: Spec, tables: Mapping[str, pa.Table]) -> list[str]:
    from qblock.publish.targets.spark_versions import write_dimensions

    return write_dimensions(spec, tables)


TARGETS = {
    "duckdb": TargetKind(_file, finish_move=finish_move),
    "postgresql": TargetKind(_view, move=_move_view),
    "spark": TargetKind(_tables, finish_move=_finish_move, write_dimensions=_write_dimensions),
}


def kind_of(spec: Spec) -> TargetKind:
    """What is known of targets for the source of a spec."""
    return TARGETS[engine_of_source(spec).name]


def target_of(spec: Spec, place: Store | None = None) -> Target:
    """The target of a spec. Raises InputError where source and target do not match."""
    place = place or place_of(spec)
    engine = engine_of_source(spec)
    if spec.publish.storage_version is not None and not engine.is_file:
        where = spec.at("publish", "storage_version")
        raise InputError(f"{where}: publish.storage_version is for releases from DuckDB; remove it")
    if engine.stores:
        for key in ("path", "readers_checked"):
            if getattr(spec.publish, key) is not None:
                raise InputError(f"{spec.at('publish', key)}: publish.{key} is for sources on Spark; remove it")
    return TARGETS[engine.name].build(spec, place)
