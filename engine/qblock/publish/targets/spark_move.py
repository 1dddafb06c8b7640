"""The tables and views of a release on Spark under another name, after the ledger says that it was moved; twice is
once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qblock.errors import Refused
from qblock.ledger.kept import PublishedColumn
from qblock.publish.digest import relation_digest
from qblock.publish.targets.identity import mark_text, named_view, read_mark
from qblock.publish.targets.spark import SparkTarget
from qblock.publish.targets.spark_helpers import SparkHelpers, beside
from qblock.publish.targets.spark_versions import SparkVersions, opened, show_version
from qblock.spec import Spec
from qblock.warehouse.spark import SparkTables
from qblock.warehouse.spark_catalog import SparkCatalog


def finish_move(
    target: SparkTarget,
    earlier: str,
    before: str,
    kept: Mapping[int, Sequence[PublishedColumn]],
    current: int | None,
) -> None:
    """Move what is left of a release. earlier: its name before; before: its view then, as the ledger has it; kept: the
    columns of each version that is kept; current: the version that readers see."""
    spec, view = target.spec, named_view(before)
    schema = view.schema or spec.publish.schema
    old = replace(spec, release=earlier, publish=replace(spec.publish, schema=schema, view=view.name))
    with opened(spec) as (session, catalog):
        if earlier != spec.release:
            for version in kept:
                _move_version(session, catalog, old, spec, version)
        if current is not None:
            _move_view(session, catalog, spec, current, kept[current])
        _unpublish_old(catalog, old, spec)


def _move_version(session: SparkTables, catalog: SparkCatalog, old: Spec, new: Spec, version: int) -> None:
    """The private tables of a version under the names of the spec: copies, which are whole once they have a mark."""
    versions, kept = SparkVersions(new), SparkVersions(old)
    schema, before, table = versions.private, kept.name(version), versions.name(version)
    stamps = kept.marked(catalog)
    if version in versions.marked(catalog) or version not in stamps:
        return
    catalog.drop(schema, [table, beside(table)])
    catalog.write(catalog.rows(schema, before), schema, table)
    if relation_digest(session, versions.table(version)) != relation_digest(session, kept.table(version)):
        raise Refused(f"the copy of version {version} is not what it was: run it again")
    if beside(before) in catalog.entries(schema):
        catalog.write(catalog.rows(schema, beside(before)), schema, beside(table))
        if catalog.differ((schema, beside(before)), (schema, beside(table))):
            raise Refused(f"what helper views show of version {version} was not copied as it was: run it again")
    catalog.mark(schema, table, mark_text(new.release, version, stamps[version]))


def _move_view(
    session: SparkTables, catalog: SparkCatalog, spec: Spec, version: int, columns: Sequence[PublishedColumn]
) -> None:
    """Have the view of the spec and its helper views show the version, which readers see under the old names so far."""
    versions = SparkVersions(spec)
    if versions.has_landed(catalog, version):
        SparkHelpers(spec).finish(catalog, versions.table_shown(catalog).name, columns)
    else:
        show_version(spec, session, catalog, version, columns)


def _unpublish_old(catalog: SparkCatalog, old: Spec, new: Spec) -> None:
    """Drop what readers had until now, and the private tables under the earlier name."""
    schema, helpers = old.publish.schema, SparkHelpers(old)
    entries = catalog.entries(schema)
    if (schema, old.view) != (new.publish.schema, new.view):
        views = [old.view] if helpers.is_view(entries.get(old.view)) else []
        catalog.drop(schema, [*views, *helpers.own(entries)], "VIEW")
    shown = SparkVersions(new).shown(catalog)
    stay = () if shown is None or schema != new.publish.schema else (shown[0], beside(shown[0]))
    copies = [entry.name for entry in entries.values() if read_mark(entry.comment, old.release) and not entry.is_view]
    catalog.drop(schema, [name for name in copies if name not in stay])
    if old.release != new.release:
        kept = SparkVersions(old)
        catalog.drop(kept.private, [entry.name for _, entry in kept.own(catalog)])
