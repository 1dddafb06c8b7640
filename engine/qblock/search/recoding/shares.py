"""How much of each quasi-identifier a recoding map shows, and with labels of which kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from qblock.recoding import Label, Ladder


def shares(
    ladders: Sequence[Ladder], read: Mapping[Label, str], boxes: Sequence[tuple[tuple[Label, ...], int]]
) -> list[dict[str, Any]]:
    """For each quasi-identifier, the share of the rows with labels of each kind: of a level, or of several labels of a
    level; like: the label of the kind that most of them have. read: how labels read; boxes: labels and rows of each.
    """
    entries = []
    total = max(1, sum(rows for _, rows in boxes))
    for i, ladder in enumerate(ladders):
        counted: dict[tuple[int, str], Counter[str]] = {}
        hidden = 0
        for labels, rows in boxes:
            label = labels[i]
            if label.leaves == ladder.size > 1:
                hidden += rows
            else:
                counted.setdefault((label.level, label.form), Counter())[read[label]] += rows
        shown = [
            {
                "level": level,
                "name": ladder.hierarchy.level_names[level],
                "form": form,
                "like": min(texts, key=lambda text: (-texts[text], text)),
                "share": sum(texts.values()) / total,
            }
            for (level, form), texts in sorted(counted.items())
        ]
        attribute = {"attribute": ladder.hierarchy.attribute, "hidden": hidden / total, "labels": shown}
        cells = ladder.hierarchy.cells is not None
        words = "has one value" if ladder.size == 1 else in_words(shown, hidden / total, cells=cells)
        entries.append({**attribute, "words": words})
    return entries


def in_words(labels: Sequence[dict[str, Any]], hidden: float, *, cells: bool = False) -> str:
    """What readers see of an attribute: `groups like 15-19 for 71 %, hidden for 7 %`. cells: whether level 0 is."""
    parts = []
    for label in labels:
        what = {"plain": "groups like {}", "range": "ranges like {}", "rest": "several together like {}"}[label["form"]]
        as_it_is = label["form"] == "plain" and not label["level"] and not cells
        parts.append(f"{'as it is' if as_it_is else what.format(label['like'])} for {percent(label['share'])}")
    return ", ".join([*parts, *([f"hidden for {percent(hidden)}"] if hidden else [])])


def percent(share: float) -> str:
    """A share as people write it, never rounded to nothing or to all."""
    if 0 < share < 0.01:
        return "under 1 %"
    return "over 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"
