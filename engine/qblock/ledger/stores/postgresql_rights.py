"""What the job and an officer need of the ledger and the crosswalk in schema `qblock`."""

from __future__ import annotations

from typing import Any

from qblock.ledger.store import SCHEMA
from qblock.warehouse.postgresql_rights import Catalog
from qblock.warehouse.protocol import TableName
from qblock.warehouse.rights import When

LEDGER = (
    (("alembic_version", "release_move"), ("SELECT",), "which ledger this is"),
    (("event", "guarantee", "begun"), ("SELECT", "INSERT"), "the ledger, which is appended to"),
    (("pointer",), ("SELECT", "INSERT", "UPDATE"), "which version readers see"),
    (("reference",), ("SELECT", "INSERT", "DELETE"), "what the checks of a kept version need"),
    (("spec",), ("SELECT", "INSERT"), "the texts of specs"),
    (("view",), ("SELECT", "INSERT", "DELETE"), "which views are those of releases"),
    (
        ("shown_columns", "shown_levels", "shown_version", "shown_guarantees"),
        ("SELECT", "INSERT", "DELETE"),
        "what helper views show",
    ),
)
"""Tables, privileges and what for, where the ledger belongs to another role, so that the job can only append to it."""
CROSSWALK = (
    "crosswalk",
    "crosswalk_key",
    "crosswalk_version",
    "crosswalk_block",
    "crosswalk_episode",
    "crosswalk_signature",
    "crosswalk_rolled",
    "crosswalk_frozen",
    "crosswalk_apart",
    "crosswalk_turnover",
    "crosswalk_shown",
    "crosswalk_waiting",
    "crosswalk_steady",
    "crosswalk_rekeyed",
)
CROSSWALK_NEEDS = ("SELECT", "INSERT", "UPDATE", "DELETE")
VIEWS = (
    "release_history",
    "version_guarantees",
    "margin_trend",
    "current_version",
    "runs",
    "refusals",
    "current_guarantees",
    "spec_texts",
)
HISTORY = ("alembic_version", "event", "guarantee", "pointer", "release_move")
"""What `qblock history` reads besides the views."""


def ask_for_job(catalog: Catalog, schema: Any, *, entity: bool) -> list[str]:
    """Ask for what the job needs of schema `qblock`; notes. schema: its row of `Catalog.schemas`, or None; entity:
    whether the spec names one, so that there is a crosswalk."""
    if schema is None:
        return []
    role = catalog.role
    catalog.on_schema("job", role, SCHEMA, schema, "USAGE", "the private schema: ledger, crosswalk, versions")
    catalog.on_schema("job", role, SCHEMA, schema, "CREATE", "a table for each version")
    groups = [*LEDGER, *([(CROSSWALK, CROSSWALK_NEEDS, "who was shown in which version")] if entity else [])]
    known = catalog.relations([TableName(SCHEMA, name) for names, *_ in groups for name in names])
    for names, privileges, why in groups:
        rows = {table: known[table] for table in (TableName(SCHEMA, name) for name in names) if table in known}
        if rows:
            catalog.on_relations("job", role, rows, privileges, why)
    version = known.get(TableName(SCHEMA, "alembic_version"))
    if version is None or version.owned:
        return []
    return [
        f"the ledger belongs to {version.owner}, as whom `qblock ledger upgrade SPEC` is run after each update of "
        f"qblock; {role} can only append to it"
    ]


def ask_for_officer(catalog: Catalog, schema: Any, officer: str) -> None:
    """Ask for what `qblock history`, and the views of the ledger, need; nothing of the crosswalk, nor of a version."""
    tables = [TableName(SCHEMA, name) for name in (*VIEWS, *HISTORY)]
    known = catalog.relations(tables)
    why = "the ledger is in the private schema"
    when: When = "now" if schema is not None else "later"
    catalog.on_schema("officer", officer, SCHEMA, schema, "USAGE", why, when=when, stops=False)
    for names, why in ((VIEWS, "the views for officers"), (HISTORY, "what `qblock history` reads besides")):
        rows = {table: known.get(table) for table in (TableName(SCHEMA, name) for name in names)}
        when = "now" if all(row is not None for row in rows.values()) else "later"
        catalog.on_relations("officer", officer, rows, ("SELECT",), why, when=when, stops=False)
