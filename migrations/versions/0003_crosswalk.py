"""The private crosswalk of successive releases: who was shown in which block of which version, with which value."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = context.config.attributes["schema"]
    op.create_table(
        "crosswalk_key",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("secret", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_version",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("least", sa.BigInteger, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("quasi_identifiers", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("hierarchies", sa.Text, nullable=False),
        sa.Column("sensitive", sa.Text, nullable=False),
        sa.Column("audience", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        schema=schema,
    )
    # Tables with a row for each person have no keys: DuckDB would hold the index of one in memory.
    op.create_table(
        "crosswalk",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("block", sa.BigInteger, nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("block_rows", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_block",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("block", sa.BigInteger, nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_episode",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("episode", sa.BigInteger, nullable=False),
        sa.Column("begun", sa.Text, nullable=False),
        sa.Column("running", sa.Boolean, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_signature",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_rolled",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("versions", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_frozen",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("names", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        schema=schema,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("crosswalk_of_version", "crosswalk", ["release", "version"], schema=schema)
        op.execute(sql_text("crosswalk_revoke", "postgresql"))
