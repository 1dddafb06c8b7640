"""search, check, grants: questions about a source and a spec; nothing is published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qblock.cli.job import keep_own_files
from qblock.cli.output import (
    Churn,
    Json,
    Lines,
    Quiet,
    SpecPath,
    Verbose,
    deliver,
    display,
    listed,
    load_release,
    progress,
    shown,
    table,
)
from qblock.cli.render import (
    column_words,
    few_shown,
    finding_lines,
    forecast_lines,
    frontier_lines,
    guarantee_lines,
    minimal_lines,
    node_words,
    publishable,
    reached_of,
    stopping_lines,
    weight_lines,
)
from qblock.errors import InputError
from qblock.files import check_output, private_output
from qblock.printable import printable, printable_sql

if TYPE_CHECKING:
    from qblock.api import (
        Chosen,
        Grants,
        Release,
        Searched,
        SpecChecked,
        SuppressedAttribute,
    )

LOOKED = {
    True: "The level of detail itself can hint at sensitive values to someone who knows how qblock searches; "
    "`choose_from: sizes` avoids that.",
    False: "The splits were chosen without looking at any sensitive value.",
    None: "Checked, not searched: `qblock history` says how its version's was chosen.",
}
ACCESS = {"read": "reads", "write": "writes", "none": "must not read"}

Explore = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write one HTML file instead, to choose in a browser what to publish. INTERNAL: it tells of the "
        "source; readable by you alone.",
    ),
]


def search(
    spec: SpecPath,
    strategy: Annotated[
        str | None, typer.Option(help="chains, incognito or exhaustive. Default: what the spec says.")
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="minimal: list every minimal node, not only ten. all: list every node with its verdict, "
            "tightest values and metrics."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain-sql", help="Print the SQL of a node for each engine instead.")
    ] = False,
    node: Annotated[
        str | None, typer.Option(help="The node of --explain-sql: a=2,b=1 or 2,1, or bottom, or top.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Stop after this time (60s, 5m, 1h), and take the best so far. Default: what the spec says.",
        ),
    ] = None,
    explore: Explore = None,
    churn: Churn = None,
    verbose: Verbose = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find how much detail the spec lets you publish.

    Search publishes nothing. It finds the minimal nodes, and the one to publish. A node is one level per
    quasi-identifier: level 0 shows values as they are, the highest level shows *. A minimal node satisfies every
    privacy model, and no node that keeps more detail does.
    """
    if nodes not in (None, "minimal", "all"):
        raise InputError(f"--nodes {nodes}: valid: minimal, all")
    if explore is not None and (explain or json_):
        raise InputError("--explore writes a page and prints no answer; leave --json and --explain-sql out")
    release = load_release(spec)
    if explore is not None:
        write_explorer(release, explore, quiet=quiet)
        return
    if explain:
        for title, sql in release.explain_sql(node):
            print(f"-- {printable(title)}\n{printable_sql(sql)};\n")
        return
    with progress(quiet) as report:
        result = release.search(
            strategy=strategy, within=within, progress=report, all_nodes=nodes == "all", churn=churn
        )
    unit = "people" if release.spec.count == "entities" else "rows"
    deliver(result, _searched(result, unit, spec, every=nodes is not None, verbose=verbose), json_)
    result.raise_refused()


def write_explorer(release: Release, path: Path, *, definitions: Path | None = None, quiet: bool) -> None:
    """The page of `--explore`, written whole or not at all. definitions: as of `compare`."""
    keep_own_files("--explore", path, release)
    check_output(path, "--explore")
    with progress(quiet) as report:
        page = release.explorer(definitions=definitions, progress=report)
    with private_output(path) as file:
        file.write(page.encode())
    display([f"Written: {path}. Open it in a browser. Keep it from readers: it shows internal facts of the source."])


def _searched(result: Searched, unit: str, spec: str, *, every: bool, verbose: bool) -> Lines:
    """unit: what is counted; spec: its file; every: whether all minimal nodes are listed."""
    from qblock.api import unsafe

    chosen = result.chosen
    if chosen is None:
        yield "Nothing can be published under this spec."
    else:
        yield publishable(result.rows, chosen, unit)
        if chosen.levels is None:
            yield column_words({column.attribute: column.words for column in chosen.attributes})
        else:
            yield column_words(node_words(chosen.levels, result.in_words))
        yield from guarantee_lines(chosen.tightest)
        if chosen.levels is None:
            yield from _of_map(result, chosen)
    yield from listed("warning", result.warnings)
    yield from stopping_lines(result.checks)
    yield from _suppressed(result)
    if result.forecast is not None:
        yield from forecast_lines(result.forecast, result.quasi_identifiers)
    if result.frontier is not None:
        yield from frontier_lines(result.frontier)
    if verbose or every:
        yield from _details(result, every=every)
    if chosen is not None and not unsafe(result.checks):
        more = "" if verbose or every else "      Details: --verbose"
        yield f"Publish: qblock release {spec}{more}"


def _suppressed(result: Searched) -> Lines:
    little = few_shown(len(result.suppressed_attributes), result.quasi_identifiers)
    if little is not None:
        known = any(
            column.shown_at is not None or column.rows_to_suppress is not None
            for column in result.suppressed_attributes
        )
        yield ""
        yield f"{little}{'; what would show them:' if known else ''}"
    yield from (_suppressed_words(column, result) for column in result.suppressed_attributes)


def _details(result: Searched, *, every: bool) -> Lines:
    """How the answer came about, and its figures, for whoever works with the lattice."""
    yield ""
    yield (
        f"{result.rows:,} rows. Of {result.nodes_total:,} nodes {result.nodes_evaluated:,} were evaluated, with "
        f"{result.queries:,} statements in {result.seconds:.1f} s ({result.strategy})."
    )
    yield f"{result.why.removesuffix('.')}."
    chosen = result.chosen
    if chosen is not None:
        if chosen.levels is not None:
            yield "Chosen: " + ", ".join(f"{name} level {level}" for name, level in chosen.node.items())
        yield ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in chosen.metrics.items())
    yield from weight_lines(result.weights)
    if result.minimal and result.recoding is None:
        yield from minimal_lines(result.minimal, result.in_words, every=every)
    if result.nodes is not None:
        rows = [
            [
                ",".join(map(str, node.levels)),
                "yes" if node.satisfied else "no",
                *(reached_of(entry) for entry in node.tightest),
            ]
            for node in result.nodes
        ]
        models = [entry.model for entry in result.nodes[0].tightest]
        names = ", ".join(result.quasi_identifiers)
        yield table(f"\nAll nodes (levels of {names})", ["node", "satisfied", *models], rows)


def _of_map(result: Searched, chosen: Chosen) -> Lines:
    """What the best node would have lost, and whether the splits tell something."""
    if result.full_domain is not None:
        one_level, of_map = result.full_domain.metrics.get("loss"), chosen.metrics.get("loss")
        if isinstance(one_level, int | float) and isinstance(of_map, int | float):
            yield (
                f"One level per column would lose {100 * one_level:.0f} % of the detail; this map loses "
                f"{100 * of_map:.0f} %."
            )
    yield LOOKED[result.looked_at_sensitive]


def _suppressed_words(column: SuppressedAttribute, result: Searched) -> str:
    """That an attribute shows nothing, and the least that would show it."""
    name = column.attribute
    said = f"{name} is suppressed (* in every row): "
    if column.shown_at is not None:
        levels = zip(result.quasi_identifiers, column.shown_at, strict=True)
        node = ", ".join(f"{of} level {level}" for of, level in levels)
        return said + (
            f"a node that satisfies shows it ({node}). To publish that node, write `search: {{node: "
            f"{list(column.shown_at)}}}`. A weight for {name} (search.weights, with choose_by loss, precision or "
            "non_uniform_entropy) may choose it, too."
        )
    every = result.choice == "minimal" and result.optimality not in ("best", "within")
    said += "no node that shows it satisfies." if every else "no node that shows it is known to satisfy."
    if column.rows_to_suppress is None:
        return said
    return f"{said} At {name} level {column.level}, {column.rows_to_suppress:,} rows would have to be suppressed."


def check(spec: SpecPath, json_: Json = False) -> None:
    """Check the spec's assumptions against the data.

    Each finding has a figure and a remedy; the worst comes first. Nothing is published.

    Columns that tell what generalization hides, or that single out rows, stop a release (exit status 3). The spec can
    accept them: `accept: [{check: determines, column: birth_year, of: age, because: "..."}]`.
    """
    checked = load_release(spec).check()
    deliver(checked, _findings(checked), json_)
    checked.raise_refused()


def _findings(checked: SpecChecked) -> Lines:
    if not checked.checks:
        yield f"Nothing to say of {checked.rows:,} rows: no check has a finding."
    yield from finding_lines(checked.checks)
    yield from checked.notes


def grants(
    spec: SpecPath,
    officer: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="A role that reads the ledger (`qblock history`, and its views) and nothing else that is private. It "
            "must not be a reader of the release.",
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="The login that the job will have, if the URL of the spec is an administrator's. The login need not "
            "exist yet.",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Print the rights that the job, readers and officers need.

    On PostgreSQL it prints SQL, with no more and no less than they need. It changes nothing. An administrator runs the
    SQL as printed: qblock grants SPEC | psql DATABASE.

    The SQL fits the database as it is now. It asks for CREATE on the database only where a schema is missing. It names
    columns of the source one by one.

    DuckDB files have no rights. There it lists the files that the job must write, and those that readers must read, or
    must not.
    """
    rights = load_release(spec).grants(job=job, officer=officer)
    if rights.sql and not json_:
        print(printable_sql(rights.sql))  # for psql
    else:
        deliver(rights, _files(rights), json_)


def _files(rights: Grants) -> Lines:
    rows = [[file.who, ACCESS[file.access], file.path, file.why] for file in rights.files]
    yield table(f"Files of release {rights.release}", ["who", "", "path", "why"], rows)
    yield from listed("Note", rights.notes)
