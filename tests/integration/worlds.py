"""Random tables with several privacy models asked of them, as the engine and as the slow reference see them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from laws.cases import Case
from laws.draws import nearby, valid
from laws.rules import RULES, Params
from reference import utility
from reference.tables import Block, Node, Table

from integration.hostile import paths
from integration.sources import from_file, make_spec
from qblock.models import BY_NAME, Model
from qblock.search.run import open_task
from qblock.search.task import Task
from qblock.spec import Requirement
from qblock.spec.privacy import PriorTable, PriorValues


@dataclass(frozen=True)
class Asked:
    """One privacy model: for the engine, and with its parameters for the reference."""

    model: Model
    params: Params

    @property
    def name(self) -> str:
        return self.model.name


@dataclass(frozen=True)
class World:
    """table: the reference's view; case: what is declared of the sensitive values; people: None counts rows."""

    table: Table
    case: Case
    asked: tuple[Asked, ...]
    limit: int | Fraction
    attributes: dict[str, Any]
    people: tuple[int, ...] | None

    @property
    def budget(self) -> int:
        rows = len(self.table.rows)
        return min(int(self.limit * rows) if isinstance(self.limit, Fraction) else self.limit, rows - 1)

    def judged(self, node: Node) -> list[tuple[Block, bool]]:
        """Each block of a node with the verdict of all models together."""
        case = replace(self.case, population_only=(1,) * self.table.empty_population_blocks(node))
        return [
            (block, all(RULES[one.name].passes(block, one.params, case) for one in self.asked))
            for block in self.table.blocks(node).values()
        ]

    def expected(self) -> dict[Node, Expected]:
        return {node: self.at(node) for node in self.table.nodes()}

    def at(self, node: Node) -> Expected:
        """What the reference says of a node: values over what would be published, over everything where it fails."""
        judged = self.judged(node)
        suppressed = sum(len(block.rows) for block, good in judged if not good)
        satisfied = suppressed <= self.budget
        kept = [block for block, good in judged if good or not satisfied]
        case = replace(self.case, population_only=(1,) * self.table.empty_population_blocks(node))
        tightest = [
            {
                bound.parameter: [RULES[one.name].tightest(b, one.params, case)[bound.parameter] for b in kept]
                for bound in one.model.about.bounds
            }
            for one in self.asked
        ]
        rows = sum(len(block.rows) for block in kept)
        total = len(self.table.rows)
        return Expected(
            satisfied,
            suppressed if satisfied else 0,
            tightest,
            Fraction(rows, len(kept)),
            sum(len(block.rows) ** 2 for block in kept) + (total - rows) * total,
            float(utility.divergence(self.table, node, lambda block: any(block.rows == k.rows for k in kept))),
        )


@dataclass(frozen=True)
class Expected:
    """A node by the reference."""

    satisfied: bool
    suppressed: int
    tightest: list[dict[str, list[Any]]]
    average_block_size: Fraction
    discernibility: int
    divergence: float


@st.composite
def worlds(draw: st.DrawFn, folder: Path, entities: bool = False) -> World:
    """Up to 12 rows over up to three quasi-identifiers; one to three models with telling thresholds."""
    size = draw(st.integers(1, 12))
    numbers = sorted(draw(st.lists(st.integers(-3, 6), min_size=1, max_size=4, unique=True)))
    attributes: dict[str, Any] = {}
    columns = []
    for name in "abc"[: draw(st.sampled_from([1, 2, 2, 3]))]:
        leaves = [f"{name}{i}" for i in range(draw(st.integers(1, 4)))]
        values = draw(st.lists(st.sampled_from([*leaves, leaves[0]]), min_size=size, max_size=size))
        if draw(st.booleans()):
            values[draw(st.integers(0, size - 1))] = None
        column = from_file(name, values, draw(paths(leaves)), folder / f"{name}.csv")
        attributes[name] = column.entry
        columns.append(column)
    groups = {number: draw(st.sampled_from(["low", "high"])) for number in numbers}
    with (folder / "s.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["s", "group"], *([number, group] for number, group in groups.items())])
    attributes["s"] = {"role": "sensitive", "taxonomy": {"file": "s.csv"}}
    found = draw(st.lists(st.sampled_from([*numbers, numbers[0]]), min_size=size, max_size=size))
    people = tuple(draw(st.lists(st.integers(1, 6), min_size=size, max_size=size))) if entities else None
    rows = [
        {
            **{column.name: column.values[i] for column in columns},
            "s": Fraction(found[i]),
            "person": people[i] if people else i,
        }
        for i in range(size)
    ]
    extra = [{c.name: draw(st.sampled_from(list(c.paths))) for c in columns} for _ in range(draw(st.integers(0, 4)))]
    weights = draw(st.lists(st.integers(0, 3), min_size=len(numbers), max_size=len(numbers)).filter(any))
    table = Table(
        rows,
        domain=tuple(map(Fraction, numbers)),
        taxonomy={Fraction(n): [Fraction(n), groups[n], "*"] for n in numbers},
        prior={Fraction(n): Fraction(weight) for n, weight in zip(numbers, weights, strict=True)},
        entity="person" if entities else None,
        population=[{c.name: row[c.name] for c in columns} for row in rows] + extra,
        hierarchies={c.name: {leaf: list(path) for leaf, path in c.paths.items()} for c in columns},
    )
    case = Case(
        histograms=({v: found.count(n) for v, n in enumerate(numbers)},),
        numbers=tuple(map(Fraction, numbers)),
        taxonomy=tuple((v, list(groups.values()).index(groups[n]), 0) for v, n in enumerate(numbers)),
        prior=tuple(map(Fraction, weights)),
        population=(len(table.population or []),),
        names=tuple(map(str, numbers)),
    )
    names = draw(st.lists(st.sampled_from(list(BY_NAME)), min_size=1, max_size=3, unique=True))
    asked = tuple(draw(models(name, case, table)) for name in names)
    limit = draw(st.sampled_from([0, 0, 1, 3, Fraction(1, 4), Fraction(1, 2)]))
    return World(table, case, asked, limit, attributes, people)


@st.composite
def models(draw: st.DrawFn, name: str, case: Case, table: Table) -> Asked:
    """A model whose threshold is often exactly what some block of some node attains."""
    rule = RULES[name]
    params = rule.params(draw, case)
    if "population" in BY_NAME[name].about.needs:
        params["population"] = "population"
    if "n" in params:
        # Where entities are counted, no block has more of them than the table.
        params["n"] = min(params["n"], table.whole().size())
    model = valid(name, params, case)
    assert model is not None
    for parameter in rule.asked:
        if draw(st.booleans()):
            block = draw(st.sampled_from(list(table.blocks(draw(st.sampled_from(table.nodes()))).values())))
            values = nearby(rule.tightest(block, params, case)[parameter], isinstance(params[parameter], int))
            if parameter == "n":
                values = [n for n in values if n <= table.whole().size()]
            found = [m for m in (valid(name, {**params, parameter: x}, case) for x in values) if m is not None]
            if found:
                model = draw(st.sampled_from(found))
                params = {**params, parameter: getattr(model, parameter)}
    return Asked(model, params)


def fill(world: World, warehouse: Callable[..., str], schema: str) -> str:
    """Create source, population and the table of a prior; returns the URL."""
    names = list(world.table.hierarchies)
    rows, people = world.table.rows, world.table.population or []
    columns = {name: [row[name] for row in rows] for name in names}
    columns |= {"s": [int(row["s"]) for row in rows], "person": [row["person"] for row in rows]}
    types = {**dict.fromkeys(names, "VARCHAR"), "s": "INTEGER", "person": "INTEGER"}
    warehouse("population", {name: [row[name] for row in people] for name in names}, types, schema)
    prior = [str(n) for n, weight in (world.table.prior or {}).items() for _ in range(int(weight))]
    warehouse("prior", {"value": prior}, None, schema)
    return warehouse("source", columns, types, schema)


@contextmanager
def task_of(world: World, url: str, schema: str, folder: Path, **search: Any) -> Iterator[Task]:
    """The engine's task for a world. The models are put in as they are: not every fraction has a decimal."""
    # The models alone: versions that are checked together ask more.
    alone: dict[str, Any] = {"entity": "person", "count": "entities", "versions": {"joint": "none"}}
    more: dict[str, Any] = alone if world.people else {}
    if isinstance(world.limit, Fraction):
        more["suppression_limit"] = float(world.limit)
    elif world.limit:
        more["suppression_limit"] = world.limit
    privacy = [{"k_anonymity": {"k": 1}}]
    spec = make_spec(url, f"{schema}.source", world.attributes, privacy, folder, search=search, **more)
    requirements = []
    for index, one in enumerate(world.asked):
        model, prior = one.model, None
        if getattr(model, "prior", None) == "values":
            prior = PriorValues(tuple((str(v), int(w)) for v, w in (world.table.prior or {}).items()))
        if getattr(model, "prior", None) == "from_table":
            prior = PriorTable(f"{schema}.prior", "value")
        if "population" in model.needs:
            model = replace(model, population=f"{schema}.population")
        sensitive = ("s",) if model.about.uses_sensitive else ()
        requirements.append(Requirement(model, sensitive, index, 1, (), prior))
    with open_task(replace(spec, privacy=tuple(requirements))) as task:
        yield task
