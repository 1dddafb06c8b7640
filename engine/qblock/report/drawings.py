"""Drawings of figures as SVG, which say in texts what their colours and places say; all texts are escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from qblock.results.base import Levels
from qblock.results.report import CurveShown, EpsilonShown, MapShown

LEAST, MOST = 0.06, 0.5
"""How much of its colour a cell has: never so much that a text on it is hard to read."""
DEEPEST = 100
"""From this epsilon on a cell is no deeper: beyond, all are far from what anybody would ask for."""
LINES = 3
"""Of the name of an adversary."""
LABEL, CELL, ROW, LINE = 120, 78, 26, 15
"""Width of what names a row and of a cell, height of a row and of a line of text."""
TICKS = (1, 2, 5)
PLOT, BAND, TICKS_ACROSS = 560, 26, 5
"""Of a map: width of the numbers across, height of a label down, and numbers that are written."""
LEFT, RIGHT, TOP, HEIGHT, STEP = 60, 20, 62, 240, 70
"""Of a plot: margins, its height, and between two values on the axis across."""
CHARACTERS = 26
"""Of a text in a drawing; a longer one ends in an ellipsis."""
MARGIN, ACROSS, BETWEEN, GAP = 40, 60, 16, 12
"""Units left of the marks, marks in a line, from one to the next, and between rows of them."""
RADIUS = 5.5


def heat_map(shown: EpsilonShown, label: str) -> Markup:
    """Nodes down, adversaries across, the smallest epsilon in each cell: the deeper, the larger, by its logarithm."""
    top = LINE * LINES + 10
    width, height = LABEL + CELL * len(shown.adversaries) + 4, top + ROW * len(shown.levels) + 4
    drawn = []
    for i, name in enumerate(shown.adversaries):
        x = LABEL + CELL * (i + 0.5)
        for line, word in enumerate(_lines(name)):
            y = top - 8 - LINE * (LINES - 1 - line)
            drawn.append(f'<text class="mid dim" x="{x:g}" y="{y:g}">{_short(word, 11)}</text>')
    for j, (levels, values) in enumerate(zip(shown.levels, shown.values, strict=True)):
        y, node = top + ROW * j, place_text(levels)
        drawn.append(f'<text class="end" x="{LABEL - 8}" y="{y + 17:g}">{_short(node, 16)}</text>')
        for i, (name, value) in enumerate(zip(shown.adversaries, values, strict=True)):
            said = f"{place_text(levels, 'node ')}, adversary {name}: epsilon {value}"
            drawn.append(_cell(LABEL + CELL * i, y, value, said))
    return _svg("heat", width, height, label, drawn)


def place_text(levels: Levels | None, before: str = "") -> str:
    """Where figures are of: the levels of a node, or the map. before: what is written before a node."""
    return "the map" if levels is None else f"{before}{','.join(map(str, levels))}"


def _lines(name: str) -> list[str]:
    """A name in LINES lines, the first ones empty where it is short."""
    words = name.split(maxsplit=LINES - 1)
    return [""] * (LINES - len(words)) + words


def _cell(x: float, y: float, value: str, title: str) -> str:
    number = _number(value)
    depth = 0.0 if number is None or number <= 1 else min(1.0, math.log(number) / math.log(DEEPEST))
    colour = f' fill-opacity="{LEAST + (MOST - LEAST) * depth:.2f}"' if number is not None else ""
    kind = "" if number is not None else " inf"
    place = f'x="{x:g}" y="{y:g}" width="{CELL}" height="{ROW}"'
    return (
        f'<g><title>{escape(title)}</title><rect class="cell{kind}" {place}{colour}/>'
        f'<text class="mid{kind}" x="{x + CELL / 2:g}" y="{y + 17:g}">{_short(value, 10)}</text></g>'
    )


def curves(shown: Sequence[CurveShown], label: str) -> Markup:
    """The smallest epsilon by stubbornness, a line for each adversary, both axes by their logarithm. A value that is
    infinite is a sign above the plot, and no point of a line."""
    across = list(dict.fromkeys(text for curve in shown for text in curve.stubbornness))
    across.sort(key=float)
    finite = [value for curve in shown for value in curve.values if value is not None]
    low, high = 0.0, math.log10(max(finite, default=1)) or 1.0
    high = max(high * 1.05, 0.05)
    width, height = LEFT + RIGHT + STEP * len(across), TOP + HEIGHT + 50
    place = {text: LEFT + STEP * (i + 0.5) for i, text in enumerate(across)}

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - (math.log10(max(value, 1)) - low) / (high - low))

    drawn = []
    for tick in _ticks(high):
        drawn.append(
            f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"></line>'
        )
        drawn.append(f'<text class="end dim" x="{LEFT - 6}" y="{y(tick) + 4:.1f}">{_tick(tick)}</text>')
    for text, x in place.items():
        drawn.append(f'<text class="mid dim" x="{x:g}" y="{TOP + HEIGHT + 18}">{escape(text)}</text>')
    middle = (LEFT + width - RIGHT) / 2
    drawn.append(f'<text class="mid dim" x="{middle:g}" y="{height - 8}">stubbornness</text>')
    drawn.append(f'<text class="dim" x="4" y="{TOP - 22}">epsilon</text>')
    for i, curve in enumerate(shown):
        points = [(place[text], value) for text, value in zip(curve.stubbornness, curve.values, strict=True)]
        drawn += _line(i, [(x, y(value)) for x, value in points if value is not None])
        for text, (x, value) in zip(curve.stubbornness, points, strict=True):
            said = f"{curve.adversary}, stubbornness {text}: epsilon {'inf' if value is None else f'{value:.4g}'}"
            if value is None:
                drawn.append(
                    f'<text class="mid inf" x="{x + 16 * (i - 1):g}" y="{TOP - 8}"><title>{escape(said)}</title>'
                    f"{'∞' if len(shown) == 1 else '∞' + str(i + 1)}</text>"
                )
            else:
                drawn.append(_point(i, x, y(value), said))
        drawn += _key(i, curve.adversary, i, len(shown), width)
    return _svg("curves", width, height, label, drawn)


def areas(shown: MapShown, label: str) -> Markup:
    """The labels of one column down, the numbers of the other one across: a bar for each pair of labels, from the low
    to the high end of what its label covers; open ends reach to the edge."""
    bands = list(dict.fromkeys(area.down for area in shown.areas))
    ends = [end for area in shown.areas for end in (area.low, area.high) if end is not None] or [0.0]
    low, high = min(ends), max(ends)
    scale = PLOT / ((high - low) or 1)
    spans = {
        area: (low if area.low is None else area.low, high if area.high is None else area.high) for area in shown.areas
    }
    dense = {area: area.rows / ((to - at) or 1) for area, (at, to) in spans.items()}
    most = max(dense.values())
    height = BAND * len(bands) + 44
    drawn = []
    for i, band in enumerate(bands):
        y = 8 + BAND * i
        drawn.append(f'<text class="end" x="{LABEL + 32}" y="{y + 17}">{_short(band, CHARACTERS - 4)}</text>')
        own = sorted(
            (area for area in shown.areas if area.down == band), key=lambda area: spans[area][0] - spans[area][1]
        )
        for area in own:
            at, to = spans[area]
            depth = LEAST + (1 - LEAST) * math.sqrt(dense[area] / most)
            said = (
                f"{shown.across} {area.across}, {shown.down} {area.down}: {area.rows:,} rows in {area.blocks:,} blocks"
            )
            place = (
                f'x="{LABEL + 40 + (at - low) * scale:.1f}" y="{y}" width="{(to - at) * scale:.1f}" height="{BAND - 4}"'
            )
            drawn.append(f'<g><title>{escape(said)}</title><rect class="area" {place} fill-opacity="{depth:.2f}"/></g>')
    for i in range(TICKS_ACROSS + 1):
        at = low + (high - low) * i / TICKS_ACROSS
        x = LABEL + 40 + (at - low) * scale
        drawn.append(f'<text class="mid dim" x="{x:.1f}" y="{height - 20}">{at:,.4g}</text>')
    drawn.append(
        f'<text class="mid dim" x="{LABEL + 40 + PLOT / 2}" y="{height - 4}">{_short(shown.across, 40)}</text>'
    )
    return _svg("areas", LABEL + PLOT + 70, height, label, drawn)


def _line(kind: int, points: Sequence[tuple[float, float]]) -> list[str]:
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [f'<polyline class="curve c{kind}" points="{listed}"></polyline>'] if len(points) > 1 else []


def _point(kind: int, x: float, y: float, said: str) -> str:
    """A mark whose form says which line it is of: a circle, a square, a triangle."""
    title = f"<title>{escape(said)}</title>"
    if kind == 0:
        return f'<circle class="point c0" cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>'
    places = [(-4, -4), (4, -4), (4, 4), (-4, 4)] if kind == 1 else [(0, -5), (5, 4), (-5, 4)]
    corners = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in places)
    return f'<polygon class="point c{kind}" points="{corners}">{title}</polygon>'


def _key(kind: int, said: str, number: int, of: int, width: float) -> list[str]:
    """The line's sign and name, above the plot."""
    x = LEFT + (width - LEFT - RIGHT) / of * number
    return [
        *_line(kind, [(x, 14), (x + 28, 14)]),
        _point(kind, x + 14, 14, said),
        f'<text x="{x + 36:g}" y="18">{number + 1}: {_short(said, CHARACTERS)}</text>',
    ]


def _ticks(high: float) -> list[float]:
    """1, 2, 5, 10 and so on, or the powers of ten alone where these are many."""
    powers = range(math.ceil(high) + 1)
    multiples = [m * 10.0**power for power in powers for m in TICKS]
    ticks = multiples if high <= 3 else [10.0**power for power in powers[:: max(1, len(powers) // 8)]]
    return [tick for tick in ticks if math.log10(tick) <= high]


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value < 10_000 else f"1e{round(math.log10(value))}"


def _number(value: str) -> float | None:
    """The number that a figure says; None for one that is infinite or none."""
    try:
        number = float(value.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _short(text: str, most: int) -> Markup:
    return escape(text if len(text) <= most else f"{text[: most - 1]}\u2026")


def _svg(kind: str, width: float, height: float, label: str, drawn: Sequence[str]) -> Markup:
    inner = "".join(drawn)
    return Markup(
        f'<svg class="figure {kind}" role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}">'
        f"{inner}</svg>"
    )


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
    width, y = 2 * MARGIN + ACROSS * BETWEEN, GAP
    parts = []
    for row in sorted(rows, reverse=True):
        parts.append(f'<text x="4" y="{y + BETWEEN / 2 + 4:g}">{row}</text>')
        for start in range(0, len(rows[row]), ACROSS):
            line = rows[row][start : start + ACROSS]
            first = (width - BETWEEN * (len(line) - 1)) / 2
            parts += [_mark(mark, first + BETWEEN * i, y + BETWEEN / 2) for i, mark in enumerate(line)]
            y += BETWEEN
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
