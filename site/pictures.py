"""Draws the pictures of docs/concepts.md as if by hand: `python site/pictures.py` writes them to docs/pictures/."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH = 380
"""As wide as a telephone, so that nothing is made smaller there."""
STYLE = """
  .paper { fill: #fffdf7 } .ink { fill: none; stroke: #2b2b2b; stroke-width: 1.6; stroke-linecap: round }
  .a { fill: #ffe0a3 } .b { fill: #b9e3f2 } .c { fill: #d7c9f5 } .person { fill: #2b2b2b } .waits { fill: #fffdf7 }
  text { fill: #2b2b2b; font: 15px "Comic Neue", "Comic Sans MS", "Segoe Print", "Chalkboard", sans-serif }
  .strong { font-weight: bold; font-size: 17px }
  @media (prefers-color-scheme: dark) {
    .paper, .waits { fill: #22252b } .ink { stroke: #e8e6df } text, .person { fill: #f1efe8 }
    .a { fill: #7a5200 } .b { fill: #1d5a73 } .c { fill: #54418a }
  }
"""
COLUMNS = (24, 134, 252)
"""Where the columns of a table begin."""
BEFORE = (
    ("23", "Bern", "flu"),
    ("27", "Bern", "cold"),
    ("25", "Bern", "gout"),
    ("41", "Cork", "flu"),
    ("48", "Cork", "asthma"),
    ("44", "Cork", "cold"),
)
AFTER = tuple(("20-29" if age < "30" else "40-49", town, illness) for age, town, illness in BEFORE)


@dataclass
class Picture:
    """says: what it shows, for those who do not see it."""

    title: str
    says: str
    height: int
    parts: list[str] = field(default_factory=list)
    hand: random.Random = field(default_factory=lambda: random.Random(1))

    def line(self, *points: tuple[float, float]) -> None:
        """A line through points, each a little beside its place."""
        shaken = [(x + self.hand.uniform(-1.2, 1.2), y + self.hand.uniform(-1.2, 1.2)) for x, y in points]
        path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in shaken)
        self.parts.append(f'<path class="ink" d="{path}"/>')

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A coloured rectangle with an outline that is not quite straight."""
        self.parts.append(f'<rect class="{colour}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>')
        right, bottom = x + width, y + height
        self.line((x, y), (x + width / 2, y), (right, y), (right, bottom), (x + width / 2, bottom), (x, bottom), (x, y))

    def text(self, x: float, y: float, words: str, kind: str = "plain", anchor: str = "start") -> None:
        """kind: `strong` for a heading."""
        self.parts.append(f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>')

    def person(self, x: float, y: float, kind: str = "person") -> None:
        """A head and shoulders; `waits`: an outline alone."""
        for look in (kind, "ink") if kind == "waits" else (kind,):
            self.parts.append(f'<circle class="{look}" cx="{x}" cy="{y}" r="7"/>')
            self.parts.append(f'<path class="{look}" d="M{x - 12} {y + 27} q12 -34 24 0 z"/>')

    def arrow(self, x: float, top: float, bottom: float) -> None:
        """From above to below."""
        self.line((x, top), (x, (top + bottom) / 2), (x, bottom))
        self.line((x - 7, bottom - 8), (x, bottom), (x + 7, bottom - 8))

    def svg(self) -> str:
        """The text of the file."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
        head += f'height="{self.height}" role="img" aria-labelledby="title desc">'
        about = f'<title id="title">{escape(self.title)}</title>\n<desc id="desc">{escape(self.says)}</desc>'
        paper = f'<rect class="paper" width="{WIDTH}" height="{self.height}" rx="10"/>'
        return "\n".join((head, about, f"<style>{STYLE}</style>", paper, *self.parts, "</svg>")) + "\n"


def table(picture: Picture, top: float, rows: Sequence[Sequence[str]], grouped: bool) -> None:
    """A heading and six rows, coloured by group or not."""
    for x, name in zip(COLUMNS, ("age", "town", "illness"), strict=True):
        picture.text(x, top, name)
    picture.line((16, top + 7), (WIDTH / 2, top + 7), (WIDTH - 16, top + 7))
    for number, row in enumerate(rows):
        y = top + 16 + 27 * number
        if grouped:
            picture.box(14, y, WIDTH - 28, 24, "ab"[number // 3])
        for x, value in zip(COLUMNS, row, strict=True):
            picture.text(x, y + 17, value)


def groups() -> Picture:
    """A table before and after."""
    picture = Picture(
        "A table before and after",
        "Above: six people with age, town and illness, each age different. Below: the ages are ranges, so that three "
        "people read 20-29 and Bern, and three read 40-49 and Cork. The illnesses are as they were.",
        506,
    )
    picture.text(16, 30, "Before: each age is one person", "strong")
    table(picture, 58, BEFORE, grouped=False)
    picture.arrow(WIDTH / 2, 242, 270)
    picture.text(16, 298, "After: two groups of three", "strong")
    table(picture, 326, AFTER, grouped=True)
    return picture


def numbers() -> Picture:
    """What k and l say of a group."""
    picture = Picture(
        "What k and l mean",
        "Two groups of three people. In the first they have flu, cold and gout: k is 3 and l is 3. In the second all "
        "three have flu: k is 3 and l is 1, so that the illness of each is known.",
        372,
    )
    kinds = (
        ("a", ("flu", "cold", "gout"), "k = 3, l = 3", "Who has which illness stays open."),
        ("b", ("flu", "flu", "flu"), "k = 3, l = 1", "Whose row it is stays open, but all have flu."),
    )
    for number, (colour, illnesses, heading, meaning) in enumerate(kinds):
        top = 12 + 182 * number
        picture.text(16, top + 20, heading, "strong")
        picture.box(16, top + 32, WIDTH - 32, 92, colour)
        for place, illness in enumerate(illnesses):
            picture.person(76 + 114 * place, top + 52)
            picture.text(76 + 114 * place, top + 108, illness, anchor="middle")
        picture.text(16, top + 147, meaning)
    return picture


def versions() -> Picture:
    """Newcomers who wait."""
    picture = Picture(
        "Newcomers wait for a batch",
        "A time line of three weeks. In week 1 version 1 shows six people. In week 2 two newcomers wait and version 1 "
        "stays. In week 3 three more have come: the five are enough, and version 2 shows them together.",
        404,
    )
    weeks = (
        ("Week 1", 6, 0, "Version 1 shows six people."),
        ("Week 2", 6, 2, "Two newcomers wait. Version 1 stays."),
        ("Week 3", 6, 5, "Five are enough: version 2 shows them."),
    )
    picture.line((30, 26), (30, 150), (30, 270), (30, 388))
    for number, (week, shown, new, meaning) in enumerate(weeks):
        top = 14 + 130 * number
        picture.parts.append(f'<circle class="person" cx="30" cy="{top + 15}" r="5"/>')
        picture.text(46, top + 20, week, "strong")
        picture.box(44, top + 30, 26 * shown + 6, 48, "a")
        if number == 2:
            picture.box(206, top + 30, 26 * new + 6, 48, "c")
        for place in range(shown + new):
            new_here = place >= shown
            x = 60 + 26 * place + (6 if new_here else 0)
            picture.person(x, top + 43, "waits" if new_here and number == 1 else "person")
        picture.text(46, top + 99, meaning)
    return picture


PICTURES = {"groups": groups, "k-and-l": numbers, "versions": versions}


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), "utf-8")


if __name__ == "__main__":
    main()
