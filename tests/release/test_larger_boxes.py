"""`search: {box: {least: N}}` through the job: boxes by a count of the published rows, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

import qblock
from qblock.errors import Refused
from qblock.release.preview import preview
from qblock.release.verify import verify
from release.jobs import MakeJob
from release.test_maps import APART, NAMED, SEARCH, boxes, map_job

pytestmark = pytest.mark.either_engine

LARGE: dict[str, Any] = {**SEARCH, "box": {"least": 8}}


def test_the_first_version_has_them_and_people_leave_them(make_job: MakeJob) -> None:
    job = map_job(make_job, search=LARGE)
    (step,) = [step for step in preview(job.spec).steps if step.step == "search_map"]
    assert "into boxes of at least 8 rows" in step.description
    job.begin()
    before = boxes(job)
    assert 8 <= min(before.values()) < 12
    # Four of eight: the boxes of later versions may be smaller.
    job.change("DELETE FROM people WHERE id IN (SELECT id FROM people WHERE age >= 40 ORDER BY id LIMIT 4)")
    later = job.run()
    assert (later.status, later.version) == ("published", 2)
    assert min(boxes(job).values()) < 8
    assert set(boxes(job)) == set(before)
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"


def test_small_ones_are_suppressed_where_they_may_be(make_job: MakeJob) -> None:
    job = map_job(make_job, search=LARGE, privacy=[{"k_anonymity": {"k": 1}}], suppression_limit=7, versions=APART)
    made = job.begin()
    assert made.suppressed > 0
    assert min(boxes(job).values()) >= 8
    audited = qblock.Release(job.spec).audit().to_dict()
    assert (audited["boxes"], audited["suppressed"], audited["satisfied"]) == (made.boxes, made.suppressed, True)
    assert not verify(job.spec).problems


def test_a_map_that_is_named_is_held_to_it(make_job: MakeJob) -> None:
    job = map_job(make_job, versions=APART)
    job.begin()
    before = boxes(job)
    job.set(search={**NAMED, "box": {"least": 8}})
    with pytest.raises(Refused, match=r"the recoding map of version 1, over this data, fails `search.box`"):
        job.run()
    assert boxes(job) == before


def test_no_part_is_as_large_as_asked(make_job: MakeJob) -> None:
    job = map_job(make_job, search={**SEARCH, "box": {"least": 49}})
    said = r"`search.box` asks 49, and the source has fewer. Write a smaller number there, or leave `box` out"
    with pytest.raises(Refused, match=said):
        job.run()
    with pytest.raises(Refused, match="needs blocks of at least 49 rows, and the source has 48"):
        preview(job.spec)


def test_what_max_keeps_apart_is_smaller_than_asked(make_job: MakeJob) -> None:
    """Five are of an age that `max` lets no box hide among the others."""
    table = {"age": [95] * 5 + [20 + i % 20 for i in range(235)]}
    job = make_job(
        table,
        {"age": "INTEGER"},
        attributes={"age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "max": 2}}},
        privacy=[{"k_anonymity": {"k": 5}}],
        search={"recoding": "multidimensional", "box": {"least": 10}},
    )
    said = r"asks 10, and a block of the most general node within `max` has fewer. `max` of age is in the way"
    with pytest.raises(Refused, match=said):
        job.run()


ODD_AND_EVEN: dict[str, list[Any]] = {
    "id": [f"p{i:02}" for i in range(80)],
    "age": [20 + i % 16 for i in range(80)],
    "value": ["ab"[i % 2] for i in range(80)],
}
"""Five people of each age, who all have one value: boxes of two ages have both."""
BY_SIZES: dict[str, Any] = {**SEARCH, "choose_from": "sizes"}
MODELS = ({"entropy_l_diversity": {"l": 2}}, {"recursive_cl_diversity": {"c": 2, "l": 2}}, {"t_closeness": {"t": 0.1}})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: next(iter(model)))
def test_chosen_by_sizes_the_models_pass_with_larger_boxes(make_job: MakeJob, model: dict[str, Any]) -> None:
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": {"ranges": [4]}}, "value": "sensitive"}
    settings: dict[str, Any] = {"attributes": attributes, "privacy": [{"k_anonymity": {"k": 5}}, model], "entity": "id"}
    job = make_job(ODD_AND_EVEN, {"age": "INTEGER"}, **settings, search=BY_SIZES)
    said = r"With boxes of at least 10 rows it passes: write `search: \{box: \{least: 10\}\}`"
    assert qblock.Release(job.spec).search().refused
    with pytest.raises(Refused, match=f"chosen by block sizes alone, fails {next(iter(model))}. {said}"):
        job.run()
    made = job.set(search={**BY_SIZES, "box": {"least": 10}}).begin()
    assert (made.status, made.boxes, made.protected) == ("published", 8, True)
    assert not verify(job.spec).problems


def test_where_larger_boxes_fail_too(make_job: MakeJob) -> None:
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": {"ranges": [4]}}, "value": "sensitive"}
    settings: dict[str, Any] = {"attributes": attributes, "entity": "id", "search": BY_SIZES}
    alike = {**ODD_AND_EVEN, "value": ["a" if age < 35 else "b" for age in ODD_AND_EVEN["age"]]}
    models = [{"k_anonymity": {"k": 5}}, {"distinct_l_diversity": {"l": 2}}]
    job = make_job(alike, {"age": "INTEGER"}, **settings, privacy=models)
    with pytest.raises(
        Refused, match=r"at least 40 rows fail, too: ask for less, or write `search: \{choose_from: mini"
    ):
        job.run()


ROOM = "nobody who left can go from a box of fewer than 6 people before the box is stale: 3 go together, and 3 stay"


def test_a_plan_says_what_larger_boxes_would_buy(make_job: MakeJob) -> None:
    job = map_job(make_job)
    (note,) = [note for note in preview(job.spec).notes if "nobody who left" in note]
    assert note.startswith(ROOM)
    assert "write `search: {box: {least: 12}}` before the first version" in note
    for settings in (
        {"search": {**SEARCH, "box": {"least": 6}}},
        {"search": {"choose_by": "loss"}},
        {"versions": APART},
        {"versions": {"on_refusal": "refuse"}},
    ):
        notes = preview(job.set(**{"search": SEARCH, "versions": {}, **settings}).spec).notes
        assert not any("nobody who left" in note for note in notes)
    job.set(search=SEARCH, versions={}).begin()
    assert not any("nobody who left" in note for note in preview(job.spec).notes)
