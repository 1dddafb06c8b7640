"""People who are set apart from later versions: cohorts that failed, and people who withdrew."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "crosswalk_apart",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger),
        schema=context.config.attributes["schema"],
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sql_text("crosswalk_revoke_apart", "postgresql"))
