"""Which rules a spec's models get, with the reason (docs/steady-job.md section 6)."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Reference
from qblock.models import KMap, Model
from qblock.versions.batching.state import Block


@dataclass(frozen=True)
class Rules:
    """What a run may do.

    cells: also let leavers go and show changed values in batches (else the safe core: newcomers in batches, whole cells
    out, values as first shown). k: the least people of a batch and of those it leaves. For each sensitive attribute,
    ls: the values that everybody must keep when a batch fails; models: those that look at nothing but how often each
    value occurs. sure: whether there are no others but sizes, so that a batch of leavers may also go where it cannot
    fail. stale: whether a cell may be taken out by presence alone: no verdict on what stays is needed. coin: whether
    newcomers need the coin. bundles: whether people may have several rows in a block. reason: why no more is done, for
    people; empty with all rules.
    """

    cells: bool
    k: int
    ls: tuple[int, ...]
    models: tuple[tuple[Model, ...], ...]
    sure: bool = False
    stale: bool = False
    coin: bool = False
    bundles: bool = False
    reason: str = ""

    @property
    def attributes(self) -> int:
        """How many sensitive attributes there are; 1 where there are none."""
        return len(self.ls)


def rules_for(models: Sequence[Model], *, suppression: bool = False) -> Rules:
    """The rules that a spec gets.

    models: of all requirements of one sensitive attribute (`combine_rules` for several); suppression: whether a
    suppression limit is asked for.
    """
    k = max((_least_rows(model) for model in models), default=1)
    least = max([2, *(_l(model) for model in models)])
    # Some model fails every cell with a single value, whichever it is.
    symmetric = any(_l(model) > 1 for model in models)
    by_sizes = all(model.about.steady == "sizes" for model in models)
    coin = not symmetric and not by_sizes
    reasons = []
    if by_sizes:
        reasons.append(
            "models of sizes alone promise nothing about values, so that a part of a cell may have a single one"
        )
    if suppression:
        reasons.append("a suppression limit was not simulated")
    if coin:
        names = " and ".join(sorted({model.name for model in models if model.about.steady != "sizes"}))
        reasons.append(
            f"failing {names} tells which value a batch holds; ask for distinct_l_diversity {{l: 2}} as well"
        )
    unsimulated = sorted({model.name for model in models if model.about.steady == "core"})
    if unsimulated and not coin:
        reasons.append(f"{' and '.join(unsimulated)} with leavers and changed values was not simulated")
    counting = tuple(model for model in models if model.about.steady == "symmetric")
    return Rules(
        cells=not reasons,
        k=max(k, 1),
        ls=(least,),
        models=(counting,),
        sure=all(model.about.steady in ("sizes", "symmetric") for model in models),
        stale=not suppression and all(model.monotone.generalization for model in models),
        coin=coin,
        reason="; ".join(reasons),
    )


def combine_rules(each: Sequence[Rules], reasons: Sequence[str] = ()) -> Rules:
    """The rules of several sensitive attributes: models of one do not make up for those of another.

    each: what `rules_for` gives for each attribute; reasons: more of them why only the core is done.
    """
    why = dict.fromkeys([*(word for rules in each for word in rules.reason.split("; ") if word), *reasons])
    return Rules(
        cells=not why,
        k=max(rules.k for rules in each),
        ls=tuple(l for rules in each for l in rules.ls),  # noqa: E741
        models=tuple(models for rules in each for models in rules.models),
        sure=all(rules.sure for rules in each),
        stale=all(rules.stale for rules in each) and not reasons,
        coin=any(rules.coin for rules in each),
        reason="; ".join(why),
    )


def _l(model: Model) -> int:
    """The least l that a model implies; 1 for one without."""
    return math.ceil(getattr(model, "l", 1)) if model.about.steady == "symmetric" else 1


def _least_rows(model: Model) -> int:
    """The rows that every cell must have by the model's parameters alone."""
    if isinstance(model, KMap):
        return int(model.k)
    if model.needs:
        return 1
    return model.least_block_size(Reference(0, (), np.zeros(0, dtype=np.int64)))


Coin = Callable[[Block, int], bool]
"""Whether the n-th batch of newcomers of a block (n from 1) is set aside before its values are looked at: the same
again when a run is repeated.

For models that do not fail every one-valued batch, failing tells which value a batch holds. If a batch may be out
although nobody looked at it, being out excludes no value (docs/steady-job.md section 5).
"""


def no_coin(block: Block, number: int) -> bool:
    """Never."""
    return False


def private_coin(key: bytes, release: str, skip: Fraction) -> Coin:
    """A coin that falls with probability `skip`, by a digest with a key that is as private as the crosswalk's."""

    def falls(block: Block, number: int) -> bool:
        text = json.dumps(["qblock coin", release, list(block), number])
        drawn = int.from_bytes(hmac.digest(key, text.encode(), hashlib.sha256)[:8])
        return drawn * skip.denominator < skip.numerator * 2**64

    return falls
