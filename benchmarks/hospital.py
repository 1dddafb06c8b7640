"""Stays in hospitals as they are stored, not prepared for anything: long codes, times of the day, values that lack."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.draws import Floats, draw_codes, near, numbers, shuffled, text, zipf
from qblock.demo.people import draw

ROWS = 200_000
SHAPE_SEED, ROWS_SEED = 20_267, 20_268
CODES, DIAGNOSES, AGES = 4_000, 60, 100
NO_PRACTICE = 0.04
FIRST_DAY, DAYS = np.datetime64("2022-01-01T00:00:00"), 3 * 365
QUASI: dict[str, dict[str, Any]] = {
    "postcode": {"hierarchy": {"digits": 5}},
    "practice": {"hierarchy": {"digits": 5}, "nulls": "top"},
    "admitted": {"hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
    "age": {"hierarchy": {"ranges": [5, 10, 20]}},
    "sex": {"hierarchy": "suppress"},
}
SENSITIVE = "diagnosis"


@cache
def shape() -> tuple[Any, Any, Floats, Floats, Floats]:
    """Postcodes and practices int64[4000], shares of the postcodes, of practices by area, of diagnoses by age."""
    random = np.random.default_rng(SHAPE_SEED)
    areas = random.choice(100, 8, replace=False) * 1000
    postcodes, practices = (
        np.sort(np.concatenate([area + random.choice(1000, CODES // 8, replace=False) for area in areas]))
        for _ in range(2)
    )
    shares = shuffled(zipf(CODES, 0.7), random)
    same = postcodes[:, None] // 1000 == np.unique(areas // 1000)[None, :]
    of_practice = practices[None, :] // 1000 == np.unique(areas // 1000)[:, None]
    by_area = np.where(of_practice, 1, 0.01) * shuffled(zipf(CODES, 0.6), random)
    assert same.any(axis=1).all()
    by_age = near(np.arange(AGES) / AGES * DIAGNOSES, DIAGNOSES, 22, 0.02) * shuffled(zipf(DIAGNOSES, 1.1), random)
    return postcodes, practices, shares, by_area, by_age


def generate(rows: int, part: int = 0) -> pa.Table:
    """The stays of one part."""
    postcodes, practices, shares, by_area, by_age = shape()
    random = np.random.default_rng((ROWS_SEED, part))
    home = draw_codes(random, shares, rows)
    area = np.unique(postcodes // 1000, return_inverse=True)[1][home]
    practice = text(draw(random, by_area, area), [f"{code:05}" for code in practices]).to_numpy(zero_copy_only=False)
    age = np.minimum(random.gamma(6, 9.5, rows).astype(np.intp), AGES - 1)
    day = random.integers(0, DAYS, rows)
    second = np.clip(random.normal(11 * 3600, 4 * 3600, rows), 0, 86_399).astype(np.int64)
    return pa.table(
        {
            "postcode": text(home, [f"{code:05}" for code in postcodes]),
            "practice": pa.array(practice, pa.string(), mask=random.random(rows) < NO_PRACTICE),
            "admitted": pa.array((FIRST_DAY + day * 86_400 + second).astype("datetime64[us]"), pa.timestamp("us")),
            "age": numbers(age, np.arange(AGES), pa.int32()),
            "sex": text(draw_codes(random, np.array([0.53, 0.47]), rows), ["f", "m"]),
            "diagnosis": text(draw(random, by_age, age), [f"d{code:02}" for code in range(DIAGNOSES)]),
        }
    )
