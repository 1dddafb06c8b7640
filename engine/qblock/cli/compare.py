"""compare: many privacy definitions over the whole lattice, or two recodings; nothing is published."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qblock.cli.job import keep_own_files
from qblock.cli.output import Json, Lines, Quiet, SpecPath, deliver, listed, load_release, progress, shown, table
from qblock.cli.render import model_of, not_computed, reached_of, requested_of, weight_lines
from qblock.cli.search import Explore, write_explorer
from qblock.errors import InputError
from qblock.files import check_output

if TYPE_CHECKING:
    from qblock.api import Compared, ComparedRecodings

RECODINGS = ("full_domain", "both")
TITLES = ("full-domain", "multidimensional")
MOST = 40
"""Nodes of the table of epsilons that are printed; --csv has all."""


def compare(
    spec: SpecPath,
    sensitive: Annotated[
        list[str] | None, typer.Option("--sensitive", "-s", help="A sensitive attribute; once for each. Default: all.")
    ] = None,
    definitions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="More definitions: a YAML file with a `privacy` list, as in a spec."),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also measure the error of count queries at each node: a YAML file in the form of `search.workload`.",
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the complete table, a line for each node.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the complete table as Parquet, readable by you alone.")
    ] = None,
    explore: Explore = None,
    recoding: Annotated[
        str,
        typer.Option(
            help="full_domain, or both. both compares no definitions: it shows what the spec's own models leave of the "
            "data, at the chosen node beside a recoding map."
        ),
    ] = "full_domain",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare privacy definitions at every node of the lattice.

    Nothing is published. For each sensitive attribute it shows the tightest parameter of the usual models, and the
    smallest epsilon against each adversary.

    The definitions are those of the spec and of --definitions. It shows which nodes satisfy each, and which definition
    admits strictly more nodes than another.
    """
    from qblock.api import compared, nodes_table, write_csv, write_parquet

    if recoding not in RECODINGS:
        raise InputError(f"--recoding {recoding}: valid: {', '.join(RECODINGS)}")
    tables = {"--csv": csv, "--parquet": parquet}
    release = load_release(spec)
    if recoding == "both":
        of_definitions = {"--sensitive": sensitive, "--definitions": definitions, "--explore": explore, **tables}
        for option in (option for option, given in of_definitions.items() if given):
            raise InputError(
                f"{option}: it is about definitions at every node, and --recoding both compares two recodings under "
                f"the models of the spec; leave {option} out, or write --recoding full_domain"
            )
        with progress(quiet) as report:
            recodings = release.compare_recodings(workload=workload, progress=report)
        deliver(recodings, _compared_recodings(recodings, workload), json_)
        recodings.raise_refused()
        return
    if explore is not None:
        for option, given in {"--sensitive": sensitive, "--workload": workload, "--json": json_, **tables}.items():
            if given:
                raise InputError(f"--explore writes a page and prints no answer; leave {option} out")
        write_explorer(release, explore, definitions=definitions, quiet=quiet)
        return
    for option, file in tables.items():
        if file is not None:
            keep_own_files(option, file, release)
            check_output(file, option)
    with progress(quiet) as report:
        comparison = release.comparison(
            sensitive=sensitive or (), definitions=definitions, workload=workload, progress=report
        )
    if csv is not None:
        write_csv(comparison, csv)
    if parquet is not None:
        write_parquet(nodes_table(comparison), parquet)
    result = compared(comparison)
    deliver(result, _compared(result), json_)


def _compared(result: Compared) -> Lines:
    yield (
        f"{result.rows:,} rows. {len(result.definitions)} definitions were compared at each of "
        f"{result.nodes_total:,} nodes, with {result.queries:,} statements in {result.seconds:.1f} s."
    )
    if result.suppressed_rows_allowed:
        yield (
            f"Values and verdicts are those within the suppression limit of {result.suppressed_rows_allowed:,} rows."
        )
    yield from _reach(result)
    yield from _epsilons(result)
    yield from _requested(result)
    yield from _granted(result)
    checked, wrong = result.monotonicity.checked, result.monotonicity.violations
    yield ""
    yield (
        f"Self-check: {len(checked)} of the values may never get weaker at a coarser node. "
        + (f"{len(wrong)} DO, which is a fault of qblock." if wrong else "None does.")
    )
    for violation in wrong[:MOST]:
        yield f"  {violation.column}: {list(violation.finer)} -> {list(violation.coarser)}"
    yield from not_computed(result.not_computed)
    yield from listed("warning", result.warnings)


def _reach(result: Compared) -> Lines:
    lines = []
    for definition in result.definitions:
        for column, stricter in zip(definition.columns, definition.stricter, strict=True):
            values = [node.tightest[column] for node in result.nodes]
            finite = sum(value not in (None, "inf") for value in values)
            wants = "at least" if stricter == "larger" else "at most"
            lines.append([column, wants, shown(values[0]), shown(values[-1]), f"{finite:,}"])
    heading = "\nTightest values of the finest and the most general node, and how many nodes have a finite value"
    yield table(heading, ["definition", "holds for", "finest", "most general", "finite"], lines)


def _epsilons(result: Compared) -> Lines:
    names = ", ".join(result.quasi_identifiers)
    for of in result.epsilon:
        finite = [node for node in of.nodes if any(value not in (None, "inf") for value in node.epsilon)]
        lines = [[" ".join(map(str, node.levels)), *map(shown, node.epsilon)] for node in finite[-MOST:]]
        title = (
            f"\nSmallest epsilon of {of.sensitive} by node ({names}) and adversary (class, stubbornness, prior); "
            f"infinite at the other {len(of.nodes) - len(finite):,} nodes"
        )
        if len(finite) > MOST:
            title += f"; the {MOST} most general of {len(finite):,} nodes, all of them with --csv"
        yield table(title, ["node", *of.adversaries], lines)


def _granted(result: Compared) -> Lines:
    """What each definition grants as epsilon-privacy, beside what is satisfied: a line for each adversary."""
    for name in result.sensitive:
        lines, none = [], []
        about = [grant for grant in result.granted if grant.sensitive == name]
        for definition in dict.fromkeys(grant.definition for grant in about):
            of = [grant for grant in about if grant.definition == definition]
            finite = [grant for grant in of if grant.epsilon != "inf"]
            if not finite:
                none.append(f"{definition} grants no epsilon of {name}: {of[0].why}")
                continue
            for i, grant in enumerate(finite):
                lines.append(["" if i else definition, grant.adversary, shown(grant.epsilon), shown(grant.satisfied)])
            if len(finite) < len(of):
                lines.append(["", "the others", "inf", ""])
        title = (
            f"\nEpsilon of {name} that each definition grants against each adversary, and the largest at a node that "
            "satisfies it"
        )
        if lines:
            yield table(title, ["definition", "adversary", "grants", "satisfied"], lines)
        yield from none
    if result.granted:
        yield "Against class IV, who may know anything, no definition grants any."


def _requested(result: Compared) -> Lines:
    metrics = list(result.nodes[0].metrics)
    lines = []
    for entry in result.asked:
        figures = [shown(entry.best[name].value) if entry.best else "-" for name in metrics]
        lines.append([entry.definition, f"{entry.satisfying:,}", f"{len(entry.minimal):,}", *figures])
    columns = ["definition", "satisfying", "minimal", *(f"best {name.replace('_', ' ')}" for name in metrics)]
    yield table("\nDefinitions that ask for a value: satisfying nodes, and the best metrics among them", columns, lines)
    if result.workload is not None:
        drawn = "drawn queries" if result.workload.drawn else "queries"
        yield f"query error: the mean over {result.workload.queries:,} {drawn} of --workload"
    for first, second in result.same_nodes:
        yield f"{first} and {second} admit the same nodes"
    for pair in result.directly_more_useful:
        yield f"{pair.more} admits every node that {pair.less} admits, and {pair.nodes_of_more_only:,} more"


def _compared_recodings(result: ComparedRecodings, workload: Path | None) -> Lines:
    """Figures, tightest values and what is seen of each column, a column of the table for each recoding."""
    yield (
        f"{result.rows:,} rows. Two recodings under the same privacy models, with at most "
        f"{result.suppressed_rows_allowed:,} rows suppressed in each. {result.queries:,} statements in "
        f"{result.seconds:.1f} s."
    )
    sides = (result.recodings.full_domain, result.recodings.multidimensional)
    for title, side, why in zip(TITLES, sides, (result.why.full_domain, result.why.multidimensional), strict=True):
        node = ""
        if side is not None and side.levels is not None:
            levels = zip(result.quasi_identifiers, side.levels, strict=True)
            node = ", ".join(f"{column} level {level}" for column, level in levels) + ". "
        yield f"{title}: {'' if side else 'no answer: '}{node}{why.removesuffix('.')}."
    yield from listed("warning", result.warnings)
    yield from weight_lines(result.weights)
    known = next((side for side in sides if side is not None), None)
    if known is None:
        return

    def line(name: str, values: Iterable[Any]) -> list[str]:
        return [name, *map(shown, values)]

    yield ""
    yield "Utility and cost: more precision is better; of everything else, less is better"
    figures = [
        line("published blocks", (side and side.blocks for side in sides)),
        line("suppressed rows", (side and side.suppressed for side in sides)),
        *(line(name.replace("_", " "), (side and side.metrics[name] for side in sides)) for name in known.metrics),
        line("seconds", (side and side.seconds for side in sides)),
        line("statements", (side and side.statements for side in sides)),
    ]
    yield table("", ["figure", *TITLES], figures)
    whose = "(search.workload)" if workload is None else "of --workload"
    queries = "drawn queries" if result.workload.drawn else "queries of the spec" if workload is None else "queries"
    yield f"query error: over {result.workload.queries:,} {queries} {whose}"
    yield ""
    yield "Tightest values that each recoding satisfies"
    guarantees = [
        line(f"{model_of(entry)}: {requested_of(entry)}", (side and reached_of(side.tightest[i]) for side in sides))
        for i, entry in enumerate(known.tightest)
    ]
    yield table("", ["asked", *TITLES], guarantees)
    yield ""
    yield "What readers see, by share of the published rows"
    columns = [
        line(column.attribute, (side and (side.attributes[i].words or None) for side in sides))
        for i, column in enumerate(known.attributes)
    ]
    yield table("", ["column", *TITLES], columns)
