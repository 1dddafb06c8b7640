"""Orders of a mail-order house: 4.6 million rows, seven quasi-identifiers, 1,920 nodes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.draws import Floats, draw_codes, near, numbers, shuffled, text, zipf
from qblock.demo.people import draw

ROWS = 4_591_581
SHAPE_SEED, ROWS_SEED = 20_261, 20_264
ZIP_CODES, DAYS, STYLES, PRICES, COSTS, QUANTITIES = 31_953, 320, 1_509, 346, 147, 5
FIRST_DAY = "2023-06-01"
SEASONS = 4
QUASI: dict[str, dict[str, Any]] = {
    "zipcode": {"hierarchy": {"digits": 5}},
    "order_date": {"hierarchy": {"dates": ["month", "year"]}},
    "gender": {"hierarchy": "suppress"},
    "style": {"hierarchy": "suppress"},
    "price": {"hierarchy": {"digits": 4}},
    "quantity": {"hierarchy": "suppress"},
    "shipment": {"hierarchy": "suppress"},
}
SENSITIVE = "cost"


class Shape:
    """What does not depend on the draw: values, and how they depend on each other."""

    def __init__(self) -> None:
        random = np.random.default_rng(SHAPE_SEED)
        areas = np.repeat(np.exp(random.normal(0, 0.8, 1000)), 100)
        codes = np.sort(random.choice(100_000, ZIP_CODES, replace=False, p=areas / areas.sum()))
        self.zip_codes = [f"{code:05}" for code in codes]
        self.zip_shares = shuffled(zipf(ZIP_CODES, 0.7), random)
        days = np.arange(DAYS)
        self.day_shares = (1 + 0.8 * np.cos((days - 190) / 58)) * np.where(days % 7 < 5, 1, 0.4)
        self.day_shares /= self.day_shares.sum()
        self.season = days * SEASONS // DAYS
        self.styles = [f"S{number:04}" for number in random.permutation(10_000)[:STYLES]]
        self.style_weights = self._style_weights(random)
        self.prices = np.unique(np.round(np.exp(np.linspace(np.log(60), np.log(6000), 390))).astype(int))[:PRICES]
        self.price_weights = self._price_weights(random)
        self.cost_weights = near(np.arange(PRICES) * (COSTS - 1) / (PRICES - 1), COSTS, 6, 1e-3)
        self.cost_weights *= shuffled(zipf(COSTS, 0.7), random)
        self.costs = np.arange(COSTS) * 25 + 30

    @staticmethod
    def _style_weights(random: np.random.Generator) -> Floats:
        """float64[2 * SEASONS, STYLES]: most styles are for one gender, and many for one season."""
        weights = np.tile(shuffled(zipf(STYLES, 0.8), random), (2, SEASONS, 1))
        for_men, best = random.random(STYLES) < 0.35, random.integers(0, SEASONS, STYLES)
        weights *= np.where(np.stack([~for_men, for_men]), 1, 0.06)[:, None, :]
        weights *= np.where(np.arange(SEASONS)[:, None] == best, 1, random.uniform(0.1, 0.8, STYLES))[None, :, :]
        return weights.reshape(-1, STYLES)

    @staticmethod
    def _price_weights(random: np.random.Generator) -> Floats:
        """float64[STYLES, PRICES]: a list price, sales below it, and bundles at some others."""
        listed = np.clip(random.normal(0.5, 0.22, STYLES), 0.02, 0.98) * PRICES
        below = listed.astype(int)[:, None] - np.arange(PRICES)[None, :]
        return np.where(below >= 0, np.exp(-np.maximum(below, 0) / 5), 0) + np.where(below % 40 == 0, 4e-3, 0)


@cache
def shape() -> Shape:
    return Shape()


def generate(rows: int, part: int = 0) -> pa.Table:
    """The orders of one part; parts differ in what is drawn, not in its distributions."""
    s, random = shape(), np.random.default_rng((ROWS_SEED, part))
    day = draw_codes(random, s.day_shares, rows)
    gender = draw_codes(random, np.array([0.68, 0.32]), rows)
    style = draw(random, s.style_weights, gender * SEASONS + s.season[day])
    price = draw(random, s.price_weights, style)
    express = draw(random, np.array([[0.93, 0.07], [0.8, 0.2]]), (price > PRICES // 2).astype(np.intp))
    return pa.table(
        {
            "zipcode": text(draw_codes(random, s.zip_shares, rows), s.zip_codes),
            "order_date": pa.array(np.datetime64(FIRST_DAY, "D") + day, pa.date32()),
            "gender": text(gender, ["F", "M"]),
            "style": text(style, s.styles),
            "price": numbers(price, s.prices, pa.int32()),
            "quantity": numbers(
                draw_codes(random, zipf(QUANTITIES, 2.5), rows), np.arange(1, QUANTITIES + 1), pa.int32()
            ),
            "shipment": text(express, ["standard", "express"]),
            "cost": numbers(draw(random, s.cost_weights, price), s.costs, pa.int32()),
        }
    )
