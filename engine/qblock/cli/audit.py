"""audit: how well a node, or a table that anyone generalized, protects people; nothing is published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qblock.cli.explore import print_audited, print_weights, where
from qblock.cli.opening import load_release
from qblock.cli.output import Json, answer, console, shown, table
from qblock.cli.result_file import keep_own_files
from qblock.cli.words import limit, print_columns
from qblock.errors import InputError


def _threshold(said: str) -> Any:
    return typer.Option(metavar="NUMBER", help=said, rich_help_panel="With --adversary")


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("audit")(audit)


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
        bool, typer.Option("--all", help="List the models too that the spec does not ask for. --json has them always.")
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
            help="How near numbers of a sensitive attribute are alike to an attacker (a twentieth of their range).",
        ),
    ] = None,
    adversary: Annotated[
        str | None,
        typer.Option(help="bayes: also what somebody who knows a population comes to believe of people; with --prior."),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="The population: table (the source itself), schema.table of its database with the quasi-identifiers "
            "and the sensitive attribute, or the path of a CSV file with these columns and weight."
        ),
    ] = None,
    rho1: Annotated[str | None, _threshold("A breach: a belief from below this (0.1) ...")] = None,
    rho2: Annotated[str | None, _threshold("... to above this (0.5), or falling the same way.")] = None,
    delta: Annotated[
        str | None, _threshold("Positive disclosure: the own value believed with more than 1 - this (0.1).")
    ] = None,
    epsilon: Annotated[
        str | None, _threshold("Negative disclosure: another value believed with less than this (0.1).")
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --node: write its frequency set as Parquet: labels, sensitive values and how often each "
            "combination occurs. PRIVATE: of a fine node these are people; readable by you alone.",
        ),
    ] = None,
    factor: Annotated[str | None, _threshold("Count the people of whom a belief changes by more (2).")] = None,
    json_: Json = False,
) -> None:
    """The tightest parameter of every model, attacks and utility at a node, or of any table as it stands.

    Of a spec its own models are listed, with a verdict; --all adds the others. Without --node: the pinned node of the
    spec, or its recoding map, else the table as it is (bottom). A population for --url --table holds its labels.
    """
    from qblock.api import Attacker, BayesAdversary, audit_table, check_parquet, write_parquet

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
            check_parquet(counts, "--counts")
        audited = release.audit(node, beliefs=believing, rule_out=ruled_out, near=distances).to_dict()
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
    if json_:
        answer(audited)
        return
    out = console()
    _print_answer(audited["tightest"])
    out.print(where(audited))
    if release is not None and audited["node"]:
        print_columns(release.in_words(audited["node"]))
    for warning in audited["warnings"]:
        out.print(f"warning: {warning}")
    print_audited(audited["tightest"], every=every)
    for missing in audited["not_computed"] if every or spec is None else ():
        out.print(f"not computed: {missing['what']}, {missing['why']}")
    for told in audited["attacks"]:
        out.print()
        out.print(f"Attacks on {told['sensitive']}")
        for figures in (entry for name, entry in told.items() if name != "sensitive"):
            for figure in figures if isinstance(figures, list) else [figures]:
                out.print(f"- {figure['sentence']}")
    for believed in audited.get("beliefs", ()):
        _print_beliefs(believed)
    out.print(table("\nUtility", ["metric", "value"], [[k, shown(v)] for k, v in audited["metrics"].items()]))
    print_weights(audited["weights"])


def _print_answer(tightest: list[dict[str, Any]]) -> None:
    """Whether what the spec asks for holds, and what is nearest to its limit; of a table alone, its smallest group."""
    out = console()
    holds = [entry["holds"] for entry in tightest if entry["holds"] is not None]
    if not holds:
        least = next((entry["values"][0]["value"] for entry in tightest if entry["model"] == "k_anonymity"), None)
        if isinstance(least, int):
            out.print(f"The smallest group of people who look the same has {least:,}.")
        return
    failing = holds.count(False)
    if failing:
        out.print(f"Not all that the spec asks for is met: {failing} of {len(holds)} fail.")
    else:
        out.print("What the spec asks for is met.")
    if bound := limit(tightest):
        out.print(bound)


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    """Of NAME=VALUE each."""
    pairs = []
    for text in given or ():
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise InputError(f"{option} {text}: write NAME=VALUE, the name of a sensitive attribute first")
        pairs.append((name, value))
    return pairs


def _print_beliefs(belief: dict[str, Any]) -> None:
    """What the adversary who was asked about believes about one sensitive attribute."""
    out = console()
    whose = "the source itself" if belief["prior"] == "table" else belief["prior"]
    out.print()
    out.print(f"Beliefs about {belief['sensitive']} of somebody who knows the population ({whose})")
    for name in ("breach", "positive", "negative", "rise", "fall", "moved"):
        if belief[name] is not None:
            out.print(f"- {belief[name]['sentence']}")
    if belief["rise"] is None:
        out.print("- No belief changes.")
    if belief["impossible"]:
        out.print(
            f"warning: {belief['impossible']:,} of {belief['people']:,} have a value that this population holds "
            "impossible for their combination of quasi-identifiers; of them it expects nothing true"
        )
