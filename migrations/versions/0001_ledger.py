"""The ledger: events, guarantees, the pointer row, and views over them."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

VIEWS = ("version_guarantees", "release_history", "headroom_trend", "current_version")


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    op.create_table(
        "event",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("recorded_at", sa.Text, nullable=False),
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
        sa.Column("view", sa.Text),
        sa.Column("stale_after", sa.BigInteger),
        sa.Column("detail", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("program_version", sa.Text, nullable=False),
        sa.Column("previous_digest", sa.Text),
        sa.Column("digest", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "guarantee",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("sensitive", sa.Text),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("parameter", sa.Text, nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("reached", sa.Text),
        sa.Column("reached_number", sa.Double),
        sa.Column("attained", sa.Boolean, nullable=False),
        sa.Column("holds", sa.Boolean, nullable=False),
        sa.Column("headroom", sa.Double),
        schema=schema,
    )
    op.create_table(
        "pointer",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger),
        schema=schema,
    )
    for view in VIEWS:
        op.execute(sql_text(f"ledger_{view}"))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sql_text("ledger_revoke_tables", "postgresql"))
        op.execute(sql_text("ledger_revoke_schema", "postgresql"))
