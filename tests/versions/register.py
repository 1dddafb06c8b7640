"""Registers of people over versions, and every rule of successive releases in plain Python, person by person.

Nothing here knows the engine: tests hold the statements against it.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

Cell = list[str]
"""The sensitive values of one cell."""
Passes = Callable[[Cell], bool]


@dataclass(frozen=True)
class Row:
    """A person in a version. block: also of a suppressed row, as it would have been published."""

    person: str
    version: int
    block: str
    value: str
    published: bool


@dataclass(frozen=True)
class Episode:
    """A person with one value. rows: by version."""

    person: str
    number: int
    rows: Mapping[int, Row]

    @property
    def value(self) -> str:
        return next(iter(self.rows.values())).value


@dataclass(frozen=True, eq=False)
class Register:
    """What really was. k, l: what was declared; the model is k rows and l distinct values.

    one_suppressed: all suppressed rows have the label `-`, which is too weak.
    """

    rows: tuple[Row, ...]
    k: int = 2
    l: int = 2  # noqa: E741
    one_suppressed: bool = False

    @classmethod
    def of_csv(cls, text: str, k: int = 2, l: int = 2) -> Register:  # noqa: E741
        """person,version,block,value,published with published yes or suppressed."""
        rows = csv.DictReader(io.StringIO(text))
        found = [Row(r["person"], int(r["version"]), r["block"], r["value"], r["published"] == "yes") for r in rows]
        return cls(tuple(found), k, l)

    def passes(self, values: Cell) -> bool:
        return len(values) >= self.k and len(set(values)) >= self.l

    @cached_property
    def versions(self) -> tuple[int, ...]:
        return tuple(sorted({row.version for row in self.rows}))

    @cached_property
    def people(self) -> dict[str, dict[int, Row]]:
        found: dict[str, dict[int, Row]] = defaultdict(dict)
        for row in sorted(self.rows, key=lambda row: row.version):
            found[row.person][row.version] = row
        return dict(found)

    @cached_property
    def blocks(self) -> dict[tuple[int, str], list[Row]]:
        """The rows of each block of each version, published or not."""
        found = defaultdict(list)
        for row in self.rows:
            found[row.version, row.block].append(row)
        return dict(found)

    @cached_property
    def published(self) -> dict[tuple[int, str], list[str]]:
        """What readers see: the values of each published block."""
        return {key: sorted(r.value for r in rows) for key, rows in self.blocks.items() if rows[0].published}

    @cached_property
    def episodes(self) -> list[Episode]:
        found = []
        for person, rows in self.people.items():
            runs: list[dict[int, Row]] = []
            for version, row in rows.items():
                if not runs or next(iter(runs[-1].values())).value != row.value:
                    runs.append({})
                runs[-1][version] = row
            found += [Episode(person, i, run) for i, run in enumerate(runs)]
        return found

    def label(self, row: Row | None) -> str:
        if row is None:
            return "-"
        if row.published:
            return f"P:{row.block}"
        failed = len(self.blocks[row.version, row.block]) >= self.k and not self.one_suppressed
        return f"S:{row.block}" if failed else "-"

    def labels(self, rows: Mapping[int, Row], versions: Iterable[int] | None = None) -> tuple[str, ...]:
        return tuple(self.label(rows.get(v)) for v in (self.versions if versions is None else versions))

    def with_last_values(self) -> Register:
        """Everybody with the value of the last version in all of them."""
        last = {person: list(rows.values())[-1].value for person, rows in self.people.items()}
        return self.weak(replace(row, value=last[row.person]) for row in self.rows)

    def weak(self, rows: Iterable[Row] | None = None) -> Register:
        """The same with one label for everything that is suppressed."""
        return replace(self, rows=self.rows if rows is None else tuple(rows), one_suppressed=True)

    def of_versions(self, versions: Iterable[int]) -> Register:
        wanted = set(versions)
        return replace(self, rows=tuple(row for row in self.rows if row.version in wanted))


def joint_cells(register: Register) -> dict[tuple[str, ...], Cell]:
    """The cells of J1 that show anything."""
    cells = defaultdict(list)
    for episode in register.episodes:
        cells[register.labels(episode.rows)].append(episode.value)
    return {labels: cell for labels, cell in cells.items() if any(label.startswith("P") for label in labels)}


def j1(register: Register, passes: Passes | None = None) -> bool:
    return all(map(passes or register.passes, joint_cells(register).values()))


def j1_versions(register: Register, changes: bool, passes: Passes | None = None) -> bool:
    """Cells of persons, the model on the values of each version that shows them; with their changes: J1-linked."""
    cells = defaultdict(list)
    for rows in register.people.values():
        steps = changed_at(rows) if changes else ()
        cells[register.labels(rows), steps].append(rows)
    return all(
        (passes or register.passes)([rows[v].value for rows in cell])
        for (labels, _), cell in cells.items()
        for v, label in zip(register.versions, labels, strict=True)
        if label.startswith("P")
    )


def changed_at(rows: Mapping[int, Row]) -> tuple[int, ...]:
    return tuple(b.version for a, b in itertools.pairwise(rows.values()) if a.value != b.value)


def pairs(register: Register, rule: Callable[[Register], bool]) -> bool:
    """A rule for every two versions, and for each."""
    choices = [*itertools.combinations(register.versions, 2), *((v,) for v in register.versions)]
    return all(rule(register.of_versions(chosen)) for chosen in choices)


def each_release(register: Register) -> bool:
    return all(map(register.passes, register.published.values()))


def target_only(register: Register) -> dict[str, set[str]]:
    """What remains possible for each episode to an attacker who knows the target alone: J2."""
    found = {}
    for episode in register.episodes:
        supports = [set(register.published[v, r.block]) for v, r in episode.rows.items() if r.published]
        if supports:
            shown = [v for v, r in episode.rows.items() if r.published]
            found[named(episode.person, shown)] = set.intersection(*supports)
    return found


def named(person: str, versions: list[int]) -> str:
    if len(versions) == 1:
        return f"{person}@v{versions[0]}"
    return f"{person}@v{versions[0]}-v{versions[-1]}"


def possible(
    register: Register, domain: Iterable[str], rule: bool, changes: bool = False
) -> Iterator[dict[tuple[str, int], str]]:
    """Every assignment of values to episodes that agrees with all that was published.

    The attacker knows everybody's blocks and who kept a value. rule: also that published blocks satisfy the model and
    that suppressed ones of k rows or more do not; changes: also who changed the value.
    """
    episodes = register.episodes
    values = sorted(domain)
    left = {key: Counter(found) for key, found in register.published.items()}
    failed = [rows for rows in register.blocks.values() if not rows[0].published and len(rows) >= register.k]
    owner = {(row.person, row.version): i for i, e in enumerate(episodes) for row in e.rows.values()}
    chosen: list[str] = []

    def go() -> Iterator[dict[tuple[str, int], str]]:
        i = len(chosen)
        if i == len(episodes):
            if not rule or all(
                not register.passes([chosen[owner[row.person, row.version]] for row in rows]) for rows in failed
            ):
                yield {(e.person, e.number): v for e, v in zip(episodes, chosen, strict=True)}
            return
        mine = [(v, row.block) for v, row in episodes[i].rows.items() if row.published]
        for value in values:
            if changes and episodes[i].number and chosen[i - 1] == value:
                continue
            if all(left[key][value] > 0 for key in mine):
                for key in mine:
                    left[key][value] -= 1
                chosen.append(value)
                yield from go()
                chosen.pop()
                for key in mine:
                    left[key][value] += 1

    yield from go()


def candidates(
    register: Register, rule: bool, changes: bool = False, domain: Iterable[str] | None = None
) -> dict[str, set[str]]:
    """What remains possible for each episode that was ever shown to an attacker with the register."""
    known = {value for values in register.published.values() for value in values} if domain is None else set(domain)
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for assignment in possible(register, known, rule, changes):
        for key, value in assignment.items():
            found[key].add(value)
    return {
        named(e.person, list(e.rows)): found[e.person, e.number]
        for e in register.episodes
        if any(row.published for row in e.rows.values())
    }


def linkable(register: Register) -> int:
    """The fewest candidates where rows can be linked across versions: the values of whoever has the same blocks."""
    cells = defaultdict(list)
    for rows in register.people.values():
        shown = tuple((v, r.block) for v, r in rows.items() if r.published)
        cells[shown, tuple(v for v in changed_at(rows))].append(rows)
    return min(len({rows[v].value for rows in cell}) for (shown, _), cell in cells.items() for v, _ in shown)
