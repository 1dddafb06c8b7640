"""Why a model is not monotone: for each flag that is False, two blocks whose union breaks the law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from laws.cases import Case, plain_case


@dataclass(frozen=True)
class Counterexample:
    """A model with parameters, and a case whose first two blocks are to be merged.

    law: "generalization", every block passes and the union fails (then the rows to drop grow, too); "suppression", the
    rows in failing blocks grow.
    """

    model: str
    params: dict[str, Any]
    law: str
    case: Case

    @property
    def union(self) -> tuple[int, ...]:
        """The first two blocks become one, the others stay."""
        return (0, 0, *range(1, len(self.case.histograms) - 1))


def found(
    model: str, params: dict[str, Any], law: str, blocks: Sequence[dict[int, int]], **more: Any
) -> Counterexample:
    return Counterexample(model, params, law, plain_case(blocks, **more))


def _numbers(*texts: str) -> dict[str, Any]:
    return {"numbers": tuple(map(Fraction, texts))}


# Models whose condition is a share: a good and a bad block of which the bad one alone is dropped before.
GOOD_AND_BAD = [{0: 5, 1: 5}, {0: 3}]
BALANCED = [*GOOD_AND_BAD, {1: 3}]
TENS = _numbers("40", "50", "60", "80")
PAIRS = [{0: 1, 2: 1}, {1: 1, 3: 1}]
FAR = _numbers("1", "100")
DISTANCES: list[dict[str, Any]] = [
    {"distance": "equal"},
    {"distance": "ordered"},
    {"distance": "hierarchical"},
    {"distance": "kernel_js", "bandwidth": 1},
]

COUNTEREXAMPLES: tuple[Counterexample, ...] = (
    found("frequency_l_diversity", {"l": 2}, "suppression", GOOD_AND_BAD),
    found("entropy_l_diversity", {"l": 2}, "suppression", GOOD_AND_BAD),
    found("recursive_cl_diversity", {"c": Fraction(3, 2), "l": 2}, "suppression", GOOD_AND_BAD),
    found("pd_recursive_cl_diversity", {"c": Fraction(3, 2), "l": 2}, "suppression", GOOD_AND_BAD),
    found("npd_recursive_cl_diversity", {"c1": 9, "c2": 40, "l": 1, "protected": ("1",)}, "suppression", GOOD_AND_BAD),
    found("alpha_k_anonymity", {"alpha": Fraction(1, 2), "k": 2}, "suppression", GOOD_AND_BAD),
    found("epsilon_m_anonymity", {"epsilon": 15, "m": 2}, "generalization", PAIRS, **TENS),
    found(
        "epsilon_m_anonymity",
        {"epsilon": Fraction(1, 3), "m": 2, "relative": True},
        "generalization",
        PAIRS,
        **_numbers("1", "2", "3", "4"),
    ),
    found(
        "delta_l_diversity", {"delta": Fraction(15, 2), "l": 2, "reading": "literal"}, "generalization", PAIRS, **TENS
    ),
    found("delta_l_diversity", {"delta": 1, "l": 2, "reading": "window"}, "suppression", GOOD_AND_BAD, **FAR),
    *(found("t_closeness", {"t": Fraction(1, 200), **ground}, "suppression", BALANCED) for ground in DISTANCES),
    # Golden nt_counterexample.csv: at level 0 every block is like a containing block of 40 rows; at level 1 one is not.
    *(
        found(
            "nt_closeness",
            {"n": 40, "t": 0, "variant": "lattice", **ground},
            "generalization",
            [{0: 5, 1: 5}, {0: 9, 1: 1}, {0: 16, 1: 24}, {0: 240}],
            coarser=((0, 0, 1, 2), (0, 0, 0, 1), (0, 0, 0, 0)),
        )
        for ground in DISTANCES
    ),
    *(
        found(
            "nt_closeness", {"n": 14, "t": Fraction(1, 200), "variant": "own_or_top", **ground}, "suppression", BALANCED
        )
        for ground in DISTANCES
    ),
    found("beta_likeness", {"beta": Fraction(1, 10), "variant": "basic"}, "suppression", BALANCED),
    found("beta_likeness", {"beta": Fraction(1, 10), "variant": "enhanced"}, "suppression", BALANCED),
    found("delta_disclosure", {"delta": Fraction(1, 10), "absent": "violation"}, "suppression", BALANCED),
    # What the second block lacks is skipped; the union has it, and too rarely.
    found("delta_disclosure", {"delta": 1, "absent": "skip"}, "generalization", [{1: 1}, {0: 4}, {1: 5}]),
    *(
        found("epsilon_privacy", {"epsilon": Fraction(3, 2), **kind}, "suppression", [{0: 1, 1: 2}, {1: 1}])
        for kind in (
            {"adversary": "I", "stubbornness": 20},
            {"adversary": "I", "stubbornness": 20, "at_most": False},
            {"adversary": "II", "stubbornness": 2},
            {"adversary": "III"},
        )
    ),
    # The first block guards nothing; in the union its rows count for what the second one guards.
    *(
        found(
            "epsilon_privacy",
            {"epsilon": Fraction(3, 2), "predicates": "guarded", **kind},
            "generalization",
            [{0: 3}, {0: 1, 1: 1}],
            guarded=((0,),),
            guards=((), (0,)),
        )
        for kind in (
            {"adversary": "I", "stubbornness": 20},
            {"adversary": "I", "stubbornness": 20, "at_most": False},
            {"adversary": "II", "stubbornness": 2},
            {"adversary": "III"},
        )
    ),
    found(
        "epsilon_privacy",
        {"epsilon": 2, "adversary": "IV", "predicates": "guarded"},
        "suppression",
        [{0: 3}, {0: 1, 1: 1}],
        guarded=((0,),),
        guards=((), (0,)),
    ),
    # The second block is too present in the population, and drags the first one along.
    found(
        "delta_presence",
        {"min": 0, "max": Fraction(1, 2)},
        "suppression",
        [{0: 2}, {0: 3}],
        population=(4, 3),
    ),
)
