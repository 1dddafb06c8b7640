"""What the policy decided in 10,000 drawn histories, each of several weeks, against a file of what it decided before.

A line of decisions.txt is a history: its number, the models, and for each week what became of it (P: a version was
published, w: people wait, -: nothing changed) with a digest of the whole decision: who is shown with which block and
value, who is out for good and why, who waits, and what came of each batch. in_full.txt has the first ones written out.
QBLOCK_TRANSCRIPTS=update writes both anew (docs/testing.md, Transcripts).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .bundles import bundles
from .players import LONGEST, Engine, EngineOfBundles
from .settings import NAMES, SEVERAL, setting

FOLDER = Path(__file__).parent
HISTORIES, QUICK, IN_FULL = 10_000, 300, 5
KINDS = (*NAMES, *SEVERAL, "distinct, rows known", "distinct, changes known")


class Week(NamedTuple):
    """Block and value of everybody in the source, and who withdraws."""

    present: dict[str, tuple[int, int]]
    erased: tuple[str, ...]


def player_of(kind: str, l: int, values: int, stale: Fraction | None) -> Engine:  # noqa: E741
    if kind.endswith(" known"):
        return EngineOfBundles(setting("distinct", l), values, "rows" if "rows" in kind else "changes")
    return Engine(setting(kind, l), stale=stale)


def weeks(rng: random.Random, size: int) -> Iterator[Week]:
    """A table that changes: people come, leave (some for a few weeks), change, mostly those of one block, and withdraw.

    size: how many values there are.
    """
    blocks, coming = rng.randint(1, 4), rng.choice([0.0, 0.05, 0.1, 0.3])
    leaving, changing = rng.choice([0.0, 0.02, 0.1, 0.3]), rng.choice([0.0, 0.02, 0.1, 0.3])
    odd = rng.choice([0.0, 0.1, 1.0])  # else blocks have the values about equally often
    people = {
        f"p{i:02}": (i % blocks, rng.randrange(size) if rng.random() < odd else i // blocks % size)
        for i in range(rng.randint(4, 40))
    }
    away: dict[str, tuple[int, int]] = {}
    for week in range(rng.randint(3, 8)):
        if week:
            back = [name for name in sorted(away) if rng.random() < 0.1]
            people |= {name: away.pop(name) for name in back}
            block = rng.randrange(blocks + 1)
            of_block = {name: people[name][0] == block for name in sorted(people)}
            gone = [name for name, here in of_block.items() if rng.random() < leaving * (4 if here else 0.5)]
            away |= {name: people.pop(name) for name in gone}
            block = rng.randrange(blocks)
            of_block = {name: people[name][0] == block for name in sorted(people)}
            changed = [name for name, here in of_block.items() if rng.random() < changing * (4 if here else 0.5)]
            people |= {name: (people[name][0], rng.randrange(size)) for name in changed}
            new = sum(rng.random() < coming for _ in range(40))
            block = rng.randrange(blocks + 1)
            people |= {
                f"w{week}{i:02}": (block if rng.random() < 0.7 else rng.randrange(blocks), rng.randrange(size))
                for i in range(new)
            }
        yield Week(dict(people), tuple(name for name in sorted(people) if rng.random() < 0.003))


def history(number: int) -> tuple[str, list[dict[str, Any]]]:
    """The models of a history, and what was decided in each of its weeks."""
    rng = random.Random(number)
    kind, l, values = KINDS[number % len(KINDS)], rng.choice([2, 2, 3]), rng.randint(2, 6)  # noqa: E741
    stale = None if number % 3 else Fraction(3, 5)
    player = player_of(kind, l, min(values, 3) if kind.endswith(" known") else values, stale)
    widths = (values,) if player.setting.attributes == 1 else tuple(rng.randint(2, 3) for _ in range(2))
    size = len(bundles(player.values, LONGEST)) if isinstance(player, EngineOfBundles) else 1
    size = size if size > 1 else values if len(widths) == 1 else widths[0] * widths[1]
    cohorts = tuple(rng.choice([2, l, l + 1, 2 * l]) for _ in range(rng.randint(1, 3)))
    skipped = rng.choice([0, 3, 10])
    state, decided = None, []
    for present, erased in weeks(rng, size):
        played = player.run(state, present, erased, cohorts, lambda _, n: bool(skipped) and n % skipped == 1, widths)
        state, memory = played.state, played.state.memory
        shown = {name: f"{unit.cell.block[0]}:{unit.values[-1]}" for name, unit in sorted(state.shown.items())}
        decided.append(
            {
                "source": len(present),
                "published": played.rows is not None,
                "shown": shown,
                "out": dict(sorted(memory.out.items())),
                "waiting": sorted(name for name in present if name not in shown and name not in memory.out),
                "batches": [list(event) for event in played.events],
            }
        )
    return f"{kind}, l = {l}", decided


def line_of(number: int) -> str:
    models, decided = history(number)
    words = []
    for week in decided:
        digest = hashlib.sha256(json.dumps(week, sort_keys=True).encode()).hexdigest()[:6]
        words.append(f"{'P' if week['published'] else 'w' if week['waiting'] else '-'}{digest}")
    return f"{number:04} {models}: {' '.join(words)}"


def in_full(number: int) -> str:
    models, decided = history(number)
    return "\n".join([f"{number:04} {models}", *(f"  {json.dumps(week)}" for week in decided)]) + "\n"


def check(numbers: range) -> None:
    known = (FOLDER / "decisions.txt").read_text("utf-8").splitlines()
    others = [number for number in numbers if line_of(number) != known[number]]
    if others:
        first = others[0]
        pytest.fail(
            f"{len(others)} histories are decided otherwise; was: {known[first]}\nnow:\n{in_full(first)}", False
        )


def test_the_first_histories_are_decided_as_before() -> None:
    check(range(QUICK))
    full = "\n".join(map(in_full, range(IN_FULL)))
    assert full.splitlines() == (FOLDER / "in_full.txt").read_text("utf-8").splitlines()


def test_all_histories_are_decided_as_before() -> None:
    if os.environ.get("QBLOCK_TRANSCRIPTS") == "update":
        (FOLDER / "decisions.txt").write_text("".join(f"{line_of(n)}\n" for n in range(HISTORIES)), "utf-8")
        (FOLDER / "in_full.txt").write_text("\n".join(map(in_full, range(IN_FULL))), "utf-8")
        return
    check(range(HISTORIES))
