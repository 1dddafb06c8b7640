"""search, check, audit, grants: questions about a source and a spec; nothing is published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    VERDICTS,
    column_words,
    few_shown,
    finding_lines,
    forecast_lines,
    frontier_lines,
    guarantee_lines,
    limit,
    minimal_lines,
    model_of,
    node_words,
    not_computed,
    publishable,
    reached_of,
    requested_of,
    smallest_group,
    stopping_lines,
    weight_lines,
    where,
)
from qblock.errors import InputError
from qblock.files import check_output, private_output
from qblock.printable import printable, printable_sql

if TYPE_CHECKING:
    from qblock.api import (
        Audited,
        Beliefs,
        Chosen,
        Grants,
        Guarantee,
        Release,
        Searched,
        SpecChecked,
        SuppressedAttribute,
    )

TIGHTEST = "tightest: the strongest parameter that this table satisfies. "
REQUESTED = "asked, holds: what the spec asks for; blank where it asks for nothing."
NOTHING_REQUESTED = "asked, holds: blank, since an audit of a table asks for nothing."
LOOKED = {
    True: "The level of detail itself can hint at sensitive values to someone who knows how qblock searches; "
    "`choose_from: sizes` avoids that.",
    False: "The splits were chosen without looking at any sensitive value.",
    None: "Checked, not searched: `qblock history` says how its version's was chosen.",
}
ACCESS = {"read": "reads", "write": "writes", "none": "must not read"}


def _threshold(said: str) -> Any:
    return typer.Option(metavar="NUMBER", help=said, rich_help_panel="With --adversary")


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
    explore: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write one HTML file instead, to choose in a browser what to publish. INTERNAL: it tells of the "
            "source; readable by you alone.",
        ),
    ] = None,
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
        _write_explorer(release, explore, quiet=quiet)
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


def _write_explorer(release: Release, path: Path, *, quiet: bool) -> None:
    """The page of `--explore`, written whole or not at all."""
    keep_own_files("--explore", path, release)
    check_output(path, "--explore")
    with progress(quiet) as report:
        page = release.explorer(progress=report)
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


def audit(
    spec: Annotated[str | None, typer.Argument(metavar="[SPEC]", help="The release spec.")] = None,
    node: Annotated[
        str | None, typer.Option(help="Level of each quasi-identifier: a=2,b=1 or 2,1; or bottom, or top.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Audit a table without a spec: its database.")] = None,
    table_: Annotated[str | None, typer.Option("--table", help="The table or view, generalized by anyone.")] = None,
    quasi_identifier: Annotated[
        list[str] | None, typer.Option("--quasi-identifier", "-q", help="A quasi-identifier; once for each.")
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option("--sensitive", "-s", help="A sensitive attribute; once for each.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also list models that the spec does not ask for. --json always has them.")
    ] = False,
    taxonomy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="With --url: the taxonomy of a sensitive attribute, a CSV file."),
    ] = None,
    rule_out: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A value of a sensitive attribute that an attacker rules out."),
    ] = None,
    near: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="The distance within which numbers of a sensitive attribute are alike to an attacker. Default: a "
            "twentieth of their range.",
        ),
    ] = None,
    adversary: Annotated[
        str | None,
        typer.Option(
            help="bayes: also show what a person who knows a population comes to believe of people. Needs --prior."
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="The population: table (the source itself), schema.table of its database, or the path of a CSV file. "
            "Its columns are the quasi-identifiers and the sensitive attribute; of a CSV file, weight too."
        ),
    ] = None,
    rho1: Annotated[str | None, _threshold("A breach: a belief rises from below this (0.1) ...")] = None,
    rho2: Annotated[str | None, _threshold("... to above this (0.5), or falls the same way.")] = None,
    delta: Annotated[
        str | None, _threshold("Positive disclosure: a person's own value is believed with more than 1 - this (0.1).")
    ] = None,
    epsilon: Annotated[
        str | None, _threshold("Negative disclosure: another value is believed with less than this (0.1).")
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --node: write the node's frequency set as Parquet, readable by you alone. It has labels, "
            "sensitive values and how often each combination occurs. PRIVATE: of a fine node these are people.",
        ),
    ] = None,
    factor: Annotated[
        str | None, _threshold("Count the people of whom a belief changes by more than this factor (2).")
    ] = None,
    json_: Json = False,
) -> None:
    """Measure a node, or any table, by every model and attack.

    The audit gives the tightest parameter of every model, attacks and utility. With a spec it lists the spec's own
    models, with a verdict; --all adds the others.

    Without --node it takes the spec's pinned node, or its recoding map, else the table as it is (bottom). A population
    for --url and --table holds the table's labels.
    """
    from qblock.api import Attacker, BayesAdversary, audit_table, write_parquet

    thresholds = {"rho1": rho1, "rho2": rho2, "delta": delta, "epsilon": epsilon, "factor": factor}
    believing = BayesAdversary.of(adversary, prior, thresholds, "--")

    ruled_out: dict[str, list[str]] = {}
    for name, value in _pairs("--rule-out", rule_out):
        ruled_out.setdefault(name, []).append(value)
    distances, taxonomies = dict(_pairs("--near", near)), dict(_pairs("--taxonomy", taxonomy))
    if (spec is None) == (url is None):
        raise InputError("say what to audit: a SPEC, or --url, --table, --quasi-identifier and --sensitive")
    release = None
    if counts is not None and (spec is None or node is None):
        raise InputError("--counts is about a node of a spec; give both a SPEC and --node (bottom for the finest)")
    if spec is not None:
        if taxonomies:
            raise InputError("--taxonomy: the spec says it (attributes: taxonomy); remove it, or write it there")
        release = load_release(spec)
        if counts is not None:
            keep_own_files("--counts", counts, release)
            check_output(counts, "--counts")
        audited = release.audit(node, beliefs=believing, rule_out=ruled_out, near=distances)
    else:
        if not (table_ and quasi_identifier):
            raise InputError("--url needs --table and at least one --quasi-identifier")
        audited = audit_table(
            url or "",
            table_,
            quasi_identifier,
            sensitive or [],
            taxonomies=taxonomies,
            adversary=believing,
            attacker=Attacker.of(ruled_out, distances, "--"),
        )
    if counts is not None and release is not None and node is not None:
        write_parquet(release.frequency_set(node), counts)
    deliver(audited, _audited(audited, release, every=every), json_)


def _audited(audited: Audited, release: Release | None, *, every: bool) -> Lines:
    """release: of the spec that was audited; every: whether what the spec does not ask for is listed, too."""
    yield from _verdict(audited.tightest)
    yield where(audited)
    if release is not None and audited.node:
        yield column_words(release.in_words(audited.node))
    yield from listed("warning", audited.warnings)
    yield from _models(audited.tightest, every=every)
    if every or release is None:
        yield from not_computed(audited.not_computed)
    for attacked in audited.attacks:
        yield ""
        yield f"Attacks on {attacked.sensitive}"
        yield from (f"- {sentence}" for sentence in attacked.sentences)
    for beliefs in audited.beliefs:
        yield from _believed(beliefs)
    metrics = [[name, shown(value)] for name, value in audited.metrics.items()]
    yield table("\nUtility", ["metric", "value"], metrics)
    yield from weight_lines(audited.weights)


def _verdict(tightest: Sequence[Guarantee]) -> Lines:
    """Whether what the spec asks for holds, and what is nearest to its limit; of a table alone, its smallest group."""
    holds = [entry.holds for entry in tightest if entry.holds is not None]
    if not holds:
        least = smallest_group(tightest)
        if least is not None:
            yield f"The smallest group has {least:,} that look the same."
        return
    failing = holds.count(False)
    if failing:
        yield f"Not all that the spec asks for is met: {failing} of {len(holds)} fail."
    else:
        yield "All that the spec asks for is met."
    if bound := limit(tightest):
        yield bound


def _models(tightest: Sequence[Guarantee], *, every: bool) -> Lines:
    """The tightest parameters of models, and the verdict on those that were asked for; with `every` also of models that
    nobody asked for, where somebody asked for any."""
    requested = [entry for entry in tightest if entry.holds is not None]
    left_out = 0 if every or not requested else len(tightest) - len(requested)
    rows = []
    for entry in requested if left_out else tightest:
        extra = entry.holds is None
        what = model_of(entry, requested_of(entry) if extra else "")
        rows.append([what, reached_of(entry), "" if extra else requested_of(entry), VERDICTS[entry.holds]])
    yield table("", ["model", "tightest", "asked", "holds"], rows)
    yield TIGHTEST + (NOTHING_REQUESTED if not requested else "" if left_out else REQUESTED)
    if left_out:
        yield f"{left_out} more that the spec does not ask for: --all"


def _believed(beliefs: Beliefs) -> Lines:
    """What the adversary who was named believes about one sensitive attribute."""
    whose = "the source itself" if beliefs.prior == "table" else beliefs.prior
    yield ""
    yield f"Beliefs about {beliefs.sensitive} of somebody who knows the population ({whose})"
    yield from (f"- {sentence}" for sentence in beliefs.sentences)
    if beliefs.rise is None:
        yield "- No belief changes."
    if beliefs.impossible:
        yield (
            f"warning: {beliefs.impossible:,} of {beliefs.people:,} have a value that this population holds "
            "impossible for their combination of quasi-identifiers; of them it expects nothing true"
        )


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    """Of NAME=VALUE each."""
    pairs = []
    for text in given or ():
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise InputError(f"{option} {text}: write NAME=VALUE, the name of a sensitive attribute first")
        pairs.append((name, value))
    return pairs


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
