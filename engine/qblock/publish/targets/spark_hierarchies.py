"""Hierarchies as dimension tables of a Spark catalog: views in the private schema, each of a table beside it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

import pyarrow as pa

from qblock.errors import InputError
from qblock.ledger.stores import place_of
from qblock.publish.targets.spark_versions import SparkVersions, opened
from qblock.spec import Spec
from qblock.warehouse.spark_catalog import SparkCatalog

SAYS = "qblock dimension table {name}"
"""The comment on a view, and on the table that it shows."""


def write_dimensions(spec: Spec, tables: Mapping[str, pa.Table]) -> list[str]:
    """Write dimension tables of texts by name, replacing older ones; returns the names with their schema.

    Each is a view, which shows a new table by one change of the catalog: whoever reads an older one while it is
    replaced, as a spec that names it does, finds one or the other. Raises InputError for a name of something else.
    """
    place_of(spec)
    assert spec.private is not None
    named = {re.sub("[^a-z0-9_]", "_", name.casefold()): name for name in tables}
    if len(named) < len(tables):
        missing = sorted(set(tables) - set(named.values()))
        raise InputError(
            f"catalogs of Spark know lower-case letters, digits and _ alone, and {missing[0]} has the name of another "
            "one there; rename the attribute"
        )
    versions = SparkVersions(spec)
    with opened(spec) as (session, catalog):
        catalog.make_schema(versions.private, spec.private.path)
        _check(catalog, versions.private, list(named))
        for name, given in named.items():
            says, table, rows = SAYS.format(name=name), f"{name}_{secrets.token_hex(4)}", tables[given]
            if rows.num_rows:
                catalog.write(session.client.createDataFrame(rows), versions.private, table, says)
            else:
                catalog.make_empty(versions.private, table, rows.column_names, says)
            catalog.show(versions.private, name, versions.text(catalog, table, versions.private), says)
            entries = catalog.entries(versions.private).values()
            old = [entry.name for entry in entries if entry.comment == says and entry.name not in (name, table)]
            catalog.drop(versions.private, old)
    return [f"{versions.private}.{name}" for name in named]


def _check(catalog: SparkCatalog, schema: str, names: list[str]) -> None:
    entries = catalog.entries(schema)
    for name in names:
        if name in entries and entries[name].comment != SAYS.format(name=name):
            raise InputError(f"{schema}.{name} already exists and is no dimension table of qblock; rename or drop it")
