"""Pictures as SVG: small functions of figures, whose texts are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

MARGIN, ACROSS, STEP, GAP = 40, 60, 16, 12
"""Units left of the marks, marks in a line, from one to the next, and between rows of them."""
RADIUS = 5.5


@dataclass(frozen=True)
class Mark:
    """A node in the picture. row: counted from below; kinds: classes of it; title: what is said of it."""

    row: int
    kinds: str
    title: str


def lattice(marks: Sequence[Mark], label: str) -> Markup:
    """Nodes by height, the most general above: rows of marks, each in the middle, in the order given; a row that is too
    long goes on below itself."""
    rows: dict[int, list[Mark]] = {}
    for mark in marks:
        rows.setdefault(mark.row, []).append(mark)
    width, y = 2 * MARGIN + ACROSS * STEP, GAP
    parts = []
    for row in sorted(rows, reverse=True):
        parts.append(f'<text x="4" y="{y + STEP / 2 + 4:g}">{row}</text>')
        for start in range(0, len(rows[row]), ACROSS):
            line = rows[row][start : start + ACROSS]
            first = (width - STEP * (len(line) - 1)) / 2
            parts += [_mark(mark, first + STEP * i, y + STEP / 2) for i, mark in enumerate(line)]
            y += STEP
        y += GAP
    inner = "".join(parts)
    return Markup(
        f'<svg class="lattice" role="img" tabindex="0" aria-label="{escape(label)}" viewBox="0 0 {width} {y}">'
        f"{inner}</svg>"
    )


def _mark(mark: Mark, x: float, y: float) -> str:
    size = RADIUS + (2 if "chosen" in mark.kinds else 0)
    return (
        f'<circle class="{escape(mark.kinds)}" cx="{x:g}" cy="{y:g}" r="{size:g}"><title>{escape(mark.title)}'
        "</title></circle>"
    )
