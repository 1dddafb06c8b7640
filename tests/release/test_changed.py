"""Versions that show other values of people who stay must pass for whoever knows whose value changed."""

from __future__ import annotations

import pytest

from qblock.errors import Refused
from release.jobs import Job, MakeJob
from release.test_waiting import events, insert, people_job, shown

pytestmark = pytest.mark.either_engine

CROSSED = {
    "who": [f"p{i}" for i in range(8)],
    "x": ["00", "01", "00", "01", "10", "11", "10", "11"],
    "y": ["0", "0", "1", "1", "0", "0", "1", "1"],
    "s": [1, 1, 2, 2, 2, 2, 1, 1],
}
"""The first digit of x alone hides the value, and so does y; both together tell it."""


def crossed(make_job: MakeJob) -> Job:
    """A job whose first version was at node (1,1), and whose next one is at (2,0)."""
    attributes = {
        "x": {"role": "quasi_identifier", "hierarchy": {"digits": 2}},
        "y": {"role": "quasi_identifier", "hierarchy": "suppress"},
        "s": "sensitive",
    }
    privacy = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]
    job = make_job(
        CROSSED,
        attributes=attributes,
        entity="who",
        privacy=privacy,
        search={"node": [1, 1]},
        versions={"on_refusal": "refuse"},
    )
    job.run()
    return job.set(search={"node": [2, 0]})


def test_a_recode_of_the_sensitive_column_does_not_end_what_versions_tell_together(make_job: MakeJob) -> None:
    job = crossed(make_job)
    with pytest.raises(Refused, match=r"4 of 4 joint cells fail, with 8 people in them \(distinct_l_diversity"):
        job.run()
    recodes = ("UPDATE people SET s = s + 10", "UPDATE people SET s = CASE s WHEN 11 THEN 7 ELSE 3 END")
    for recode in recodes:
        job.change(recode)
        with pytest.raises(
            Refused, match=r"to people who know whose value changed\): 8 of 8 joint cells fail"
        ) as raised:
            job.run()
        said = "of 8 people whom version 1 of people shows and who stay, 8 have another sensitive value"
        assert said in str(raised.value)
        assert said in events(job, "refused")[-1]["reason"]
    assert not job.query("SELECT * FROM published.people WHERE s > 2")


PEOPLE = " ".join(f"p{i}:q:{'ab'[i % 2]}" for i in range(40))


def swap(job: Job, *people: int) -> None:
    """These people have the other value now."""
    names = ", ".join(f"'p{i}'" for i in people)
    job.change(f"UPDATE people SET value = CASE value WHEN 'a' THEN 'b' ELSE 'a' END WHERE id IN ({names})")


@pytest.mark.parametrize("changed", [2, 4, 5])
def test_one_who_comes_among_those_who_changed_is_known_by_who_changed(make_job: MakeJob, changed: int) -> None:
    """From everybody who does not know who changed the newcomer hides among them."""
    job = people_job(make_job, PEOPLE)
    job.run()
    insert(job, "n:q:c")
    swap(job, *range(changed))
    said = f"of 40 people whom version 1 of people shows and who stay, {changed} have another sensitive value"
    with pytest.raises(Refused, match=rf"{said}.*changed values come in larger groups.*on_refusal: hold_back"):
        job.run()
    assert len(shown(job).split()) == 40


def test_what_is_refused_passes_where_versions_lag(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE)
    job.run()
    insert(job, "n:q:c")
    swap(job, 0, 1)
    with pytest.raises(Refused, match=r"`versions: \{on_refusal: hold_back, cohort: auto\}`"):
        job.run()
    found = job.set(versions={"on_refusal": "hold_back", "cohort": "auto"}).run()
    assert (found.status, found.waiting) == ("published", {"newcomers": 1})
    assert len(shown(job).split()) == 40


def test_where_values_change_in_groups_the_version_is_published(make_job: MakeJob) -> None:
    job = people_job(make_job, PEOPLE)
    job.run()
    job.change("UPDATE people SET value = value || 'x'")
    found = job.run()
    assert (found.status, found.joint) == ("published", "episodes")
