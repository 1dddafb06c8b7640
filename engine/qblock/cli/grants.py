"""grants: what the job, the readers and the officers of a release need, as SQL or as files."""

from __future__ import annotations

from typing import Annotated

import typer

from qblock.cli.opening import load_release
from qblock.cli.output import Json, SpecPath, answer, console, table
from qblock.printable import printable_sql

ACCESS = {"read": "reads", "write": "writes", "none": "must not read"}


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("grants")(grants)


def grants(
    spec: SpecPath,
    officer: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="A role that is to read the ledger (`qblock history`, and its views), and nothing else that is "
            "private: no reader of the release.",
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="The login that the job will have, where the URL of the spec is that of an administrator who looks "
            "ahead; it need not exist yet.",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """The SQL that the job's login, its readers and officers need on PostgreSQL: no more and no less. Changes nothing.

    An administrator runs it as it is printed: qblock grants SPEC | psql DATABASE. It fits the database as it is now:
    CREATE on the database is asked for only where a schema is missing, and columns of the source are named one by one.
    On DuckDB, whose files have no rights, it says which files the job must write and readers must read, or must not.
    """
    rights = load_release(spec).grants(job=job, officer=officer)
    if json_:
        answer(rights.to_dict())
        return
    if rights.sql:
        print(printable_sql(rights.sql))  # for psql
        return
    out = console()
    rows = [[file.who, ACCESS[file.access], file.path, file.why] for file in rights.files]
    out.print(table(f"Files of release {rights.release}", ["who", "", "path", "why"], rows))
    for note in rights.notes:
        out.print(f"Note: {note}")
