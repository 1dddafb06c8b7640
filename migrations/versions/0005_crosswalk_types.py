"""The column types of a version in the crosswalk: NULL for versions from before they were kept."""

import sqlalchemy as sa
from alembic import context, op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("crosswalk_version", sa.Column("types", sa.Text), schema=context.config.attributes["schema"])
