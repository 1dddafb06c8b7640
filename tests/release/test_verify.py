"""Verification finds an altered version, view, pointer, reference, or ledger row, on both engines."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import duckdb
import psycopg
import pytest

from qblock.errors import Refused
from qblock.ledger.stores import store_of
from qblock.release.verify import verify
from qblock.results.release import Verified
from release.jobs import ATTRIBUTES, Job

pytestmark = pytest.mark.either_engine


def tamper(job: Job, *statements: str) -> None:
    """Change what is published as someone who may: the owner of the tables, or of the file."""
    if job.engine == "duckdb":
        with duckdb.connect(str(job.target)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with psycopg.connect(job.url) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


def tamper_ledger(job: Job, statement: str) -> None:
    """Change the ledger; its tables are named as in schema qblock."""
    if job.engine == "duckdb":
        with closing(sqlite3.connect(str(store_of(job.spec).file), isolation_level=None)) as connection:
            connection.execute(statement.replace("qblock.", ""))
        return
    job.change(statement)


def data(job: Job) -> str:
    return "published.people_v1" if job.engine == "duckdb" else "qblock.data_people"


def problems(job: Job, expected_head: str | None = None) -> str:
    result = verify(job.spec, expected_head)
    assert result.status == ("failed" if result.problems else "verified")
    if result.problems:
        with pytest.raises(Refused) as raised:
            result.raise_problems()
        assert raised.value.exit_status == 3
    return "\n".join(result.problems)


def test_what_was_published_is_verified(job: Job) -> None:
    released = job.run()
    result: Verified = verify(job.spec, released.ledger_head)
    assert result.problems == ()
    result.raise_problems()
    assert (result.version, result.rows, result.digest) == (1, 12, released.digest)
    assert result.tightest == released.tightest
    assert result.ledger_head == released.ledger_head
    assert result.not_recomputed == ()


def test_nothing_published_is_refused(job: Job) -> None:
    with pytest.raises(Refused, match="never published"):
        verify(job.spec)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("INSERT INTO {data} SELECT * FROM {data} LIMIT 1", "13 rows are published, and the ledger says 12"),
        ("DELETE FROM {data} WHERE disease = 'flu'", "11 rows are published, and the ledger says 12"),
        ("UPDATE {data} SET zip = '13068' WHERE disease = 'flu'", "do not satisfy k_anonymity"),
        ("UPDATE {data} SET disease = 'never seen' WHERE disease = 'flu'", "not in the domain"),
        ("UPDATE {data} SET disease = NULL WHERE disease = 'flu'", "not in the domain"),
        ("UPDATE {data} SET zip = NULL WHERE disease = 'flu'", "NULL in the quasi-identifier zip"),
        ("UPDATE {data} SET ward = 'C' WHERE disease = 'flu'", "content was altered"),
    ],
)
def test_altered_rows_are_found(released: Job, statement: str, found: str) -> None:
    tamper(released, statement.format(data=data(released)))
    said = problems(released)
    assert found in said
    assert "never seen" not in said


def test_values_exchanged_between_blocks_are_found_by_the_content_alone(released: Job) -> None:
    # Each block keeps its size and its number of distinct values.
    tamper(
        released,
        f"UPDATE {data(released)} SET disease = CASE WHEN zip = '1305*' THEN 'flu' ELSE 'cancer' END "
        "WHERE zip IN ('1305*', '1306*') AND disease IN ('flu', 'cancer')",
    )
    said = problems(released)
    assert "content was altered" in said
    assert "satisfies" not in said


def test_an_altered_view_is_found(released: Job) -> None:
    columns = "zip, age, age_low, age_high, disease, ward"
    where = f"{data(released)} WHERE ward = 'A'"
    tamper(released, f"CREATE OR REPLACE VIEW published.people AS SELECT {columns} FROM {where}")
    assert re.search("published.people.* is not as version 1 was published", problems(released))


def test_an_altered_view_with_the_same_rows_is_found(released: Job) -> None:
    columns = "zip, age, age_low, age_high, disease, ward"
    tamper(released, f"CREATE OR REPLACE VIEW published.people AS SELECT {columns} FROM {data(released)}")
    assert re.search("published.people.* is not as version 1 was published", problems(released))


def test_a_lost_view_or_file_is_found(released: Job) -> None:
    if released.engine == "duckdb":
        released.target.unlink()
    else:
        tamper(released, "DROP VIEW published.people")
    assert "does not exist: nothing is published" in problems(released)


def test_a_view_of_other_columns_is_found(released: Job) -> None:
    tamper(
        released,
        "DROP VIEW published.people",
        f"CREATE VIEW published.people AS SELECT zip, age, disease FROM {data(released)}",
    )
    assert "are not those that were published" in problems(released)


def test_another_version_under_the_pointer_is_found(job: Job) -> None:
    job.set(versions={"joint": "none"})
    job.run()
    job.change("DELETE FROM people WHERE name = 'person 0'")
    job.run()
    assert problems(job) == ""
    tamper_ledger(job, "UPDATE qblock.pointer SET version = 1")
    assert "the pointer row of release people names version 1" in problems(job)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE qblock.reference SET content = replace(content, '\"rows\":12', '\"rows\":120')", "were altered"),
        ("DELETE FROM qblock.reference", "are missing"),
        ("UPDATE qblock.event SET rows_published = 13", "were altered: the recorded digest is not"),
        ("UPDATE qblock.guarantee SET satisfied = '100'", "were altered: the recorded digest is not"),
        ("DELETE FROM qblock.event WHERE number = 2", "event 2 of release people is missing"),
    ],
)
def test_an_altered_ledger_is_found(released: Job, statement: str, found: str) -> None:
    tamper_ledger(released, statement)
    assert found in problems(released)


def test_a_ledger_whose_tail_was_cut_is_found_by_the_last_head(released: Job) -> None:
    head = released.run(force=True).ledger_head
    tamper_ledger(released, "DELETE FROM qblock.event WHERE number > 3")
    tamper_ledger(released, "DELETE FROM qblock.guarantee WHERE number > 3")
    tamper_ledger(released, "UPDATE qblock.pointer SET version = 1")
    assert "its tail was cut" in problems(released, head)


def test_a_changed_spec_still_has_content_and_chain_verified(released: Job) -> None:
    released.set(privacy=[{"k_anonymity": {"k": 5}}])
    result = verify(released.spec)
    assert result.problems == ()
    assert "the spec has changed" in result.not_recomputed[0]
    tamper(released, f"UPDATE {data(released)} SET ward = 'C'")
    assert "content was altered" in problems(released)


PRIVATE = {
    "k_map": {"k_map": {"k": 3, "population": "people"}},
    "delta_presence": {"delta_presence": {"min": 0, "max": 1, "population": "people"}},
    "nt_closeness": {"nt_closeness": {"n": 6, "t": 0.9}},
    "epsilon_privacy": {
        "epsilon_privacy": {
            "epsilon": 99,
            "adversary": "II",
            "stubbornness": 5,
            "predicates": {"table": "wishes", "entity": "name", "value": "disease"},
        }
    },
}


@pytest.mark.parametrize("model", PRIVATE)
def test_what_the_published_rows_do_not_tell_is_verified_on_counts_kept_with_the_version(job: Job, model: str) -> None:
    job.change("CREATE TABLE wishes AS SELECT name, disease FROM people WHERE age > 40")
    job.set(privacy=[{"k_anonymity": {"k": 3}}, PRIVATE[model]], entity="name", versions={"joint": "none"})
    released = job.run()
    verified = verify(job.spec)
    assert (verified.problems, verified.not_recomputed) == ((), ())
    assert verified.recomputed_privately == (model,)
    assert [entry.values for entry in verified.tightest] == [entry.values for entry in released.tightest]
    tamper_ledger(job, f"UPDATE qblock.guarantee SET satisfied = '77' WHERE model = '{model}' AND number = 3")
    assert problems(job)
    tamper(job, f"DELETE FROM {data(job)} WHERE zip = (SELECT max(zip) FROM {data(job)})")
    assert "private counts" in problems(job) or "rows are published" in problems(job)


def test_counts_that_are_too_many_are_not_kept_and_verify_says_so(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qblock.publish.kept_counts.LIMIT", 3)
    job.set(privacy=[{"k_anonymity": {"k": 3}}, PRIVATE["k_map"]])
    job.run()
    verified = verify(job.spec)
    assert (verified.problems, verified.not_recomputed, verified.recomputed_privately) == ((), ("k_map",), ())


@pytest.mark.parametrize("kind", ["file", "table"])
def test_an_altered_hierarchy_is_found(job: Job, kind: str) -> None:
    (job.folder / "zip.csv").write_text("zip,area\n13053,1\n13068,1\n14853,2\n14850,2\n")
    job.change("CREATE TABLE zips AS SELECT DISTINCT zip, substr(zip, 1, 3) AS area FROM people")
    (job.folder / "ill.csv").write_text("disease,kind\nheart,a\nviral,b\ncancer,a\nflu,b\n")
    source = {"file": "zip.csv"} if kind == "file" else {"table": "zips", "levels": ["zip", "area"]}
    job.settings["attributes"] = ATTRIBUTES | {
        "zip": {"role": "quasi_identifier", "hierarchy": source, "nulls": "top"},
        "disease": {"role": "sensitive", "taxonomy": {"file": "ill.csv"}},
    }
    job.run()
    assert verify(job.spec).problems == ()
    job.change("INSERT INTO zips VALUES ('99999', '999')")
    (job.folder / "zip.csv").write_text("zip,area\n13053,1\n13068,1\n14853,2\n14850,2\n99999,3\n")
    assert verify(job.spec).problems == ()  # a leaf more changes nothing of what is published
    job.change("UPDATE zips SET area = 'x' WHERE zip = '13053'")
    (job.folder / "zip.csv").write_text("zip,area\n13053,2\n13068,1\n14853,2\n14850,2\n")
    assert problems(job) == "the hierarchy of zip is not the one that version 1 was made with"
    (job.folder / "ill.csv").unlink()
    assert "ill.csv" in problems(job)
