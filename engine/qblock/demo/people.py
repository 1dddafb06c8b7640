"""Census-like people with skewed and correlated columns, week by week, the same for a seed, and their hierarchies."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from qblock.blocks import Floats, Ints
from qblock.errors import InputError

ROWS = 50_000
MOST_ROWS = 50_000_000
SEED = 1

Codes = NDArray[np.intp]
WORDS = SimpleNamespace(**tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8")))
"""The values of the columns, how they group, and how often they occur together."""
AGES = np.arange(WORDS.ages[0], WORDS.ages[1] + 1)
HOURS = np.arange(5, 65, 5)
TOP = "*"
WEEKS = 4
"""Of a month."""
JOIN, CHANGE = 100, 1000
"""One in so many people leaves in a week, as many join, and one in so many is paid otherwise."""


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
    gender = draw(random, np.array([WORDS.gender_shares]), everybody)
    age = draw(random, np.interp(AGES, WORDS.age_points, WORDS.age_weights)[None, :], everybody)
    stage = np.searchsorted(WORDS.life_stages, AGES, side="right")[age]
    marital = draw(random, marital_weights(), stage * 2 + gender)
    education = draw(random, np.array(WORDS.education_shares), stage)
    country = draw(random, country_weights(), stage)
    band = np.array([WORDS.bands.index(labels[0]) for labels in WORDS.education.values()])[education]
    occupation = draw(random, occupation_weights(), band * 2 + gender)
    work = draw(random, work_weights(), occupation)
    salary = draw(random, salary_weights(), ((occupation * 4 + band) * 6 + stage) * 2 + gender)
    hours = draw(random, hours_weights(), work * 2 + gender)
    return pa.table(
        {
            "person_id": pa.array(np.arange(1, rows + 1, dtype=np.int64)),
            "age": pa.array(AGES.astype(np.int16)[age]),
            "gender": _text(gender, WORDS.genders),
            "marital_status": _text(marital, WORDS.marital_status),
            "education": _text(education, WORDS.education),
            "country": _text(country, WORDS.countries),
            "work_class": _text(work, WORDS.sectors),
            "occupation": _text(occupation, WORDS.occupations),
            "salary_class": _text(salary, WORDS.salaries),
            "hours": pa.array(HOURS.astype(np.int16)[hours]),
        }
    )


def marital_weights() -> Floats:
    """float64[6 * 2, 7], by stage of life and gender: women outlive their husbands."""
    weights = np.repeat(np.array(WORDS.marital_shares), 2, axis=0)
    weights[:, -1] *= np.tile(WORDS.widowed_by_gender, len(WORDS.marital_shares))
    return weights


def country_weights() -> Floats:
    """float64[6, 35], by stage of life: one country dominates."""
    abroad, born_abroad = np.array(WORDS.country_weights), np.array(WORDS.born_abroad)
    weights = np.outer(born_abroad, abroad / abroad.sum())
    weights[:, list(WORDS.countries).index(WORDS.home)] = 1 - born_abroad
    return weights


def occupation_weights() -> Floats:
    """float64[4 * 2, 16], by education band and gender."""
    women, by_band = np.array(WORDS.occupation_of_women), np.array(WORDS.occupation_by_band)
    of_gender = np.stack([women, 1 - women])
    return (by_band.T[:, None, :] * of_gender[None, :, :]).reshape(-1, len(WORDS.occupations))


def work_weights() -> Floats:
    """float64[16, 8], by occupation."""
    sectors = list(dict.fromkeys(name for (name,) in WORDS.sectors.values()))
    sector = [sectors.index(name) for (name,) in WORDS.sectors.values()]
    return np.array(WORDS.sector_by_occupation)[:, sector] * np.array(WORDS.within_sector)


def salary_weights() -> Floats:
    """float64[16 * 4 * 6 * 2, 5], by occupation, education band, stage of life and gender."""
    score = (
        np.array(WORDS.pay_of_occupation)[:, None, None, None]
        + np.array(WORDS.pay_of_band)[:, None, None]
        + np.array(WORDS.pay_of_stage)[:, None]
        + np.array(WORDS.pay_of_gender)
    ).reshape(-1, 1)
    below = 1 / (1 + np.exp(score - np.array(WORDS.salary_steps)))
    return np.diff(below, axis=1, prepend=0, append=1)


def hours_weights() -> Floats:
    """float64[8 * 2, 12], by class of work and gender: full time around 40, part time around 20, owners work long."""
    own = np.array([sector == ["own business"] for sector in WORDS.sectors.values()])
    full, part = np.where(own, 50, 40)[:, None, None], np.array([0.4, 0.13])[:, None]
    at_full = np.exp(-(((HOURS - full) / 5) ** 2) / 2)
    at_part = np.exp(-(((HOURS - 20) / 7) ** 2) / 2)
    return ((1 - part) * at_full + part * at_part).reshape(-1, len(HOURS))


def _text(codes: Codes, values: object) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int8), pa.array(list(values)))  # type: ignore[call-overload]


def hierarchies() -> dict[str, str]:
    """For each column that has one, its CSV file: a header, then each leaf with its labels from fine to coarse."""
    columns = {"marital_status": WORDS.marital_status, "education": WORDS.education, "country": WORDS.countries}
    columns |= {"work_class": WORDS.sectors, "occupation": WORDS.occupations}
    ages = {str(age): [_range(int(age), width) for width in WORDS.age_ranges] for age in AGES}
    return {name: _csv(name, labels) for name, labels in ({"age": ages} | columns).items()}


def _csv(name: str, labels: Mapping[str, list[str]]) -> str:
    rows = [(leaf, *above, TOP) for leaf, above in labels.items()]
    header = (name, *(f"{name}_{level}" for level in range(1, len(rows[0]))))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _range(age: int, width: int) -> str:
    start = age - age % width
    return f"{start}-{start + width - 1}"


class Change(NamedTuple):
    """The people after a time, and how many of them joined, left and changed in it."""

    people: pa.Table
    joined: int
    left: int
    changed: int


def next_week(people: pa.Table, number: int, seed: int) -> Change:
    """The people of week `number`, from those of the week before, in the form of `generate`; the same for a seed."""
    random = np.random.default_rng([seed, number])
    rows = len(people)
    moved, changed = max(1, rows // JOIN), max(1, rows // CHANGE)
    drawn = random.permutation(rows)
    leaving, paid = drawn[:moved], drawn[moved : moved + changed]
    salary = people.column("salary_class").combine_chunks()
    codes = salary.indices.to_numpy().copy()
    codes[paid] = (codes[paid] + 1) % len(WORDS.salaries)
    index = people.schema.get_field_index("salary_class")
    now = people.set_column(index, "salary_class", pa.DictionaryArray.from_arrays(codes, salary.dictionary))
    stays = np.ones(rows, dtype=bool)
    stays[leaving] = False
    last = pc.max(people.column("person_id")).as_py()
    joining = generate(moved, (seed, number))
    identifiers = pa.array(np.arange(last + 1, last + 1 + moved, dtype=np.int64))
    joining = joining.set_column(0, "person_id", identifiers)
    return Change(pa.concat_tables([now.filter(pa.array(stays)), joining]), moved, moved, changed)


def next_month(people: pa.Table, number: int, seed: int) -> Change:
    """The people of month `number`, four weeks after the one before; whoever came and left in it is not counted."""
    now = people
    for week in range(WEEKS):
        now = next_week(now, WEEKS * number + week, seed).people
    before, after = (table.column("person_id").to_numpy() for table in (people, now))
    stayed, there = np.isin(before, after), np.isin(after, before)
    # The order of those who stay is the same.
    paid_before, paid_now = (
        table.column("salary_class").combine_chunks().indices.to_numpy()[of]
        for table, of in ((people, stayed), (now, there))
    )
    return Change(now, int((~there).sum()), int((~stayed).sum()), int((paid_before != paid_now).sum()))
