"""The quantities that each version's guarantees refer to, kept privately, and their digest in the chain."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    op.create_table(
        "reference",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
        schema=schema,
    )
    op.add_column("event", sa.Column("reference_digest", sa.Text), schema=schema)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sql_text("ledger_revoke_reference", "postgresql"))
