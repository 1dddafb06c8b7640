"""What the tables are drawn with: skewed shares, and distributions that depend on another attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qblock.demo.people import draw

Codes = NDArray[np.intp]
Floats = NDArray[np.float64]


def zipf(values: int, exponent: float) -> Floats:
    """float64[values]: shares that fall with the rank."""
    shares = np.arange(1, values + 1) ** -exponent
    return shares / shares.sum()


def shuffled(shares: Floats, random: np.random.Generator) -> Floats:
    """The shares in another order, so that a code does not tell its rank."""
    return random.permutation(shares)


def near(middles: Sequence[float] | Floats, values: int, spread: float, least: float = 0.0) -> Floats:
    """float64[len(middles), values]: weights that fall with the distance from each middle; none where it is less."""
    distance = (np.arange(values)[None, :] - np.asarray(middles)[:, None]) / spread
    weights = np.exp(-(distance**2) / 2)
    return np.where(weights < least, 0, weights)


def draw_codes(random: np.random.Generator, shares: Floats, rows: int) -> Codes:
    """intp[rows]: codes by the same shares for every row."""
    return draw(random, shares[None, :], np.zeros(rows, dtype=np.intp))


def text(codes: Codes, values: Sequence[str]) -> pa.Array:
    """The values of codes as texts."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values)).cast(pa.string())


def numbers(codes: Codes, values: Any, type_: pa.DataType) -> pa.Array:
    """The values of codes as numbers."""
    return pa.array(np.asarray(values)[codes], type_)
