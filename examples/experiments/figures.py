"""The experiments, each a function from the people to the rows of its CSV file.

The letters are those of the list in the README of this folder: (a) to (c) after "l-Diversity: Privacy Beyond
k-Anonymity" (ICDE 2006), (d) to (g) after "Data Publishing against Realistic Adversaries" (VLDB 2009).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from people import SENSITIVE, People

from qblock import attacks
from qblock.models.implied import epsilon_of_c2, epsilon_of_t
from qblock.search.assessment import number_json
from qblock.search.compare import Comparison, Definition, NodeRow, compare
from qblock.search.compare_results import best, inclusions, violations, write_csv
from qblock.search.run import open_task, run_search
from qblock.search.task import Task

K = 6
EPSILON = Fraction(5, 2)
PARAMETERS = (2, 4, 6, 8)
POWERS = (*(f"1e{i}" for i in range(2, 9)), "inf")
"""Stubbornness."""
CURVES = ("A_d^", "A_c^", "A_d^<=", "A_c^<=", "A_-^")
"""Adversaries: A_d has the uniform prior, A_c the table's, A_- any; <= means that stubbornness or any smaller one."""
TABLE = ("A_d^1e6", "A_c^1e6", "A_-^1e3", "A_-^1e6", "A_d^inf", "A_c^inf")
"""The columns of the epsilon-privacy paper's table of minimum parameters."""

Rows = Iterator[list[Any]]
Say = Callable[[str], None]


def adversaries() -> dict[str, dict[str, Any]]:
    """Parameters of epsilon-privacy by name."""
    named: dict[str, dict[str, Any]] = {}
    for power in POWERS[:-1]:
        sigma = int(float(power))
        for curve, prior in (("A_d^", "uniform"), ("A_c^", "table")):
            one = {"adversary": "I", "stubbornness": sigma, "prior": prior}
            named[f"{curve}{power}"] = {**one, "at_most": False}
            named[f"{curve}<={power}"] = one
        named[f"A_-^{power}"] = {"adversary": "II", "stubbornness": sigma}
    named |= {"A_d^inf": {"adversary": "III", "prior": "uniform"}, "A_c^inf": {"adversary": "III", "prior": "table"}}
    return named


def _entry(model: str, **parameters: Any) -> str:
    return f"{model}: {{{', '.join(f'{name}: {_text(value)}' for name, value in parameters.items())}}}"


def _text(value: Any) -> str:
    """A parameter as a spec has it; a fraction in six decimals, rounded up."""
    if isinstance(value, Fraction):
        return f"{math.ceil(value * 10**6) / 10**6:.6f}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def homogeneity(people: People, quasi: int, say: Say) -> Rows:
    """(a) Every minimal 6-anonymous node, and its blocks in which everybody has the same sensitive value."""
    with open_task(people.spec(quasi, [_entry("k_anonymity", k=K)])) as task:
        found = run_search(task)
        yield [*task.spec.quasi_identifiers, "height", "sensitive", "blocks", "open_blocks", "open_rows"]
        exposed = dict.fromkeys(SENSITIVE, 0)
        for node in found.minimal:
            for i, name in enumerate(SENSITIVE):
                blocks = task.source.frequency_sets.blocks(node, [i])[0]
                attack = attacks.attacks(blocks, task.source.sensitives[name].reference).homogeneity
                exposed[name] += attack.vulnerable
                yield [*node, sum(node), name, len(blocks), attack.blocks, attack.rows]
        counts = ", ".join(f"{exposed[name]} for {name}" for name in SENSITIVE)
        say(f"(a) {len(found.minimal)} minimal {K}-anonymous nodes; open to the homogeneity attack: {counts}")


def runtime(people: People, runs: int, say: Say) -> Rows:
    """(b) Entropy l-diversity against k-anonymity, by the number of quasi-identifiers; the least time of some runs."""
    yield ["quasi_identifiers", "nodes", "k_seconds", "entropy_seconds", "ratio", "k_queries", "entropy_queries"]
    ratios = []
    for quasi in range(3, len(people.quasi_identifiers) + 1):
        seconds, queries, nodes = [], [], 0
        for entry in (_entry("k_anonymity", k=K), _entry("entropy_l_diversity", l=K, sensitive=SENSITIVE[0])):
            seconds.append(math.inf)
            for _ in range(runs):
                started = time.perf_counter()
                with open_task(people.spec(quasi, [entry], sensitive=SENSITIVE[:1])) as task:
                    found = run_search(task)
                    nodes = len(task.lattice)
                seconds[-1] = min(seconds[-1], time.perf_counter() - started)
            queries.append(found.queries)
        ratios.append(seconds[1] / seconds[0])
        yield [quasi, nodes, *(round(s, 3) for s in seconds), round(ratios[-1], 2), *queries]
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    say(f"(b) entropy {K}-diversity takes this many times as long as {K}-anonymity, from 3 attributes on: {shown}")


def utility(people: People, quasi: int, say: Say) -> Rows:
    """(c) What each definition costs at 2, 4, 6 and 8, on all people and on a sample of 5%."""
    yield [
        "data",
        "definition",
        "sensitive",
        "parameter",
        "satisfying",
        "min_height",
        "min_average",
        "min_discernibility",
    ]
    asked: dict[str, tuple[str, str, int]] = {}
    for parameter in PARAMETERS:
        asked[_entry("k_anonymity", k=parameter)] = ("k-anonymity", "", parameter)
        for name in SENSITIVE:
            asked[_entry("entropy_l_diversity", l=parameter, sensitive=name)] = ("entropy l", name, parameter)
            asked[_entry("recursive_cl_diversity", c=3, l=parameter, sensitive=name)] = (
                "recursive (3,l)",
                name,
                parameter,
            )
    for data, sample in (("all", False), ("sample", True)):
        with open_task(people.spec(quasi, list(asked), sample=sample)) as task:
            found = compare(task)
        for definition, (model, name, parameter) in zip(found.requested, asked.values(), strict=True):
            metrics = best(found, definition)
            values = [
                metrics[m]["value"] if metrics else "" for m in ("height", "average_block_size", "discernibility")
            ]
            yield [data, model, name, parameter, len(found.satisfying(definition)), *values]
            if data == "all" and parameter == 4 and name != SENSITIVE[1]:
                say(f"(c) {model} at 4{' for ' + name if name else ''}: least height {values[0] or 'none'}")


@dataclass(frozen=True, eq=False)
class Epsilons:
    """(d) to (g) read one comparison: every adversary at epsilon 2.5, and the definitions that they are held against.

    named: the definitions by sensitive attribute and name; sets: the names of those whose sets of nodes are compared.
    """

    found: Comparison
    named: dict[tuple[str, str], Definition]
    sets: dict[str, list[str]]

    def smallest(self, row: NodeRow, sensitive: str, name: str) -> Any:
        """The smallest epsilon of an adversary at a node."""
        return row.values[self.found.definitions.index(self.named[sensitive, name])][0].value


def epsilons(people: People, quasi: int, letters: str, work: Path, out: Path, say: Say) -> Epsilons:
    """Evaluate everything that those of (d) to (g) need that are asked for; the table goes to all_definitions.csv."""
    needed = {
        name: parameters
        for name, parameters in adversaries().items()
        if {"e", "f"} & set(letters) or name in TABLE  # which (g) needs three of
    }
    with open_task(people.spec(quasi, [_entry("k_anonymity", k=K)])) as task:
        asked: dict[tuple[str, str], str] = {}
        sets: dict[str, list[str]] = {}
        for sensitive in SENSITIVE:
            for name, parameters in needed.items():
                asked[sensitive, name] = _entry("epsilon_privacy", epsilon=EPSILON, **parameters, sensitive=sensitive)
            others = _others(task, sensitive)
            asked |= {(sensitive, name): entry for name, entry in others.items()}
            sets[sensitive] = [*others, "A_d^inf", "A_c^inf", "A_-^1e6"]
        file = work / "definitions.yaml"
        file.write_text("privacy:\n" + "".join(f"  - {entry}\n" for entry in asked.values()), "utf-8")
        found = compare(task, file=file)
        definitions = [definition for definition in found.definitions if definition.origin == "definitions"]
        write_csv(found, out / "all_definitions.csv")
        wrong = violations(found)[1]
        say(
            f"(d-g) {len(found.definitions)} definitions at {len(found.lattice)} nodes in {found.seconds:.1f} s; "
            f"values that get weaker upward: {len(wrong)}"
        )
    return Epsilons(found, dict(zip(asked, definitions, strict=True)), sets)


def _others(task: Task, sensitive: str) -> dict[str, str]:
    """(4,2)-diversity, 0.2-closeness, and class III at the epsilon that each of them grants (EP section 5)."""
    reference = task.source.sensitives[sensitive].reference
    equal = epsilon_of_c2(4, reference.values)
    one = {"adversary": "III", "sensitive": sensitive}
    result = {
        "(4,2)-diversity": _entry("recursive_cl_diversity", c=4, l=2, sensitive=sensitive),
        f"A_d^inf({float(equal):.4g})": _entry("epsilon_privacy", epsilon=equal, prior="uniform", **one),
        "0.2-closeness": _entry("t_closeness", t=Fraction(1, 5), sensitive=sensitive),
    }
    shares = [Fraction(n, reference.rows) for n in reference.totals.tolist()]
    if min(share for share in shares if share) > Fraction(1, 5):  # else closeness grants no epsilon
        enough = epsilon_of_t(Fraction(1, 5), shares)
        result[f"A_c^inf({float(enough):.4g})"] = _entry("epsilon_privacy", epsilon=enough, prior="table", **one)
    return result


def by_node(epsilons: Epsilons, say: Say) -> Rows:
    """(d) The smallest epsilon of each adversary at each node: the epsilon-privacy paper's table."""
    yield ["sensitive", *epsilons.found.spec.quasi_identifiers, *TABLE]
    for sensitive in SENSITIVE:
        finite, passing = 0, dict.fromkeys(TABLE, 0)
        for row in epsilons.found.rows:
            smallest = {name: epsilons.smallest(row, sensitive, name) for name in TABLE}
            finite += smallest["A_c^inf"] != math.inf
            for name, value in smallest.items():
                passing[name] += value <= EPSILON
            yield [sensitive, *row.node, *map(number_json, smallest.values())]
        counts = ", ".join(f"{number} against {name}" for name, number in passing.items())
        say(f"(d) {sensitive}: {finite} of {len(epsilons.found.rows)} nodes have finite epsilons")
        say(f"(d) {sensitive}: of at most {float(EPSILON)}: {counts}")


def by_stubbornness(epsilons: Epsilons, say: Say) -> Rows:
    """(e) One node's smallest epsilon against stubbornness: the finest node (most blocks) with finite epsilons."""
    yield ["sensitive", *epsilons.found.spec.quasi_identifiers, "stubbornness", *CURVES]
    for sensitive in SENSITIVE:
        finite = [r for r in epsilons.found.rows if epsilons.smallest(r, sensitive, "A_c^inf") != math.inf]
        if not finite:
            say(f"(e) {sensitive}: no node has finite epsilons")
            continue
        row = max(finite, key=lambda row: row.blocks)
        for power in POWERS:
            names = [f"{curve}{power}" for curve in CURVES]
            there = [epsilons.smallest(row, sensitive, n) if (sensitive, n) in epsilons.named else "" for n in names]
            yield [sensitive, *row.node, power, *(v if v == "" else number_json(v) for v in there)]
        ends = [float(epsilons.smallest(row, sensitive, f"A_c^{power}")) for power in (POWERS[0], "inf")]
        say(f"(e) {sensitive}, node {list(row.node)}: A_c from {ends[0]:.4g} to {ends[1]:.4g}")


def utility_by_stubbornness(epsilons: Epsilons, say: Say) -> Rows:
    """(f) The best discernibility and average block size at epsilon 2.5 against stubbornness."""
    yield ["sensitive", "adversary", "stubbornness", "satisfying", "min_discernibility", "min_average_block_size"]
    for sensitive in SENSITIVE:
        for curve in CURVES:
            for power in POWERS:
                definition = epsilons.named.get((sensitive, f"{curve}{power}"))
                if definition is None:
                    continue
                metrics = best(epsilons.found, definition)
                values = [
                    metrics[name]["value"] if metrics else "" for name in ("discernibility", "average_block_size")
                ]
                yield [sensitive, curve.removesuffix("^"), power, len(epsilons.found.satisfying(definition)), *values]
        passing = {p: len(epsilons.found.satisfying(epsilons.named[sensitive, f"A_c^{p}"])) for p in (POWERS[0], "inf")}
        say(f"(f) {sensitive}: nodes at epsilon 2.5 against A_c of stubbornness: {passing}")


def sets_of_nodes(epsilons: Epsilons, say: Say) -> Rows:
    """(g) Which nodes each definition admits."""
    names = list(dict.fromkeys(name for sensitive in SENSITIVE for name in epsilons.sets[sensitive]))
    yield ["sensitive", *epsilons.found.spec.quasi_identifiers, *names]
    for sensitive in SENSITIVE:
        chosen = {n: epsilons.named[sensitive, n].name if n in epsilons.sets[sensitive] else None for n in names}
        for row in epsilons.found.rows:
            verdicts = ["" if key is None else str(row.verdicts[key].satisfied).lower() for key in chosen.values()]
            yield [sensitive, *row.node, *verdicts]


def inclusions_of_sets(epsilons: Epsilons, say: Say) -> Rows:
    """(g) Which definition admits strictly more nodes than which, and which admit the same."""
    yield ["sensitive", "admits_more", "admits_less", "nodes_of_more_only"]
    more, same = inclusions(epsilons.found)
    for sensitive in SENSITIVE:
        name = {epsilons.named[sensitive, short].name: short for short in epsilons.sets[sensitive]}
        counts = {short: len(epsilons.found.satisfying(epsilons.named[sensitive, short])) for short in name.values()}
        say(f"(g) {sensitive}: nodes admitted: {counts}")
        for inclusion in more:
            if inclusion.more in name and inclusion.less in name:
                yield [sensitive, name[inclusion.more], name[inclusion.less], inclusion.only]
        for one, other in same:
            if one in name and other in name:
                yield [sensitive, name[one], name[other], 0]
