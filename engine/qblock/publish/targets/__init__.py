"""Where a release is published, by the engine of its source; a new engine is an entry of TARGETS."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from qblock.engines.engine import database_file
from qblock.engines.from_spec import engine_of_place, is_copied, is_elsewhere
from qblock.engines.registry import parse_url
from qblock.errors import InputError
from qblock.ledger.store import FOLDER, Store
from qblock.ledger.stores import store_of
from qblock.ledger.stores.files import LEDGER_FILE, FileStore
from qblock.publish.targets.duckdb import DuckdbTarget
from qblock.publish.targets.protocol import Checked, Identity, Record, Rows, Target, exposure
from qblock.spec import Spec

__all__ = ["TARGETS", "Checked", "Identity", "Record", "Rows", "Target", "exposure", "target_of", "write_dimensions"]


def _file(spec: Spec, store: Store) -> Target:
    if spec.publish.url is None:
        raise InputError(
            f"{spec.at('publish')}: a release from DuckDB needs a file of its own, since people who can read a DuckDB "
            "file read everything in it. Write `publish: {url: 'duckdb:///release.duckdb'}`, or name a database of "
            "PostgreSQL or a Spark server"
        )
    url = parse_url(spec.publish.url.url)
    source = None if is_copied(spec) else database_file(parse_url(spec.source.url.url), spec.directory)
    return DuckdbTarget(spec, store, source, database_file(url, spec.directory))


def _view(spec: Spec, store: Store) -> Target:
    from qblock.publish.targets.postgresql import PostgresqlTarget

    if is_elsewhere(spec):
        _check_never_a_file(spec, store)
    return PostgresqlTarget(spec, store)


def _check_never_a_file(spec: Spec, store: Store) -> None:
    """Raise InputError where the release has been in a release file: readers may hold versions of it that the ledger in
    another place does not know, so that nothing would be checked together with them."""
    beside = FileStore(spec.directory.resolve() / FOLDER / LEDGER_FILE)
    if not beside.exists or beside.file == store.file:
        return
    with beside.read() as reader:
        if reader.last_event(spec.release, "published") is not None:
            raise InputError(
                f"{spec.at('publish', 'url')}: release {spec.release} was published as a release file, and readers may "
                f"hold its versions. Only the ledger {beside.file} knows them. Keep publish.url, or publish here under "
                f"a name of its own, for readers who do not hold the file: release: {spec.release}_2"
            )


def _tables(spec: Spec, store: Store) -> Target:
    from qblock.publish.targets.spark import SparkTarget

    if is_elsewhere(spec):
        _check_never_a_file(spec, store)
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
    engine = engine_of_place(spec)
    store = store or store_of(spec)
    if spec.publish.storage_version is not None and not engine.is_file:
        where = spec.at("publish", "storage_version")
        raise InputError(f"{where}: publish.storage_version is for releases from DuckDB; remove it")
    if engine.stores:
        for key in ("path", "readers_checked"):
            if getattr(spec.publish, key) is not None:
                raise InputError(f"{spec.at('publish', key)}: publish.{key} is for releases on Spark; remove it")
    return TARGETS[engine.name](spec, store)
