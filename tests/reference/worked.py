# ruff: noqa: E741 - l is the letter of the papers
"""Reading the worked examples: tables, exact values and the standard profile of a set of blocks."""

from __future__ import annotations

import csv
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from reference import adversary, attacks, closeness, diversity
from reference.exact import Exact, decimal_of
from reference.tables import Block, Hierarchies, Row, Table


def read_rows(path: Path) -> list[Row]:
    """One row per person: a `count` column is spelled out. Every value stays text, "n/a" included."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: value for name, value in row.items() if name != "count"}
            for row in csv.DictReader(file)
            for _ in range(int(row.get("count") or 1))
        ]


def read_hierarchies(folder: Path, files: dict[str, str]) -> Hierarchies:
    """{quasi-identifier: file} to {quasi-identifier: {leaf: labels}}."""
    found: Hierarchies = {}
    for name, file in files.items():
        with (folder / file).open(encoding="utf-8", newline="") as text:
            found[name] = {line[0]: line for line in list(csv.reader(text))[1:]}
    return found


INPATIENT = {name: f"inpatient_hierarchy_{name}.csv" for name in ("zip", "age", "nationality")}


def inpatients(folder: Path) -> Table:
    """The small whole lattice: raw rows and their three hierarchies."""
    hierarchies = read_hierarchies(folder, INPATIENT)
    return Table(read_rows(folder / "inpatient_raw.csv"), "condition", hierarchies=hierarchies)


def as_published(path: Path, quasi_identifiers: list[str], sensitive: str) -> tuple[Table, list[Block]]:
    """A table that somebody generalized already: equal labels are a block."""
    table = Table(read_rows(path), sensitive)
    blocks: dict[tuple[Any, ...], list[Row]] = {}
    for row in table.rows:
        blocks.setdefault(tuple(row[name] for name in quasi_identifiers), []).append(row)
    return table, [Block(table, rows) for rows in blocks.values()]


def histogram_block(counts: dict[Any, int], table: dict[Any, int] | None = None, **more: Any) -> Block:
    """One block by its counts, in a table by its counts (the block itself by default)."""
    rows = [{"s": value} for value, n in (table or counts).items() for _ in range(n)]
    mine = [{"s": value} for value, n in counts.items() for _ in range(n)]
    return Block(Table(rows, domain=tuple(table or counts), **more), mine)


def exact(expected: Any) -> Fraction | float:
    """An expected value: "inf", a whole number, a fraction as text, or {exact, float}."""
    if expected == "inf":
        return math.inf
    return Fraction(expected["exact"] if isinstance(expected, dict) else expected)


def same_digits(value: Exact, expected: Any) -> bool:
    """Whether a value agrees with every digit that is given, {digits} before {float}; the last digit may be rounded."""
    full = isinstance(expected, dict) and "digits" in expected
    text = expected["digits"] if full else repr(expected["float"] if isinstance(expected, dict) else expected)
    places = len(text.partition(".")[2]) if full else 13
    return abs(decimal_of(value) - Decimal(text)) <= Decimal(10) ** -places


def profile(blocks: list[Block]) -> dict[str, Any]:
    """The figures that the worked examples give for a table."""
    table = blocks[0].table
    homogeneous = attacks.homogeneous(blocks)

    def three(shape: adversary.Prior) -> Exact:
        return max(adversary.epsilon_tightest(b, "III", shape=shape) for b in blocks)

    return {
        "N": len(table.rows),
        "blocks": len(blocks),
        "dom": table.values(),
        "k": min(diversity.k_tightest(b) for b in blocks),
        "distinct_l": min(diversity.distinct_tightest(b) for b in blocks),
        "frequency_l": min(diversity.frequency_tightest(b) for b in blocks),
        "entropy_l": min(diversity.entropy_tightest(b) for b in blocks),
        "recursive_largest_l": {c: min(diversity.recursive_tightest_l(b, c) for b in blocks) for c in (1, 2, 3, 4)},
        "recursive_infimum_c (strict: c must exceed it)": {
            l: max(diversity.recursive_tightest_c(b, l) for b in blocks) for l in (2, 3)
        },
        "t_equal": max(closeness.t_tightest(b, "equal") for b in blocks),
        "III_uniform_smallest_eps": three(adversary.uniform(table)),
        "III_table_smallest_eps": three(adversary.observed(table)),
        "homogeneous_blocks": homogeneous[0],
        "homogeneous_tuples": homogeneous[1],
        "avg_block": Fraction(sum(len(b.rows) for b in blocks), len(blocks)),
        "discernibility": sum(len(b.rows) ** 2 for b in blocks),
    }


def check_profile(blocks: list[Block], expected: dict[str, Any]) -> list[str]:
    """The names of the figures of `expected` that the profile contradicts."""
    mine, wrong = profile(blocks), []
    for name in expected.keys() & mine.keys():
        if name == "entropy_l":
            good = same_digits(mine[name], expected[name])
        elif name == "dom":
            good = mine[name] == expected[name]
        elif name.startswith("recursive"):
            good = all(mine[name][int(key)] == exact(value) for key, value in expected[name].items())
        else:
            good = mine[name] == exact(expected[name])
        if not good:
            wrong.append(f"{name}: {mine[name]} is not {expected[name]}")
    return wrong
