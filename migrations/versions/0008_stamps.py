"""The random stamp that a version carries, in ledger and crosswalk, and the versions that were begun."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    # Not an event: it is committed beside a snapshot that does not see it and goes on writing events.
    op.create_table(
        "begun",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("stamp", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("recorded_at", sa.Text, nullable=False),
        sa.Column("joint", sa.Text),
        schema=schema,
    )
    op.add_column("event", sa.Column("stamp", sa.Text), schema=schema)
    op.add_column("crosswalk_version", sa.Column("stamp", sa.Text), schema=schema)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sql_text("ledger_revoke_begun", "postgresql"))
