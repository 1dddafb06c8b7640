"""search: a question about a source; nothing is published. What audit prints like it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qblock.cli.opening import load_release
from qblock.cli.output import Churn, Json, Quiet, SpecPath, Verbose, answer, console, shown, table
from qblock.cli.progress import progress
from qblock.cli.words import few_shown, limit, node_words, print_columns, print_minimal, publishable
from qblock.errors import InputError
from qblock.printable import printable, printable_sql

VERDICTS = {True: "yes", False: "NO", None: ""}
TIGHTEST = "tightest: the strongest parameter that this table satisfies. "
REQUESTED = "asked, holds: what the spec asks for; blank where it asks for nothing."
NOTHING_REQUESTED = "asked, holds: blank, since an audit of a table asks for nothing."


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("search")(search)


def search(
    spec: SpecPath,
    strategy: Annotated[
        str | None, typer.Option(help="chains, incognito or exhaustive; else what the spec says.")
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="minimal: list every minimal node, not ten of them; or all: every node with verdict, tightest values "
            "and metrics."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain-sql", help="Print the statements of a node for each engine instead.")
    ] = False,
    node: Annotated[str | None, typer.Option(help="The node of --explain-sql: a=2,b=1, or 2,1, bottom or top.")] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Take the best that was come to after 60s, 5m, 1h; else what the spec says."),
    ] = None,
    churn: Churn = None,
    verbose: Verbose = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the minimal nodes of the generalization lattice that satisfy the spec, and the one to publish.

    Publishes nothing. A node is one level per quasi-identifier: 0 publishes values as they are, the highest level
    publishes *. A minimal node satisfies every privacy model, and none that keeps more detail does.
    """
    if nodes not in (None, "minimal", "all"):
        raise InputError(f"--nodes {nodes}: valid: minimal, all")
    release = load_release(spec)
    if explain:
        for title, sql in release.explain_sql(node):
            print(f"-- {printable(title)}\n{printable_sql(sql)};\n")
        return
    with progress(quiet) as report:
        result = release.search(
            strategy=strategy, within=within, progress=report, all_nodes=nodes == "all", churn=churn
        )
    fields = result.to_dict()
    if json_:
        answer(fields)
    else:
        unit = "people" if release.spec.count == "entities" else "rows"
        _print_search(fields, dict(result.in_words), unit, spec, every=nodes is not None, verbose=verbose)
    result.raise_refused()


def _print_search(
    fields: dict[str, Any], words: dict[str, tuple[str, ...]], unit: str, spec: str, *, every: bool, verbose: bool
) -> None:
    """words: what readers see of each quasi-identifier at each level; unit: what is counted; spec: its file; every:
    whether all minimal nodes are listed."""
    out = console()
    chosen = fields["chosen"]
    if chosen is not None:
        out.print(publishable(fields["rows"], chosen, unit))
        if "boxes" in chosen:
            print_columns({attribute["attribute"]: attribute["words"] for attribute in chosen["attributes"]})
        else:
            print_columns(node_words(chosen["levels"], words))
        print_tightest(chosen["tightest"])
        if "boxes" in chosen:
            _print_map(chosen, fields["full_domain"], fields["looked_at_sensitive"])
    else:
        out.print("Nothing can be published as the spec asks.")
    for warning in fields["warnings"]:
        out.print(f"warning: {warning}")
    _print_hidden(fields)
    if "forecast" in fields:
        print_forecast(fields["forecast"], fields["quasi_identifiers"])
    if verbose or every:
        _print_how(fields, words, every=every)
    if chosen is not None:
        more = "" if verbose or every else "      Details: --verbose"
        out.print(f"Publish: qblock release {spec}{more}")


def _print_hidden(fields: dict[str, Any]) -> None:
    little = few_shown(len(fields["hidden"]), fields["quasi_identifiers"])
    if little is not None:
        known = any(
            attribute["shown_at"] is not None or attribute["rows_to_suppress"] is not None
            for attribute in fields["hidden"]
        )
        out = console()
        out.print()
        out.print(f"{little}{'; what would show them:' if known else ''}")
    for attribute in fields["hidden"]:
        console().print(_hidden(attribute, fields))


def _print_how(fields: dict[str, Any], words: dict[str, tuple[str, ...]], *, every: bool) -> None:
    """How the answer was found, and its figures, for whoever works with the lattice."""
    out = console()
    out.print()
    out.print(
        f"{fields['rows']:,} rows; a lattice of {fields['nodes_total']:,} nodes, {fields['nodes_evaluated']:,} of them "
        f"evaluated with {fields['queries']:,} statements in {fields['seconds']:.1f} s ({fields['strategy']})"
    )
    out.print(fields["why"])
    chosen = fields["chosen"]
    if chosen is not None:
        if "boxes" not in chosen:
            out.print("Chosen: " + ", ".join(f"{name} level {level}" for name, level in chosen["node"].items()))
        out.print(", ".join(f"{name.replace('_', ' ')} {shown(v)}" for name, v in chosen["metrics"].items()))
    print_weights(fields["weights"])
    if fields["minimal"] and "recoding" not in fields:
        print_minimal(fields["minimal"], words, every=every)
    if "nodes" in fields:
        rows = [
            [
                ",".join(map(str, n["levels"])),
                "yes" if n["satisfied"] else "no",
                *(reached_of(t) for t in n["tightest"]),
            ]
            for n in fields["nodes"]
        ]
        models = [t["model"] for t in fields["nodes"][0]["tightest"]]
        names = ", ".join(fields["quasi_identifiers"])
        out.print(table(f"\nAll nodes (levels of {names})", ["node", "satisfied", *models], rows))


LOOKED = {
    True: "The level of detail itself can hint at sensitive values to someone who knows how qblock searches; "
    "`choose_from: sizes` avoids that.",
    False: "The splits were chosen without looking at any sensitive value.",
    None: "Checked, not searched: `qblock history` says how its version's was chosen.",
}


def _print_map(chosen: dict[str, Any], full: dict[str, Any] | None, looked: bool | None) -> None:
    """What the best node would have lost, and whether the splits tell something."""
    out = console()
    if full is not None:
        one_level, map_ = full["metrics"].get("loss"), chosen["metrics"].get("loss")
        if one_level is not None and map_ is not None:
            out.print(
                f"One level per column would lose {100 * one_level:.0f} % of the detail; this map loses "
                f"{100 * map_:.0f} %."
            )
    out.print(LOOKED[looked])


def _hidden(attribute: dict[str, Any], fields: dict[str, Any]) -> str:
    """That an attribute shows nothing, and the least that would show it."""
    name, shown_at, rows = attribute["attribute"], attribute["shown_at"], attribute["rows_to_suppress"]
    said = f"{name} is hidden (* in every row): "
    if shown_at is not None:
        node = ", ".join(f"{n} level {level}" for n, level in zip(fields["quasi_identifiers"], shown_at, strict=True))
        return said + (
            f"{node} shows it and satisfies; a weight for {name} (search.weights, with choose_by loss, precision or "
            "non_uniform_entropy) may choose it, and search.node does"
        )
    every = fields["choice"] == "minimal" and fields["optimality"] not in ("best", "within")
    said += "no node that shows it satisfies" if every else "no node that shows it is known to satisfy"
    if rows is None:
        return said
    return f"{said}; with {name} level {attribute['level']} instead, {rows:,} rows would have to be suppressed"


def print_weights(weights: dict[str, Any] | None) -> None:
    """What some quasi-identifiers count in the metrics, where it is more or less than others."""
    if weights is not None:
        said = ", ".join(f"{name} {shown(weight)}" for name, weight in weights.items())
        console().print(f"Weights in loss, precision and non-uniform entropy: {said}")


def print_forecast(forecast: dict[str, Any], names: list[str] | None = None) -> None:
    """How long newcomers would wait at some nodes, and how far the view would lag. names: of the quasi-identifiers."""
    coming, leaving, changing = (f"{forecast['churn'][of]:.2%}" for of in ("coming", "leaving", "changing"))
    title = f"Forecast for 52 runs, in each of which {coming} of the people come, {leaving} leave and {changing} change"
    columns = ["node", "blocks", "wait", "longest wait", "lag", "most lag", "never shown"]
    rows = [
        [
            ",".join(map(str, entry["node"])),
            f"{entry['blocks']:,}",
            f"{entry['mean_wait']:.1f}",
            f"{entry['worst_wait']}",
            *(f"{entry[of]:.1%}" for of in ("lag", "worst_lag", "never")),
        ]
        for entry in forecast["nodes"]
    ]
    out = console()
    out.print(table(title, columns, rows))
    out.print("wait: of newcomers, in runs; lag: share of the rows not shown as they are; never shown: of newcomers")
    node = ",".join(map(str, forecast["recommended"]))
    if names:
        node = ", ".join(f"{name} level {level}" for name, level in zip(names, forecast["recommended"], strict=True))
    out.print(f"Recommended: {node} ({forecast['why']})")


def where(fields: dict[str, Any]) -> str:
    """The node, or the recoding map, that an answer is about."""
    if fields.get("boxes") is not None:
        return f"Recoding map: {fields['boxes']:,} boxes"
    return "Node: " + ", ".join(f"{name} level {level}" for name, level in fields["node"].items())


def print_tightest(tightest: list[dict[str, Any]]) -> None:
    """The requirement that binds, then what was asked and what is reached, one line for each."""
    rows = [[model_of(entry), requested_of(entry), reached_of(entry), VERDICTS[entry["holds"]]] for entry in tightest]
    out = console()
    bound = limit(tightest)
    if bound is not None:
        out.print(bound)
    out.print(table("", ["model", "asked", "reached", "holds"], rows))


def print_audited(tightest: list[dict[str, Any]], *, every: bool) -> None:
    """The tightest parameters of models, and the verdict on those that were asked for. every: whether models are listed
    too that nobody asked for, where somebody asked for any."""
    requested = [entry for entry in tightest if entry["holds"] is not None]
    left_out = 0 if every or not requested else len(tightest) - len(requested)
    rows = []
    for entry in requested if left_out else tightest:
        extra = entry["holds"] is None
        what = model_of(entry, requested_of(entry) if extra else "")
        rows.append([what, reached_of(entry), "" if extra else requested_of(entry), VERDICTS[entry["holds"]]])
    out = console()
    out.print(table("", ["model", "tightest", "asked", "holds"], rows))
    out.print(TIGHTEST + (NOTHING_REQUESTED if not requested else "" if left_out else REQUESTED))
    if left_out:
        out.print(f"{left_out} more that the spec does not ask for: --all")


def model_of(entry: dict[str, Any], *more: str) -> str:
    """A model with its sensitive attributes, and what else tells it from others."""
    named = ", ".join(part for part in (*entry["sensitive"], *more) if part)
    return entry["model"] + (f" ({named})" if named else "")


def requested_of(entry: dict[str, Any]) -> str:
    """What was asked of a model: `k=4`."""
    return ", ".join(f"{k}={shown(v)}" for k, v in entry["asked"].items())


def reached_of(entry: dict[str, Any]) -> str:
    """The tightest values of a model: `k 5`."""
    parts = []
    for value in entry["values"]:
        strict = "" if value["attained"] or value["value"] in (None, "inf") else " (not reached)"
        parts.append(f"{value['parameter']} {shown(value['value'])}{strict}")
    return ", ".join(parts)
