"""A generator of census-like people with skewed and correlated columns, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from qblock.blocks import Floats, Ints
from qblock.demo import vocabulary as v
from qblock.errors import InputError

ROWS = 50_000
MOST_ROWS = 50_000_000
SEED = 1

Codes = NDArray[np.intp]


def draw(random: np.random.Generator, weights: Floats, group: Codes | Ints) -> Codes:
    """intp[N]: for each row one of V values, by the weights [G, V] of the row's group.

    All groups share one search: their cumulative weights, each shifted by the group's number, form one sorted array.
    """
    groups, values = weights.shape
    steps = np.cumsum(weights, axis=1)
    steps = steps / steps[:, -1:] + np.arange(groups)[:, None]
    drawn = np.searchsorted(steps.ravel(), random.random(len(group)) + group, side="right") - group * values
    # The sum of a large group number and a share just below 1 may be rounded up to the next group.
    return np.minimum(drawn, values - 1)


def generate(rows: int = ROWS, seed: int | tuple[int, ...] = SEED) -> pa.Table:
    """The people: person_id (int64), age and hours (int16), and seven columns of text as dictionaries.

    Raises InputError when the number of rows is out of range.
    """
    if not 1 <= rows <= MOST_ROWS:
        raise InputError(f"{rows} rows are out of range; valid: 1 to {MOST_ROWS}")
    random = np.random.default_rng(seed)
    everybody = np.zeros(rows, dtype=np.intp)
    gender = draw(random, np.array([[0.507, 0.493]]), everybody)
    age = draw(random, v.age_weights()[None, :], everybody)
    stage = np.searchsorted(v.LIFE_STAGES, v.AGES, side="right")[age]
    marital = draw(random, marital_weights(), stage * 2 + gender)
    education = draw(random, v.EDUCATION_SHARES, stage)
    country = draw(random, country_weights(), stage)
    band = np.array([v.BANDS.index(bands[0]) for bands in v.EDUCATION.values()])[education]
    occupation = draw(random, occupation_weights(), band * 2 + gender)
    work = draw(random, work_weights(), occupation)
    salary = draw(random, salary_weights(), ((occupation * 4 + band) * 6 + stage) * 2 + gender)
    hours = draw(random, hours_weights(), work * 2 + gender)
    return pa.table(
        {
            "person_id": pa.array(np.arange(1, rows + 1, dtype=np.int64)),
            "age": pa.array(v.AGES.astype(np.int16)[age]),
            "gender": _text(gender, v.GENDERS),
            "marital_status": _text(marital, v.MARITAL_STATUS),
            "education": _text(education, v.EDUCATION),
            "country": _text(country, v.COUNTRIES),
            "work_class": _text(work, v.SECTORS),
            "occupation": _text(occupation, v.OCCUPATIONS),
            "salary_class": _text(salary, v.SALARIES),
            "hours": pa.array(v.HOURS.astype(np.int16)[hours]),
        }
    )


def marital_weights() -> Floats:
    """float64[6 * 2, 7], by stage of life and gender: women outlive their husbands."""
    weights = np.repeat(v.MARITAL_SHARES, 2, axis=0)
    weights[:, -1] *= np.tile(v.WIDOWED_BY_GENDER, len(v.MARITAL_SHARES))
    return weights


def country_weights() -> Floats:
    """float64[6, 35], by stage of life: one country dominates."""
    abroad = np.array([share for _, _, share in v.COUNTRIES.values()])
    weights = np.outer(v.BORN_ABROAD, abroad / abroad.sum())
    weights[:, list(v.COUNTRIES).index(v.HOME)] = 1 - np.array(v.BORN_ABROAD)
    return weights


def occupation_weights() -> Floats:
    """float64[4 * 2, 16], by education band and gender."""
    of_gender = np.stack([v.OCCUPATION_OF_WOMEN, 1 - v.OCCUPATION_OF_WOMEN])
    return (v.OCCUPATION_BY_BAND.T[:, None, :] * of_gender[None, :, :]).reshape(-1, len(v.OCCUPATIONS))


def work_weights() -> Floats:
    """float64[16, 8], by occupation."""
    sectors = list(dict.fromkeys(v.SECTORS.values()))
    sector = [sectors.index(name) for name in v.SECTORS.values()]
    return v.SECTOR_BY_OCCUPATION[:, sector] * np.array(v.WITHIN_SECTOR)


def salary_weights() -> Floats:
    """float64[16 * 4 * 6 * 2, 5], by occupation, education band, stage of life and gender."""
    score = (
        v.PAY_OF_OCCUPATION[:, None, None, None]
        + v.PAY_OF_BAND[:, None, None]
        + v.PAY_OF_STAGE[:, None]
        + v.PAY_OF_GENDER
    ).reshape(-1, 1)
    below = 1 / (1 + np.exp(score - np.array(v.SALARY_STEPS)))
    return np.diff(below, axis=1, prepend=0, append=1)


def hours_weights() -> Floats:
    """float64[8 * 2, 12], by class of work and gender: full time around 40, part time around 20, owners work long."""
    own = np.array([sector == "own business" for sector in v.SECTORS.values()])
    full, part = np.where(own, 50, 40)[:, None, None], np.array([0.4, 0.13])[:, None]
    at_full = np.exp(-(((v.HOURS - full) / 5) ** 2) / 2)
    at_part = np.exp(-(((v.HOURS - 20) / 7) ** 2) / 2)
    return ((1 - part) * at_full + part * at_part).reshape(-1, len(v.HOURS))


def _text(codes: Codes, values: object) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int8), pa.array(list(values)))  # type: ignore[call-overload]
