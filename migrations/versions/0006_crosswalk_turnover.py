"""Who waited and who was gone at the last run, changes of the crosswalk's key, and the confirmation of a turnover."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    op.create_table(
        "crosswalk_turnover",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_rekeyed",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("key", sa.BigInteger, nullable=False),
        sa.Column("people", sa.BigInteger, nullable=False),
        schema=schema,
    )
    op.add_column("event", sa.Column("confirmed", sa.Text), schema=schema)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sql_text("crosswalk_revoke_turnover", "postgresql"))
