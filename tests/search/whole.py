"""Small random tables in a warehouse, as a spec sees them and as the slow reference does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reference.tables import Row, Table

from qblock.spec import Spec, read_spec

HIERARCHIES = {
    "a": {"a0": ["a0", "a01", "*"], "a1": ["a1", "a01", "*"], "a2": ["a2", "a23", "*"], "a3": ["a3", "a23", "*"]},
    "b": {"b0": ["b0", "*"], "b1": ["b1", "*"], "b2": ["b2", "*"]},
}
"""Two quasi-identifiers: 3 * 2 nodes."""
TAXONOMY = {"u": ["u", "uv", "*"], "v": ["v", "uv", "*"], "w": ["w", "wx", "*"], "x": ["x", "wx", "*"]}
"""Of the sensitive attribute s; nobody need have x."""
NUMBERS = (1, 2, 4, 9)
"""The values of the sensitive attribute y."""


def rows_of(seed: int, size: int, people: int | None = None) -> list[Row]:
    """Random rows; each has a person of its own, or one of `people` (a person's rows may then differ in everything)."""
    draw = random.Random(seed)
    return [
        {
            "person": f"p{i if people is None else draw.randrange(people)}",
            "a": draw.choice(list(HIERARCHIES["a"])),
            "b": draw.choice(["b0", "b0", "b1", "b2"]),
            "s": draw.choice("uuvvw"),
            "y": draw.choice(NUMBERS),
        }
        for i in range(size)
    ]


def text_of(url: str, privacy: Sequence[str], more: str = "") -> str:
    """A spec over such a table."""
    entries = "".join(f"  - {entry}\n" for entry in privacy)
    return (
        f"version: 1\nrelease: small\nsource: {{url: '{url}', table: people}}\nentity: person\nattributes:\n"
        "  person: identifying\n"
        "  a: {role: quasi_identifier, hierarchy: {file: a.csv}}\n"
        "  b: {role: quasi_identifier, hierarchy: {file: b.csv}}\n"
        "  s: {role: sensitive, taxonomy: {file: s.csv}}\n"
        "  y: sensitive\n"
        f"privacy:\n{entries}{more}"
    )


def load(
    warehouse: Callable[..., str], folder: Path, rows: Sequence[Row], privacy: Sequence[str], more: str = ""
) -> Spec:
    """The spec of rows that are put into a warehouse; its hierarchies are written beside it."""
    url = warehouse("people", {name: [row[name] for row in rows] for name in rows[0]})
    for name, paths in (*HIERARCHIES.items(), ("s", TAXONOMY)):
        levels = len(next(iter(paths.values())))
        lines = [",".join(f"level{i}" for i in range(levels)), *(",".join(path) for path in paths.values())]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return read_spec(text_of(url, privacy, more), folder / "spec.yaml", {})


def slow(rows: Sequence[Row], sensitive: str = "s", **more: Any) -> Table:
    """The same rows for the reference."""
    declared: dict[str, Any] = {"domain": tuple(TAXONOMY), "taxonomy": TAXONOMY} if sensitive == "s" else {}
    return replace(Table(list(rows), sensitive=sensitive, hierarchies=HIERARCHIES), **declared, **more)
