"""What the newest version shows of each person, and what the steady job remembers of those who wait."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    op.create_table(
        "crosswalk_shown",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("block", sa.Text, nullable=False),
        sa.Column("cell", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("earlier", sa.Text),
        schema=schema,
    )
    op.create_table(
        "crosswalk_waiting",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("since", sa.BigInteger),
        sa.Column("seen", sa.Text),
        sa.Column("times", sa.BigInteger),
        schema=schema,
    )
    op.create_table(
        "crosswalk_steady",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        schema=schema,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sql_text("crosswalk_revoke_shown", "postgresql"))
