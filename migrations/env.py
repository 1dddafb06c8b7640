"""Runs the migrations on the connection that qblock.ledger.migrate hands over, in its transaction."""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("these migrations are run by qblock: qblock ledger upgrade SPEC")
if connection.dialect.name == "duckdb":
    # The dialect registers itself with Alembic only when Alembic was imported before it.
    import duckdb_sqlalchemy.alembic_impl  # noqa: F401
context.configure(connection=connection, version_table_schema=context.config.attributes["schema"])
with context.begin_transaction():
    context.run_migrations()
