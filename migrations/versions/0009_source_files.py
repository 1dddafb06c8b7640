"""What a version was copied from, where its source is files: how many, their size, modification time and digest."""

import sqlalchemy as sa
from alembic import context, op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("event", sa.Column("source_files", sa.Text), schema=context.config.attributes["schema"])
