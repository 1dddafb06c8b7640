"""The private schema: the ledger and its views, the crosswalk, and what helper views show on PostgreSQL."""

import sqlalchemy as sa
from alembic import context, op

from qblock.resources import sql_text

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

VIEWS = (
    "version_guarantees",
    "release_history",
    "margin_trend",
    "current_version",
    "runs",
    "refusals",
    "current_guarantees",
    "spec_texts",
)
SHOWN = {
    "columns": {
        "column_name": sa.Text,
        "role": sa.Text,
        "level": sa.BigInteger,
        "levels": sa.BigInteger,
        "level_name": sa.Text,
        "source_type": sa.Text,
        "values_published": sa.BigInteger,
        "share_suppressed": sa.Double,
        "how_to_filter": sa.Text,
    },
    "levels": {
        "column_name": sa.Text,
        "level": sa.BigInteger,
        "label": sa.Text,
        "low": sa.Text,
        "high": sa.Text,
        "members": sa.Text,
        "complete": sa.Boolean,
        "sort": sa.BigInteger,
        "rows": sa.BigInteger,
        "share": sa.Double,
        "since": sa.BigInteger,
    },
    "version": {
        "version": sa.BigInteger,
        "published_at": sa.DateTime,
        "rows": sa.BigInteger,
        "previous": sa.BigInteger,
        "rows_new": sa.BigInteger,
        "in_words": sa.Text,
    },
    "guarantees": {
        "model": sa.Text,
        "sensitive": sa.Text,
        "asked": sa.Text,
        "holds": sa.Boolean,
        "satisfied": sa.Text,
        "in_words": sa.Text,
    },
    "spread": {
        "column_name": sa.Text,
        "label": sa.Text,
        "low": sa.Double,
        "high": sa.Double,
        "middle": sa.Double,
        "share": sa.Double,
        "from_date": sa.Date,
        "until_date": sa.Date,
    },
}


def upgrade() -> None:
    schema, engine = context.config.attributes["schema"], op.get_bind().dialect.name
    # Where private state is in files, the ledger is a SQLite database, and the crosswalk one of DuckDB's.
    if engine != "duckdb":
        _ledger(schema)
        for view in VIEWS:
            age = sql_text("ledger_age_seconds", engine)
            op.execute(sql_text(f"ledger_{view}", engine).replace("{age_seconds}", age))
    if engine != "sqlite":
        _crosswalk(schema)
    if schema is None:
        return  # a release in a file has its helper views there
    op.create_index("crosswalk_of_version", "crosswalk", ["release", "version"], schema=schema)
    _helper_views(schema)
    op.execute(sql_text("ledger_revoke_tables", "postgresql"))
    op.execute(sql_text("ledger_revoke_schema", "postgresql"))


def _ledger(schema: str | None) -> None:
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
        sa.Column("reference_digest", sa.Text),
        sa.Column("confirmed", sa.Text),
        sa.Column("source", sa.Text),
        sa.Column("source_database", sa.Text),
        sa.Column("target", sa.Text),
        sa.Column("entity", sa.Text),
        sa.Column("columns", sa.Text),
        sa.Column("readers", sa.Text),
        sa.Column("audience", sa.Text),
        sa.Column("stamp", sa.Text),
        sa.Column("source_files", sa.Text),
        sa.Column("private_state", sa.Text),
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
        sa.Column("satisfied", sa.Text),
        sa.Column("satisfied_number", sa.Double),
        sa.Column("attained", sa.Boolean, nullable=False),
        sa.Column("holds", sa.Boolean, nullable=False),
        sa.Column("margin", sa.Double),
        schema=schema,
    )
    op.create_table(
        "pointer",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger),
        schema=schema,
    )
    op.create_table(
        "reference",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "release_move",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("earlier", sa.Text, nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("done", sa.Boolean, nullable=False),
        schema=schema,
    )
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
    if schema is None:
        # A crosswalk in a file of its own is committed after the event that says how it is then.
        op.create_table(
            "unsettled",
            sa.Column("release", sa.Text, primary_key=True),
            sa.Column("number", sa.BigInteger, nullable=False),
        )
    op.create_table(
        "spec",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
        schema=schema,
    )


def _crosswalk(schema: str | None) -> None:
    # A file has no keys: the index of one would be in blocks that nothing reads before a run writes, so that one of
    # them could be damaged unnoticed; and DuckDB would hold it in memory, which grows with people.
    keyed = schema is not None
    op.create_table(
        "crosswalk_key",
        sa.Column("id", sa.BigInteger, primary_key=keyed, autoincrement=False),
        sa.Column("secret", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_version",
        sa.Column("release", sa.Text, primary_key=keyed),
        sa.Column("version", sa.BigInteger, primary_key=keyed, autoincrement=False),
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
        sa.Column("types", sa.Text),
        sa.Column("stamp", sa.Text),
        sa.Column("state", sa.BigInteger),
        schema=schema,
    )
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
        sa.Column("release", sa.Text, primary_key=keyed),
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
    op.create_table(
        "crosswalk_apart",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger),
        schema=schema,
    )
    op.create_table(
        "crosswalk_turnover",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_cohort",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("map", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "crosswalk_rekeyed",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("key", sa.BigInteger, nullable=False),
        sa.Column("people", sa.BigInteger, nullable=False),
        schema=schema,
    )
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


def _helper_views(schema: str) -> None:
    op.create_table(
        "view",
        sa.Column("schema", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("object", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        schema=schema,
    )
    for kind, columns in SHOWN.items():
        op.create_table(
            f"shown_{kind}",
            sa.Column("of_release", sa.Text, primary_key=True),
            sa.Column("of_version", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
            *(sa.Column(name, type_) for name, type_ in columns.items()),
            schema=schema,
        )
