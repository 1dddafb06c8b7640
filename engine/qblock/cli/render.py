"""Prints answers for people: what readers see of each column, which requirement binds, and what is suppressed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from qblock.cli.output import Lines, shown, table, words_grid

if TYPE_CHECKING:
    from qblock.api import Audited, Chosen, Finding, Forecast, Frontier, Guarantee, Published
    from qblock.results.base import NotComputed

LISTED = 10
"""Minimal nodes that are listed unless somebody asks for all."""
VERDICTS = {True: "yes", False: "NO", None: ""}


def column_words(words: Mapping[str, str]) -> RenderableType:
    """`age: by year (33 values)`, a line for each quasi-identifier; one that is long goes on below its words."""
    return words_grid((f"{name}:", said) for name, said in words.items())


def node_words(levels: Sequence[int], words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The words of a node, of those of every level."""
    return {name: said[level] for (name, said), level in zip(words.items(), levels, strict=True)}


def minimal_lines(nodes: Sequence[Sequence[int]], words: Mapping[str, Sequence[str]], *, every: bool) -> Lines:
    """The minimal nodes in words, finest first; ten of them unless all are asked for."""
    ordered = sorted(nodes, key=lambda node: (sum(node), list(node)))
    first = ordered if every else ordered[:LISTED]
    rows = []
    for node in first:
        said = "; ".join(f"{name} {text}" for name, text in node_words(node, words).items())
        rows.append((",".join(map(str, node)), said))
    yield ""
    yield f"Minimal nodes (levels of {', '.join(words)}):"
    yield words_grid(rows)
    if len(first) < len(ordered):
        yield f"  ... and {len(ordered) - len(first):,} more: --nodes minimal"


def finding_lines(findings: Iterable[Finding]) -> Lines:
    """What is found, with the remedy or the answer of the spec."""
    for finding in findings:
        severity = finding.severity if finding.because is None else "accepted"
        yield f"{severity}  {finding.check}: {finding.sentence}."
        yield f"  {finding.remedy}" if finding.because is None else f"  because: {finding.because}"


def stopping_lines(checks: Sequence[Finding]) -> Lines:
    """What a release would stop at, and the names of what it would go on with."""
    from qblock.api import named_findings, unsafe

    yield from finding_lines(unsafe(checks))
    named = named_findings(checks)
    if named:
        yield f"Note: {named}"


def few_shown(suppressed: int, names: Sequence[str]) -> str | None:
    """That most of the quasi-identifiers are suppressed, where that is so."""
    if 2 * suppressed <= len(names):
        return None
    noun, verb = "quasi-identifier" if len(names) == 1 else "quasi-identifiers", "is" if suppressed == 1 else "are"
    return f"{suppressed} of {len(names)} {noun} {verb} suppressed: of little use"


def publishable(rows: int, chosen: Chosen, unit: str) -> str:
    """What a search says first: how many rows can be published, in how large groups. unit: what is counted."""
    least = smallest_group(chosen.tightest)
    within = "" if chosen.boxes is None else f" in {chosen.boxes:,} groups"
    if least is not None:
        within += f"{' in groups' if chosen.boxes is None else ''} of at least {least:,} {unit}"
        if any(entry.asked.get("groups") for entry in chosen.tightest):
            within += ", of as many households or other groups"
    said = f"You can publish this: {rows - chosen.suppressed:,} rows{within}."
    if chosen.suppressed:
        said += f" {chosen.suppressed:,} of {rows:,} rows are left out."
    return said


def smallest_group(tightest: Iterable[Guarantee]) -> int | None:
    """The k that is satisfied, where k-anonymity is computed."""
    whole = (entry for entry in tightest if entry.model == "k_anonymity" and not {"of", "any"} & entry.asked.keys())
    least = next((entry.values[0].value for entry in whole), None)
    return least if isinstance(least, int) else None


def limit(tightest: Iterable[Guarantee]) -> str | None:
    """The requirement with the least relative margin between what is asked and what is satisfied, which is the one in
    the way of more detail; None where no margin is known."""
    distances: list[tuple[float, bool, str]] = []
    for entry in tightest:
        for value in entry.values:
            requested, satisfied = entry.asked.get(value.parameter), value.value
            if entry.holds is None or not _is_number(requested) or not _is_number(satisfied) or not requested:
                continue
            # What holds is at least as strict as what is asked, whichever direction that is.
            distance = abs(satisfied - requested) / abs(requested)  # type: ignore[operator]
            model = entry.model + (f" of {', '.join(entry.sensitive)}" if entry.sensitive else "")
            told = f"{model} ({value.parameter} asked {shown(requested)}, satisfied {shown(satisfied)})"
            distances.append((distance if entry.holds else -distance, entry.holds, told))
    if not distances:
        return None
    _, holds, told = min(distances)
    return f"Limit: {told}" if holds else f"Not met: {told}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def weight_lines(weights: Mapping[str, float] | None) -> Lines:
    """What some quasi-identifiers count in the metrics, where it is more or less than others."""
    if weights is not None:
        said = ", ".join(f"{name} {shown(weight)}" for name, weight in weights.items())
        yield f"Weights in loss, precision and non-uniform entropy: {said}"


def not_computed(missing: Iterable[NotComputed]) -> Lines:
    """What nobody computed, and why."""
    yield from (f"not computed: {entry.what}, {entry.why}" for entry in missing)


def forecast_lines(forecast: Forecast, names: Sequence[str] = ()) -> Lines:
    """How long newcomers would wait at some nodes, and how far the view would lag. names: of the quasi-identifiers."""
    churn = forecast.churn
    title = (
        f"Forecast for 52 runs. In each run {churn.coming:.2%} of the people come, {churn.leaving:.2%} leave and "
        f"{churn.changing:.2%} change."
    )
    columns = ["node", "blocks", "wait", "longest wait", "lag", "most lag", "never shown"]
    rows = [
        [
            ",".join(map(str, expected.node)),
            f"{expected.blocks:,}",
            "-" if expected.mean_wait is None else f"{expected.mean_wait:.1f}",
            f"{expected.worst_wait}",
            *(f"{share:.1%}" for share in (expected.lag, expected.worst_lag, expected.never)),
        ]
        for expected in forecast.nodes
    ]
    yield table(title, columns, rows)
    yield "wait: runs until newcomers are shown; lag: rows not shown as they are; never shown: newcomers"
    node = ",".join(map(str, forecast.recommended))
    if names:
        node = ", ".join(f"{name} level {level}" for name, level in zip(names, forecast.recommended, strict=True))
    yield f"Recommended: {node} ({forecast.why})"


def frontier_lines(frontier: Frontier) -> Lines:
    """What a year comes to with each choice of boxes and delay, and which one to make."""
    churn, chosen = frontier.churn, frontier.recommended
    title = (
        f"Frontier: {frontier.runs} runs of {frontier.people:,} people. In each run {churn.coming:.2%} come and "
        f"{churn.leaving:.2%} leave."
    )
    columns = ["", "least box", "within", "loss", "not shown", "left", "error", "unweighted", "versions"]
    rows = [
        [
            "* " if row.today else "",
            f"{row.least:,}",
            f"{row.within}",
            f"{row.loss:.3f}",
            *(f"{share:.1%}" for share in (row.not_shown, row.left, row.error, row.error_unweighted)),
            f"{row.versions}",
        ]
        for row in frontier.rows
    ]
    yield table(title, columns, rows)
    yield (
        "*: the spec as it is; within: runs until newcomers are shown; not shown: people present who are not shown, on "
        "average; left: rows of people who left; error: the median of many counts, with rows weighted and not"
    )
    yield from (f"{text}." for text in frontier.assumes)
    if chosen is None:
        yield f"Recommended: none ({frontier.why})"
    elif chosen.today:
        yield f"Recommended: the spec as it is ({frontier.why})"
    else:
        today = next((row for row in frontier.rows if row.today), None)
        larger = today is not None and chosen.least != today.least
        boxes = f"search: {{box: {{least: {chosen.least}}}}}, " if larger else ""
        people = f", box: {chosen.box}" if larger else ""
        yield f"Recommended: {boxes}versions: {{newcomers: {{within: {chosen.within}{people}}}}} ({frontier.why})"


def where(result: Audited | Published) -> str:
    """The node, or the recoding map, that an answer is about."""
    if result.boxes is not None:
        return f"Recoding map: {result.boxes:,} boxes"
    return "Node: " + ", ".join(f"{name} level {level}" for name, level in result.node.items())


def guarantee_lines(tightest: Sequence[Guarantee]) -> Lines:
    """The requirement that binds, then what was asked and what is satisfied, one line for each."""
    rows = [[model_of(entry), requested_of(entry), reached_of(entry), VERDICTS[entry.holds]] for entry in tightest]
    bound = limit(tightest)
    if bound is not None:
        yield bound
    yield table("", ["model", "asked", "satisfied", "holds"], rows)


def model_of(entry: Guarantee, *more: str) -> str:
    """A model with its sensitive attributes, and what else tells it from others."""
    named = ", ".join(part for part in (*entry.sensitive, *more) if part)
    return entry.model + (f" ({named})" if named else "")


def requested_of(entry: Guarantee) -> str:
    """What was asked of a model: `k=4`."""
    return ", ".join(f"{name}={shown(value)}" for name, value in entry.asked.items())


def reached_of(entry: Guarantee) -> str:
    """The tightest values of a model: `k 5`."""
    parts = []
    for value in entry.values:
        strict = "" if value.attained or value.value in (None, "inf") else " (not attained)"
        parts.append(f"{value.parameter} {shown(value.value)}{strict}")
    return ", ".join(parts)
