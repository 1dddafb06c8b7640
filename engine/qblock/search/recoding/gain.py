"""What a split gains: how much less is lost of what readers could learn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from qblock.blocks import Ints, Mask
from qblock.recoding import Label, Ladder
from qblock.search.recoding.groups import Groups, added

Value = int | float
DIGITS = 12
"""Of a gain in nats per row: what logarithms give in any order of rows."""


class Gain:
    """by: loss, discernibility or kl_divergence. rows: N; weights: of each attribute; column: of the values that the
    divergence is reckoned with, None where there are none."""

    def __init__(
        self, by: str, ladders: Sequence[Ladder], rows: int, weights: Sequence[Fraction], column: int | None
    ) -> None:
        self._by, self._ladders, self._rows, self._column = by, tuple(ladders), rows, column
        shares = [weight / max(ladder.size - 1, 1) for weight, ladder in zip(weights, ladders, strict=True)]
        common = math.lcm(*(share.denominator for share in shares)) if shares else 1
        self._scale = [int(share * common) for share in shares]

    def of(
        self,
        attribute: int,
        labels: Sequence[tuple[Label, ...]],
        groups: Groups,
        place: Ints,
        leaves: Ints,
        failing: Mask,
    ) -> list[Value]:
        """What each of some parts gains. labels: of the parts; groups: that they are split into, each in the part of
        the place int64[G], with labels of the split attribute that stand for so many leaves int64[G]; failing: those
        that are suppressed then."""
        number = len(labels)
        rows = groups.rows
        if self._by == "discernibility":
            whole, inner = added(rows, place, number), added(np.where(failing, 0, rows * rows), place, number)
            lost = added(np.where(failing, rows, 0), place, number)
            return [
                w * w - i - self._rows * f
                for w, i, f in zip(whole.tolist(), inner.tolist(), lost.tolist(), strict=True)
            ]
        before = np.array([label[attribute].leaves for label in labels], dtype=np.int64)
        if self._by == "loss":
            gained = added(np.where(failing, 0, rows * (before[place] - leaves)), place, number)
            lost = added(np.where(failing, rows, 0), place, number)
            scale = self._scale[attribute]
            return [
                scale * g - (f * self._hidden(label) if f else 0)
                for g, f, label in zip(gained.tolist(), lost.tolist(), labels, strict=True)
            ]
        return self._divergence(groups, place, before, leaves, failing, number)

    def _hidden(self, labels: tuple[Label, ...]) -> int:
        """What it costs to suppress one row of a part."""
        triples = zip(self._scale, self._ladders, labels, strict=True)
        return sum(scale * (ladder.size - label.leaves) for scale, ladder, label in triples)

    def _divergence(
        self, groups: Groups, place: Ints, before: Ints, leaves: Ints, failing: Mask, number: int
    ) -> list[Value]:
        inner = np.zeros(number)
        shown = ~failing
        np.add.at(inner, place[shown], (groups.rows * np.log(before[place] / leaves))[shown])
        value = groups.values[:, self._column] if self._column is not None else np.zeros_like(groups.n)
        span = int(value.max(initial=0)) + 1
        keys, own = np.unique(groups.owner * span + value, return_inverse=True)
        n = np.bincount(own.reshape(-1), weights=groups.n, minlength=len(keys))
        of = place[keys // span]
        merged, whole = np.unique(of * span + keys % span, return_inverse=True)
        total = np.bincount(whole.reshape(-1), weights=n, minlength=len(merged))
        np.add.at(inner, of, n * np.log(n))
        np.add.at(inner, merged // span, -total * np.log(total))
        return [round(float(value) / self._rows, DIGITS) for value in inner]
