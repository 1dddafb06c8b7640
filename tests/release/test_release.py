"""The job: what it refuses, what it records, when it does nothing, and what it says about versions together."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from spark_tables import spark_database_of

from qblock.errors import Busy, InputError, QblockError, Refused
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release.apply import plan
from qblock.release.verify import verify
from qblock.releases import Release
from qblock.spec import spec_digest
from release.jobs import ATTRIBUTES, PEOPLE, Job, MakeJob

pytestmark = pytest.mark.either_engine

ANOTHER = "INSERT INTO people VALUES ('person 12', '13053', 33, 'flu', 'A')"
SINGLE = {"disease": {"role": "sensitive", "nulls": "value"}}


def states(job: Job) -> list[tuple[int | None, str]]:
    return [(event["version"], event["state"]) for event in history(job.spec)["events"]]


def last_reason(job: Job) -> str:
    return str(history(job.spec)["events"][-1]["reason"])


def test_every_transition_is_in_the_ledger(job: Job) -> None:
    result = job.run()
    assert states(job) == [(1, "staged"), (1, "checked"), (1, "published")]
    found = history(job.spec)
    assert (found["current"], found["ledger_head"]) == (1, result.ledger_head)
    event = found["events"][-1]
    assert (event["rows_source"], event["rows_published"], event["rows_suppressed"]) == (12, 12, 0)
    assert (event["quasi_identifiers"], event["node"], event["choice"]) == (["zip", "age"], [1, 2], "minimal")
    assert event["content_digest"] == result.digest
    with store_of(job.spec).read() as reader:
        assert {g.stage for g in reader.guarantees("people", 1)} == {"search"}
        assert {(g.stage, g.model, g.asked, g.satisfied) for g in reader.guarantees("people", 3)} == {
            ("recheck", "k_anonymity", "3", "4"),
            ("recheck", "distinct_l_diversity", "2", "3"),
        }


@pytest.mark.parametrize(
    ("privacy", "message"),
    [
        ([{"k_anonymity": {"k": 13}}], "k_anonymity asks k 13; the most general node satisfies k 12"),
        ([{"distinct_l_diversity": {"l": 5}}], "the most general node satisfies l 4"),
    ],
)
def test_what_nothing_satisfies_is_refused_and_recorded(make_job: MakeJob, privacy: list[dict], message: str) -> None:
    job = make_job(privacy=privacy)
    with pytest.raises(Refused, match=message) as raised:
        job.run()
    assert raised.value.exit_status == 3
    assert states(job) == [(None, "refused")]
    assert message in last_reason(job)
    assert nothing_is_published(job)


def nothing_is_published(job: Job) -> bool:
    if job.engine == "duckdb":
        return not job.target.exists() and not list(job.folder.glob(".release*"))
    if job.engine == "spark":
        return not spark_database_of(job.url).made()
    found = job.query(
        "SELECT count(*) FROM pg_class WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN "
        "('published', 'qblock')) AND (relname ~ '^(v|data)[0-9]*_' OR relname = 'people')"
    )
    return found == [(0,)]


def test_a_refusal_leaves_the_earlier_version_published(released: Job) -> None:
    before = released.published()
    released.set(privacy=[{"k_anonymity": {"k": 13}}])
    with pytest.raises(Refused):
        released.run()
    assert released.published() == before
    assert states(released)[-1] == (None, "refused")


def test_an_empty_source_is_refused(make_job: MakeJob) -> None:
    job = make_job({name: [] for name in PEOPLE}, dict.fromkeys(PEOPLE, "VARCHAR") | {"age": "INTEGER"})
    with pytest.raises(Refused, match="is empty"):
        job.run()
    assert states(job) == [(None, "refused")]


def test_a_pinned_node_that_fails_is_refused(make_job: MakeJob) -> None:
    job = make_job(search={"node": [0, 0]})
    with pytest.raises(Refused, match=r"pinned node \[0, 0\] fails k_anonymity"):
        job.run()


def test_data_that_must_be_mended_is_recorded_without_its_values(make_job: MakeJob) -> None:
    job = make_job(PEOPLE | {"zip": [None, *PEOPLE["zip"][1:]]})
    with pytest.raises(InputError, match="column zip is NULL in 1 row"):
        job.run()
    assert states(job) == [(None, "failed")]
    (job.folder / "zip.csv").write_text("zip,top\n13053,*\n13068,*\n14850,*\n", "utf-8")
    other = {"zip": {"role": "quasi_identifier", "hierarchy": {"file": "zip.csv"}, "nulls": "top"}}
    job.set(attributes=ATTRIBUTES | other)
    with pytest.raises(InputError, match="1 value of column zip") as raised:
        job.run()
    assert "14853" not in str(raised.value)
    assert "14853" not in last_reason(job)


@pytest.mark.parametrize("values", [12, 7])
def test_a_column_that_nearly_singles_out_rows_is_not_published_as_it_is(make_job: MakeJob, values: int) -> None:
    names = [f"n {i % values}" for i in range(12)]
    job = make_job(PEOPLE | {"name": names}, attributes=ATTRIBUTES | {"name": "insensitive"})
    with pytest.raises(Refused, match=r"name would be published as is.*single out rows") as raised:
        job.run()
    assert "spec.yaml:" in str(raised.value)
    assert nothing_is_published(job)


def test_two_rows_for_each_value_are_enough(make_job: MakeJob) -> None:
    pairs = [f"pair {i // 2}" for i in range(12)]
    assert make_job(PEOPLE | {"ward": pairs}).run().status == "published"


def test_changed_data_is_refused_unless_the_spec_gives_up_joint_protection(released: Job) -> None:
    before = released.published()
    released.change(ANOTHER)
    with pytest.raises(Refused, match=r"cannot be checked together; nothing.*joint: none"):
        released.run()
    assert released.published() == before
    assert states(released)[-1] == (None, "refused")
    released.set(versions={"joint": "none"})
    result = released.run()
    assert (result.status, result.version, result.rows) == ("published", 2, 13)
    assert any("not protected together" in note for note in result.notes)
    event = history(released.spec)["events"][-1]
    assert event["joint"] == "none"
    assert "not protected together" in event["reason"]
    assert len(released.published()) == 13
    assert not verify(released.spec).problems


def test_without_an_entity_ledger_and_result_say_that_nothing_is_checked_together(job: Job) -> None:
    said = "none (no entity)"
    assert job.run().joint == said
    job.change(ANOTHER)
    with pytest.raises(Refused):
        job.run()
    found = history(job.spec)["events"]
    assert [(e["state"], e["joint"]) for e in found if e["joint"] != said] == []
    assert {e["state"] for e in found} >= {"published", "refused"}
    assert job.set(versions={"joint": "none"}).run().joint == "none"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "add `entity: COLUMN` now"),
        ({"entity": "name", "count": "entities"}, None),
        ({"entity": "name"}, None),
        ({"versions": {"joint": "none"}}, None),
    ],
)
def test_that_later_versions_will_be_refused_is_said_before_the_first_one(
    job: Job, settings: dict[str, Any], said: str | None
) -> None:
    """Who learns it from the second run has to begin anew."""
    job.set(**settings)
    loaded = Release(job.spec)
    for notes in (loaded.plan().notes, loaded.search().warnings, job.run().notes):
        found = [note for note in notes if "a run with changed data will be refused" in note]
        assert [said in note for note in found] == ([] if said is None else [True])
    assert not any("published once" in note for note in job.run(force=True).notes)


def test_what_follows_from_the_spec_is_said_when_it_is_new(job: Job) -> None:
    """A weekly job that repeats the same notes hides those that are new."""
    job.set(versions={"joint": "none"})
    standing = {note for note in job.run().notes if "not protected together" in note or "how qblock searches" in note}
    assert len(standing) == 2
    job.change(ANOTHER)
    assert not standing & set(job.run().notes)
    job.change(ANOTHER.replace("12", "13"))
    assert standing <= set(job.set(privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]).run().notes)


def test_a_version_that_was_replaced_still_counts_as_read(job: Job) -> None:
    job.set(versions={"joint": "none", "keep": 1})
    job.run()
    # As many rows as before, so that it takes their content to tell.
    job.change("UPDATE people SET disease = 'flu' WHERE name = 'person 5'")
    job.run()
    # Back to the content of version 2, but version 1 has been read as well.
    job.set(versions={"joint": "episodes"})
    with pytest.raises(Refused, match="version 1 of release people was published with other content"):
        job.run(force=True)


def test_another_spec_with_the_same_content_is_published_anew(released: Job) -> None:
    released.set(privacy=[{"k_anonymity": {"k": 4}}, {"distinct_l_diversity": {"l": 2}}])
    result = released.run()
    assert (result.status, result.version) == ("published", 2)
    assert not verify(released.spec).problems


def test_two_releases_of_one_source_do_not_mix(job: Job) -> None:
    job.set(versions={"joint": "none"})
    job.run()
    before = job.published()
    publish = dict(job.settings["publish"])
    job.set(release="people_2", publish=publish | {"view": "more", "url": f"duckdb:///{job.folder}/more.duckdb"})
    if job.engine == "postgresql":
        del job.settings["publish"]["url"]
    assert job.run().version == 1
    job.set(release="people", publish=publish)
    assert job.published() == before
    assert job.run().status == "unchanged"


def test_one_run_at_a_time(released: Job) -> None:
    with store_of(released.spec).lock("people"), pytest.raises(Busy) as raised:
        released.run()
    assert raised.value.exit_status == 4
    assert len(states(released)) == 3


def there(job: Job) -> list[str]:
    """What is in the job's folder; on Spark without the folder of its private copies once it is empty."""
    found = [path for path in job.folder.iterdir() if job.engine != "spark" or path.is_file() or any(path.iterdir())]
    return sorted(path.name for path in found)


def test_a_plan_writes_nothing_and_names_the_steps_that_are_run(job: Job) -> None:
    spec = job.spec
    files = there(job)
    planned = plan(spec)
    assert [step["step"] for step in planned.answer().to_dict()["steps"]] == [
        "lock",
        "upgrade_ledger",
        "check_private_state",
        "clear_leftovers",
        *(["check_readers"] if job.engine == "postgresql" else []),
        "snapshot",
        "check_disclosure",
        "search",
        "check_earlier_versions",
        "copy_version",
        "recheck",
        "publish",
        "retire",
    ]
    assert there(job) == files
    assert nothing_is_published(job)
    said: list[str] = []
    job.run(log=said.append)
    assert said == [step.describe() for step in planned.steps]
    assert plan(spec).current == 1


def test_old_versions_are_dropped_and_the_ledger_says_so(job: Job) -> None:
    job.set(versions={"joint": "none", "keep": 2})
    for number in range(4):
        job.change(f"INSERT INTO people VALUES ('new {number}', '13053', 33, 'flu', 'A')")
        assert job.run().version == number + 1
    retired = [version for version, state in states(job) if state == "retired"]
    assert retired == [1, 2]
    if job.engine == "duckdb":
        kept = [path.name for path in (job.folder / "qblock" / "versions" / "people").glob("v*")]
        assert sorted(kept) == ["v3.duckdb", "v4.duckdb"]
    else:
        tables = "SELECT relname FROM pg_class WHERE relname ~ '^v[0-9]+_people$' ORDER BY relname"
        assert job.query(tables) == [("v3_people",), ("v4_people",)]
    assert len(job.published()) == 16
    assert not verify(job.spec).problems


def test_suppressed_rows_are_not_in_the_copy(make_job: MakeJob) -> None:
    job = make_job(
        PEOPLE | {"zip": ["99999", *PEOPLE["zip"][1:]]},
        suppression_limit=4,
        search={"node": [1, 2]},
        privacy=[{"k_anonymity": {"k": 3}}],
    )
    result = job.run()
    assert (result.rows, result.suppressed) == (11, 1)
    rows = job.published()
    assert len(rows) == 11
    assert not any(row[0].startswith("9") for row in rows)
    assert not verify(job.spec).problems
    assert history(job.spec)["events"][-1]["rows_suppressed"] == 1


def test_a_choice_that_looks_at_sensitive_values_is_said_to_be_unprotected(make_job: MakeJob) -> None:
    job = make_job()
    assert any("knows how qblock searches" in note for note in job.run().notes)
    job.set(search={"choose_from": "sizes"}, release="other", publish=job.settings["publish"] | {"view": "other"})
    job.set(versions={"joint": "none"})
    if job.engine == "duckdb":
        job.settings["publish"] = job.settings["publish"] | {"url": f"duckdb:///{job.folder}/other.duckdb"}
    result = job.run()
    assert result.protected
    assert not any("knows how qblock searches" in note for note in result.notes)


def test_a_source_that_cannot_be_reached(job: Job, tmp_path: Path) -> None:
    gone = f"duckdb:///{tmp_path}/gone.duckdb" if job.engine == "duckdb" else "postgresql://nobody@127.0.0.1:1/none"
    job.set(source={"url": gone, "table": "people"})
    with pytest.raises(QblockError, match="not reachable") as raised:
        job.run()
    assert raised.value.exit_status == 1


def test_entities_are_counted_by_the_search_and_their_rows_by_the_check(make_job: MakeJob) -> None:
    twice = {name: values * 2 for name, values in PEOPLE.items()}
    twice["name"] = [f"person {i % 12}" for i in range(24)]
    job = make_job(twice, entity="name", count="entities")
    result = job.run()
    assert (result.rows, result.tightest[0].values[0].value) == (24, 4)
    assert any("not computed from the published rows" in note for note in result.notes)
    verified = verify(job.spec)
    assert (verified.problems, verified.not_recomputed) == ((), ())
    assert verified.recomputed_privately == ("k_anonymity", "distinct_l_diversity")
    assert [entry.values for entry in verified.tightest] == [entry.values for entry in result.tightest]
    assert job.run().status == "unchanged"


def test_wherever_frequency_sets_are_rolled_up_the_release_is_the_same(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qblock.source.open.LEAST_COUNTED", 0)
    job = make_job()
    digest = job.run().digest
    for where in ("local", "warehouse"):
        job.set(search={"roll_up": where, "strategy": "incognito"})
        assert job.run().status == "unchanged"
        assert job.run(force=True).digest == digest


def test_several_sensitive_attributes_and_a_model_over_both(make_job: MakeJob) -> None:
    disease = ["cancer" if value == "flu" else value for value in PEOPLE["disease"]]
    ward = ["B" if i == 8 else value for i, value in enumerate(PEOPLE["ward"])]
    job = make_job(
        PEOPLE | {"disease": disease, "ward": ward},
        attributes=ATTRIBUTES | {"ward": "sensitive"},
        search={"node": [5, 3]},
        privacy=[
            {"distinct_l_diversity": {"l": 2, "sensitive": ["disease", "ward"]}},
            {"entropy_l_diversity": {"l": 1.9, "sensitive": "ward"}},
            {"t_closeness": {"t": 0.5, "distance": "equal", "sensitive": "disease"}},
        ],
    )
    assert job.run().rows == 12
    assert verify(job.spec).not_recomputed == ()
    assert verify(job.spec).problems == ()


@pytest.mark.either_engine
def test_the_text_of_a_spec_is_kept_by_its_digest_without_urls(job: Job) -> None:
    job.set(versions={"joint": "none"}).run()
    job.run(force=True)
    with store_of(job.spec).opened(read_only=True) as connection:
        schema = "qblock." if job.engine == "postgresql" else ""
        query = f"SELECT content, spec_digest, release, first_version, last_version FROM {schema}spec_texts"
        ((text, *found),) = connection.execute(sa.text(query)).all()
    assert found == [hashlib.sha256(text.encode()).hexdigest(), "people", 1, 2]
    assert found[0] == spec_digest(job.spec)
    assert "://" not in text
    assert str(job.folder) not in text
