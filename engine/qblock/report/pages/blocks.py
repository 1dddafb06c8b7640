"""The blocks of a recoding map over two quasi-identifiers, as a reader sees them."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Report
from qblock.report.figures import areas
from qblock.report.parts import Figure, Page, Part, Text, share


def parts(report: Report) -> Sequence[Part]:
    of = report.shown.map
    if of is None:
        return (Text("There is no map: each column has labels of one level, or none has labels of numbers."),)
    drawn = sum(area.rows for area in of.areas)
    instead = (
        f"The blocks of the recoding map over {of.across} and {of.down}: each bar stands for the blocks with the same "
        f"two labels, the deeper, the more rows for each unit of {of.across}; wide labels lie behind narrow ones. "
        f"{len(of.areas):,} of {of.total:,} pairs of labels, with {share(drawn / of.rows)} of the rows."
    )
    caption = f"Blocks over {of.across} and {of.down}"
    return (Figure(caption, areas(of, f"{caption}. {len(of.areas):,} of {of.total:,} pairs of labels."), instead),)


PAGE = Page("blocks", "Map of the blocks", parts)
