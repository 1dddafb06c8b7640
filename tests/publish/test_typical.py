"""Means of blocks beside their labels (`publish.typical`): right, rounded within the label, and only where offered."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from attack.typical import grain as by_trial
from attack.typical import rounded as nearest_inside
from hypothesis import given
from hypothesis import strategies as st
from release.jobs import Job, MakeJob

from qblock.errors import InputError, Refused
from qblock.hierarchy.bounds import Reader
from qblock.publish.typical import Numbers, Within, grain
from qblock.release.verify import verify
from qblock.releases import Release

pytestmark = pytest.mark.either_engine

NUMBERS = ("age", "dose", "income")
TYPES = {"age": "INTEGER", "dose": "DOUBLE PRECISION", "income": "DECIMAL(12, 2)"}
RANGES: dict[str, dict[str, Any]] = {
    "age": {"ranges": [10, 30]},
    "dose": {"edges": [10, 20, 30]},
    "income": {"ranges": [25000]},
}
QUASI = {name: {"role": "quasi_identifier", "hierarchy": RANGES[name]} for name in NUMBERS} | {"disease": "sensitive"}
MAP = {"recoding": "multidimensional", "choose_by": "loss"}


def table(rows: int = 240, seed: int = 7) -> dict[str, list[Any]]:
    rng = random.Random(seed)
    return {
        "age": [rng.randint(18, 77) for _ in range(rows)],
        "dose": [round(rng.uniform(0.05, 40), 3) for _ in range(rows)],
        "income": [Decimal(rng.randint(0, 9_999_999)).scaleb(-2) for _ in range(rows)],
        "disease": ["abc"[i % 3] for i in range(rows)],
    }


def typical(make_job: MakeJob, search: dict[str, Any], rows: dict[str, list[Any]] | None = None, **more: Any) -> Job:
    settings: dict[str, Any] = {"attributes": QUASI, "privacy": [{"k_anonymity": {"k": 2}}], **more}
    job = make_job(rows or table(), TYPES, search=search, **settings)
    job.settings["publish"] |= {"typical": "mean"}
    return job


def by_hand(label: str, low: float, high: float, numbers: list[Fraction], *, whole: bool) -> float | None:
    """The mean as it is shown, by trying multiples around it."""
    if math.isinf(low) or math.isinf(high):
        return None
    if label.replace(".", "").isdecimal():
        return float(label)
    first, last = Fraction(low), Fraction(high) - whole
    steps = (first_digit * Fraction(10) ** e for e in range(-20, 9) for first_digit in (1, 2, 5))
    step = next(step for step in steps if step * len(numbers) >= last - first)
    mean = sum(numbers) / Fraction(len(numbers))
    near = math.floor(mean / step)
    inside = [i * step for i in range(near - 6, near + 8) if first <= i * step < last or (whole and i * step == last)]
    return float(min(inside, key=lambda at: (abs(at - mean), -at))) if inside else None


def check_means(job: Job, rows: dict[str, list[Any]], typed: tuple[str, ...] = ()) -> int:
    """Compare the means of all blocks with those of the rows of the source that are within all of a block's bounds.
    Returns how many there are. typed: the columns that every row shows as they are, without bounds and means."""
    names = [name for name in NUMBERS if name not in typed]
    columns = ", ".join([*typed, *(f"{name}, {name}_low, {name}_high, {name}_mean" for name in names)])
    blocks = job.query(f"SELECT {columns}, count(*) FROM published.people GROUP BY {columns}")
    shown, labels = 0, set()
    for *texts, n in blocks:
        as_it_is = dict(zip(typed, texts, strict=False))
        own = {name: texts[len(typed) + 4 * i :][:4] for i, name in enumerate(names)}
        inside = [
            i
            for i in range(len(rows["age"]))
            if all(rows[name][i] == value for name, value in as_it_is.items())
            and all(low <= Fraction(rows[name][i]) < high for name, (_, low, high, _) in own.items())
        ]
        assert len(inside) == n
        for name, (label, low, high, mean) in own.items():
            numbers = [Fraction(rows[name][i]) for i in inside]
            assert mean == by_hand(label, low, high, numbers, whole=name == "age"), (label, n)
            shown += mean is not None
        labels.add((*as_it_is.values(), *(label for label, *_ in own.values())))
    assert len(blocks) == len(labels)
    return shown


@pytest.mark.parametrize("node", [[1, 1, 1], [2, 1, 2], [3, 2, 1]], ids=str)
def test_beside_the_labels_of_a_node_is_the_mean_of_each_block(make_job: MakeJob, node: list[int]) -> None:
    rows = {name: values + values for name, values in table(120).items()}
    job = typical(make_job, {"node": node}, rows)
    job.run()
    assert check_means(job, rows) > 3
    assert not verify(job.spec).problems


def test_beside_the_labels_of_a_map_is_the_mean_of_each_block(make_job: MakeJob) -> None:
    rows = table(400)
    job = typical(make_job, MAP, rows, privacy=[{"k_anonymity": {"k": 5}}])
    job.run()
    assert check_means(job, rows) > 50
    assert not verify(job.spec).problems
    (mean,) = job.query("SELECT avg(age_mean) FROM published.people WHERE age_mean IS NOT NULL")[0]
    assert abs(float(mean) - sum(rows["age"]) / 400) < 1


def test_an_estimate_takes_the_means_of_blocks(make_job: MakeJob) -> None:
    rows = table(400)
    job = typical(make_job, MAP, rows, privacy=[{"k_anonymity": {"k": 5}}])
    job.run()
    answer = Release(job.spec).estimate("mean", "age", where={"disease": "a"})
    ((known, middle),) = job.query("SELECT count(age_mean), avg(age_mid) FROM published.people_midpoints")
    assert Release(job.spec).estimate("mean", "age").expected == pytest.approx(float(middle))
    ((mean,),) = job.query("SELECT avg(age_mid) FROM published.people_midpoints WHERE disease = 'a'")
    assert answer.expected == pytest.approx(float(mean))
    shown = job.query("SELECT age_mid - age_mean FROM published.people_midpoints WHERE age_mean IS NOT NULL")
    assert shown == [(0.0,)] * known
    # Of those of 60 and more a block's mean says less than the label.
    older = Release(job.spec).estimate("mean", "age", where={"age": {"from": 60}})
    assert older.at_least is not None
    assert older.expected is not None
    assert older.expected >= older.at_least >= 60


def test_where_every_row_shows_the_value_there_is_no_mean(make_job: MakeJob) -> None:
    rows = {name: values + values for name, values in table(60).items()}
    job = typical(make_job, {"node": [0, 1, 1]}, rows)
    job.run()
    assert check_means(job, rows, ("age",)) > 3
    columns = [name for (name,) in job.query("SELECT column_name FROM published.people_columns")]
    assert "age_mean" not in columns


def test_a_label_with_a_number_that_is_not_known_has_none(make_job: MakeJob) -> None:
    rows = {name: values + values for name, values in table(60).items()}
    rows["age"][3] = rows["age"][63] = None
    attributes = QUASI | {"age": QUASI["age"] | {"nulls": "top"}}
    job = typical(make_job, {"node": [1, 2, 2]}, rows, attributes=attributes)
    job.run()
    unknown = job.query("SELECT age, age_mean, dose_mean FROM published.people WHERE age NOT LIKE '%-%'")
    assert unknown == [("*", None, None)] * 2


def test_readers_are_told_what_the_means_are(make_job: MakeJob) -> None:
    job = typical(make_job, MAP, privacy=[{"k_anonymity": {"k": 5}}])
    job.settings["publish"]["names"] = {"age_mean": "mean_age"}
    job.run()
    said = dict(job.query("SELECT column_name, how_to_filter FROM published.people_columns WHERE role LIKE 'mean of%'"))
    assert list(said) == ["mean_age", "dose_mean", "income_mean"]
    assert "avg(dose_mean)" in said["dose_mean"]
    published = Release(job.spec).report().published
    assert published is not None
    after = {column.name: column.after for column in published.columns}
    assert after["mean_age"] == "the mean of age in each block, rounded"


def test_a_name_that_is_taken_is_refused(make_job: MakeJob) -> None:
    rows = table() | {"age_mean": ["x"] * 240}
    job = typical(make_job, MAP, rows, attributes=QUASI | {"age_mean": "insensitive"})
    with pytest.raises(InputError, match=r"the means of age would be published as age_mean.*age_mean: age_mean_of_row"):
        job.run()


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"entity": "age", "attributes": QUASI | {"age": "identifying"}}, "leave `entity` and `groups` out"),
        ({"versions": {"joint": "none"}}, "leave `versions: {joint: none}` out"),
        ({"suppression_limit": 0.02}, "leave `suppression_limit` out"),
        ({"privacy": [{"distinct_l_diversity": {"l": 2}}]}, "add `k_anonymity: {k: 5}`"),
        ({"privacy": [{"k_anonymity": {"k": 1}}]}, "add `k_anonymity: {k: 5}`"),
        ({"privacy": [{"k_anonymity": {"k": 5}}, {"k_map": {"k": 5, "population": "people"}}]}, "leave `k_map`"),
    ],
    ids=["entity", "joint", "suppression", "diversity", "k", "population"],
)
def test_where_means_would_tell_more_than_labels_they_are_refused(
    make_job: MakeJob, settings: dict[str, Any], remedy: str
) -> None:
    job = typical(make_job, {}, **settings)
    with pytest.raises(InputError, match=remedy):
        job.spec  # noqa: B018


def test_a_copy_with_another_mean_is_not_published(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = typical(make_job, MAP)
    right = Numbers.mean

    def beyond(of: Numbers, label: str, known: int, total: str | None, rows: int) -> str | None:
        shown = right(of, label, known, total, rows)
        return None if shown is None else repr(float(shown) + 1e-3)

    monkeypatch.setattr(Numbers, "mean", beyond)
    with pytest.raises(Refused, match="means that its blocks cannot have"):
        job.run()


@given(st.integers(-50, 50), st.lists(st.integers(0, 40), min_size=1, max_size=9), st.integers(0, 40))
def test_a_rounded_mean_is_the_nearest_multiple_in_the_label(low: int, more: list[int], width: int) -> None:
    numbers = [low + min(number, width) for number in more]
    within = Within(Fraction(low), Fraction(low + width), whole=True)
    shown = within.rounded(Fraction(sum(numbers), len(numbers)), len(numbers))
    assert shown == (nearest_inside(numbers, (low, low + width)) if width else low)
    assert shown is None or within.allows(float(shown), len(numbers))


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6), st.integers(1, 999))
def test_one_person_moves_a_mean_by_a_grain_at_most(width: Fraction, people: int) -> None:
    step = grain(width, people)
    assert width / people <= step < Fraction(5, 2) * width / people
    if width.denominator == 1 and width / people > Fraction(1, 10**6) and width < 10**6:
        assert step == by_trial(int(width), people)


def test_an_example_by_hand() -> None:
    """21, 22 and 29 in the label 20-29: one of three moves the mean, 24, by 3 at most, so that it is shown as 25."""
    label = Within(Fraction(20), Fraction(29), whole=True)
    assert grain(Fraction(9), 3) == 5
    assert label.rounded(Fraction(24), 3) == 25
    # All of 29: 30 would tell that, and is no number of the label.
    assert label.rounded(Fraction(29), 3) == 25
    # A label that ends before 30 does not have it, whatever comes near.
    assert Within(Fraction(20), Fraction(30), whole=False).rounded(Fraction("29.9"), 3) == 25
    # Of a label narrower than a grain no multiple may be in it.
    assert Within(Fraction(11), Fraction(14), whole=True).rounded(Fraction(12), 1) is None
    assert Within(Fraction(11), Fraction(11), whole=True).rounded(Fraction(11), 1) == 11


def test_a_mean_of_what_is_not_known_or_was_added_in_another_order() -> None:
    ages = Numbers("age", 0, "integer", Reader("numbers", "integer"))
    assert ages.mean("20-29", 3, "72", 3) == "25.0"
    assert ages.mean("20-29", 2, "48", 3) is None
    assert ages.mean("<20", 3, "48", 3) is None
    assert ages.mean("*", 3, "48", 3) is None
    # A mean of 1 is between 0 and 2, in whatever order an engine adds up.
    doses = Numbers("dose", 0, "float", Reader("numbers", "float"))
    assert {doses.mean("[0, 10)", 5, total, 5) for total in ("5.0", "4.999999999999999", "5.000000000000001")} == {
        "2.0"
    }
    assert doses.mean("[0, 10)", 5, "inf", 5) is None
