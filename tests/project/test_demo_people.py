"""The demo's people: reproducible, skewed and correlated as promised, and covered by their hierarchies."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from qblock.demo.people import draw, generate, hierarchies
from qblock.demo.write import write_demo
from qblock.errors import InputError
from qblock.models import parameters_of
from qblock.spec import load_spec


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return generate(50_000).to_pandas()


def shares(column: pd.Series) -> pd.Series:
    return column.value_counts(normalize=True)


def test_the_same_seed_gives_the_same_people_and_another_seed_others() -> None:
    assert generate(2_000, seed=7).equals(generate(2_000, seed=7))
    assert (
        not generate(2_000, seed=7).drop_columns("person_id").equals(generate(2_000, seed=8).drop_columns("person_id"))
    )


@pytest.mark.parametrize("rows", [0, -5, 10**9])
def test_a_number_of_rows_out_of_range_is_refused(rows: int) -> None:
    with pytest.raises(InputError, match="valid: 1 to"):
        generate(rows)


def test_every_person_is_a_row_without_gaps(people: pd.DataFrame) -> None:
    assert people["person_id"].is_unique
    assert len(people) == 50_000
    assert not people.isna().any().any()


def test_draw_follows_the_weights_of_each_group() -> None:
    weights = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 2.0], [2.0, 1.0, 1.0]])
    group = np.repeat([2, 0, 1], 20_000)
    found = draw(np.random.default_rng(3), weights, group)
    for number, expected in enumerate(weights / weights.sum(axis=1, keepdims=True)):
        share = np.bincount(found[group == number], minlength=3) / 20_000
        np.testing.assert_allclose(share, expected, atol=0.015)
        assert (share[expected == 0] == 0).all()


def test_draw_stays_within_the_group_when_the_random_number_is_next_to_one() -> None:
    class AlmostOne:
        def random(self, size: int) -> np.ndarray:
            return np.full(size, np.nextafter(1, 0))

    group = np.arange(5_000)
    found = draw(AlmostOne(), np.ones((5_000, 4)), group)  # type: ignore[arg-type]
    assert (found == 3).all()


def test_the_columns_are_skewed(people: pd.DataFrame) -> None:
    country = shares(people["country"])
    assert country.index[0] == "Ireland"
    assert 0.85 < country.iloc[0] < 0.95
    assert country.iloc[1] < 0.05
    assert country.iloc[-1] < 0.001
    assert 0.48 < shares(people["gender"])["woman"] < 0.53
    assert people["age"].min() == 16
    assert 0 < (people["age"] > 90).mean() < 0.01
    for name, values, most in (("education", 10, 0.35), ("work_class", 8, 0.4), ("occupation", 16, 0.15)):
        column = shares(people[name])
        assert len(column) == values
        assert column.iloc[0] < most
        assert column.iloc[0] > 2 * column.iloc[-1]


def test_age_goes_with_marital_status(people: pd.DataFrame) -> None:
    young, old = people[people["age"] < 25], people[people["age"] >= 65]
    assert shares(young["marital_status"])["never married"] > 0.7
    assert shares(old["marital_status"])["never married"] < 0.2
    assert shares(old["marital_status"])["widowed"] > 10 * shares(young["marital_status"])["widowed"]


def test_education_goes_with_occupation_and_salary(people: pd.DataFrame) -> None:
    university = people["education"].isin(["bachelor", "master", "doctorate"])
    teachers = people["occupation"] == "teaching"
    assert teachers[university].mean() > 5 * teachers[~university].mean()
    most = people["salary_class"] == "80k and over"
    assert most[university].mean() > 2 * most[~university].mean()
    by_occupation = most.groupby(people["occupation"]).mean()
    assert by_occupation["software"] > 5 * by_occupation["cleaning"]


def test_gender_goes_with_occupation(people: pd.DataFrame) -> None:
    women = (people["gender"] == "woman").groupby(people["occupation"]).mean()
    assert women["construction"] < 0.15
    assert women["personal care"] > 0.7


@pytest.mark.parametrize("name", sorted(hierarchies()))
def test_a_hierarchy_covers_every_value_nests_and_ends_in_a_star(name: str, people: pd.DataFrame) -> None:
    header, *rows = csv.reader(io.StringIO(hierarchies()[name]))
    assert header[0] == name
    assert len(set(header)) == len(header)
    leaves = [row[0] for row in rows]
    assert len(set(leaves)) == len(leaves)
    assert set(people[name].astype(str)) <= set(leaves)
    assert {row[-1] for row in rows} == {"*"}
    for level in range(len(header) - 1):
        above: dict[str, str] = {}
        for row in rows:
            assert above.setdefault(row[level], row[level + 1]) == row[level + 1]
        assert len({row[level + 1] for row in rows}) < len(above)


def suppressed(people: pd.DataFrame, levels: dict[str, int], k: int, entropy_l: float) -> int:
    """The rows of blocks with fewer than k rows or too little entropy; a column not named is at its top."""
    published = people[["occupation"]].copy()
    for name, level in levels.items():
        labels = {row[0]: row[level] for row in csv.reader(io.StringIO(hierarchies().get(name, "")))}
        published[name] = people[name].astype(str).map(labels) if level else people[name].astype(str)
    counts = published.groupby([*levels, "occupation"], observed=True).size()
    rows = counts.groupby(level=list(levels)).transform("sum")
    share = counts / rows
    entropy = (-share * np.log(share)).groupby(level=list(levels)).transform("sum")
    failing = (rows < k) | (np.exp(entropy) < entropy_l - 1e-9)
    return int(counts[failing].sum())


def test_diversity_costs_the_demo_something_and_does_not_take_all(people: pd.DataFrame, tmp_path: Path) -> None:
    spec = load_spec(write_demo(tmp_path, rows=10).spec)
    wanted = {entry.model.name: parameters_of(entry.model) for entry in spec.privacy}
    k, entropy_l = wanted["k_anonymity"]["k"], float(wanted["entropy_l_diversity"]["l"])
    allowed = spec.suppressed_rows_allowed(len(people))
    of_k_anonymity = {"gender": 0, "marital_status": 1, "education": 1, "work_class": 1}
    chosen = {"gender": 0, "marital_status": 1, "education": 2, "work_class": 0}
    assert suppressed(people, dict.fromkeys(spec.quasi_identifiers, 0), k, 1) > allowed
    assert suppressed(people, of_k_anonymity, k, 1) <= allowed < suppressed(people, of_k_anonymity, k, entropy_l)
    assert suppressed(people, chosen, k, entropy_l) <= allowed
