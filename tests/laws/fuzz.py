"""The engine on tables in a database against the slow reference: `python tests/laws/fuzz.py --tables 500 --seed 1`.

Each table has a sensitive attribute of some type, often with NULL beside the empty string; its domain or taxonomy is
declared in any order, its values are spelled in any way that the type reads as the same, and several models are asked
of it. Every tightest value and every verdict at every node is one comparison. Prints comparisons and differences; exit
status 1 where there is a difference.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from engines import create_table, database, start_server  # noqa: E402
from integration.sources import make_spec  # noqa: E402
from reference import closeness  # noqa: E402
from reference.declared import domain_in_order, has_order  # noqa: E402
from reference.tables import Block, Table  # noqa: E402

from laws.cases import Case  # noqa: E402
from laws.draws import same, worst  # noqa: E402
from laws.rules import RULES, Params  # noqa: E402
from qblock.errors import InputError  # noqa: E402
from qblock.models import BY_NAME, parameters_of  # noqa: E402
from qblock.models.examples import example, required  # noqa: E402
from qblock.search.run import open_task  # noqa: E402

NUMERIC = ("DECIMAL(12,4)", "BIGINT", "DOUBLE PRECISION")
POOLS: dict[str, list[Any]] = {
    "VARCHAR": ["", "null", "NULL", "a", "1.5", "1.50", "~", "b c"],
    "DECIMAL(12,4)": [Decimal(x) for x in ("1.5", "10", "9", "-2.25", "0", "100.0001")],
    "BIGINT": [10, 9, -3, 0, 100, 2**53 + 1],
    "DOUBLE PRECISION": [Decimal(x) for x in ("1.5", "10", "9", "-2.25", "0", "100")],
    "TIMESTAMP": [datetime(2024, 1, 1) + timedelta(hours=h) for h in (0, 12, 36, 24 * 40, -24 * 365 * 900)],
    "DATE": [date(2024, 1, 1) + timedelta(days=d) for d in (0, 1, 36, -400, -365 * 1100)],
}
ROWS = (4, 12)
NAMES = [name for name in RULES if name in BY_NAME]


@dataclass
class Outcome:
    """What was compared."""

    tables: int = 0
    comparisons: int = 0
    differences: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)


def spelled(draw: random.Random, value: Any) -> str | None:
    """One of the texts that are this value in its column."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime):
        texts = [str(value), value.isoformat(), value.isoformat(timespec="minutes"), f"{value}.000"]
        return draw.choice([*texts, str(value.date())] if value.time() == datetime.min.time() else texts)
    if isinstance(value, date):
        return str(value)
    sign = "+" if value > 0 and draw.random() < 0.3 else ""
    if isinstance(value, int):
        return draw.choice([str(value), f"{sign}{value}", f"{'-' if value < 0 else ''}00{abs(value)}"])
    return draw.choice(
        [f"{sign}{value}", f"{value:.4f}", f"{value * 10}e-1", f"{value:f}0" if value % 1 else f"{value}.0"]
    )


def plain(value: Any) -> Any:
    """A value as the reference computes with it."""
    return Fraction(value) if isinstance(value, int | Decimal) else value


@dataclass(frozen=True)
class World:
    """A table, what is declared of it, and the models asked: entries of the spec, and parameters for the reference.

    raw: the values as the table holds them, by what the reference computes with.
    """

    table: Table
    case: Case
    type: str
    ordered: bool
    columns: dict[str, list[Any]]
    prior: list[Any]
    declared: dict[str, Any]
    entries: list[dict[str, Any]]
    asked: list[Params]
    taxonomy: list[str]
    raw: dict[Any, Any]


def world(draw: random.Random, folder: Path, sizes: tuple[int, int] = ROWS) -> World:
    type_ = draw.choice(list(POOLS))
    pool = draw.sample(POOLS[type_], draw.randint(2, 4))
    if draw.random() < 0.5:
        pool.append(None)
        if type_ == "VARCHAR" and "" not in pool:
            pool.append("")
    size = draw.randint(*sizes)
    people = [draw.randrange(6) for _ in range(size)] if draw.random() < 0.25 else None
    held = [draw.choice(pool) for _ in range(size)]
    nulls = None in pool
    rows = [
        {"a": draw.choice("xyz"), "b": draw.choice("uv"), "s": plain(v), "person": people[i] if people else i}
        for i, v in enumerate(held)
    ]
    declared: dict[str, Any] = {"role": "sensitive", **({"nulls": "value"} if nulls else {})}
    form = draw.choice(["observed", "domain", "taxonomy"])
    if form == "taxonomy" and "" in pool:
        form = "domain"  # a file has no leaf that is the empty text
    values = list(dict.fromkeys(held)) if form == "observed" else pool
    draw.shuffle(values)
    groups: dict[Any, str] = {v: draw.choice(["g", "h"]) for v in values}
    lines: list[str] = []
    if form == "domain":
        declared["domain"] = [spelled(draw, v) for v in values]
    if form == "taxonomy":
        lines = [f"{spelled(draw, v)},{groups[v]},*" for v in values if v is not None]
        (folder / "s.csv").write_text("\n".join(["s,group,any", *lines]) + "\n", "utf-8")
        declared["taxonomy"] = {"file": "s.csv"}
    order: Any = draw.choice([None, None, "ascending", "list"])
    order = None if order == "ascending" and type_ == "VARCHAR" else order
    if order == "list":
        order = [v for v in values if v is not None or draw.random() < 0.7]
        draw.shuffle(order)
        declared["order"] = [spelled(draw, v) for v in order]
    elif order:
        declared["order"] = order
    listed = [plain(v) for v in order] if isinstance(order, list) else None
    domain = domain_in_order(map(plain, values), listed)
    ordered = has_order(domain, order)
    raw = {plain(v): v for v in values}
    population = [{k: row[k] for k in "ab"} for row in rows]
    population += [{k: draw.choice(rows)[k] for k in "ab"} for _ in range(draw.randrange(4))]
    weights = [draw.randint(0, 3) for _ in domain]
    weights[draw.randrange(len(weights))] += 1
    labels = {v: [v, "*" if v is None else groups[raw[v]], "*"] for v in domain}
    table = Table(
        rows,
        domain=domain,
        taxonomy=labels if lines else None,
        prior={v: Fraction(w) for v, w in zip(domain, weights, strict=True)},
        entity="person" if people else None,
        population=population,
        hierarchies={"a": {v: [v, "*"] for v in "xyz"}, "b": {v: [v, "*"] for v in "uv"}},
    )
    found = Counter(row["s"] for row in rows)
    case = Case(
        histograms=({i: found[v] for i, v in enumerate(domain) if found[v]},),
        numbers=domain,
        taxonomy=tuple((i, 0) for i in range(len(domain))),
        prior=tuple(map(Fraction, weights)),
        population=(len(population),),
        names=tuple(f"v{i}" for i in range(len(domain))),
    )
    made = World(
        table,
        case,
        type_,
        ordered,
        {
            **{k: [row[k] for row in rows] for k in ("a", "b", "person")},
            "s": held,
        },
        [raw[v] for v, w in zip(domain, weights, strict=True) for _ in range(w)],
        declared,
        [],
        [],
        lines,
        raw,
    )
    for _ in range(draw.randint(4, 8)):
        ask(draw, made, raw)
    return made


def ask(draw: random.Random, made: World, raw: dict[Any, Any]) -> None:
    """Add one model to the spec and to what the reference is asked."""
    domain, numeric = made.table.values(), made.type in NUMERIC and None not in made.table.values()
    name = draw.choice([n for n in NAMES if numeric or "numbers" not in BY_NAME[n].about.needs])
    sets: dict[str, list[str]] = {
        k: draw.sample(made.case.names, min(len(made.case.names), draw.randint(0, 2))) for k in ("allowed", "protected")
    }

    def number(*texts: str) -> Fraction:
        return Fraction(draw.choice(texts))

    def written(names: list[str] | tuple[str, ...]) -> list[str | None]:
        return [spelled(draw, raw[domain[made.case.names.index(one)]]) for one in names]

    ls = ("1", "1.25", "1.5", "2", "3")
    whole = draw.randint(1, 4)
    params: Params = {
        "k_anonymity": {"k": whole},
        "distinct_l_diversity": {"l": whole},
        "frequency_l_diversity": {"l": number(*ls)},
        "entropy_l_diversity": {"l": number(*ls)},
        "recursive_cl_diversity": {"c": number("0.5", "1", "2", "3"), "l": whole},
        "pd_recursive_cl_diversity": {"c": number("0.5", "1", "2"), "l": whole, "allowed": sets["allowed"]},
        "npd_recursive_cl_diversity": {
            "c1": number("0.5", "1", "2"),
            "c2": number("0", "10", "25"),
            "l": whole,
            **sets,
        },
        "alpha_k_anonymity": {
            "alpha": number("0.25", "0.5", "0.75", "1"),
            "k": whole,
            "values": draw.choice([None, draw.sample(made.case.names, 1)]),
        },
        "epsilon_m_anonymity": {
            "epsilon": number("0", "0.25", "1"),
            "m": number(*ls),
            "relative": draw.random() < 0.5,
        },
        "delta_l_diversity": {
            "delta": number("0", "0.5", "4", "1000"),
            "l": number(*ls),
            "reading": draw.choice(["window", "literal"]),
        },
        "t_closeness": {"t": number("0", "0.1", "0.25", "0.5")},
        "nt_closeness": {
            "n": draw.randint(1, made.table.whole().size()),
            "t": number("0", "0.1", "0.25", "0.5"),
            "variant": draw.choice(["lattice", "own_or_top"]),
        },
        "beta_likeness": {"beta": number("0.25", "1", "4"), "variant": draw.choice(["basic", "enhanced"])},
        "delta_disclosure": {"delta": number("0.25", "1", "2"), "absent": draw.choice(["violation", "skip"])},
        "k_map": {"k": whole, "population": {"table": "people"}},
        "delta_presence": {"min": Fraction(0), "max": number("0.5", "1"), "population": {"table": "people"}},
        "epsilon_privacy": {"epsilon": number("1", "1.5", "4")},
    }.get(name) or {key: parameters_of(example(BY_NAME[name]))[key] for key in required(BY_NAME[name])}
    entry: dict[str, Any] = {k: float(v) if isinstance(v, Fraction) else v for k, v in params.items() if v is not None}
    for key in ("allowed", "protected", "values"):
        if params.get(key) is not None:
            entry[key] = written(params[key])
    if name in ("t_closeness", "nt_closeness"):
        kinds = ["equal", "kernel_js"]
        kinds += (["ordered"] * 2 if made.ordered else []) + (["hierarchical"] if made.taxonomy else [])
        params["distance"] = entry["distance"] = draw.choice(kinds)
        if params["distance"] == "kernel_js":
            params["bandwidth"] = number("0.125", "0.5", "1")
            entry["bandwidth"] = float(params["bandwidth"])
    if name == "epsilon_privacy":
        adversary(draw, made, params, entry, written)
    if BY_NAME[name].about.uses_sensitive:
        entry["sensitive"] = "s"
    made.entries.append({name: entry})
    made.asked.append({"model": name, **params})


def adversary(
    draw: random.Random,
    made: World,
    params: Params,
    entry: dict[str, Any],
    written: Callable[[tuple[str, ...]], list[str | None]],
) -> None:
    names, domain = made.case.names, made.table.values()
    params["adversary"] = entry["adversary"] = draw.choice(["I", "I", "II", "III", "IV"])
    params["known"] = entry["known"] = 0 if made.table.entity else draw.choice([0, 0, 1, 2])
    kinds: list[Any] = ["singletons", "negative", *(["taxonomy"] if made.taxonomy else [])]
    if len(domain) >= 2:
        kinds.append((tuple(draw.sample(names, len(domain) - 1)),))
    params["predicates"] = draw.choice(kinds)
    chosen = params["predicates"]
    entry["predicates"] = chosen if isinstance(chosen, str) else [written(chosen[0])]
    if params["adversary"] in ("I", "III"):
        params["prior"] = draw.choice(["uniform", "table", "values", "from_table"])
        entry["prior"] = params["prior"]
        weights = list(zip(names, made.case.prior, strict=True))
        draw.shuffle(weights)
        if params["prior"] == "values":
            listed = [(written((n,))[0], int(w)) for n, w in weights if w]
            entry["prior"] = {"values": dict(listed)}
        if params["prior"] == "from_table":
            entry["prior"] = {"from_table": draw.choice(["before", "texts"]), "column": "v"}
    if params["adversary"] == "I":
        params["at_most"] = entry["at_most"] = draw.random() < 0.5
        if params["prior"] != "from_table" or draw.random() < 0.5:
            params["stubbornness"] = Fraction(draw.choice(["1", "3", "5.5", "1000"]))
    if params["adversary"] == "II":
        params["stubbornness"] = Fraction(draw.choice(["5", "6.5", "100"]))
    if "stubbornness" in params:
        entry["stubbornness"] = float(params["stubbornness"])


def expected(made: World, params: Params, block: Block, case: Case) -> tuple[bool, dict[str, Any]]:
    """The slow verdict and tightest values of a block."""
    name = params["model"]
    if params.get("distance") != "kernel_js":
        rule = RULES[name]
        return rule.passes(block, params, case), rule.tightest(block, params, case)
    under = "ordered" if made.ordered else "hierarchical" if made.taxonomy else "equal"
    ground = {"kind": "kernel_js", "bandwidth": params["bandwidth"], "under": under}
    if name == "t_closeness":
        value = closeness.t_tightest(block, **ground)
        return closeness.t_holds(block, params["t"], **ground), {"t": value}
    n, t, variant = params["n"], params["t"], params["variant"]
    values = {
        "t": closeness.nt_tightest_t(block, n, variant, **ground),
        "n": closeness.nt_tightest_n(block, t, variant, **ground),
    }
    return closeness.nt_holds(block, n, t, variant, **ground), values


def fill(draw: random.Random, made: World, url: str) -> None:
    create_table(url, "source", made.columns, {"a": "VARCHAR", "b": "VARCHAR", "person": "INTEGER", "s": made.type})
    people = made.table.population or []
    create_table(url, "people", {k: [p[k] for p in people] for k in "ab"}, {"a": "VARCHAR", "b": "VARCHAR"})
    create_table(url, "before", {"v": made.prior}, {"v": made.type})
    create_table(url, "texts", {"v": [spelled(draw, v) for v in made.prior]}, {"v": "VARCHAR"})


def compare(made: World, url: str, folder: Path, seed: str, outcome: Outcome) -> None:
    quasi = {"role": "quasi_identifier", "hierarchy": "suppress"}
    attributes = {"a": quasi, "b": quasi, "s": made.declared}
    more = {"entity": "person", "count": "entities"} if made.table.entity else {}
    try:
        with open_task(make_spec(url, "source", attributes, made.entries, folder, **more)) as task:
            found = {node: task.assess(node) for node in task.lattice.nodes()}
    except InputError as error:
        outcome.differences.append(f"{seed}: {made.entries} {made.declared}: {error}")
        return
    for node, assessment in found.items():
        blocks = list(made.table.blocks(node).values())
        case = replace(made.case, population_only=(1,) * made.table.empty_population_blocks(node))
        for i, params in enumerate(made.asked):
            name, (part,) = params["model"], assessment.counts.parts[i]
            each = [expected(made, params, block, case) for block in blocks]
            verdict, place = assessment.tightest[i], f"{seed} at {node}: {made.entries[i]} {made.declared}"
            failing = sorted(block.size() for block, (holds, _) in zip(blocks, each, strict=True) if not holds)
            outcome.kinds[f"{name} {made.type}"] += 1
            outcome.comparisons += 2
            if verdict.holds is not (not failing) or sorted(part.blocks.rows[part.failing(len(blocks))]) != failing:
                outcome.differences.append(f"{place}: {verdict}, expected {failing}")
            for bound, value in zip(BY_NAME[name].about.bounds, verdict.values, strict=True):
                outcome.comparisons += 1
                wanted = worst([values[bound.parameter] for _, values in each], bound.stricter)
                if not same(value.value, wanted):
                    outcome.differences.append(f"{place}: {value}, not {wanted}")


def fuzz(tables: int, seed: int, server: str | None = None) -> Outcome:
    """Compare that many tables; on PostgreSQL where the URL of a server is given, else on DuckDB."""
    outcome = Outcome()
    for number in range(tables):
        draw = random.Random(f"{seed}/{number}")
        with tempfile.TemporaryDirectory(prefix="qblock-fuzz-") as name:
            folder = Path(name)
            made = world(draw, folder)
            if server is None:
                url = f"duckdb:///{folder / 'warehouse.duckdb'}"
                fill(draw, made, url)
                compare(made, url, folder, f"{seed}/{number}", outcome)
            else:
                with database(server) as url:
                    fill(draw, made, url)
                    compare(made, url, folder, f"{seed}/{number}", outcome)
        outcome.tables += 1
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=["duckdb", "postgresql"], default="duckdb")
    given = parser.parse_args()
    found = fuzz(given.tables, given.seed, start_server() if given.engine == "postgresql" else None)
    for difference in found.differences[:20]:
        print(difference)
    asked, kinds = sum(found.kinds.values()), len(found.kinds)
    print(f"{found.tables} tables, {asked} times a model at a node, {kinds} kinds of model and type")
    print(f"{found.comparisons} comparisons, {len(found.differences)} differences")
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
