"""Parts that are counted in memory, against the same parts that a database counts by statements."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engines import examples
from hypothesis import example, given, settings
from laws.fuzz import NAMES
from search.whole import HIERARCHIES, load, rows_of

from qblock.blocks import Ints, Mask
from qblock.engines.arrow import whole_numbers
from qblock.engines.local import local_warehouse
from qblock.engines.session import Session
from qblock.frequency import FrequencySets
from qblock.frequency.coding import Coding
from qblock.recoding import Ladder
from qblock.search.boxes import arrays, recoded, rows
from qblock.search.boxes.arrays import InMemory
from qblock.search.boxes.counting import Atoms, Counting, Moves, every_kind
from qblock.search.boxes.groups import Groups
from qblock.search.boxes.recoded import Recoded
from qblock.search.boxes.rows import Loaded, packing_of
from qblock.search.result import SearchResult
from qblock.search.run import open_task, run_search
from qblock.spec import Spec

from .drawn import SUPPORTED, attribute, drawn
from .test_division import ladder_of
from .test_laws import METRICS, few, folder_of, seeds

pytestmark = pytest.mark.either_engine
TABLES = itertools.count()


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    local = local_warehouse()
    with local.snapshot() as opened:
        yield opened
    local.close()


def coded(
    session: Session, draw: random.Random, ladders: list[Ladder], sizes: list[int], count: int, people: int = 0
) -> FrequencySets:
    """A coded table of random rows, hardly two of which are alike or many of which are. people: who have them, where
    they are counted."""
    coding = Coding([ladder.hierarchy for ladder in ladders], sizes)
    words = [np.zeros(count, dtype=np.int64) for _ in range(coding.words)]
    for i, ladder in enumerate(ladders):
        leaves = np.array([draw.randrange(ladder.size) for _ in range(count)], dtype=np.int64)
        for word, bits in zip(words, coding.bits(i, np.zeros_like(leaves), leaves), strict=True):
            word |= bits
    for size, place in zip(sizes, coding.sensitive, strict=True):
        words[place.word] |= np.array([draw.randrange(size) for _ in range(count)], dtype=np.int64) << place.shift
    columns: dict[str, Any] = {f"k{i}": whole_numbers(word) for i, word in enumerate(words)}
    if people:
        columns["e"] = [f"P{draw.randrange(people)}" for _ in range(count)]
    stored = session.load(f"coded_{next(TABLES)}", pa.table(columns))
    return FrequencySets(session, stored, coding, count, entities=bool(people))


def drawn_kinds(draw: random.Random, columns: int) -> list[tuple[int, ...]]:
    """By what people are counted: by each attribute, and by some of them together."""
    together = [tuple(draw.sample(range(columns), draw.randint(2, columns)))] if columns > 1 else []
    return [*((column,) for column in range(columns)), *together] or [()]


def said(groups: Groups, keys: Ints) -> dict[tuple[int, ...], Any]:
    """All that is counted of each group, by its key."""
    counts: list[list[Any]] = [[] for _ in keys]
    for owner, values, n in zip(groups.owner.tolist(), groups.values.tolist(), groups.n.tolist(), strict=True):
        counts[owner].append((values, n))
    guards: list[set[Any]] = [set() for _ in keys]
    for i, (owners, predicates) in enumerate(groups.guards):
        for owner, predicate in zip(owners.tolist(), predicates.tolist(), strict=True):
            guards[owner].add((i, predicate))
    population = [tuple(of[g] for of in groups.population) for g in range(len(keys))]
    every = zip(keys.tolist(), groups.size.tolist(), groups.rows.tolist(), counts, guards, population, strict=True)
    return {tuple(key): (size, rows, sorted(n), of, people) for key, size, rows, n, of, people in every}


def check_alike(one: Groups, other: Groups) -> None:
    """Groups in the same order are counted alike."""
    number = np.arange(len(one))[:, None]
    assert len(one) == len(other)
    assert said(one, number) == said(other, number)


def check_without(some: Atoms, every: Atoms, small: Mask) -> None:
    """Small parts of more than one label are left out where there is no other table, and nothing else."""
    beside = bool(every.groups.population + every.groups.guards)
    stays = ~small | (np.diff(every.start) == 1) | beside
    chosen = every.select(stays, np.flatnonzero(stays[every.place]))
    check_alike(some.groups, chosen.groups)
    for name in ("part", "code", "level", "parts", "start"):
        assert getattr(some, name).tolist() == getattr(chosen, name).tolist(), name


@dataclass
class Walk:
    """Random splits of random parts, counted both ways."""

    draw: random.Random
    ladders: list[Ladder]
    memory: InMemory
    database: Counting
    parts: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def begin(self) -> Ints:
        node = tuple(self.draw.randint(0, ladder.hierarchy.height) for ladder in self.ladders)
        (one, keys), (other, others) = self.memory.begin(node), self.database.begin(node)
        assert said(one, keys) == said(other, others)
        there = np.flatnonzero(one.rows > 0)
        kept = there[[self.draw.random() < 0.8 for _ in there]] if len(there) > 1 else there
        kept = kept if len(kept) else there[:1]
        child = np.array([next(self.parts) for _ in kept], dtype=np.int64)
        self.draw.shuffle(child)
        for counting in (self.memory, self.database):
            counting.start(node, keys[kept], child)
        return np.sort(child)

    def some(self, parts: Ints) -> Ints:
        """At least one of some parts."""
        return np.sort(self.draw.sample(parts.tolist(), self.draw.randint(1, len(parts)))).astype(np.int64)

    def labels(self, attribute: int, parts: Ints) -> Atoms:
        height = self.ladders[attribute].hierarchy.height
        levels = np.array([self.draw.randint(0, height) for _ in parts], dtype=np.int64)
        one, other = (of.labels(attribute, parts, levels) for of in (self.memory, self.database))
        check_alike(one.groups, other.groups)
        for name in ("part", "code", "level", "parts", "start"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
        number = self.draw.randint(1, 3)
        group = np.array([self.draw.randint(-1, number - 1) for _ in one.part], dtype=np.int64)
        both = zip((self.memory, self.database), (one, other), strict=True)
        check_alike(*(of.by_group(attribute, atoms, group, number) for of, atoms in both))
        small = np.array([self.draw.random() < 0.5 for _ in parts])
        check_without(self.memory.labels(attribute, parts, levels, small), one, small)
        return one

    def split(self, parts: Ints) -> Ints:
        """Count and divide some of the parts; what is open then."""
        columns: list[tuple[Ints, ...]] = []
        of = [self.draw.randrange(len(self.ladders)) for _ in parts]
        for split_by in sorted(set(of)):
            atoms = self.labels(split_by, parts[[one == split_by for one in of]])
            child = self._children(atoms)
            kept = np.flatnonzero(child >= 0)
            same = np.full(len(kept), split_by, dtype=np.int64)
            columns.append((atoms.part[kept], same, atoms.level[kept], atoms.code[kept], child[kept]))
        moves = Moves(*(np.concatenate(column) for column in zip(*columns, strict=True)))
        if not len(moves.part):
            return moves.part
        for counting in (self.memory, self.database):
            counting.move(moves)
        return np.unique(moves.child)

    def _children(self, atoms: Atoms) -> Ints:
        """A new part for each atom with rows, the same for some of one part, and none for others."""
        child, known = np.full(len(atoms.part), -1, dtype=np.int64), dict[int, int]()
        for i in np.flatnonzero(atoms.groups.rows > 0).tolist():
            part = int(atoms.part[i])
            if part not in known or self.draw.random() < 0.7:
                known[part] = next(self.parts)
            if self.draw.random() < 0.9:
                child[i] = known[part]
        return child


@pytest.mark.parametrize("people", [0, 7], ids=["rows", "people"])
@pytest.mark.parametrize(("dense", "bits"), [(arrays.DENSE, arrays.BITS), (0, arrays.BITS), (arrays.DENSE, 9)])
@settings(few, max_examples=examples(5))
@given(seed=seeds)
@example(seed=29)  # labels of several parents, in another order than their parents
def test_both_count_any_parts_alike(session: Session, dense: int, bits: int, people: int, seed: int) -> None:
    draw = random.Random(seed)
    ladders = [ladder_of(*attribute(draw, name)) for name in "abc"[: draw.randint(1, 3)]]
    sizes = [draw.randint(1, 3) for _ in range(draw.randint(0, 3 if people else 2))]
    needed = tuple(i for i in range(len(sizes)) if draw.random() < 0.8)
    own = coded(session, draw, ladders, sizes, draw.randint(1, 30), people)
    populations = [coded(session, draw, ladders, [], draw.randint(1, 40), people) for _ in range(draw.randint(0, 2))]
    guards = [coded(session, draw, ladders, [3], draw.randint(1, 9), people) for _ in range(draw.randint(0, 1))]
    told = [needed, *[()] * len(populations), *[(0,)] * len(guards)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrays, "DENSE", dense)
        patched.setattr(arrays, "BITS", bits)
        patched.setattr(rows, "BITS", bits)
        packing = packing_of(ladders)
        loaded = [Loaded.from_sets(packing, *of) for of in zip((own, *populations, *guards), told, strict=True)]
        kinds = drawn_kinds(draw, len(needed)) if people else every_kind(len(needed))
        memory = InMemory(ladders, packing, loaded, len(populations), kinds=kinds)
        walk = Walk(draw, ladders, memory, Counting(own, ladders, needed, populations, guards, kinds))
        parts = walk.begin()
        for _ in range(3):
            if len(parts):
                walk.labels(draw.randrange(len(ladders)), walk.some(parts))
                parts = walk.split(walk.some(parts))
        walk.database.drop()


def check_same_map(spec: Spec) -> None:
    """The same map, to the last digit, whichever way it is counted, and in portions of any size."""
    found: list[SearchResult] = []
    in_warehouse = replace(spec, search=replace(spec.search, roll_up="warehouse"))
    for asked, portion in ((spec, arrays.PORTION), (in_warehouse, arrays.PORTION), (spec, 3)):
        with pytest.MonkeyPatch.context() as patched, open_task(asked) as task:
            patched.setattr(arrays, "PORTION", portion)
            found.append(run_search(task))
    for result in (found[0], found[2]):
        check_same(result, found[1])
        assert result.queries < found[1].queries
    with pytest.MonkeyPatch.context() as patched, open_task(spec) as task:
        # All rows do not fit, and nine of them do.
        patched.setattr(recoded, "bytes_of", lambda _, __, rows: rows * task.source.frequency_sets.memory // 9)
        check_same_boxes(run_search(task), found[1])


def check_same_boxes(first: SearchResult, second: SearchResult) -> None:
    """The same boxes with the same counts, which have other numbers."""
    one, other = first.recoded, second.recoded
    assert one is not None
    assert other is not None
    assert (one.boxes, one.start, one.shares()) == (other.boxes, other.start, other.shares())
    assert one.specialized.rounds == other.specialized.rounds
    assert [of.tolist() for of in one.specialized.empty] == [of.tolist() for of in other.specialized.empty]
    assert by_labels(one) == by_labels(other)
    assert one.assessment.tightest == other.assessment.tightest
    assert first.metrics == second.metrics


def by_labels(of: Recoded) -> list[Any]:
    """What is counted of each box, by its labels."""
    tree, specialized = of.specialized.tree, of.specialized
    counts = said(specialized.groups, np.arange(len(specialized.boxes))[:, None])
    labels = [tuple(of.texts[label] for label in tree.labels[part]) for part in specialized.boxes.tolist()]
    return sorted((read, counts[i,]) for i, read in enumerate(labels))


def check_same(first: SearchResult, second: SearchResult) -> None:
    one, other = first.recoded, second.recoded
    assert one is not None
    assert other is not None
    assert (one.stated, one.boxes, one.start) == (other.stated, other.boxes, other.start)
    assert one.specialized.suppressed.tolist() == other.specialized.suppressed.tolist()
    assert one.specialized.rounds == other.specialized.rounds
    assert [of.tolist() for of in one.specialized.empty] == [of.tolist() for of in other.specialized.empty]
    check_alike(one.specialized.groups, other.specialized.groups)
    assert one.assessment.tightest == other.assessment.tightest
    assert first.metrics == second.metrics


@pytest.mark.parametrize("model", SUPPORTED)
@settings(few, max_examples=examples(1))
@given(seed=seeds)
def test_every_model_gets_the_same_map(warehouse: Any, tmp_path: Path, model: str, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"arrays {model} {seed}", folder, model, people=False)
    more = {"search": {"choose_by": METRICS[seed % 3]}, "suppression_limit": seed % 4}
    check_same_map(made.spec(made.fill(warehouse, name), name, folder, **more))


@settings(few, max_examples=examples(6))
@given(seed=seeds)
def test_people_get_the_same_map(warehouse: Any, tmp_path: Path, seed: int) -> None:
    folder, name = folder_of(tmp_path)
    made = drawn(f"people {seed}", folder, people=True)
    more = {"search": {"choose_by": METRICS[seed % 3]}, "suppression_limit": seed % 4}
    check_same_map(made.spec(made.fill(warehouse, name), name, folder, **more))


REGISTER = "population: {table: register}"
WISHES = "predicates: {table: wishes, entity: person, value: value}"
BESIDE = {
    "k_map": f"k_map: {{k: 12, {REGISTER}}}",
    "delta_presence": f"delta_presence: {{min: 0, max: 0.9, {REGISTER}}}",
    "epsilon_privacy": f"epsilon_privacy: {{epsilon: 3, adversary: III, prior: table, sensitive: s, {WISHES}}}",
}


@pytest.mark.parametrize("model", BESIDE)
@pytest.mark.parametrize("limit", [0, 7])
def test_tables_beside_it_are_counted_alike(warehouse: Any, tmp_path: Path, model: str, limit: int) -> None:
    assert set(NAMES) == {*SUPPORTED, *BESIDE}
    draw = random.Random(f"{model} {limit}")
    everybody = [(a, b) for a in HIERARCHIES["a"] for b in HIERARCHIES["b"] for _ in range(draw.randint(2, 20))]
    warehouse("register", {"a": [a for a, _ in everybody], "b": [b for _, b in everybody]})
    people = [f"p{i}" for i in range(0, 90, 4)]
    warehouse("wishes", {"person": people, "value": [draw.choice("uvw") for _ in people]})
    more = f"suppression_limit: {limit}\nsearch: {{recoding: multidimensional, choose_by: loss}}\n"
    # With a limit, there are parts that only the population is in.
    there = [row for row in rows_of(limit, 90) if not limit or row["b"] != "b2"]
    check_same_map(load(warehouse, tmp_path, there, [BESIDE[model]], more))
