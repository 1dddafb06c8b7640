"""Exhaustive attackers on small random histories that the gate passes: nobody's value may be certain.

The attacker knows everybody's quasi-identifiers, who is in which version and who kept the value, every published table
and the suppression rule; against J1-linked also who changed the value, and which rows of different versions belong
together. Every assignment of values that agrees with all of this is enumerated.

    python -m tests.versions.attacker --histories 20000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.ledger.stores import store_of_url
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, prepare
from qblock.versions.episodes import Mode
from qblock.versions.gate import Verdict, check, members_of
from qblock.versions.recorded import record

from .histories import history
from .register import Register, Row, linkable, possible
from .versions import candidate_of, make_spec, references

BATCH = 2000
MODES: tuple[Mode, ...] = ("episodes", "linked")


@dataclass(frozen=True)
class Tally:
    """tried, passed: histories; changing: those with changed values among the passed; disclosing: seeds of those in
    which some value is certain."""

    tried: int = 0
    passed: int = 0
    changing: int = 0
    disclosing: tuple[int, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.tried + other.tried,
            self.passed + other.passed,
            self.changing + other.changing,
            self.disclosing + other.disclosing,
        )

    def __str__(self) -> str:
        return (
            f"{self.tried} histories tried, {self.passed} passed by the gate ({self.changing} of them with changed "
            f"values), {len(self.disclosing)} disclosing"
        )


def together(registers: Sequence[tuple[int, Register]]) -> list[Row]:
    """Many histories as one table: persons and blocks of different ones differ."""
    return [
        replace(row, person=f"{seed}/{row.person}", block=f"{seed}/{row.block}")
        for seed, register in registers
        for row in register.rows
    ]


def refused_seeds(
    crosswalk: Crosswalk,
    spec: Spec,
    registers: Sequence[tuple[int, Register]],
    least: int | None = None,
    mode: Mode | None = None,
) -> set[int]:
    """The histories that the gate refuses at any version, asked of the database for all of them at once.

    least: k of the labels, where it is not that of the registers; mode: one of the two rules alone. Both are asked one
    by one, since the gate stops at the first that any history fails.
    """
    rows = together(registers)
    k = least or registers[0][1].k
    refused: set[int] = set()
    for version in sorted({row.version for row in rows}):
        found = candidate_of(crosswalk, rows, version, k, spec.release)
        mine = [row for row in rows if row.version == version]
        for rule in MODES if mode is None else (mode,):
            verdict: Verdict = check(crosswalk, spec, references(spec, mine), found, rule)
            if verdict.names:
                entities = crosswalk.own.fetch(members_of(crosswalk, spec, verdict, found))["entity"].to_pylist()
                refused |= {int(entity.split("/")[0]) for entity in entities}
        record(crosswalk, found)
    return refused


def least_candidates(register: Register, linked: bool) -> int:
    """The fewest values that remain possible for anybody who was ever shown, counted no further than to 2."""
    shown = {(e.person, e.number) for e in register.episodes if any(row.published for row in e.rows.values())}
    domain = {row.value for row in register.rows}
    first: dict[tuple[str, int], str] = {}
    uncertain: set[tuple[str, int]] = set()
    for assignment in possible(register, domain, rule=True, changes=linked):
        if not first:
            first = assignment
        uncertain |= {key for key, value in assignment.items() if value != first[key]}
        if shown <= uncertain:
            break
    unlinked = 2 if shown <= uncertain else 1
    return min(unlinked, linkable(register)) if linked and shown else unlinked


def attack(crosswalk: Crosswalk, seeds: Iterable[int], mode: Mode | None, release: str) -> tuple[Tally, set[int]]:
    """Ask the gate about every history, and let the attackers loose on those that it passes; also the refused ones.

    mode: one rule alone, and the attacker that it is for; None: the gate, and the one who knows whose value changed.
    """
    registers = [(seed, history(seed)) for seed in seeds]
    refused = refused_seeds(crosswalk, make_spec(release=release), registers, mode=mode)
    passed = [(seed, r) for seed, r in registers if seed not in refused and r.published]
    disclosing = tuple(seed for seed, r in passed if least_candidates(r, mode != "episodes") < 2)
    changing = sum(len(r.episodes) > len(r.people) for _, r in passed)
    return Tally(len(registers), len(passed), changing, disclosing), refused


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Exhaustive attackers on histories that the gate passes.")
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed")
    options = parser.parse_args(arguments)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        place = store_of_url("sqlite:///qblock/ledger.sqlite", Path(folder))
        place.upgrade()
        prepare(place)
        warehouse = DuckdbWarehouse(None)
        modes: tuple[Mode | None, ...] = ("episodes", None)
        for mode in modes:
            tally = Tally()
            for start in range(options.first, options.first + options.histories, BATCH):
                seeds = range(start, min(start + BATCH, options.first + options.histories))
                with warehouse.snapshot() as session, open_crosswalk(place, session) as crosswalk:
                    tally += attack(crosswalk, seeds, mode, f"{mode}_{start}")[0]
            print(f"{'J1 alone' if mode else 'J1 and J1-linked'}: {tally}")
            failed |= bool(tally.disclosing)
        warehouse.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
