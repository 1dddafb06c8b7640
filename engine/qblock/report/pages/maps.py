"""The internal pages of a recoding map: its frontier, its blocks, and what other questions would give."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.pages.readers import size_cells
from qblock.report.parts import Page, Part, Table, Text, counted, share
from qblock.results.report import MapAnswerShown, MapBlocksShown, MapsShown, Report

KEPT = "what the spec asks"
SATISFIED = {True: "yes", False: "no", None: "not counted"}
WHOSE = {
    "published": "The map of version {version}, which readers see, over the source as it is now",
    "next": "The map of version {version}, which the next run takes, over the source as it is now",
    "searched": "The map that a search finds in the source as it is now",
}


def frontier_page(report: Report) -> Sequence[Part]:
    """What more or less protection costs: the maps of the spec at other parameters."""
    of = report.inside.maps
    if of is None or not of.frontier:
        return ()
    better = "more" if of.more_is_better else "less"
    said = (
        f"A larger k or l protects more and shows less. Each row is a recoding map of the source as it is now, with "
        f"one parameter changed. The metric is {of.metric}: {better} is better."
    )
    rows = [
        (answer.change, *_figures(answer, of), SATISFIED[answer.satisfied], KEPT if answer.requested else "")
        for answer in of.frontier
    ]
    columns = ("asked", "blocks", f"smallest ({of.unit})", "suppressed", of.metric, "satisfies the spec", "which")
    caption = "Maps at other parameters"
    return (Text(said), *_boxes(of), *_left_out(of), Table(caption, columns, rows, (1, 2, 3, 4)))


def _boxes(of: MapsShown) -> list[Part]:
    """Where boxes have a least size of their own."""
    if not any(answer.change.startswith("without search.box") for answer in of.what_if):
        return []
    said = "Maps at other k leave out `search.box`, whose least size would hide what k does. "
    return [Text(f"{said}Blocks of fewer than that fail the spec, whatever their k.")]


def _left_out(of: MapsShown) -> list[Part]:
    if not of.left_out:
        return []
    return [Text(f"Not worked out, since {of.why_left_out}: {'; '.join(of.left_out)}.", "failed")]


def _figures(answer: MapAnswerShown, of: MapsShown) -> tuple[str, ...]:
    if answer.blocks is None:
        return ("no map", "-", "-", "-")
    measure = "-" if answer.measure is None else f"{answer.measure:.4g}"
    return f"{answer.blocks:,}", f"{answer.smallest:,}", f"{answer.suppressed:,}", measure


def map_page(report: Report) -> Sequence[Part]:
    """The blocks of the map that readers see, or that comes next."""
    of = report.inside.maps
    if of is None:
        return ()
    content: list[Part] = [] if of.why_not is None else [Text(of.why_not, "failed")]
    if of.blocks is None:
        return (*content, Text("No map satisfies the spec: there are no blocks."))
    blocks = of.blocks
    content.append(Text(_said(blocks, of)))
    bars = [size.rows / max(1, blocks.rows) for size in blocks.sizes]
    content.append(Table("Blocks of the map by size", *size_cells(blocks.sizes), (1, 2), bars, "share of the rows"))
    depth = [(of.name, f"{of.labels:,}", share(of.share_suppressed), of.in_words) for of in blocks.columns]
    content.append(Table("Depth by column", ("column", "labels", "suppressed to *", "shown"), depth, (1, 2)))
    return content


def _said(blocks: MapBlocksShown, of: MapsShown) -> str:
    whose = WHOSE[blocks.which].format(version=blocks.version)
    suppressed = f" {counted(blocks.suppressed, 'row')} would be suppressed." if blocks.suppressed else ""
    verdict = "All blocks satisfy the spec."
    if blocks.failing:
        failing = f"{counted(blocks.failing, 'block')} with {counted(blocks.failing_rows, 'row')}"
        fails = "fails" if blocks.failing == 1 else "fail"
        verdict = f"{failing} {fails} the spec now ({', '.join(blocks.fails) or 'by size'}). No run publishes them so."
    unit = "row" if of.unit == "rows" else "person"
    smallest = counted(blocks.smallest, unit, "people" if unit == "person" else "")
    rows = counted(blocks.rows, "row")
    return f"{whose}: {counted(blocks.blocks, 'block')} of {rows}, the smallest of {smallest}.{suppressed} {verdict}"


def map_changes(of: MapsShown) -> Sequence[Part]:
    """What another question would give."""
    if not of.what_if:
        return (Text("Not worked out: the spec asks for a node of full-domain recoding, and readers see a map."),)
    base = of.what_if[0]
    better = "more" if of.more_is_better else "less"
    rows = [(answer.change, *_figures(answer, of), gain(answer.measure, base.measure)) for answer in of.what_if]
    columns = ("if", "blocks", f"smallest ({of.unit})", "suppressed", of.metric, "change")
    said = f"The source as it is now is split anew for each question. By {of.metric}, {better} is better."
    return (Text(said), *_left_out(of), Table("What if", columns, rows, (1, 2, 3, 4, 5)))


def gain(measure: float | None, base: float | None) -> str:
    """How much more or less a metric is."""
    if measure is None or not base:
        return "-"
    if measure == base:
        return "none"
    return f"{100 * (measure - base) / base:+.1f} %"


PAGES = (
    Page("map", "Blocks of the map", map_page, internal=True),
    Page("frontier", "The frontier", frontier_page, internal=True),
)
