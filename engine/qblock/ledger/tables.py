"""The ledger's tables as statements see them; migrations create them."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from qblock.warehouse.engines import facts_of

SQLITE = "sqlite"
"""The name of the dialect of a ledger in a file."""


class Tables:
    """The ledger's tables: in schema `qblock` on PostgreSQL, else in a file of their own."""

    def __init__(self, schema: str | None) -> None:
        metadata = sa.MetaData(schema=schema)
        self.event = sa.Table(
            "event",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("number", sa.BigInteger),
            sa.Column("version", sa.BigInteger),
            sa.Column("state", sa.Text),
            sa.Column("run", sa.Text),
            sa.Column("recorded_at", sa.Text),
            sa.Column("quasi_identifiers", sa.Text),
            sa.Column("node", sa.Text),
            sa.Column("choice", sa.Text),
            sa.Column("protected", sa.Boolean),
            sa.Column("joint", sa.Text),
            sa.Column("rows_source", sa.BigInteger),
            sa.Column("rows_published", sa.BigInteger),
            sa.Column("rows_suppressed", sa.BigInteger),
            sa.Column("spec_digest", sa.Text),
            sa.Column("hierarchy_digest", sa.Text),
            sa.Column("content_digest", sa.Text),
            sa.Column("reference_digest", sa.Text),
            sa.Column("stamp", sa.Text),
            sa.Column("view", sa.Text),
            sa.Column("stale_after", sa.BigInteger),
            sa.Column("detail", sa.Text),
            sa.Column("reason", sa.Text),
            sa.Column("confirmed", sa.Text),
            sa.Column("source", sa.Text),
            sa.Column("source_database", sa.Text),
            sa.Column("source_files", sa.Text),
            sa.Column("target", sa.Text),
            sa.Column("entity", sa.Text),
            sa.Column("columns", sa.Text),
            sa.Column("readers", sa.Text),
            sa.Column("audience", sa.Text),
            sa.Column("program_version", sa.Text),
            sa.Column("previous_digest", sa.Text),
            sa.Column("digest", sa.Text),
        )
        self.guarantee = sa.Table(
            "guarantee",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("number", sa.BigInteger),
            sa.Column("position", sa.BigInteger),
            sa.Column("stage", sa.Text),
            sa.Column("model", sa.Text),
            sa.Column("sensitive", sa.Text),
            sa.Column("parameters", sa.Text),
            sa.Column("parameter", sa.Text),
            sa.Column("asked", sa.Text),
            sa.Column("reached", sa.Text),
            sa.Column("reached_number", sa.Double),
            sa.Column("attained", sa.Boolean),
            sa.Column("holds", sa.Boolean),
            sa.Column("headroom", sa.Double),
        )
        self.reference = sa.Table(
            "reference",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("version", sa.BigInteger),
            sa.Column("content", sa.Text),
        )
        self.move = sa.Table(
            "release_move",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("number", sa.BigInteger),
            sa.Column("earlier", sa.Text),
            sa.Column("before", sa.Text),
            sa.Column("done", sa.Boolean),
        )
        self.begun = sa.Table(
            "begun",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("version", sa.BigInteger),
            sa.Column("stamp", sa.Text),
            sa.Column("run", sa.Text),
            sa.Column("recorded_at", sa.Text),
            sa.Column("joint", sa.Text),
        )
        self.spec = sa.Table("spec", metadata, sa.Column("digest", sa.Text), sa.Column("content", sa.Text))
        self.pointer = sa.Table("pointer", metadata, sa.Column("release", sa.Text), sa.Column("version", sa.BigInteger))


def schema_of(connection: sa.Connection) -> str | None:
    """The schema of the private tables, where they are not in a file of their own."""
    return None if connection.dialect.name == SQLITE else facts_of(connection).private_schema


@cache
def _tables(schema: str | None) -> Tables:
    return Tables(schema)


def tables(connection: sa.Connection) -> Tables:
    """The ledger's tables for the engine of a connection."""
    return _tables(schema_of(connection))
