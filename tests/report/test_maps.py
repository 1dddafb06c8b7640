"""The internal pages of recoding maps, against the rows that a run with each spec publishes, counted here."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from release.jobs import Job, MakeJob

from qblock.errors import Refused
from qblock.hierarchy.core import TOP
from qblock.report import maps as reading
from qblock.report import read_report, rendered
from qblock.report.internal import read_internal
from qblock.report.maps import KeptMap, read_maps
from qblock.results.report import MapBlocksShown
from qblock.search.maps import K_STEPS
from qblock.search.run import open_task

DRAWN = random.Random(7)
ROWS = 150
PEOPLE: dict[str, list[Any]] = {
    "age": [DRAWN.randrange(20, 60) for _ in range(ROWS)],
    "town": [DRAWN.choice("aab") for _ in range(ROWS)],
    "ill": [DRAWN.choice(["flu", "flu", "heart", "cancer"]) for _ in range(ROWS)],
}
QUASI = {
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 20]}},
    "town": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "ill": "sensitive",
}
K, L = 5, 2
Row = tuple[str, str, str]


def models(k: int | None = K, l_: float | None = L, name: str = "entropy_l_diversity") -> list[dict[str, Any]]:
    of_k = [] if k is None else [{"k_anonymity": {"k": k}}]
    return [*of_k, *([] if l_ is None else [{name: {"l": l_, "sensitive": "ill"}}])]


def people(make_job: MakeJob, table: dict[str, list[Any]] = PEOPLE, **settings: Any) -> Job:
    given = {
        "attributes": QUASI,
        "privacy": models(),
        "search": {"recoding": "multidimensional", "choose_by": "loss"},
        "versions": {"joint": "none"},
    }
    return make_job(table, {"age": "INTEGER"}, **{**given, **settings})


def published(job: Job) -> list[Row]:
    """The rows that a run of the spec publishes."""
    job.run(force=True)
    return [tuple(map(str, row[:3])) for row in job.published()]  # type: ignore[misc]


def blocks_of(rows: Sequence[Row]) -> dict[tuple[str, str], Counter[str]]:
    blocks: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for age, town, ill in rows:
        blocks[age, town][ill] += 1
    return blocks


def entropy(values: Counter[str]) -> float:
    total = sum(values.values())
    return math.exp(-sum(n / total * math.log(n / total) for n in values.values()))


def satisfied(blocks: dict[tuple[str, str], Counter[str]], k: int = K, l_: float = L) -> bool:
    """By the definitions."""
    return all(sum(values.values()) >= k and entropy(values) >= l_ - 1e-12 for values in blocks.values())


def covered(label: str, ages: set[int]) -> int:
    """How many of the ages of the table a label stands for."""
    if label == TOP:
        return len(ages)
    if label.isdigit():
        return 1
    low, high = (int(end) if end else None for end in ends(label))
    return sum((low is None or age >= low) and (high is None or age <= high) for age in ages)


def ends(label: str) -> tuple[str, str]:
    if label.startswith("<"):
        return "", str(int(label[1:]) - 1)
    if label.startswith(">="):
        return label[2:].strip(), ""
    low, high = label.split("-")
    return low, high


def loss(blocks: dict[tuple[str, str], Counter[str]]) -> float:
    """The share of the values of a column under the label of a row, of which the geometric mean over the columns."""
    ages = set(PEOPLE["age"])
    of_age = of_town = 0.0
    for (age, town), values in blocks.items():
        rows = sum(values.values())
        of_age += rows * (covered(age, ages) - 1) / (len(ages) - 1)
        of_town += rows * (town == TOP)
    return math.sqrt((1 + of_age / ROWS) * (1 + of_town / ROWS)) - 1


def test_each_map_of_the_frontier_is_what_a_run_with_that_spec_publishes(make_job: MakeJob) -> None:
    job = people(make_job)
    shown = read_internal(job.spec).maps
    assert shown is not None
    told = {answer.change: answer for answer in shown.frontier}
    asked = {"as the spec asks": models()}
    asked |= {f"k_anonymity: k = {k}": models(k) for k in K_STEPS}
    asked |= {f"entropy_l_diversity of ill: l = {l_:g}": models(K, l_) for l_ in (1.5, 2, 2.5, 3)}
    assert told.keys() == asked.keys()
    for change in ("as the spec asks", *list(asked)[1::2]):
        job.settings["privacy"], answer = asked[change], told[change]
        try:
            blocks = blocks_of(published(job))
        except Refused:
            assert (answer.blocks, answer.satisfied) == (None, None), change
            continue
        assert answer.blocks == len(blocks), change
        assert answer.smallest == min(sum(values.values()) for values in blocks.values()), change
        assert answer.measure == pytest.approx(loss(blocks)), change
        assert answer.satisfied is satisfied(blocks), change
    marked = {answer.change for answer in shown.frontier if answer.requested}
    assert marked == {"as the spec asks", "k_anonymity: k = 5", "entropy_l_diversity of ill: l = 2"}
    assert {answer.satisfied for answer in shown.frontier} >= {True, False}
    assert len({answer.blocks for answer in shown.frontier}) > 3


def test_other_questions_are_answered_by_maps_of_their_own(make_job: MakeJob) -> None:
    job = people(make_job, privacy=models(K, L, "distinct_l_diversity"))
    shown = read_internal(job.spec)
    assert shown.what_if is None
    assert shown.maps is not None
    told = {answer.change: (answer.blocks, answer.smallest) for answer in shown.maps.what_if}
    asked = {
        "as the spec asks": (K, L),
        "without k_anonymity": (None, L),
        "k_anonymity: k = 4 instead of 5": (4, L),
        "k_anonymity: k = 6 instead of 5": (6, L),
        "without distinct_l_diversity of ill": (K, None),
        "distinct_l_diversity of ill: l = 1 instead of 2": (K, 1),
        "distinct_l_diversity of ill: l = 3 instead of 2": (K, 3),
    }
    assert told.keys() == asked.keys()
    for change, (k, l_) in list(asked.items())[1::2]:
        job.settings["privacy"] = models(k, l_, "distinct_l_diversity")
        blocks = blocks_of(published(job))
        assert told[change] == (len(blocks), min(sum(values.values()) for values in blocks.values())), change
    assert len(set(told.values())) > 2
    dropped = {answer.change: answer.satisfied for answer in shown.maps.what_if}
    assert dropped["without k_anonymity"] is None
    assert dropped["k_anonymity: k = 6 instead of 5"] is True


def check_blocks(shown: MapBlocksShown, rows: Sequence[Row]) -> None:
    blocks = [sum(values.values()) for values in blocks_of(rows).values()]
    assert (shown.blocks, shown.rows, shown.smallest) == (len(blocks), len(rows), min(blocks))
    for size in shown.sizes:
        some = [n for n in blocks if size.low <= n <= size.high]
        assert (size.blocks, size.rows) == (len(some), sum(some))
    assert sum(size.rows for size in shown.sizes) == len(rows)
    for i, column in enumerate(shown.columns):
        labels = Counter(row[i] for row in rows)
        assert column.labels == len(labels)
        assert column.share_suppressed == pytest.approx(labels[TOP] / len(rows))


def test_the_blocks_are_those_that_readers_see(make_job: MakeJob) -> None:
    job = people(make_job)
    rows = published(job)
    job.settings["privacy"] = models(20)
    inside = read_internal(job.spec).maps
    assert inside is not None
    assert inside.blocks is not None
    assert (inside.blocks.which, inside.blocks.version) == ("published", 1)
    check_blocks(inside.blocks, rows)
    sizes = [sum(values.values()) for values in blocks_of(rows).values()]
    small = [n for n in sizes if n < 20]
    assert (inside.blocks.failing, inside.blocks.failing_rows) == (len(small), sum(small))
    assert inside.blocks.fails == ("k_anonymity",)
    text = rendered(read_report(job.spec, internal=True), "md")
    assert "The map of version 1, which readers see, over the source as it is now" in text
    assert f"{len(small)} blocks with {sum(small)} rows fail the spec now (k\\_anonymity)" in text
    assert "No run publishes them so." in text


def test_the_candidate_is_the_map_that_the_next_run_takes(make_job: MakeJob) -> None:
    job = people(make_job)
    before = read_internal(job.spec, candidate=True).maps
    rows = published(job)
    job.settings["privacy"] = models(20)
    after = read_internal(job.spec, candidate=True).maps
    assert before is not None
    assert after is not None
    assert before.blocks is not None
    assert after.blocks is not None
    assert before.blocks.which == after.blocks.which == "searched"
    check_blocks(before.blocks, rows)
    check_blocks(after.blocks, published(job))
    assert before.blocks.blocks > after.blocks.blocks
    report = read_report(job.spec, candidate=True)
    assert report.stage == "before its next version"
    assert "before its next version" in rendered(report, "html")


def test_the_candidate_of_versions_that_are_checked_together_keeps_its_map(make_job: MakeJob) -> None:
    numbered = {**PEOPLE, "id": list(range(ROWS))}
    attributes = {**QUASI, "id": "identifying"}
    given = {"attributes": attributes, "entity": "id", "search": {"recoding": "multidimensional"}}
    job = make_job(numbered, {"age": "INTEGER", "id": "INTEGER"}, privacy=models(), **given)
    job.run()
    shown = read_internal(job.spec, candidate=True).maps
    assert shown is not None
    assert shown.blocks is not None
    assert (shown.blocks.which, shown.blocks.version) == ("next", 1)
    check_blocks(shown.blocks, [tuple(map(str, row[:3])) for row in job.published()])  # type: ignore[misc]
    text = rendered(read_report(job.spec, candidate=True), "md")
    assert "The map of version 1, which the next run takes" in text
    job.settings["search"] = {"recoding": "full_domain"}
    report = read_report(job.spec, candidate=True)
    assert report.inside.maps is None
    assert "Version 1 of release people was published with a recoding map" in report.inside.candidate
    assert "Write `recoding: multidimensional`" in rendered(report, "html")


def test_boxes_of_a_least_size_are_left_out_by_k_alone(make_job: MakeJob) -> None:
    search = {"recoding": "multidimensional", "choose_by": "loss", "box": {"least": 20}}
    job = people(make_job, search=search)
    shown = read_internal(job.spec).maps
    assert shown is not None
    told = {answer.change: answer for answer in shown.frontier}
    assert told["as the spec asks"].smallest is not None
    assert told["as the spec asks"].smallest >= 20
    assert told["entropy_l_diversity of ill: l = 1.5"].smallest == told["as the spec asks"].smallest
    asked = told["k_anonymity: k = 5"]
    assert (asked.requested, asked.satisfied) == (False, False)
    del job.settings["search"]["box"]
    blocks = blocks_of(published(job))
    assert asked.smallest == min(sum(values.values()) for values in blocks.values()) < 20
    without = next(answer for answer in shown.what_if if answer.change.startswith("without search.box"))
    assert (without.blocks, without.measure) == (asked.blocks, asked.measure)


def test_rows_that_are_suppressed_are_said(make_job: MakeJob) -> None:
    few = {**PEOPLE, "town": ["b" if i % 40 == 0 else "a" for i in range(ROWS)]}
    job = people(make_job, few, suppression_limit=0.1)
    shown = read_internal(job.spec).maps
    assert shown is not None
    assert shown.blocks is not None
    rows = published(job)
    check_blocks(shown.blocks, rows)
    assert shown.blocks.suppressed == ROWS - len(rows) > 0
    first = shown.frontier[0]
    assert (first.blocks, first.suppressed) == (shown.blocks.blocks, shown.blocks.suppressed)
    assert f"{ROWS - len(rows)} rows would be suppressed" in rendered(read_report(job.spec, candidate=True), "md")


def test_what_was_left_out_is_said(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people(make_job)
    with open_task(job.spec) as task:
        times = iter([0.0, 0.0, 1.0, *[1000.0] * 100])
        shown = read_maps(task, KeptMap(), clock=lambda: next(times)).shown
    changes = [answer.change for answer in shown.frontier]
    assert changes[:3] == ["as the spec asks", "k_anonymity: k = 3", "k_anonymity: k = 5"]
    assert "k_anonymity: k = 11" in shown.left_out
    assert {"without k_anonymity", "k_anonymity: k = 50"} <= set(shown.left_out)
    assert shown.why_left_out == "2 minutes were over"
    monkeypatch.setattr(reading, "MOST_ROWS", ROWS - 1)
    monkeypatch.setattr("qblock.search.maps.MOST_ROWS", ROWS - 1)
    report = read_report(job.spec, candidate=True)
    assert report.inside.maps is not None
    assert {answer.change for answer in report.inside.maps.frontier if not answer.requested} == set()
    text = rendered(report, "html")
    assert "Not worked out, since the source has more than 149 rows: k_anonymity: k = 3;" in text


def test_a_spec_that_no_map_satisfies(make_job: MakeJob) -> None:
    job = people(make_job, privacy=models(400))
    report = read_report(job.spec, candidate=True)
    assert report.inside.maps is not None
    assert report.inside.maps.blocks is None
    assert report.inside.maps.frontier[0].blocks is None
    assert "No map satisfies the spec" in rendered(report, "html")


def test_readers_of_a_node_get_no_page_about_maps(make_job: MakeJob) -> None:
    job = people(make_job, search={"choose_by": "loss"})
    report = read_report(job.spec, candidate=True)
    assert report.inside.maps is None
    assert 'id="frontier"' not in rendered(report, "html")
    assert "no part of it" not in rendered(report, "html")


def test_nodes_are_for_comparison_where_readers_get_a_map(make_job: MakeJob) -> None:
    job = people(make_job)
    text = rendered(read_report(job.spec, candidate=True), "md")
    page = text.partition("## The lattice (internal)")[2]
    assert page.strip().startswith("Readers get a recoding map")
    assert "here for comparison" in page.partition("\n\n")[0] + page
    assert text.index("## The frontier") < text.index("## The lattice")
