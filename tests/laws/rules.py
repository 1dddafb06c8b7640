"""For each model, by name: how to draw valid parameters, and what the slow reference says about a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from reference import adversary, closeness, diversity, population, proximity
from reference.exact import Exact
from reference.tables import Block

from laws.cases import Case

Params = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """How one model is tested.

    params: draws valid parameters; passes: the slow verdict of one block; tightest: the slow tightest values of one
    block; asked: parameters that may be set to a tightest value; lenient: for a model with several conditions, by
    parameter, values of the others with which this parameter alone decides.
    """

    params: Callable[[st.DrawFn, Case], Params]
    passes: Callable[[Block, Params, Case], bool]
    tightest: Callable[[Block, Params, Case], dict[str, Exact]]
    asked: tuple[str, ...]
    lenient: dict[str, Params] = field(default_factory=dict)


def fractions(*texts: str) -> st.SearchStrategy[int | Fraction]:
    return st.sampled_from([Fraction(text) for text in texts])


LS = fractions("1", "5/4", "3/2", "2", "5/2", "3", "4")
INTEGERS = st.integers(1, 5)
CS = fractions("1/3", "1/2", "1", "3/2", "2", "3", "5")
TS = fractions("0", "1/10", "1/6", "1/4", "1/3", "1/2")


def names(draw: st.DrawFn, case: Case) -> tuple[str, ...]:
    return tuple(draw(st.lists(st.sampled_from(case.names[: case.values]), unique=True, max_size=2)))


def numbers(case: Case, chosen: Sequence[str]) -> list[Fraction]:
    """The slow table's values behind the engine's names."""
    return [case.numbers[case.names.index(name)] for name in chosen]


def _limited(p: Params, case: Case) -> list[Fraction] | None:
    return None if p["values"] is None else numbers(case, p["values"])


def _present(block: Block, case: Case) -> tuple[Fraction, Fraction]:
    """The least and the greatest share that count for a block: a population block without rows has the share 0."""
    share = population.presence(block)
    return (Fraction(0) if case.population_only else share), share


def _distance(draw: st.DrawFn) -> Params:
    kind = draw(st.sampled_from(["equal", "ordered", "hierarchical", "kernel_js"]))
    return {"distance": kind, **({"bandwidth": draw(fractions("1/8", "1/2", "1", "2"))} if kind == "kernel_js" else {})}


def _sizes(case: Case) -> list[int]:
    """The sizes of the blocks and of all that contains them, where (n,t)-closeness changes."""
    return sorted({len(rows) for block in case.slow[1] for rows in [*block.containing, case.slow[0].rows]})


def _ground(p: Params) -> dict[str, Any]:
    return {"kind": p["distance"], "bandwidth": p.get("bandwidth")}


def _epsilon(draw: st.DrawFn, case: Case) -> Params:
    kind = draw(st.sampled_from(["I", "I", "II", "III", "IV"]))
    params: Params = {
        "epsilon": draw(fractions("1", "3/2", "2", "5/2", "4", "10")),
        "adversary": kind,
        "known": draw(st.sampled_from([0, 0, 1, 2])),
    }
    kinds: list[Any] = ["singletons", "negative", "taxonomy", *(["guarded"] if case.guards else [])]
    if case.values >= 2:
        kinds.append(((case.names[0],),))
    if case.values >= 3:
        kinds.append((case.names[:2], case.names[1 : case.values]))
    params["predicates"] = draw(st.sampled_from(kinds))
    if kind in ("I", "III"):
        params["prior"] = draw(st.sampled_from(["uniform", "table", "values", "from_table"]))
    if kind == "I":
        params["at_most"] = draw(st.booleans())
        if params["prior"] != "from_table" or draw(st.booleans()):
            params["stubbornness"] = draw(fractions("1", "3", "11/2", "20", "1000"))
    if kind == "II":
        params["stubbornness"] = draw(st.sampled_from([Fraction(5), Fraction(13, 2), Fraction(100)]))
    return params


def _adversary(block: Block, p: Params, case: Case) -> dict[str, Any]:
    table, kind = block.table, p["predicates"]
    if len(table.values()) == 1:
        return {"adversary": p["adversary"]}
    known: Params = {
        "guarded": lambda _: block.guards,
        "singletons": adversary.singletons,
        "negative": adversary.negatives,
        "taxonomy": adversary.groups,
    }
    chosen = known[kind](table) if isinstance(kind, str) else [frozenset(numbers(case, group)) for group in kind]
    result: Params = {"adversary": p["adversary"], "predicates": chosen, "b": p["known"]}
    if p["adversary"] == "IV":
        return result
    external = adversary.external(table, {v: int(w) for v, w in (table.prior or {}).items()})
    if p["adversary"] in ("I", "III"):
        prior = p["prior"]
        result["shape"] = {
            "uniform": adversary.uniform(table),
            "table": adversary.observed(table),
            "values": table.prior,
            "from_table": external,
        }[prior]
    if p["adversary"] in ("I", "II"):
        result["sigma"] = p.get("stubbornness") or sum(external.values())
        result["at_most"] = p.get("at_most", True)
    return result


RULES: dict[str, Rule] = {
    "k_anonymity": Rule(
        lambda draw, case: {"k": draw(st.integers(1, 8))},
        lambda b, p, c: diversity.k_holds(b, p["k"]),
        lambda b, p, c: {"k": diversity.k_tightest(b)},
        ("k",),
    ),
    "distinct_l_diversity": Rule(
        lambda draw, case: {"l": draw(INTEGERS)},
        lambda b, p, c: diversity.distinct_holds(b, p["l"]),
        lambda b, p, c: {"l": diversity.distinct_tightest(b)},
        ("l",),
    ),
    "frequency_l_diversity": Rule(
        lambda draw, case: {"l": draw(LS)},
        lambda b, p, c: diversity.frequency_holds(b, p["l"]),
        lambda b, p, c: {"l": diversity.frequency_tightest(b)},
        ("l",),
    ),
    "entropy_l_diversity": Rule(
        lambda draw, case: {"l": draw(LS)},
        lambda b, p, c: diversity.entropy_holds(b, p["l"]),
        lambda b, p, c: {"l": diversity.entropy_tightest(b)},
        ("l",),
    ),
    "recursive_cl_diversity": Rule(
        lambda draw, case: {"c": draw(CS), "l": draw(INTEGERS)},
        lambda b, p, c: diversity.recursive_holds(b, p["c"], p["l"]),
        lambda b, p, c: {
            "l": diversity.recursive_tightest_l(b, p["c"]),
            "c": diversity.recursive_tightest_c(b, p["l"]),
        },
        ("c",),
    ),
    "pd_recursive_cl_diversity": Rule(
        lambda draw, case: {"c": draw(CS), "l": draw(INTEGERS), "allowed": names(draw, case)},
        lambda b, p, c: diversity.pd_holds(b, p["c"], p["l"], numbers(c, p["allowed"])),
        lambda b, p, c: {
            "l": diversity.pd_tightest_l(b, p["c"], numbers(c, p["allowed"])),
            "c": diversity.pd_tightest_c(b, p["l"], numbers(c, p["allowed"])),
        },
        ("c",),
    ),
    "npd_recursive_cl_diversity": Rule(
        lambda draw, case: {
            "c1": draw(CS),
            "c2": draw(fractions("0", "10", "20", "25", "40", "50")),
            "l": draw(INTEGERS),
            "allowed": names(draw, case),
            "protected": names(draw, case),
        },
        lambda b, p, c: diversity.npd_holds(
            b, p["c1"], p["c2"], p["l"], numbers(c, p["allowed"]), numbers(c, p["protected"])
        ),
        lambda b, p, c: {
            "l": diversity.pd_tightest_l(b, p["c1"], numbers(c, p["allowed"])),
            "c1": diversity.pd_tightest_c(b, p["l"], numbers(c, p["allowed"])),
            "c2": diversity.npd_tightest_c2(b, numbers(c, p["protected"])),
        },
        ("c1", "c2"),
        {"l": {"c2": 0}, "c1": {"c2": 0}, "c2": {"l": 1}},
    ),
    "alpha_k_anonymity": Rule(
        lambda draw, case: {
            "alpha": draw(fractions("0", "1/4", "1/2", "2/3", "1")),
            "k": draw(st.integers(1, 8)),
            "values": draw(st.sampled_from([None, names(draw, case)])),
        },
        lambda b, p, c: diversity.alpha_k_holds(b, p["alpha"], p["k"], _limited(p, c)),
        lambda b, p, c: {"alpha": diversity.alpha_tightest(b, _limited(p, c)), "k": diversity.k_tightest(b)},
        ("alpha", "k"),
        {"alpha": {"k": 1}, "k": {"alpha": 1}},
    ),
    "epsilon_m_anonymity": Rule(
        lambda draw, case: {
            "epsilon": draw(fractions("0", "1/4", "1/2", "1")),
            "m": draw(LS),
            "relative": draw(st.booleans()),
        },
        lambda b, p, c: proximity.epsilon_m_holds(b, p["epsilon"], p["m"], p["relative"]),
        lambda b, p, c: {"m": proximity.epsilon_m_tightest(b, p["epsilon"], p["relative"])},
        ("m",),
    ),
    "delta_l_diversity": Rule(
        lambda draw, case: {
            "delta": draw(fractions("0", "1/4", "1/2", "1", "3/2")),
            "l": draw(LS),
            "reading": draw(st.sampled_from(["window", "literal"])),
        },
        lambda b, p, c: proximity.delta_l_holds(b, p["delta"], p["l"], p["reading"]),
        lambda b, p, c: {
            "l": proximity.delta_l_tightest(b, p["delta"], p["reading"]),
            "delta": proximity.delta_l_tightest_delta(b, p["l"], p["reading"]),
        },
        ("l", "delta"),
    ),
    "t_closeness": Rule(
        lambda draw, case: {"t": draw(TS), **_distance(draw)},
        lambda b, p, c: closeness.t_holds(b, p["t"], **_ground(p)),
        lambda b, p, c: {"t": closeness.t_tightest(b, **_ground(p))},
        ("t",),
    ),
    "nt_closeness": Rule(
        lambda draw, case: {
            "n": draw(st.integers(1, sum(case.totals)) | st.sampled_from(_sizes(case))),
            "t": draw(TS),
            "variant": draw(st.sampled_from(["lattice", "own_or_top"])),
            **_distance(draw),
        },
        lambda b, p, c: closeness.nt_holds(b, p["n"], p["t"], p["variant"], **_ground(p)),
        lambda b, p, c: {
            "t": closeness.nt_tightest_t(b, p["n"], p["variant"], **_ground(p)),
            "n": closeness.nt_tightest_n(b, p["t"], p["variant"], **_ground(p)),
        },
        ("t", "n"),
    ),
    "beta_likeness": Rule(
        lambda draw, case: {
            "beta": draw(fractions("1/4", "1/2", "1", "2", "4")),
            "variant": draw(st.sampled_from(["basic", "enhanced"])),
        },
        lambda b, p, c: closeness.beta_holds(b, p["beta"], p["variant"]),
        lambda b, p, c: {"beta": closeness.beta_tightest(b, p["variant"])},
        ("beta",),
    ),
    "delta_disclosure": Rule(
        lambda draw, case: {
            "delta": draw(fractions("1/4", "1/2", "1", "2")),
            "absent": draw(st.sampled_from(["violation", "skip"])),
        },
        lambda b, p, c: closeness.disclosure_holds(b, p["delta"], p["absent"]),
        lambda b, p, c: {"delta": closeness.disclosure_tightest(b, p["absent"])},
        ("delta",),
    ),
    "epsilon_privacy": Rule(
        _epsilon,
        lambda b, p, c: adversary.epsilon_holds(b, p["epsilon"], **_adversary(b, p, c)),
        lambda b, p, c: {"epsilon": adversary.epsilon_tightest(b, **_adversary(b, p, c))},
        ("epsilon",),
    ),
    "k_map": Rule(
        lambda draw, case: {"k": draw(st.integers(1, 8))},
        lambda b, p, c: population.k_map_holds(b, p["k"]),
        lambda b, p, c: {"k": population.k_map_tightest(b)},
        ("k",),
    ),
    "delta_presence": Rule(
        lambda draw, case: {"min": draw(fractions("0", "0", "1/4", "1/2")), "max": draw(fractions("1/2", "2/3", "1"))},
        lambda b, p, c: p["min"] <= _present(b, c)[0] and _present(b, c)[1] <= p["max"],
        lambda b, p, c: dict(zip(("min", "max"), _present(b, c), strict=True)),
        ("min", "max"),
        {"min": {"max": 1}, "max": {"min": 0}},
    ),
}
