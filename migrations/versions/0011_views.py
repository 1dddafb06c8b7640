"""The views of releases on PostgreSQL, and what their helper views show of each version; more views for officers, and
the texts of specs."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

VIEWS = ("runs", "refusals", "current_guarantees", "spec_texts")
SHOWN = {
    "columns": {
        "column_name": sa.Text,
        "role": sa.Text,
        "level": sa.BigInteger,
        "levels": sa.BigInteger,
        "level_name": sa.Text,
        "source_type": sa.Text,
        "values_published": sa.BigInteger,
        "share_hidden": sa.Double,
        "how_to_filter": sa.Text,
    },
    "levels": {
        "column_name": sa.Text,
        "level": sa.BigInteger,
        "label": sa.Text,
        "low": sa.Text,
        "high": sa.Text,
        "sort": sa.BigInteger,
        "rows": sa.BigInteger,
    },
    "version": {
        "version": sa.BigInteger,
        "published_at": sa.DateTime,
        "rows": sa.BigInteger,
        "previous": sa.BigInteger,
    },
    "guarantees": {
        "model": sa.Text,
        "sensitive": sa.Text,
        "asked": sa.Text,
        "holds": sa.Boolean,
        "reached": sa.Text,
        "in_words": sa.Text,
    },
}


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    op.create_table(
        "spec",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
        schema=schema,
    )
    for view in VIEWS:
        op.execute(sql_text(f"ledger_{view}"))
    if op.get_bind().dialect.name != "postgresql":
        return  # a DuckDB release is a file, which has its views itself
    op.create_table(
        "view",
        sa.Column("schema", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("object", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        schema=schema,
    )
    for kind, columns in SHOWN.items():
        op.create_table(
            f"shown_{kind}",
            sa.Column("of_release", sa.Text, primary_key=True),
            sa.Column("of_version", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
            *(sa.Column(name, type_) for name, type_ in columns.items()),
            schema=schema,
        )
    op.execute(sql_text("ledger_revoke_shown", "postgresql"))
