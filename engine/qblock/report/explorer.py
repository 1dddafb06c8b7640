"""The page on which somebody chooses what to publish: one file, with the nodes and the program that compares them."""

from __future__ import annotations

from qblock.report.render import page, scripts
from qblock.search.explorer import Options
from qblock.version import __version__


def explorer_page(options: Options) -> str:
    """The HTML of the page."""
    return page(
        "explorer.html.j2",
        scripts("explorer.js", "copy.js"),
        data=options.to_json(),
        notes=_notes(options),
        program=__version__,
    )


def _notes(options: Options) -> list[str]:
    """Where the page chooses otherwise than a search of the spec, and what its choice tells."""
    spec = options.task.spec
    notes = ["Here no row is suppressed."]
    if spec.suppression_limit:
        notes = ["Here no row is suppressed. Your suppression_limit may let a search take more detail."]
    here, nodes = len(options.nodes), len(options.task.lattice)
    if here < nodes:
        notes.append(
            f"There are {nodes:,} combinations of levels. Here are {here:,}: the best found for your spec, and for "
            "other values of one k or l at a time, and those nearest to them. For other numbers a search may find a "
            "better one."
        )
    if options.maps.maps:
        notes.append(
            "Recoding maps are those of your spec, and of other values of one k or l at a time. A search finds one for "
            "any numbers."
        )
    if options.maps.why_not is not None:
        notes.append(f"{'Some maps' if options.maps.maps else 'Recoding maps'} are left out: {options.maps.why_not}.")
    if spec.search.choose_from == "sizes":
        notes.append("Your spec chooses by group sizes alone. This page looks at sensitive values, too.")
    if spec.search.within is not None:
        notes.append("Your spec ends a search after some time. This page has every choice.")
    if options.barred:
        notes.append(
            f"{len(options.barred):,} choices fail whatever you ask: everybody in a group shares a value, or a group "
            "is smaller than search.box of your spec."
        )
    notes.append("The level of detail itself can hint at sensitive values to someone who knows how you choose.")
    return notes
