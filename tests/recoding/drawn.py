"""Random tables with random hierarchies, in a warehouse and for the slow reference; what models say of a part."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from integration.sources import make_spec
from laws.fuzz import NAMES, World, ask, world
from laws.rules import RULES
from reference import closeness
from reference.distance import distance
from reference.exact import at_most
from reference.recoding import Attribute, Box, Passes, Recoding
from reference.tables import Block, Row

from qblock.spec import Spec

SIZES = (10, 32)
SUPPORTED = [name for name in NAMES if name not in ("k_map", "delta_presence")]
"""A population has no blocks of a map, and a table of guards is asked by node."""
TEXT, WHOLE, DATE = "VARCHAR", "BIGINT", "DATE"
Names = Callable[[Sequence[Any]], str]


def grouped(draw: random.Random, leaves: Sequence[Any], ordered: bool, name: Names) -> dict[Any, list[Any]]:
    """Paths of nested groups: levels that merge nothing, branches that end early, and neighbours alone if ordered."""
    paths = {leaf: [str(leaf)] for leaf in leaves}
    groups = [[leaf] for leaf in leaves]
    for level in range(draw.randint(0, 3)):
        if draw.random() < 0.75 and len(groups) > 1:
            if not ordered:
                draw.shuffle(groups)
            cuts = sorted(draw.sample(range(1, len(groups)), draw.randint(1, len(groups) - 1)))
            groups = [list(chain(*groups[i:j])) for i, j in zip([0, *cuts], [*cuts, len(groups)], strict=True)]
        elif draw.random() < 0.5 and not ordered:
            # Other names for the same groups.
            paths = {leaf: [*path, f"{path[-1]}.{level}"] for leaf, path in paths.items()}
            continue
        for group in groups:
            label = paths[group[0]][-1] if len({paths[leaf][-1] for leaf in group}) == 1 else name(group)
            for leaf in group:
                paths[leaf].append(label)
    return {leaf: [*path, "*"] for leaf, path in paths.items()}


def attribute(draw: random.Random, name: str) -> tuple[Attribute, str]:
    """A quasi-identifier and its type; half of the time NULL is one of its leaves."""
    size, kind = draw.randint(1, 6), draw.choice([TEXT, TEXT, WHOLE, WHOLE, DATE])
    null = draw.random() < 0.3
    ascending: list[Any] | None = None
    if kind == TEXT:
        leaves: list[Any] = [f"{name}{i}" for i in draw.sample(range(20), size)]
        paths = grouped(draw, leaves, False, lambda group: "+".join(sorted(group)))
    elif kind == WHOLE:
        least = draw.choice([0, 1, -3])
        ascending = sorted(draw.sample(range(least, least + 12), size))
        ordered, mark = draw.random() < 0.8, " to " if least < 0 else "-"
        paths = grouped(
            draw,
            ascending,
            ordered,
            lambda g: f"{g[0]}{mark}{g[-1]}" if ordered else "of " + " ".join(map(str, sorted(g))),
        )
    else:
        days = draw.sample(range(0, 800, 20), size)
        ascending = sorted(date(2023, 1, 5) + timedelta(day) for day in days)
        levels = draw.choice([["%Y-%m"], ["%Y-%m", "%Y"], ["%Y"], []])
        paths = {day: [str(day), *(day.strftime(form) for form in levels), "*"] for day in ascending}
    items = list(paths.items())
    draw.shuffle(items)
    paths = dict(items)
    if null:
        height = len(items[0][1]) - 1
        paths[None] = [*[None] * height, "*"]
    return Attribute(name, paths, None if ascending is None else tuple(ascending)), kind


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random table. types: of its quasi-identifiers; model: the one that its map is asked for first."""

    table: Recoding
    world: World
    types: dict[str, str]

    def columns(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        """The columns of some of its rows."""
        raw = self.world.raw
        found: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in (*self.types, "person")}
        return found | {"s": [raw[row["s"]] for row in rows]}

    def fill(self, warehouse: Callable[..., str], name: str, rows: Sequence[Row] | None = None) -> str:
        types = {**self.types, "person": "INTEGER", "s": self.world.type}
        return warehouse(name, self.columns(self.table.rows if rows is None else rows), types)

    def spec(self, url: str, name: str, folder: Path, **more: Any) -> Spec:
        """The spec that asks for a map of a table of it."""
        written(self.table.attributes, folder)
        attributes: dict[str, Any] = {}
        for one in self.table.attributes:
            nulls = {"nulls": "top"} if None in one.paths else {}
            attributes[one.name] = {"role": "quasi_identifier", "hierarchy": {"file": f"{one.name}.csv"}, **nulls}
        attributes |= {"person": "identifying", "s": self.world.declared}
        # The models alone: versions that are checked together ask more.
        alone = {"entity": "person", "count": "entities", "versions": {"joint": "none"}}
        people: dict[str, Any] = alone if self.world.table.entity else {}
        search = {"recoding": "multidimensional", **more.pop("search", {})}
        return make_spec(url, name, attributes, self.world.entries, folder, search=search, **people, **more)

    @cached_property
    def _verdicts(self) -> dict[Any, bool]:
        return {}

    def passes(self, box: Box, path: tuple[Box, ...]) -> bool:
        """Whether the rows of a part pass all models, slowly."""
        rows = self.table.inside(box)
        around = path if self.partition else ()
        key = (frozenset(map(id, rows)), around)
        if key not in self._verdicts:
            parts = [Block(self.world.table, self.table.inside(one)) for one in around]
            self._verdicts[key] = all(
                one_passes(self.world, params, parts, Block(self.world.table, rows)) for params in self.world.asked
            )
        return self._verdicts[key]

    @property
    def partition(self) -> bool:
        return any(params.get("variant") == "partition" for params in self.world.asked)


def one_passes(made: World, params: dict[str, Any], path: Sequence[Block], block: Block) -> bool:
    """The slow verdict of one model. path: the parts on the way to a part, for (n,t)-closeness."""
    kind = {"kind": params.get("distance"), "bandwidth": params.get("bandwidth"), "under": _under(made)}
    if params.get("variant") == "partition":

        def close(one: Block, other: Block) -> bool:
            found = distance(made.table, one.shares(), other.shares(), **kind)
            return at_most(found, params["t"])

        return closeness.partition_holds([[*path, block]], params["n"], close)
    if params.get("distance") == "kernel_js":
        if params["model"] == "t_closeness":
            return closeness.t_holds(block, params["t"], **kind)
        return closeness.nt_holds(block, params["n"], params["t"], params["variant"], **kind)
    return RULES[params["model"]].passes(block, params, made.case)


def _under(made: World) -> str:
    return "ordered" if made.ordered else "hierarchical" if made.taxonomy else "equal"


def written(attributes: Sequence[Attribute], folder: Path) -> None:
    """The files of hierarchies."""
    for one in attributes:
        lines = [",".join(f"level{i}" for i in range(one.height + 1))]
        lines += [",".join(map(str, path)) for leaf, path in one.paths.items() if leaf is not None]
        (folder / f"{one.name}.csv").write_text("\n".join(lines) + "\n", "utf-8")


def drawn(seed: str, folder: Path, model: str | None = None, *, people: bool | None = None) -> Drawn:
    """A table and one or two models that the whole of it passes, one of them of this name if it may be."""
    draw = random.Random(seed)
    made = world(draw, folder, SIZES)
    if people is not None:
        made = replace(made, table=replace(made.table, entity="person" if people else None))
    found = [attribute(draw, name) for name in "abc"[: draw.randint(1, 3)]]
    rows = [
        {**{one.name: draw.choice(list(one.paths)) for one, _ in found}, "s": row["s"], "person": row["person"]}
        for row in made.table.rows
    ]
    made = replace(made, table=replace(made.table, rows=rows))
    result = Drawn(Recoding(tuple(one for one, _ in found), rows), made, {one.name: kind for one, kind in found})
    wanted = [model or draw.choice(SUPPORTED), *([draw.choice(SUPPORTED)] if draw.random() < 0.3 else [])]
    chosen = []
    for name in wanted:
        for _ in range(150):
            made.entries.clear()
            made.asked.clear()
            ask(draw, made, made.raw)
            ((kind, entry),), params = made.entries[0].items(), made.asked[0]
            if kind != name or "from_table" in str(entry):
                continue
            if params.get("variant") == "lattice":
                params["variant"] = entry["variant"] = "partition"
            if one_passes(made, params, [], Block(made.table, rows)):
                chosen.append((made.entries[0], params))
                break
    made.entries[:], made.asked[:] = [entry for entry, _ in chosen], [params for _, params in chosen]
    if not chosen:
        made.entries[:], made.asked[:] = [{"k_anonymity": {"k": 2}}], [{"model": "k_anonymity", "k": 2}]
    return result


__all__ = ["SUPPORTED", "Drawn", "Passes", "drawn", "written"]
