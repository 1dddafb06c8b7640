"""`qblock adopt`: a version that was published without a crosswalk is recorded in one, or it is said why not."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from qblock.cli.app import run
from qblock.errors import InputError, Refused
from qblock.joint.crosswalk import own_book
from qblock.joint.versions import recorded
from qblock.ledger.events import Event
from qblock.ledger.history import history
from qblock.ledger.reader import ledger_reader
from qblock.ledger.stores import place_of
from qblock.ledger.writer import ledger_transaction, record
from qblock.release.adopt import AdoptResult, adopt, foreseen_adoption
from qblock.release.erase import erase
from qblock.release.retire import retire
from qblock.release.retype import retype
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.before import crosswalk
from release.crossing import alter
from release.jobs import Job, MakeJob
from release.test_together import crossed_columns
from release.test_waiting import ATTRIBUTES, events, insert, shown

pytestmark = pytest.mark.either_engine

PEOPLE = " ".join(f"{block}{i}:{block}:{'ab'[i % 2]}" for block in "qr" for i in range(6))
TABLES = (
    "crosswalk",
    "crosswalk_block",
    "crosswalk_version",
    "crosswalk_frozen",
    "crosswalk_shown",
    "crosswalk_steady",
)
MODELS = [
    {"k_anonymity": {"k": 3}},
    {"t_closeness": {"t": 0.9}},
    {"pd_recursive_cl_diversity": {"c": 9, "l": 2, "allowed": ["a"]}},
    {"npd_recursive_cl_diversity": {"c1": 9, "c2": 0, "l": 2}},
    {"entropy_l_diversity": {"l": 1.5}},
]
NONE_LEFT = "what is left is `versions: {joint: none}`"
SAID = "version 1 was adopted"


def plain_job(make_job: MakeJob, text: str = PEOPLE, **settings: Any) -> Job:
    """A job over people given as `person:block:value ...` that does not say who a row is about."""
    rows = [item.split(":") for item in text.split()]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "block", "value"))}
    privacy = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]
    return make_job(columns, **{"attributes": ATTRIBUTES, "privacy": privacy, **settings})


def adopted(job: Job, **options: Any) -> AdoptResult:
    return adopt(job.spec, same_people=True, **options)


def why_not(job: Job) -> str:
    """The refusal; it is in the ledger, says what is left, and nothing is in the crosswalk."""
    before = kept(job)
    with pytest.raises(Refused) as raised:
        adopted(job)
    text = str(raised.value)
    assert NONE_LEFT in text.replace("What is left", "what is left")
    assert "with which no later version is protected together with the earlier ones" in text
    assert "release name" not in text
    assert kept(job) == before
    assert history(job.spec)["events"][-1]["reason"] == text
    assert history(job.spec)["events"][-1]["state"] == "refused"
    return text


def kept(job: Job) -> list[Any]:
    """The versions and people that the crosswalk holds."""
    place = place_of(job.spec)
    if not place.crosswalk.exists:
        return []
    with own_book(place) as book:
        return [(v.key.version, v.rows) for v in recorded(book, "people")]


def content(job: Job) -> dict[str, list[Any]]:
    """All that the crosswalk holds of people and versions, but for digests and times."""
    found = {}
    for table in TABLES:
        columns = "rows, least, node, hierarchies, quasi_identifiers, sensitive, types" if "version" in table else "*"
        rows = [list(row) for row in crosswalk(job, f"SELECT {columns} FROM {table}")]
        found[table] = sorted([str(cell) for cell in row if len(str(cell)) != 32] for row in rows)
    return found


def test_a_release_goes_on_once_its_version_is_adopted(make_job: MakeJob) -> None:
    job = plain_job(make_job)
    assert job.begin().version == 1
    insert(job, "n1:q:a n2:q:b")
    with pytest.raises(Refused, match=r"entity: COLUMN.*qblock adopt SPEC --same-people.*joint: none"):
        job.run()
    job.set(entity="id", versions={"cohort": 2})
    with pytest.raises(Refused, match=r"published without a crosswalk.*qblock adopt SPEC --same-people.*joint: none"):
        job.run()
    assert "the source has 14 rows now, and it was made of 12" in why_not(job)
    job.change("DELETE FROM people WHERE id LIKE 'n%'")
    found = adopted(job)
    assert (found.status, found.version, found.people) == ("adopted", 1, 12)
    assert any(SAID in note and "not proved" in note for note in found.notes)
    insert(job, "n1:q:a n2:q:b")
    result = job.run()
    assert (result.status, result.version, len(shown(job).split())) == ("published", 2, 14)
    insert(job, "n3:q:a")
    result = job.run()
    assert (result.status, result.waiting) == ("unchanged", {"newcomers": 1})
    assert sum(SAID in note for note in result.notes) == 1
    checked = verify(job.spec)
    assert (checked.problems, [SAID in note for note in checked.notes]) == ([], [True])


def test_it_stays_adopted_in_other_types(make_job: MakeJob) -> None:
    job = plain_job(make_job, PEOPLE.replace(":a", ":1").replace(":b", ":2"))
    job.begin()
    adopted(job.set(entity="id"))
    alter(job, "value", "INTEGER")
    assert retype(job.spec).status == "retyped"
    with own_book(place_of(job.spec)) as book:
        assert [version.adopted is None for version in recorded(book, "people")] == [False]


@pytest.mark.parametrize("policy", ["hold_back", "refuse"])
def test_the_crosswalk_is_what_a_run_with_an_entity_writes(make_job: MakeJob, policy: str) -> None:
    versions = {"on_refusal": policy}
    job = plain_job(make_job, f"{PEOPLE} s1:s:a s2:s:a", suppression_limit=2, search={"node": [0]})
    job.begin()
    job.set(entity="id", versions=versions)
    adopted(job)
    found = content(job)
    job.set(release="others", publish={**job.settings["publish"], "view": "others"})
    if job.engine == "duckdb":
        job.settings["publish"]["url"] = f"duckdb:///{job.folder}/others.duckdb"
    # The same table once more, whose versions are recorded as they are published.
    for table in TABLES:
        crosswalk(job, f"DELETE FROM {table}")
    job.set(versions={**versions, "audience": ["people"]})
    with pytest.raises(Refused, match="the crosswalk lacks it"):
        job.run()
    with ledger_transaction(place_of(job.spec)) as connection:
        connection.exec_driver_sql(f"DELETE FROM {'qblock.' if job.engine == 'postgresql' else ''}event")
    job.set(versions=versions)
    job.run()
    for rows in found.values():
        rows[:] = [["others" if cell == "people" else cell for cell in row] for row in rows]
    assert content(job) == found


def test_the_ledger_says_so_for_good(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = plain_job(make_job)
    job.begin()
    path = str(job.set(entity="id").spec.path)
    assert run(["adopt", path, "--same-people", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["status"], answer["version"], answer["people"]) == ("adopted", 1, 12)
    (event,) = events(job, "adopted")
    assert (event["version"], event["entity"], event["detail"]) == (1, "id", {"people": 12})
    assert "does not prove equal people" in event["reason"]
    with ledger_reader(place_of(job.spec)) as reader:
        assert not reader.verify_chain("people")
    assert run(["history", path]) == 0
    assert "adopted" in capsys.readouterr().out
    for words in (["plan"], ["release", "--force"], ["rollback", "1"], ["verify"], ["erase", "q0"], ["retire"]):
        assert run([words[0], path, *words[1:], "--json"]) == 0, words
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert [note.count("not proved") for note in notes if SAID in note] == [1], words


def test_it_is_adopted_once(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = plain_job(make_job)
    job.begin()
    job.set(entity="id")
    adopted(job)
    assert adopted(job).status == "unchanged"
    assert len(events(job, "adopted")) == 1
    assert run(["adopt", str(job.spec.path), "--same-people"]) == 0
    assert "Nothing to do: the crosswalk of people has version 1." in capsys.readouterr().out


def test_what_is_stated_is_said_first(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = plain_job(make_job)
    job.begin()
    path = str(job.set(entity="id").spec.path)
    assert run(["adopt", path]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "nobody was exchanged for another one with the same values" in said
    assert NONE_LEFT in said
    assert (events(job, "adopted"), events(job, "refused"), kept(job)) == ([], [], [])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "entity: COLUMN"),
        ({"entity": "id", "versions": {"joint": "none"}}, "`joint: none` gives that up"),
    ],
)
def test_a_spec_that_checks_nothing_together_adopts_nothing(
    make_job: MakeJob, settings: dict[str, Any], said: str
) -> None:
    job = plain_job(make_job)
    job.begin()
    with pytest.raises(InputError, match=said):
        adopted(job.set(**settings))
    with pytest.raises(InputError, match=said):
        foreseen_adoption(job.spec)


def test_several_versions_leave_no_way_on(make_job: MakeJob) -> None:
    job = plain_job(make_job)
    job.begin()
    assert job.run(force=True).version == 2
    rollback(job.spec, 1)
    job.set(entity="id")
    assert "2 versions were published" in why_not(job)
    insert(job, "n1:q:a n2:q:b")
    with pytest.raises(Refused, match="2 versions were published, so none of them can be adopted") as raised:
        job.run()
    assert "--same-people" not in str(raised.value)


def test_nothing_was_published(make_job: MakeJob) -> None:
    job = plain_job(make_job).set(entity="id")
    with pytest.raises(Refused, match="was never published"):
        adopted(job)
    assert not (job.folder / "qblock" / "ledger.duckdb").exists()


def test_a_retired_release(make_job: MakeJob) -> None:
    job = plain_job(make_job)
    job.begin()
    retire(job.set(entity="id").spec)
    with pytest.raises(Refused, match="was retired"):
        adopted(job)


OTHER: dict[str, tuple[dict[str, Any], str]] = {
    "a column less": (
        {"attributes": {**ATTRIBUTES, "value": "identifying"}, "privacy": [{"k_anonymity": {"k": 2}}]},
        r"it publishes block \(quasi-identifier\), value \(sensitive\), and the spec says block \(quasi-identifier\);",
    ),
    "another model": ({"privacy": [{"k_anonymity": {"k": 2}}]}, "something else of distinct_l_diversity"),
    "another k": (
        {"privacy": [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}]},
        "something else of k_anonymity",
    ),
    "another node": ({"search": {"node": [1]}}, r"it has node \[0\], and the spec pins \[1\]"),
    "another hierarchy": (
        {"attributes": {**ATTRIBUTES, "block": {"role": "quasi_identifier", "hierarchy": {"file": "block.csv"}}}},
        "hierarchies, domains or taxonomies were others",
    ),
}


def test_a_model_of_every_kind_is_the_one_of_then(make_job: MakeJob) -> None:
    job = plain_job(make_job, privacy=MODELS)
    job.run()
    assert adopted(job.set(entity="id")).status == "adopted"


@pytest.mark.parametrize("what", OTHER)
def test_a_spec_that_asks_otherwise_adopts_nothing(make_job: MakeJob, what: str) -> None:
    job = plain_job(make_job)
    job.begin()
    settings, said = OTHER[what]
    (job.folder / "block.csv").write_text("block,half,all\nq,x,*\nr,x,*\n")
    job.set(entity="id", **settings)
    import re

    text = why_not(job)
    assert re.search(said, text), text
    assert ("hierarchies can be once more" if what == "another hierarchy" else "Write the spec as it was") in text


CHANGES = {
    "a value": ("UPDATE people SET value = 'c' WHERE id = 'q0'", "source and hierarchies give other content now"),
    "two blocks": (
        "UPDATE people SET block = CASE block WHEN 'q' THEN 'r' ELSE 'q' END WHERE id IN ('q0', 'r1')",
        "source and hierarchies give other content now",
    ),
    "a row less": ("DELETE FROM people WHERE id = 'q0'", "the source has 11 rows now, and it was made of 12"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_source_that_has_changed_gives_no_version(make_job: MakeJob, what: str) -> None:
    job = plain_job(make_job)
    job.begin()
    statement, said = CHANGES[what]
    job.change(statement)
    text = why_not(job.set(entity="id"))
    assert said in text
    assert "try again then" in text


def test_suppressed_rows_must_be_those_of_then(make_job: MakeJob) -> None:
    """Another suppressed value changes nothing that is published, and everything that the kept quantities count."""
    job = plain_job(make_job, f"{PEOPLE} s1:s:a s2:s:a", suppression_limit=2, search={"node": [0]})
    job.begin()
    job.change("UPDATE people SET value = 'b' WHERE id IN ('s1', 's2')")
    job.set(entity="id")
    assert "the whole table has other values" in why_not(job)
    job.change("UPDATE people SET value = 'a' WHERE id IN ('s1', 's2')")
    assert adopted(job).status == "adopted"


def test_several_rows_of_one_person(make_job: MakeJob) -> None:
    job = plain_job(make_job)
    job.begin()
    job.change("UPDATE people SET id = 'q0' WHERE id = 'q1'")
    with pytest.raises(InputError, match=r"q0|entity"):
        adopted(job.set(entity="id"))
    assert kept(job) == []


def test_people_who_withdrew_before(make_job: MakeJob) -> None:
    job = plain_job(make_job)
    job.begin()
    erase(job.set(entity="id").spec, ["q0"])
    why_not(job)


@pytest.mark.parametrize("state", ["erased", "rekeyed", "retyped", "confirmed"])
def test_a_ledger_that_tells_of_a_crosswalk(make_job: MakeJob, state: Any) -> None:
    job = plain_job(make_job)
    job.begin()
    with ledger_transaction(place_of(job.spec)) as connection:
        record(connection, Event(release="people", state=state, run="x"))
    job.set(entity="id")
    assert "people have withdrawn" in why_not(job) or state != "erased"


def test_a_lost_crosswalk_is_no_release_without_one(make_job: MakeJob) -> None:
    job = plain_job(make_job)
    job.begin()
    job.set(entity="id")
    adopted(job)
    for table in TABLES:
        crosswalk(job, f"DELETE FROM {table}")
    for again in (adopted, Job.run):
        with pytest.raises(Refused, match="the crosswalk lacks it"):
            again(job)


def test_the_steps_are_shown_and_nothing_is_done(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = plain_job(make_job)
    job.begin()
    path = str(job.set(entity="id").spec.path)
    assert run(["adopt", path, "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [step["step"] for step in plan["steps"]][-3:] == ["check_adoptable", "reproduce", "adopt"]
    assert not [note for note in plan["notes"] if "refused" in note]
    assert (kept(job), events(job, "adopted")) == ([], [])
    job.set(search={"node": [1]})
    job.write()
    assert run(["adopt", path, "--plan"]) == 0
    assert "a run would be refused: version 1 of release people is not adopted" in " ".join(
        capsys.readouterr().out.split()
    )


def decimal_job(make_job: MakeJob) -> Job:
    columns = {"id": list(range(12)), "block": list("qr") * 6, "value": ["1.50"] * 6 + ["2.00"] * 6}
    return make_job(columns, {"value": "NUMERIC(10,2)"}, attributes=ATTRIBUTES, privacy=[{"k_anonymity": {"k": 2}}])


@pytest.mark.each_engine
@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_what_is_owed_to_the_ledger_is_written_before_types_are_moved(make_job: MakeJob) -> None:
    job = decimal_job(make_job)
    job.run()
    adopted(job.set(entity="id"))
    with duckdb.connect(str(job.folder / "qblock" / "ledger.duckdb")) as connection:
        connection.execute("DELETE FROM event WHERE state = 'adopted'")
    job.change("ALTER TABLE people ALTER COLUMN value TYPE NUMERIC(12,4)")
    assert retype(job.spec).status == "retyped"
    assert [event["state"] for event in history(job.spec)["events"]][-2:] == ["adopted", "retyped"]


def test_releases_of_the_same_readers_are_checked_with_it(make_job: MakeJob) -> None:
    job = plain_job(make_job)
    job.begin()
    first = {**job.settings}
    publish = {**first["publish"], "view": "second"}
    if job.engine == "duckdb":
        publish["url"] = f"duckdb:///{job.folder}/second.duckdb"
    second = {**first, "release": "second", "entity": "id", "publish": publish, "versions": {"audience": ["people"]}}
    with pytest.raises(Refused, match="one of them names no `entity`"):
        job.set(**second).run()
    adopted(job.set(**first, entity="id", versions={}))
    assert job.set(**second).run().status == "published"


@pytest.mark.each_engine
@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_what_tells_too_much_with_another_release_is_not_adopted(make_job: MakeJob) -> None:
    job = crossed_columns(make_job).set(search={"node": [1, 0]})
    job.settings.pop("entity")
    job.run()
    first = {**job.settings}
    job.set(release="second", entity="who", publish={**first["publish"], "view": "second"}, search={"node": [0, 1]})
    job.run()
    job.set(**first, entity="who", versions={"audience": ["second"]})
    with pytest.raises(Refused, match="4 of 4 joint cells fail"):
        adopted(job)
    assert kept(job) == []
