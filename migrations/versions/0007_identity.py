"""What a release is: its source, view, published columns and readers, with each version; releases that were moved."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

COLUMNS = ("source", "source_database", "target", "entity", "columns", "readers", "audience")


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    for name in COLUMNS:
        op.add_column("event", sa.Column(name, sa.Text), schema=schema)
    op.create_table(
        "release_move",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("earlier", sa.Text, nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("done", sa.Boolean, nullable=False),
        schema=schema,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sql_text("ledger_revoke_move", "postgresql"))
