"""How likely an outsider names the right person: counted again from the rows, and measured against what is declared."""

from __future__ import annotations

import json
import re
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release.jobs import Job, MakeJob

from qblock.errors import InputError
from qblock.frequency.arrays import Sizes
from qblock.ledger.stores import store_of
from qblock.report import read_report, risks
from qblock.report.risks import (
    ANSWERS,
    People,
    answers_of,
    attackers_of,
    exposed_of,
    sample_of,
    threshold_of,
    together_of,
)
from qblock.results.report import AttackShown, GuaranteeShown, Published
from qblock.spec import Spec, read_spec
from qblock.versions.crosswalk import open_crosswalk
from report.test_read import NONE, visits

SPEC = """\
version: 1
release: people
source: {url: "duckdb:///a.duckdb", table: people}
attributes:
  person: identifying
  age: {role: quasi_identifier, hierarchy: {ranges: [5, 10]}}
privacy: [{k_anonymity: {k: 2}}]
"""
SIZES = st.dictionaries(st.integers(1, 60), st.integers(1, 9), min_size=1, max_size=6)
THRESHOLDS = st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=10**9)


def spec_of(declared: str) -> Spec:
    return read_spec(f"{SPEC}report: {declared}\n", "spec.yaml", {})


def people_of(blocks: dict[int, int]) -> People:
    size, number = (np.array(values) for values in zip(*sorted(blocks.items()), strict=True))
    return People(Sizes(size, number), "each row is a person", int((size * number).sum()))


@pytest.mark.parametrize(
    ("least", "threshold", "met"),
    [
        (11, "1/11", True),
        (11, "0.09", False),
        (12, "0.09", True),
        (10, "0.1", True),
        (10, "0.0999999999999999999999999999999", False),
        (3, "1/3", True),
        (3, "0.3333333333333333333333333333333333", False),
        (1, "1", True),
    ],
)
def test_whether_it_is_met_is_decided_exactly(least: int, threshold: str, met: bool) -> None:
    people = people_of({least: 3, 40: 2})
    shown = threshold_of(spec_of(f"{{threshold: {threshold}}}"), people)
    assert shown is not None
    assert (shown.met, shown.on, shown.because) == (met, "highest", None)
    assert (least >= shown.least) == met
    assert shown.rows_above == (0 if met else 3 * least)


def test_a_mean_is_measured_against_a_mean() -> None:
    people = people_of({1: 1, 99: 1})
    for text, met in (("1/50", True), ("0.0199", False)):
        shown = threshold_of(spec_of(f"{{threshold: {text}, threshold_on: mean, threshold_because: ours}}"), people)
        assert shown is not None
        assert (shown.met, shown.measured_text, shown.because, shown.rows_above) == (met, "0.02", "ours", 1)
    assert threshold_of(spec_of("{}"), people) is None


@given(SIZES, THRESHOLDS, st.integers(0, 1000))
def test_chances_are_those_of_each_row(blocks: dict[int, int], threshold: Fraction, more: int) -> None:
    """Of each person by themselves; the highest is at least the mean, which is at least a marketer's share."""
    each = [Fraction(1, size) for size, number in blocks.items() for _ in range(size * number)]
    spec = spec_of(f"{{threshold: {threshold}, population: {{size: {len(each) + more}}}}}")
    people = people_of(blocks)
    prosecutor, journalist, marketer = attackers_of(spec, people, sample_of(spec, people))
    assert prosecutor.highest == float(max(each))
    assert prosecutor.mean == marketer.mean == float(sum(each) / len(each))
    assert prosecutor.rows_above == sum(chance > threshold for chance in each)
    assert prosecutor.share_above == sum(chance > threshold for chance in each) / len(each)
    assert prosecutor.highest >= prosecutor.mean
    assert journalist.highest is not None
    assert journalist.highest >= journalist.mean * (1 - 1e-12)
    assert journalist.highest <= prosecutor.highest * (1 + 1e-12)
    assert journalist.mean <= prosecutor.mean * (1 + 1e-12)
    assert [one.estimated for one in (prosecutor, journalist, marketer)] == [False, True, False]
    shown = threshold_of(spec, people)
    assert shown is not None
    assert shown.met == (prosecutor.rows_above == 0)


def test_the_worked_example() -> None:
    """Blocks of 2, 3 and 5 people, of a population of 40 (docs/report.md, "Risk")."""
    spec = spec_of("{threshold: 0.25, population: {size: 40}}")
    people = people_of({2: 1, 3: 1, 5: 1})
    prosecutor, journalist, marketer = attackers_of(spec, people, sample_of(spec, people))
    assert (prosecutor.highest, prosecutor.mean, prosecutor.rows_above, marketer.mean) == (0.5, 0.3, 5, 0.3)
    assert journalist.highest == pytest.approx(0.1793, abs=5e-5)
    assert journalist.mean == pytest.approx(0.0970, abs=5e-5)
    assert journalist.rows_above == 0


def test_a_population_is_no_smaller_than_the_table() -> None:
    with pytest.raises(InputError, match=r"report\.population\.size: 9 people are fewer than the 10 .*`size: 10`"):
        sample_of(spec_of("{population: {size: 9}}"), people_of({5: 2}))
    sample = sample_of(spec_of("{population: {fraction: 0.3}}"), people_of({5: 2}))
    assert sample is not None
    assert sample.population == 33


@pytest.mark.parametrize(("rows", "many"), [(10, False), (11, True), (0, False)])
def test_more_than_a_tenth_is_many(rows: int, many: bool) -> None:
    of = {"sensitive": "ill", "sentence": "", "blocks": 1}
    attacks = [
        AttackShown(attack="background_knowledge", detail=1, rows=rows, **of),
        AttackShown(attack="background_knowledge", detail=2, rows=50, **of),
        AttackShown(attack="homogeneity", detail=None, rows=5, **of),
    ]
    (shown,) = exposed_of(attacks, 100)
    assert (shown.rows, shown.share, shown.many) == (rows, rows / 100, many)


def guarantee(model: str, *, holds: bool = True) -> GuaranteeShown:
    return GuaranteeShown(model=model, sensitive=None, asked="", holds=holds, satisfied=None, in_words=f"{model} words")


def test_every_risk_has_its_answer_or_none() -> None:
    def of(*guarantees: GuaranteeShown, highest: Fraction = Fraction(1, 5)) -> dict[str, str]:
        return {one.risk: one.in_words for one in answers_of(guarantees, highest)}

    none = "no guarantee answers it"
    assert of() == {"singling out": none, "linkability": none, "inference": none}
    assert of(guarantee("k_anonymity"), guarantee("t_closeness")) == {
        "singling out": "k_anonymity words",
        "linkability": none,
        "inference": "t_closeness words",
    }
    assert of(guarantee("k_anonymity", holds=False))["singling out"] == none
    assert of(guarantee("k_anonymity"), guarantee("k_map"), highest=Fraction(1)) == {
        "singling out": "k_map words",
        "linkability": "k_map words",
        "inference": none,
    }


def test_a_column_has_the_role_that_readers_see_and_a_reason_for_that_role_alone() -> None:
    text = SPEC.replace("ranges: [5, 10]}", 'ranges: [5, 10]}, because: "neighbours know it"')
    spec = read_spec(text + "groups: household\nversions: {joint: none}\n", "spec.yaml", {})

    def of(**columns: str) -> list[tuple[str, str, str | None, bool]]:
        return [(one.name, one.role, one.because, one.published) for one in risks.declared_of(spec, columns)]

    left = [("household", "groups", None, False)]
    person = ("person", "identifying", None, False)
    assert of(age="quasi-identifier") == [person, ("age", "quasi_identifier", "neighbours know it", True), *left]
    assert of(age="sensitive attribute") == [person, ("age", "sensitive", None, True), *left]
    assert of() == [person, ("age", "quasi_identifier", "neighbours know it", False), *left]


def test_every_model_answers_a_risk() -> None:
    from qblock.models import BY_NAME

    assert {model for models in ANSWERS.values() for model in models} == BY_NAME.keys()
    assert set(ANSWERS["inference"]) == {name for name, model in BY_NAME.items() if model.about.uses_sensitive}


def check(job: Job, shown: Published) -> None:
    """Against the rows of the view; each is a person."""
    rows = job.published()
    names = [column.name for column in shown.columns if not column.role.startswith("bound of ")]
    known = [names.index(column.name) for column in shown.quasi_identifiers]
    blocks = Counter(tuple(row[i] for i in known) for row in rows)
    prosecutor, marketer = shown.attackers[0], shown.attackers[-1]
    assert prosecutor.highest == 1 / min(blocks.values())
    assert prosecutor.mean == marketer.mean == pytest.approx(len(blocks) / len(rows))
    for one in shown.exposed:
        at, values = names.index(one.sensitive), {}
        for row in rows:
            values.setdefault(tuple(row[i] for i in known), Counter())[row[at]] += 1
        exposed = sum(own.total() for own in values.values() if len(own) <= 2)
        assert (one.rows, one.share, one.many) == (exposed, exposed / len(rows), 10 * exposed > len(rows))


def test_what_is_published_is_measured(job: Job) -> None:
    result = job.begin()
    job.settings["report"] = {"threshold": "1/2", "threshold_because": "ours", "population": {"size": 100}}
    job.settings["report"]["declared_by"] = "A. Weber"
    job.settings["attributes"]["ward"] = {"role": "insensitive", "because": "it is on every door"}
    shown = read_report(job.spec).shown
    check(job, shown)
    assert shown.digest == result.digest
    assert shown.threshold is not None
    assert shown.threshold.met == (shown.attackers[0].highest <= 0.5)
    assert [one.attacker for one in shown.attackers] == ["prosecutor", "journalist", "marketer"]
    assert shown.population is not None
    assert (shown.population.size, shown.population.fraction) == (100, shown.rows / 100)
    assert [one.estimate for one in shown.population.uniqueness] == ["pitman", "zayatz", "snb"]
    told = {one.name: (one.role, one.because, one.published) for one in shown.declared}
    assert shown.context.declared_by == "A. Weber"
    assert told["name"] == ("identifying", None, False)
    assert told["ward"] == ("insensitive", "it is on every door", True)
    assert told["age"] == ("quasi_identifier", None, True)


def test_without_a_word_nothing_is_measured_against(job: Job) -> None:
    job.begin()
    shown = read_report(job.spec).shown
    assert (shown.threshold, shown.population) == (None, None)
    assert [one.attacker for one in shown.attackers] == ["prosecutor", "marketer"]
    assert all(one.rows_above is one.share_above is None for one in shown.attackers)


@pytest.mark.parametrize("publish", [{"ranges": "native"}, {"exact": True}, {"ranges": "text"}])
def test_the_digest_is_of_all_columns(make_job: MakeJob, publish: dict[str, Any]) -> None:
    job = visits(make_job)
    if publish.get("ranges") == "native" and job.engine != "postgresql":
        pytest.skip("native ranges are of PostgreSQL")
    job.settings["publish"] |= publish
    result = job.run()
    assert read_report(job.spec).shown.digest == result.digest


@pytest.mark.parametrize("published", [True, False])
def test_where_a_person_has_several_rows_people_are_counted(make_job: MakeJob, published: bool) -> None:
    """By their number where it is published, else by the k that is promised: rows would be too good."""
    job = make_job(entity="name", count="entities")
    job.settings["publish"]["people"] = published
    job.settings["report"] = {"threshold": "1/3", "population": {"fraction": 0.5}}
    job.run()
    shown = read_report(job.spec).shown
    prosecutor = shown.attackers[0]
    if published:
        people = job.query("SELECT people FROM published.people_blocks")
        assert prosecutor.highest == 1 / min(number for (number,) in people)
        assert prosecutor.mean == pytest.approx(len(people) / sum(number for (number,) in people))
        assert shown.counted == "the people of each block are published"
        return
    k = int(re.findall(r"k = (\d+)", next(one.asked for one in shown.guarantees if one.model == "k_anonymity"))[0])
    assert (prosecutor.highest, prosecutor.mean) == (1 / k, 1 / k)
    assert shown.counted == f"each block has at least {k} people, by k_anonymity"
    assert shown.population is not None
    assert shown.population.why is not None
    assert [one.attacker for one in shown.attackers] == ["prosecutor", "marketer"]


def test_a_k_that_does_not_hold_is_not_believed() -> None:
    """Of people with several rows, whose number no column says."""
    spec = read_spec(SPEC + "entity: person\ncount: entities\nversions: {joint: none}\n", "spec.yaml", {})
    sizes = Sizes(np.array([7]), np.array([3]))
    for holds, highest in ((True, Fraction(1, 5)), (False, Fraction(1))):
        of = guarantee("k_anonymity", holds=holds).model_copy(update={"asked": "k = 5"})
        people = risks.people_of(spec, None, None, (), [of], sizes)  # type: ignore[arg-type]
        assert (people.highest, people.mean, people.bounded, people.rows) == (highest, highest, True, 21)


def test_nothing_is_promised_of_people_without_k_anonymity(make_job: MakeJob) -> None:
    job = make_job(entity="name", count="entities", versions=NONE)
    job.settings["privacy"] = [{"distinct_l_diversity": {"l": 2, "sensitive": "disease"}}]
    job.settings["report"] = {"threshold": 0.5}
    job.run()
    shown = read_report(job.spec).shown
    assert shown.counted == "a block may be one person"
    assert shown.threshold is not None
    assert not shown.threshold.met
    assert (shown.threshold.measured_text, shown.threshold.rows_above) == ("1", shown.blocks)


def test_json_has_what_was_measured(job: Job) -> None:
    job.begin()
    job.settings["report"] = {"threshold": 0.09, "controls": ["none"], "context": {"release": "public"}}
    told = json.loads(read_report(job.spec).text("json"))["published"]
    assert told["threshold"].keys() >= {"value", "text", "on", "because", "measured", "met"}
    assert told["context"] == {
        "purpose": None,
        "recipients": None,
        "release": "public",
        "agreement": None,
        "declared_by": None,
        "controls": ["none"],
    }


def looks_of_everybody(job: Job) -> Counter[tuple[tuple[int, str], ...]]:
    """How many people look the same to somebody who holds all versions: in which block of each of them they were."""
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        t = crosswalk.tables.row
        rows = crosswalk.own.fetch(t.select().where(t.c.release == job.spec.release)).to_pylist()
    looks: dict[str, list[tuple[int, str]]] = {}
    for row in rows:
        looks.setdefault(row["entity"], []).append((row["version"], str(row["block"])))
    return Counter(tuple(sorted(look)) for look in looks.values())


@pytest.mark.either_engine
def test_who_holds_all_versions_has_a_higher_chance(make_job: MakeJob) -> None:
    """People leave together from a block that stays large: its rows are many in each version, and few over both."""
    job = make_job(
        {"name": [f"p{i}" for i in range(24)], "age": [20] * 24, "disease": list("abcd") * 6},
        entity="name",
        attributes={
            "name": "identifying",
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10], "start": 0}},
            "disease": "sensitive",
        },
        privacy=[{"k_anonymity": {"k": 4}}, {"distinct_l_diversity": {"l": 2}}],
    )
    job.settings["report"] = {"threshold": 0.1}
    job.run()
    first = read_report(job.spec).shown
    assert (first.together, first.threshold.met, first.threshold.measured_text) == (None, True, "1/24")
    job.change("DELETE FROM people WHERE name IN ('p0', 'p1', 'p2', 'p3')")
    assert job.run().version == 2
    shown = read_report(job.spec).shown
    assert min(looks_of_everybody(job).values()) == 4
    assert shown.attackers[0].highest == 1 / 20
    assert (shown.together, shown.threshold.met, shown.threshold.measured_text) == (1 / 4, False, "0.25")
    job.settings["report"] = {"threshold": 0.1, "threshold_on": "mean"}
    assert read_report(job.spec).shown.threshold.met


def test_what_is_kept_together_is_what_versions_promise() -> None:
    """Of k and l the larger, where a row is a person; of none of them, nothing."""
    joint = "entity: person\n"
    asked = {"k_anonymity": "k = 3", "entropy_l_diversity": "l = 3.5", "t_closeness": "t = 0.2"}
    every = [guarantee(model).model_copy(update={"asked": text}) for model, text in asked.items()]
    failing = [guarantee("k_anonymity", holds=False).model_copy(update={"asked": "k = 9"})]
    for lines, version, known, chance in (
        (joint, 2, every, Fraction(1, 4)),
        (joint, 2, every[:1], Fraction(1, 3)),
        (joint, 2, every[2:], Fraction(1)),
        (joint, 2, every + failing, Fraction(1, 4)),
        (joint + "count: entities\n", 2, every, Fraction(1, 3)),
        (joint, 1, every, None),
        (joint + "versions: {joint: none}\n", 2, every, None),
        ("", 2, every, None),
    ):
        spec = read_spec(SPEC + lines, "spec.yaml", {})
        assert together_of(spec, version, known) == chance
