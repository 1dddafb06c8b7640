"""A release that goes on while people come, leave and change: what each version shows, through the job itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.ledger.stores import store_of
from qblock.release.erase import erase
from qblock.release.rekey import rekey
from qblock.release.retype import retype
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import Job, MakeJob
from release.test_waiting import ATTRIBUTES, HOLD_BACK, events, insert, people_job, shown

pytestmark = pytest.mark.either_engine

SIXTEEN = " ".join(f"p{i:02}:q:{'ab'[i % 2]}" for i in range(16))


def change(job: Job, value: str, *names: str) -> None:
    job.change(f"UPDATE people SET value = '{value}' WHERE id IN ({', '.join(map(repr, names))})")


def delete(job: Job, *names: str) -> None:
    job.change(f"DELETE FROM people WHERE id IN ({', '.join(map(repr, names))})")


def counts(job: Job) -> Counter[str]:
    return Counter(shown(job).split())


def test_leavers_go_together_where_even_failing_would_leave_candidates(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    delete(job, "p00", "p01", "p02")
    assert (job.run().status, job.run().waiting) == ("unchanged", {"leavers": 3})
    delete(job, "p03")
    found = job.run()
    assert (found.status, found.waiting, counts(job)) == ("published", {}, {"q:a": 6, "q:b": 6})
    assert events(job, "published")[-1]["detail"]["batches_closed"] == {"leavers": 1}
    assert not verify(job.spec).problems


def test_leavers_of_one_value_stay_and_their_cell_is_left_alone(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    delete(job, "p00", "p02", "p04", "p06")
    found = job.run()
    assert (found.status, found.waiting, counts(job)) == ("unchanged", {"leavers": 4}, {"q:a": 8, "q:b": 8})
    assert any("their joint cells stay as they are shown" in note for note in found.notes)
    delete(job, "p01", "p03", "p05", "p07")
    assert (job.run().status, counts(job)) == ("unchanged", {"q:a": 8, "q:b": 8})


def test_changed_values_are_shown_together_and_others_as_they_were(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    change(job, "c", "p00", "p01")
    found = job.run()
    assert (found.status, found.waiting, counts(job)) == ("unchanged", {"changes": 2}, {"q:a": 8, "q:b": 8})
    change(job, "d", "p02", "p03")
    found = job.run()
    assert (found.status, found.waiting) == ("published", {})
    assert counts(job) == {"q:a": 6, "q:b": 6, "q:c": 2, "q:d": 2}


def test_who_changed_twice_since_last_shown_keeps_what_is_shown(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    change(job, "c", "p00", "p01")
    job.run()
    change(job, "e", "p00")
    change(job, "d", "p02", "p03")
    assert (job.run().status, job.run().waiting) == ("unchanged", {"changes": 4})
    change(job, "a", "p00")
    assert job.run().waiting == {"changes": 3}
    change(job, "f", "p04")
    assert job.run().status == "published"
    assert counts(job) == {"q:a": 6, "q:b": 6, "q:c": 1, "q:d": 2, "q:f": 1}


def test_who_left_and_comes_back_is_not_shown_again(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b r1:r:a r2:r:b", **HOLD_BACK)
    job.run()
    delete(job, "r1", "r2")
    assert (job.run().status, shown(job)) == ("published", "q:a q:b")
    insert(job, "r1:r:a r2:r:b")
    said: list[str] = []
    found = job.run(log=said.append)
    assert (found.status, found.waiting, shown(job)) == ("unchanged", {"out": 2}, "q:a q:b")
    assert "version 2 stays: 2 people are out for good (lag 50 % of the rows)" in said[-1]
    insert(job, "s1:r:a s2:r:b")
    assert (job.run().status, shown(job)) == ("published", "q:a q:b r:a r:b")


def test_a_leaver_who_comes_back_before_anything_was_shown_is_nothing_new(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    delete(job, "p00")
    assert job.run().waiting == {"leavers": 1}
    insert(job, "p00:q:a")
    assert (job.run().status, job.run().waiting) == ("unchanged", {})


def test_the_last_cell_waits_for_another_one(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    delete(job, "p1", "p2")
    insert(job, "s1:q:c")
    assert (job.run().status, shown(job)) == ("unchanged", "q:a q:b")
    insert(job, "s2:q:a")
    assert (job.run().status, counts(job)) == ("published", {"q:a": 2, "q:b": 1, "q:c": 1})
    assert (job.run().status, shown(job)) == ("published", "q:a q:c")


def test_people_who_withdraw_leave_by_the_rules_of_leavers(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    assert erase(job.spec, ["p00", "p01", "p02"]).status == "queued"
    found = job.run()
    assert (found.status, found.waiting) == ("unchanged", {"withdrawals": 3})
    delete(job, "p03")
    found = job.run()
    assert (found.status, counts(job)) == ("published", {"q:a": 6, "q:b": 6})
    assert events(job, "erased")[-1]["detail"] == {"people": 3}
    # The source has three of them still.
    assert (job.run().status, counts(job)) == ("unchanged", {"q:a": 6, "q:b": 6})


def test_who_withdraws_at_once_takes_the_whole_joint_cell_along(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    insert(job, "r1:q:c r2:q:d")
    job.run()
    found = erase(job.spec, ["r1"], now=True)
    assert (found.status, found.companions, shown(job)) == ("erased", 1, "q:a q:b")
    assert job.run().status == "unchanged"
    insert(job, "s1:q:c s2:q:d")
    assert (job.run().status, shown(job)) == ("published", "q:a q:b q:c q:d")


def test_where_nobody_would_be_left_it_says_so(make_job: MakeJob) -> None:
    """All have one cell, and somebody withdraws at once."""
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    words = r"readers still see version 1, .* nobody is left .* shares a joint cell .* `qblock retire SPEC` takes"
    with pytest.raises(Refused, match=words):
        erase(job.spec, ["p00"], now=True)
    job.change("DELETE FROM people")
    with pytest.raises(Refused, match=r"the source \w+ is empty: there is nothing to release"):
        job.run()


def test_a_run_that_stops_after_a_batch_closed_lets_nobody_join_it(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    insert(job, "t:q:a u:q:b")
    with monkeypatch.context() as patched:
        patched.setattr("qblock.release.apply.count_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.run()
    insert(job, "v:q:c")
    delete(job, "t")
    change(job, "e", "u")
    found = job.run()
    assert (found.status, shown(job)) == ("published", "q:a q:a q:b q:b")
    assert found.waiting == {"newcomers": 1, "leavers": 1, "changes": 1}


def test_a_first_version_that_nobody_saw_is_forgotten(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    with monkeypatch.context() as patched:
        patched.setattr("qblock.release.apply.count_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.run()
    change(job, "c", "p1")
    assert (job.run().status, shown(job)) == ("published", "q:b q:c")


def test_after_a_rollback_the_next_version_shows_the_newest_state(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    insert(job, "t:q:a u:q:b")
    job.run()
    rollback(job.spec, 1)
    delete(job, "p1")
    found = job.run()
    assert (found.status, found.version, shown(job)) == ("published", 3, "q:a q:a q:b q:b")
    assert found.waiting == {"leavers": 1}


def test_a_release_that_was_published_before_goes_on_with_what_its_newest_version_shows(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b r1:r:a r2:r:b", on_refusal="refuse")
    job.run()
    insert(job, "s1:q:c s2:q:d")
    job.run()
    delete(job, "r1", "r2")
    job.run()
    assert shown(job) == "q:a q:b q:c q:d"
    job.set(versions=HOLD_BACK)
    delete(job, "p1")
    insert(job, "r1:r:a r2:r:b t1:r:a")
    found = job.run()
    assert found.waiting == {"newcomers": 1, "leavers": 1, "out": 2}
    delete(job, "p2")
    insert(job, "t2:r:b")
    # Two cells of one block: whoever came with version 2 stays.
    assert (job.run().status, shown(job)) == ("published", "q:c q:d r:a r:b")


def test_other_columns_or_another_node_than_the_state_has_are_refused(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:1:a p2:1:b p3:2:a p4:2:b", **HOLD_BACK).set(search={"node": [0]})
    job.run()
    job.set(search={"node": [1]})
    with pytest.raises(Refused, match=r"all versions must have one node, and version 1 .* has \[0\]"):
        job.run()
    job.change("ALTER TABLE people ADD COLUMN ward VARCHAR DEFAULT 'x'")
    job.set(search={"node": [0]}, attributes={**job.settings["attributes"], "ward": "insensitive"})
    with pytest.raises(
        Refused, match=r"made with other columns \(block, value\) than the spec has now \(block, value, ward\)"
    ):
        job.run()


def edited(job: Job, text: str) -> None:
    (job.folder / "block.csv").write_text(text)


def test_an_edit_of_a_hierarchy_splits_the_cells_of_those_whom_it_moves(make_job: MakeJob) -> None:
    people = " ".join(f"{block}{i}:{block}:{'st'[i % 2]}" for block in "abcd" for i in range(4))
    job = people_job(make_job, people, **HOLD_BACK).set(search={"node": [1]})
    job.set(
        attributes={"block": {"role": "quasi_identifier", "hierarchy": {"file": "block.csv"}}, "value": "sensitive"}
    )
    edited(job, "block,pair,all\na,1,*\nb,1,*\nc,2,*\nd,2,*\n")
    job.run()
    edited(job, "block,pair,all\na,1,*\nb,1,*\nc,1,*\nd,2,*\n")
    said: list[str] = []
    assert job.run(log=said.append).status == "published"
    assert any("shows 4 people in another block: their joint cells are split" in line for line in said)
    assert counts(job) == {"1:s": 6, "1:t": 6, "2:s": 2, "2:t": 2}
    # All of c has left, who shared a joint cell with d before, and share one of their own now.
    delete(job, "c0", "c1", "c2", "c3")
    assert (job.run().status, counts(job)) == ("published", {"1:s": 4, "1:t": 4, "2:s": 2, "2:t": 2})


ODD: dict[str, list[Any]] = {
    "block": ["", None, "q", "q", "", None, "q", "\x1e0"],
    "value": [None, "", "a", "b", "\x1fN", "b", "c", "d"],
    "born": ["1950-01-31", None, "0044-03-15", "2020-02-29", "1950-01-31", "1999-12-31", "2000-01-01", "1970-01-01"],
    "paid": ["1.50", "2.00", "-0.10", None, "1000000.25", "3.33", "0.00", "7.10"],
    "ratio": [0.1, 1e-7, 1e22, 2.5, None, 1 / 3, -0.0, 5e-324],
}


def test_people_who_are_gone_are_shown_exactly_as_they_were(make_job: MakeJob) -> None:
    attributes = {
        "block": {"role": "quasi_identifier", "hierarchy": "suppress", "nulls": "top"},
        "value": {"role": "sensitive", "nulls": "value"},
        "born": "insensitive",
        "paid": "insensitive",
        "ratio": "insensitive",
    }
    job = make_job(
        {name: values * 3 for name, values in ODD.items()} | {"id": [f"p{i}" for i in range(24)]},
        attributes=attributes,
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
        entity="id",
        versions=HOLD_BACK,
        search={"node": [1]},
    )
    double = "DOUBLE" if job.engine == "duckdb" else "DOUBLE PRECISION"
    for name, type_ in (("born", "DATE"), ("paid", "DECIMAL(12, 2)"), ("ratio", double)):
        using = f" USING CAST({name} AS {type_})" if job.engine == "postgresql" else ""
        job.change(f"ALTER TABLE people ALTER {name} TYPE {type_}{using}")
    job.run()
    before = Counter(job.published())
    delete(job, *(f"p{i}" for i in range(6)))
    job.change("UPDATE people SET paid = 9.99, value = 'z', ratio = 4 WHERE id = 'p7'")
    found = job.run()
    assert (found.status, found.waiting) == ("unchanged", {"leavers": 6, "changes": 1})
    assert found.rows == 24
    assert job.run(force=True).status == "published"
    assert Counter(job.published()) == before
    assert not verify(job.spec).problems


def test_a_new_key_and_other_types_keep_the_state(make_job: MakeJob) -> None:
    job = people_job(make_job, " ".join(f"{i}:q:{i % 2}" for i in range(16)), **HOLD_BACK)
    job.run()
    job.change("DELETE FROM people WHERE id IN ('0', '1', '2')")
    change(job, "5", "3")
    assert job.run().waiting == {"leavers": 3, "changes": 1}
    rekey(store_of(job.spec))
    assert job.run().waiting == {"leavers": 3, "changes": 1}
    using = " USING CAST(value AS INTEGER)" if job.engine == "postgresql" else ""
    job.change(f"ALTER TABLE people ALTER value TYPE INTEGER{using}")
    with pytest.raises(Refused, match="ledger retype"):
        job.run()
    retype(job.spec)
    assert job.run().waiting == {"leavers": 3, "changes": 1}
    job.change("DELETE FROM people WHERE id = '4'")
    job.run()
    assert Counter(job.published()) == {("q", 0): 5, ("q", 1): 7}


def test_values_that_a_model_of_the_whole_distribution_has_not_seen_are_refused(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.set(privacy=[{"k_anonymity": {"k": 2}}, {"t_closeness": {"t": 0.6}}, {"distinct_l_diversity": {"l": 2}}])
    job.run()
    insert(job, "t:q:a u:q:z")
    with pytest.raises(Refused, match=r"the source has values of value that the first version"):
        job.run()
    assert counts(job) == {"q:a": 8, "q:b": 8}


def test_the_distribution_that_models_compare_with_is_that_of_the_first_version(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.set(privacy=[{"k_anonymity": {"k": 2}}, {"t_closeness": {"t": 0.3}}, {"distinct_l_diversity": {"l": 2}}])
    assert job.run().tightest[1].values[0].value == 0
    for i in range(4):
        insert(job, " ".join(f"n{i}{j}:q:{value}" for j, value in enumerate("aaab")))
        assert job.run().status == "published"
    # 20 of 32 have value a, against a half of the first version.
    assert job.run().tightest[1].values[0].value == pytest.approx(1 / 8)
    assert not verify(job.spec).problems


@pytest.mark.parametrize("compared", ["work", "value"])
def test_only_an_attribute_whose_model_compares_with_a_distribution_keeps_its_values(
    make_job: MakeJob, compared: str
) -> None:
    """The cell of all who have value z goes, which somebody has to declare only where t-closeness looks at the
    values."""
    rows = [(f"p{i:02}", "qr"[i // 16], "xy"[i % 2], "z" if i < 4 else "ab"[i // 2 % 2]) for i in range(32)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "block", "work", "value"))}
    other = "value" if compared == "work" else "work"
    privacy = [
        {"k_anonymity": {"k": 2}},
        {"t_closeness": {"t": 0.6, "sensitive": compared}},
        {"distinct_l_diversity": {"l": 2, "sensitive": other}},
    ]
    attributes = {**ATTRIBUTES, "work": "sensitive"}
    job = make_job(columns, attributes=attributes, privacy=privacy, entity="id", versions=HOLD_BACK)
    job.run()
    if compared == "value":
        with pytest.raises(Refused, match=r"shows nobody with some values of value .* Declare all the values of value"):
            erase(job.spec, ["p00"], now=True)
        return
    assert erase(job.spec, ["p00"], now=True).status == "erased"
    assert {row[0] for row in job.published()} == {"r"}
    assert not verify(job.spec).problems


def test_a_value_that_the_first_version_did_not_have_is_to_be_declared_where_a_model_looks_at_all(
    make_job: MakeJob,
) -> None:
    privacy = [{"k_anonymity": {"k": 2}}, {"t_closeness": {"t": 0.3}}, {"distinct_l_diversity": {"l": 2}}]
    job = people_job(make_job, SIXTEEN, **HOLD_BACK).set(privacy=privacy)
    job.run()
    insert(job, " ".join(f"n{i}:q:{value}" for i, value in enumerate("aaabbz")))
    with pytest.raises(Refused, match=r"t_closeness depends on all values.*Declare all the values of value"):
        job.run()
    job.set(attributes={**ATTRIBUTES, "value": {"role": "sensitive", "domain": ["a", "b", "z"]}})
    assert (job.run().status, counts(job)) == ("published", {"q:a": 11, "q:b": 10, "q:z": 1})
    assert not verify(job.spec).problems
    # The next batch is compared with the first version, which has none of it: half of one value is 0.5 away.
    insert(job, "o0:q:a o1:q:b o2:q:z o3:q:z")
    assert (job.run().status, job.run().waiting) == ("unchanged", {"out": 4})


def test_the_worked_scenarios_of_holding_back(make_job: MakeJob, scenarios: list[dict[str, Any]]) -> None:
    """By size only, what is listed as published is published; the table that waiting until diverse gives is not."""
    known = {scenario["id"]: scenario for scenario in scenarios}
    listed = known["hold_back_by_size_only"]["published_csv"]
    disclosing = known["hold_back_until_diverse"]["published_csv"]
    people = " ".join(f"p{i}:{line.replace(',', ':')}" for i, line in enumerate(listed[0].split()[1:]))
    job = people_job(make_job, people, **HOLD_BACK).set(search={"node": [0]})
    arrivals = {1: "", 2: "t:q:a u:q:a", 3: "w:q:c"}
    values = known["hold_back_by_size_only"]["true_values"]
    assert {item.split(":")[0]: item.split(":")[2] for text in arrivals.values() for item in text.split()} == values
    for version, text in arrivals.items():
        insert(job, text)
        job.run()
        published = ["block,value", *(row.replace(":", ",") for row in shown(job).split())]
        assert published == listed[version - 1].split()
        assert (published == disclosing[version - 1].split()) == (version < 3)


def test_newcomers_wait_for_as_many_as_the_first_version_says(make_job: MakeJob) -> None:
    """Without a number in the spec; 13 of a block with two values as often, since 2 / 2**11 is below 1 in 1000."""
    job = people_job(make_job, SIXTEEN).set(versions={"cohort": "auto"})
    job.run()
    insert(job, " ".join(f"n{i:02}:q:{'ab'[i % 2]}" for i in range(10)))
    found = job.run()
    assert (found.status, found.waiting) == ("unchanged", {"newcomers": 10})
    insert(job, "n10:q:a")
    assert (job.run().status, len(job.published())) == ("published", 27)


def test_a_release_that_lags_no_more_forgets_what_it_showed(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b r1:r:a r2:r:b", **HOLD_BACK)
    job.run()
    job.set(versions={"on_refusal": "refuse"})
    insert(job, "s1:q:c s2:q:d")
    delete(job, "r1", "r2")
    assert (job.run().status, shown(job)) == ("published", "q:a q:b q:c q:d")
    job.set(versions=HOLD_BACK)
    delete(job, "s1", "s2")
    insert(job, "r1:r:a r2:r:b")
    found = job.run()
    assert (found.status, found.waiting, shown(job)) == ("published", {"out": 2}, "q:a q:b")


def test_a_cell_that_failed_is_left_alone_also_after_versions_that_did_not_lag(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.run()
    delete(job, "p00", "p02", "p04", "p06")
    assert (job.run().status, events(job, "waiting")[-1]["detail"]["cells_frozen"]) == ("unchanged", 1)
    insert(job, "p00:q:a p02:q:a p04:q:a p06:q:a n1:q:c n2:q:d")
    job.set(versions={"on_refusal": "refuse"})
    assert (job.run().status, len(job.published())) == ("published", 18)
    job.set(versions=HOLD_BACK)
    # Of any other cell these could leave.
    delete(job, "p00", "p01", "p02", "p03")
    assert (job.run().waiting, len(job.published())) == ({"leavers": 4}, 18)


def test_who_changed_with_others_leaves_at_once_with_these_alone(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    change(job, "c", "p00", "p01")
    change(job, "d", "p02", "p03")
    job.run()
    assert erase(job.spec, ["p00"], now=True).companions == 3
    assert counts(job) == {"q:a": 6, "q:b": 6}
