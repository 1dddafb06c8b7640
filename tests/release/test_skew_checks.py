"""Groups whose values are worth less than their number: one is nearly everybody's, or what is hidden excludes some."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pytest

from qblock.checks import check_chosen
from qblock.releases import Release
from qblock.results.check import Finding, figures_in_words, in_words
from qblock.search.run import open_task, run_search
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine
ATTRIBUTES: dict[str, Any] = {
    "sex": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [20, 60]}},
    "diagnosis": "sensitive",
}
OF_WOMEN, OF_MEN = ["ovary", "uterus"], ["prostate", "testis"]
HIDDEN = {"node": {"sex": 1, "age": 1}}


def patients(seed: int = 1, rows: int = 600, common: Sequence[str] = ("flu",)) -> dict[str, list[Any]]:
    """Four diagnoses that one sex alone has, and common ones."""
    rng = random.Random(seed)
    sexes = [rng.choice("fm") for _ in range(rows)]
    return {
        "sex": sexes,
        "age": [rng.randrange(60) for _ in range(rows)],
        "diagnosis": [rng.choice([*common, *(OF_WOMEN if sex == "f" else OF_MEN)]) for sex in sexes],
    }


def job_of(make_job: MakeJob, columns: dict[str, list[Any]], l: Any = 4, **settings: Any) -> Job:  # noqa: E741
    privacy = [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": l, "sensitive": "diagnosis"}}]
    return make_job(columns, **{"attributes": ATTRIBUTES, "privacy": privacy, "search": HIDDEN, **settings})


def told(job: Job) -> dict[tuple[str, ...], Finding]:
    return {finding.columns: finding for finding in Release(job.spec).check().checks if finding.check == "skew"}


def distinct(counts: Counter[str]) -> float:
    return len(counts)


def entropy(counts: Counter[str]) -> float:
    total = sum(counts.values())
    return math.exp(-sum(n / total * math.log(n / total) for n in counts.values()))


def slowly(
    columns: dict[str, list[Any]],
    block: Callable[[int], Any],
    required: float,
    measure: Callable[[Counter[str]], float] = distinct,
    known: str = "sex",
) -> tuple[float, int] | None:
    """Row after row: what is left of the values of its block without those that its leaf excludes."""
    leaves, values = columns[known], columns["diagnosis"]
    places = range(len(values))
    of_leaf, of_value, both = Counter(leaves), Counter(values), Counter(zip(leaves, values, strict=True))
    blocks = defaultdict(list)
    for i in places:
        blocks[block(i)].append(values[i])
    left = []
    for i in places:
        counts = Counter(blocks[block(i)])
        if measure(counts) < required - 1e-9:
            continue  # suppressed
        excluded = [
            value
            for value in counts
            if not both[leaves[i], value] and of_leaf[leaves[i]] * of_value[value] >= 20 * len(values)
        ]
        left.append(measure(Counter({value: n for value, n in counts.items() if value not in excluded})))
    failing = [l for l in left if l < required - 1e-9]  # noqa: E741
    return (min(failing), len(failing)) if failing else None


def of_ranges(columns: dict[str, list[Any]]) -> Callable[[int], Any]:
    return lambda i: columns["age"][i] // 20


@pytest.mark.parametrize("common", [1, 2, 3])
def test_what_one_sex_alone_has_does_not_count_for_who_knows_it(make_job: MakeJob, common: int) -> None:
    columns = patients(common=[f"flu{i}" for i in range(common)])
    findings = told(job_of(make_job, columns))
    expected = slowly(columns, of_ranges(columns), 4)
    if expected is None:
        assert findings == {}
        return
    left, rows = expected
    finding = findings["diagnosis", "sex"]
    assert (finding.severity, finding.figure) == ("warning", {"l": 4, "left": left, "rows": rows})
    assert finding.sentence == (
        "some values of diagnosis never occur with some of sex, which is hidden: to anybody who knows sex, l is "
        f"{left} and not 4, in {rows} rows"
    )
    assert finding.remedy.startswith(f"privacy: [{{distinct_l_diversity: {{l: {8 - left}, sensitive: diagnosis}}}}]")


def test_the_cases_of_the_worked_example_differ() -> None:
    cases = [patients(common=[f"flu{i}" for i in range(common)]) for common in (1, 2, 3)]
    assert [slowly(case, of_ranges(case), 4) for case in cases] == [(3, 600), None, None]


@pytest.mark.parametrize("seed", range(6))
def test_entropy_counts_what_is_left_of_the_blocks_that_stay(make_job: MakeJob, seed: int) -> None:
    columns = patients(seed, 400, ["flu", "flu", "cold"])
    privacy = [{"entropy_l_diversity": {"l": 3.5, "sensitive": "diagnosis"}}]
    search = {"node": {"sex": 1, "age": 0}}
    job = job_of(make_job, columns, privacy=privacy, search=search, suppression_limit=0.9)
    expected = slowly(columns, lambda i: columns["age"][i], 3.5, entropy)
    assert expected is not None
    left, rows = expected
    assert told(job)["diagnosis", "sex"].figure == {"l": 3.5, "left": round(left, 3), "rows": rows}


@pytest.mark.parametrize("said", ["sex is shown", "few rows would have told", "no model asks for l", "independent"])
def test_it_is_silent_where_nothing_is_excluded(make_job: MakeJob, said: str) -> None:
    columns, settings = patients(), {}
    if said == "sex is shown":
        settings = {"search": {"node": {"sex": 0, "age": 1}}}
        l = 3  # noqa: E741
    elif said == "few rows would have told":
        columns, l = patients(rows=120), 4  # noqa: E741
        assert slowly(columns, lambda _: 0, 5) is None
        settings = {"search": {"node": {"sex": 1, "age": 2}}}
    elif said == "no model asks for l":
        settings, l = {"privacy": [{"t_closeness": {"t": 1, "sensitive": "diagnosis"}}]}, 0  # noqa: E741
    else:
        columns["diagnosis"] = random.Random(2).sample(columns["diagnosis"], len(columns["diagnosis"]))
        l = 5  # noqa: E741
    assert told(job_of(make_job, columns, l, **settings)) == {}


def test_who_has_a_leaf_that_excludes_nothing_counts_all_values(make_job: MakeJob) -> None:
    columns, rng = patients(), random.Random(3)
    women = [sex == "f" for sex in columns["sex"]]
    columns["diagnosis"] = [rng.choice([*OF_MEN, "flu", *(OF_WOMEN if woman else ())]) for woman in women]
    expected = slowly(columns, of_ranges(columns), 4)
    assert expected == (3, women.count(False))
    assert told(job_of(make_job, columns))["diagnosis", "sex"].figure == {"l": 4, "left": 3, "rows": expected[1]}


def test_a_node_that_fails_is_not_looked_at(make_job: MakeJob) -> None:
    assert told(job_of(make_job, patients(), 6)) == {}


def test_somebody_answers_for_it(make_job: MakeJob) -> None:
    job = job_of(make_job, patients())
    job.set(accept=[{"check": "skew", "column": "diagnosis", "of": "sex", "because": "sex is not known"}])
    assert told(job)["diagnosis", "sex"].because == "sex is not known"
    assert Release(job.spec).check().notes == ()


@pytest.mark.parametrize("seed", range(3))
def test_the_boxes_of_a_map_are_looked_at(make_job: MakeJob, seed: int) -> None:
    columns = patients(seed, 500)
    columns["age"] = [age // 6 * 6 for age in columns["age"]]
    job = job_of(make_job, columns, search={"recoding": "multidimensional"}, attributes=ATTRIBUTES)
    with open_task(job.spec) as task:
        result = run_search(task)
        findings = {f.columns: f for f in check_chosen(task, result, date(2026, 11, 27)) if f.check == "skew"}
        assert result.recoded is not None
        tree = result.recoded.specialized.tree
        boxes = [tree.labels[box] for box in result.recoded.published.tolist()]
        leaves = [list(hierarchy.labels[0]) for hierarchy in task.source.hierarchies]
        sets = [
            tuple(frozenset(ladder.leaves_of(label)) for ladder, label in zip(tree.ladders, of, strict=True))
            for of in boxes
        ]
    assert {str(leaf) for leaf in leaves[0]} == {"f", "m"}

    def box(i: int) -> int:
        row = columns["sex"][i], str(columns["age"][i])
        (place,) = [n for n, of in enumerate(sets) if all(v in leaf for v, leaf in zip(row, of, strict=True))]
        return place

    for known in ("sex", "age"):
        expected = slowly(columns, box, 4, known=known)
        finding = findings.get(("diagnosis", known))
        assert (None if finding is None else (finding.figure["left"], finding.figure["rows"])) == expected
    assert ("diagnosis", "sex") in findings


def test_one_value_of_nearly_everybody_in_a_group_that_stays(make_job: MakeJob) -> None:
    columns = patients(common=["flu"] * 60)
    for i in range(3):  # these three are suppressed
        columns["age"][i], columns["diagnosis"][i] = 59, "flu"
    columns["age"] = [min(age, 49) if i > 2 else age for i, age in enumerate(columns["age"])]
    attributes = {**ATTRIBUTES, "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 60]}}}
    job = job_of(make_job, columns, 2, attributes=attributes, suppression_limit=0.3)
    blocks = defaultdict(Counter)
    for age, value in zip(columns["age"], columns["diagnosis"], strict=True):
        blocks[age // 10][value] += 1
    kept = [counts for counts in blocks.values() if len(counts) >= 2]
    assert len(kept) < len(blocks)
    share = max(max(counts.values()) / counts.total() for counts in kept)
    assert told(job)["diagnosis",].figure == {"share": round(share, 4)}


def test_the_same_is_said_of_a_map_that_is_kept(make_job: MakeJob) -> None:
    columns = patients(common=["flu"] * 100, rows=300)
    job = job_of(make_job, columns, 2, search={"recoding": "multidimensional"})
    first = {f.columns: f.figure for f in Release(job.spec).search().checks if f.check == "skew"}
    assert first["diagnosis",]["share"] >= 0.9
    job.run()
    kept = Release(job.set(search={"recoding": "multidimensional", "node": {"version": 1}}).spec).search()
    assert {f.columns: f.figure for f in kept.checks if f.check == "skew"}["diagnosis",] == first["diagnosis",]


def test_its_words_are_of_both_columns() -> None:
    figure = {"l": 4, "left": 3, "rows": 1600}
    said = figures_in_words("skew", ("diagnosis", "sex"), figure)
    assert said == "l is 3 and not 4 for who knows sex, in 1,600 rows"
    assert in_words("skew", ("diagnosis", "sex")).startswith("some values of diagnosis never occur with some of sex")
    assert in_words("skew", ("diagnosis",)) == "in some group nearly everybody has one value of diagnosis"
