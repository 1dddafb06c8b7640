"""compare: many privacy definitions over the whole lattice, or two recodings; nothing is published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qblock.cli.opening import load_release
from qblock.cli.output import Json, Quiet, SpecPath, answer, console, shown, table
from qblock.cli.progress import progress
from qblock.cli.recodings import print_recodings
from qblock.cli.result_file import keep_own_files
from qblock.errors import InputError

if TYPE_CHECKING:
    from qblock.api import Comparison, Release

RECODINGS = ("full_domain", "both")
MOST = 40
"""Nodes of the table of epsilons that are printed; --csv has all."""


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("compare")(compare_command)


def compare_command(
    spec: SpecPath,
    sensitive: Annotated[
        list[str] | None, typer.Option("--sensitive", "-s", help="A sensitive attribute; once for each. Default: all.")
    ] = None,
    definitions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Further definitions: a YAML file with a `privacy` list as in a spec."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the complete table, a line for each node.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the complete table as Parquet, readable by you alone.")
    ] = None,
    recoding: Annotated[
        str,
        typer.Option(
            help="full_domain, or both: what the spec's own models leave of the data at the chosen node and in a "
            "recoding map, side by side, instead of definitions."
        ),
    ] = "full_domain",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate many privacy definitions at every node of the lattice; publishes nothing.

    For each sensitive attribute: the tightest parameter of the usual models, the smallest epsilon against each
    adversary, and for the definitions of the spec (and of --definitions) which nodes satisfy them and which of them
    admits strictly more nodes than which.
    """
    from qblock.api import check_parquet, compared, nodes_table, write_csv, write_parquet

    if recoding not in RECODINGS:
        raise InputError(f"--recoding {recoding}: valid: {', '.join(RECODINGS)}")
    release = load_release(spec)
    if recoding == "both":
        given = {"--sensitive": bool(sensitive), "--definitions": definitions is not None, "--csv": csv is not None}
        given["--parquet"] = parquet is not None
        for option in (option for option, there in given.items() if there):
            raise InputError(
                f"{option}: it is about definitions at every node, and --recoding both compares two recodings under "
                f"the models of the spec; leave {option} out, or write --recoding full_domain"
            )
        _compare_recodings(release, quiet=quiet, json_=json_)
        return
    if csv is not None:
        keep_own_files("--csv", csv, release)
    if parquet is not None:
        keep_own_files("--parquet", parquet, release)
        check_parquet(parquet, "--parquet")
    with progress(quiet) as report:
        comparison = release.comparison(sensitive=sensitive or (), definitions=definitions, progress=report)
    if csv is not None:
        write_csv(comparison, csv)
    if parquet is not None:
        write_parquet(nodes_table(comparison), parquet)
    if json_:
        answer(compared(comparison).to_dict())
    else:
        _print(comparison)


def _compare_recodings(release: Release, *, quiet: bool, json_: bool) -> None:
    with progress(quiet) as report:
        result = release.compare_recodings(progress=report)
    if json_:
        answer(result.to_dict())
    else:
        print_recodings(result.to_dict())
    result.raise_refused()


def _print(comparison: Comparison) -> None:
    from qblock.api import violations

    out = console()
    out.print(
        f"{comparison.total:,} rows; {len(comparison.definitions)} definitions at each of {len(comparison.lattice):,} "
        f"nodes, with {comparison.statements:,} statements in {comparison.seconds:.1f} s"
    )
    if comparison.budget:
        out.print(f"Values and verdicts are those within the suppression limit of {comparison.budget:,} rows.")
    _print_reach(comparison)
    _print_epsilons(comparison)
    _print_requested(comparison)
    _print_granted(comparison)
    checked, wrong = violations(comparison)
    out.print()
    out.print(
        f"Self-check: {len(checked)} of the values may never get weaker upward in the lattice; "
        + (f"{len(wrong)} DO, which is a fault of qblock" if wrong else "none does")
    )
    for violation in wrong[:MOST]:
        out.print(f"  {violation.column}: {list(violation.finer)} -> {list(violation.coarser)}")
    for missing in comparison.not_computed:
        out.print(f"not computed: {missing.of}, {missing.why}")
    for warning in comparison.warnings:
        out.print(f"warning: {warning}")


def _print_reach(comparison: Comparison) -> None:
    from qblock.api import number_json

    lines: list[list[Any]] = []
    for i, definition in enumerate(comparison.definitions):
        for j, (bound, column) in enumerate(zip(definition.bounds, definition.columns, strict=True)):
            values = [row.values[i][j].value for row in comparison.rows]
            finite = sum(value is not None and value != float("inf") for value in values)
            wants = "at least" if bound.stricter == "larger" else "at most"
            ends = [shown(number_json(value)) for value in (values[0], values[-1])]
            lines.append([column, wants, *ends, f"{finite:,}"])
    heading = (
        "\nTightest values: what the finest and the most general node reach, and how many nodes have a finite value"
    )
    console().print(table(heading, ["definition", "holds for", "finest", "most general", "finite"], lines))


def _print_epsilons(comparison: Comparison) -> None:
    from qblock.api import adversary_of, epsilons, number_json

    names = comparison.spec.quasi_identifiers
    for name, adversaries in epsilons(comparison):
        finite = [
            row
            for row in comparison.rows
            if any(row.values[i][0].value not in (None, float("inf")) for i, _ in adversaries)
        ]
        lines = [
            [" ".join(map(str, row.node)), *(shown(number_json(row.values[i][0].value)) for i, _ in adversaries)]
            for row in finite[-MOST:]
        ]
        title = (
            f"\nSmallest epsilon of {name} by node ({', '.join(names)}) and adversary (class, stubbornness, prior); "
            f"infinite at the other {len(comparison.rows) - len(finite):,} nodes"
        )
        if len(finite) > MOST:
            title += f"; the {MOST} most general of {len(finite):,} nodes, all of them with --csv"
        console().print(table(title, ["node", *(adversary_of(d.model) for _, d in adversaries)], lines))


def _print_granted(comparison: Comparison) -> None:
    """What each definition grants as epsilon-privacy, beside what is reached: a line for each adversary."""
    from qblock.api import granted, number_json

    out = console()
    everything = granted(comparison)
    for name in comparison.sensitives:
        lines, none = [], []
        about = [grant for grant in everything if grant.sensitive == name]
        for definition in dict.fromkeys(grant.definition for grant in about):
            of = [grant for grant in about if grant.definition == definition]
            if all(grant.implied.epsilon == float("inf") for grant in of):
                none.append(f"{definition} grants no epsilon of {name}: {of[0].implied.why}")
                continue
            finite = [grant for grant in of if grant.implied.epsilon != float("inf")]
            for i, grant in enumerate(finite):
                figures = [shown(number_json(value)) for value in (grant.implied.epsilon, grant.reached)]
                lines.append(["" if i else definition, grant.adversary, *figures])
            if len(finite) < len(of):
                lines.append(["", "the others", "inf", ""])
        title = (
            f"\nEpsilon of {name} that each definition grants against each adversary, and the largest that a node with "
            "it reaches"
        )
        if lines:
            out.print(table(title, ["definition", "adversary", "grants", "reached"], lines))
        for line in none:
            out.print(line)
    if everything:
        out.print("Against class IV, who may know anything, no definition grants any.")


def _print_requested(comparison: Comparison) -> None:
    from qblock.api import FIGURES, best, compared, direct, inclusions

    lines = []
    answers = compared(comparison).asked
    for entry, definition in zip(answers, comparison.requested, strict=True):
        metrics = best(comparison, definition)
        figures = [shown(metrics[name]["value"]) if metrics else "-" for name in FIGURES]
        lines.append([definition.name, f"{entry.satisfying:,}", f"{len(entry.minimal):,}", *figures])
    columns = ["definition", "satisfying", "minimal", *(f"best {name.replace('_', ' ')}" for name in FIGURES)]
    console().print(
        table("\nDefinitions that ask for something: nodes, and the best metrics among them", columns, lines)
    )
    more, same = inclusions(comparison)
    for pair in same:
        console().print(f"{pair[0]} and {pair[1]} admit the same nodes")
    for i in direct(more):
        console().print(f"{i.more} admits every node that {i.less} admits, and {i.only:,} more")
