"""Answers to a health survey: 1.2 million rows, nine quasi-identifiers, 25,920 nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.draws import Floats, draw_codes, near, numbers, shuffled, text, zipf
from benchmarks.nested import nested
from qblock.demo.people import draw

ROWS = 1_193_504
SHAPE_SEED, ROWS_SEED = 20_265, 20_266
YEARS = [str(year) for year in range(1997, 2010)]
QUARTERS = ["Q1", "Q2", "Q3", "Q4"]
REGIONS = ["Northeast", "Midwest", "South", "West"]
PERSONS, AGES, MARITAL, RACES, EDUCATION, HEALTH = 25, 86, 10, 16, 26, 10
WIDTHS = {"year": [3, 6], "quarter": [2], "region": [2], "person": [3, 9], "age": [5, 10, 20], "marital": [4]} | {
    "education": [5]
}
FILES = {name: {"hierarchy": {"file": f"{name}.csv"}} for name in WIDTHS}
SUPPRESSED: dict[str, Any] = {"hierarchy": "suppress"}
QUASI: dict[str, dict[str, Any]] = {
    **{name: FILES[name] for name in ("year", "quarter", "region", "person", "age", "marital")},
    "sex": SUPPRESSED,
    "race": SUPPRESSED,
    "education": FILES["education"],
}
SENSITIVE = "health"


def codes(letter: str, number: int) -> list[str]:
    return [f"{letter}{code:02}" for code in range(number)]


VALUES = {
    "year": YEARS,
    "quarter": QUARTERS,
    "region": REGIONS,
    "person": [str(number) for number in range(1, PERSONS + 1)],
    "age": [str(age) for age in range(AGES)],
    "marital": codes("m", MARITAL),
    "education": codes("e", EDUCATION),
}


def hierarchies() -> dict[str, str]:
    """The CSV file of each attribute that has one."""
    return {name: nested(name, VALUES[name], widths) for name, widths in WIDTHS.items()}


def generate(rows: int, part: int = 0) -> pa.Table:
    """The answers of one part."""
    shape, random = np.random.default_rng(SHAPE_SEED), np.random.default_rng((ROWS_SEED, part))
    age = draw_codes(random, _ages(), rows)
    stage = age // 5
    stages = np.arange(AGES // 5 + 1)
    region = draw_codes(random, np.array([0.18, 0.24, 0.37, 0.21]), rows)
    race = draw(random, np.stack([zipf(RACES, 1.5) * np.exp(shape.normal(0, 0.5, RACES)) for _ in REGIONS]), region)
    sex = draw(random, np.stack([[0.49 - 0.006 * s, 0.51 + 0.006 * s] for s in stages]), stage)
    school = np.where(stages < 4, 1 + 3.5 * stages, 16 - 0.3 * (stages - 4))
    education = draw(random, near(school, EDUCATION, 3.5, 0.03) * shuffled(zipf(EDUCATION, 0.4), shape), stage)
    return pa.table(
        {
            "year": numbers(draw_codes(random, np.linspace(1.2, 0.8, 13) / 13, rows), range(1997, 2010), pa.int32()),
            "quarter": text(draw_codes(random, np.array([0.26, 0.25, 0.24, 0.25]), rows), QUARTERS),
            "region": text(region, REGIONS),
            "person": numbers(draw(random, _persons(stages), stage), np.arange(1, PERSONS + 1), pa.int32()),
            "age": numbers(age, np.arange(AGES), pa.int32()),
            "marital": text(draw(random, _marital(stages), stage), VALUES["marital"]),
            "sex": text(sex, ["f", "m"]),
            "race": text(race, codes("r", RACES)),
            "education": text(education, VALUES["education"]),
            "health": text(draw(random, _health(), age), codes("h", HEALTH)),
        }
    )


def _ages() -> Floats:
    shares = np.where(np.arange(AGES) < 55, 1.0, np.exp(-(np.arange(AGES) - 55) / 18))
    shares[-1] *= 3  # those who are older, too
    return shares / shares.sum()


def _persons(stages: Floats) -> Floats:
    """float64[18, 25]: adults come first in a household, children after them."""
    order = np.arange(1, PERSONS + 1)
    adults, children = order**-2.4, np.where(order < 3, 0.02, (np.maximum(order, 3) - 2.0) ** -2.2)
    return np.where(stages[:, None] < 4, children, adults)


def _marital(stages: Floats) -> Floats:
    """float64[18, 10]: children, single, married and what comes after, each with rarer forms."""
    return near(np.clip(stages - 1.5, 0, 9) * 0.7, MARITAL, 1.2, 0.06)


def _health() -> Floats:
    """float64[86, 10]: it falls with age."""
    return near(3.0 + 1.6 * (np.arange(AGES) / AGES) ** 1.5, HEALTH, 2.2)
