"""Runs the migrations on the connection that qblock.ledger.schema hands over, in its transaction."""

from alembic import context
from alembic.ddl.impl import DefaultImpl


class DuckdbImpl(DefaultImpl):
    """Alembic's part for DuckDB, which has it do nothing else than it would do anywhere."""

    __dialect__ = "duckdb"
    transactional_ddl = True


connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("these migrations are run by qblock: qblock ledger upgrade SPEC")
schema = context.config.attributes["schema"]
# As of the crosswalk's tables: no index in a file.
context.configure(connection=connection, version_table_schema=schema, version_table_pk=schema is not None)
with context.begin_transaction():
    context.run_migrations()
