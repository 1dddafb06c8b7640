"""audit: how well a node, or any table, protects the people in it; nothing is published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qblock.cli.job import keep_own_files
from qblock.cli.output import Json, Lines, deliver, listed, load_release, shown, table
from qblock.cli.render import (
    VERDICTS,
    column_words,
    limit,
    model_of,
    not_computed,
    reached_of,
    requested_of,
    smallest_group,
    weight_lines,
    where,
)
from qblock.errors import InputError
from qblock.files import check_output

if TYPE_CHECKING:
    from qblock.api import Audited, Beliefs, Guarantee, Release

TIGHTEST = "tightest: the strongest parameter that this table satisfies. "
REQUESTED = "asked, holds: what the spec asks for; blank where it asks for nothing."
NOTHING_REQUESTED = "asked, holds: blank, since an audit of a table asks for nothing."


def _threshold(said: str) -> Any:
    return typer.Option(metavar="NUMBER", help=said, rich_help_panel="With --adversary")


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
