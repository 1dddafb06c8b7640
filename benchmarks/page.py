"""The page of figures: what is between two marks is written from the figures that are kept."""

from __future__ import annotations

from pathlib import Path

from benchmarks import table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGINS = "<!-- written by `python -m benchmarks --page` from benchmarks/figures.json -->\n"
ENDS = "<!-- written until here -->\n"


def written(page: str, figures: list[dict[str, object]]) -> str:
    """The page with these figures.

    Raises:
        ValueError: a mark is missing.
    """
    before, begins, rest = page.partition(BEGINS)
    _, ends, after = rest.partition(ENDS)
    if not (begins and ends):
        raise ValueError(
            f"{PAGE.name} has no line {(ENDS if begins else BEGINS).strip()}; add it where the figures belong"
        )
    return f"{before}{begins}\n{table.text(figures)}\n\n{ends}{after}"


def write() -> None:
    PAGE.write_text(written(PAGE.read_text("utf-8"), table.kept()), "utf-8")
