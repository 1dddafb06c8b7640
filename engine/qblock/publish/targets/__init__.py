"""Where a release is published: a PostgreSQL schema beside its source, or a DuckDB file of its own."""

from __future__ import annotations

from qblock.errors import InputError
from qblock.ledger.place import Place, place_of
from qblock.publish.targets.duckdb import DuckdbTarget
from qblock.publish.targets.mark import Mark, new_stamp
from qblock.publish.targets.postgresql import PostgresqlTarget
from qblock.publish.targets.protocol import Checked, Record, Rows, Target, exposure
from qblock.spec import Spec
from qblock.warehouse.connect import duckdb_path, parse_url

__all__ = ["Checked", "Mark", "Record", "Rows", "Target", "exposure", "new_stamp", "target_of"]


def target_of(spec: Spec, place: Place | None = None) -> Target:
    """The target of a spec. Raises InputError where source and target do not go together."""
    place = place or place_of(spec)
    where = spec.at("publish", "url")
    if place.engine == "duckdb":
        if spec.publish.url is None:
            raise InputError(
                f"{spec.at('publish')}: a release from DuckDB needs `publish.url`, a DuckDB file of its own, since "
                "whoever can read a DuckDB file reads everything in it"
            )
        url = parse_url(spec.publish.url.url)
        if url.get_backend_name() != "duckdb":
            raise InputError(
                f"{where}: the source is DuckDB, so the release is a DuckDB file: duckdb:///release.duckdb"
            )
        source = duckdb_path(parse_url(spec.source.url.url), spec.directory)
        return DuckdbTarget(spec, place, source, duckdb_path(url, spec.directory))
    if spec.publish.url is not None:
        url, source_url = parse_url(spec.publish.url.url), place.url
        if url.get_backend_name() == "duckdb" or any(
            getattr(url, part) != getattr(source_url, part) for part in ("host", "port", "database", "query")
        ):
            raise InputError(
                f"{where}: source and target must be the same PostgreSQL database; remove publish.url, and give "
                "publish.schema instead"
            )
    return PostgresqlTarget(spec, place)
