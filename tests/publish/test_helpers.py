"""Helper views: what they say of columns, labels, blocks, version and guarantees, and that it is of what is shown."""

from __future__ import annotations

import itertools
import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo
from release.jobs import PEOPLE, Job, MakeJob

from qblock.errors import InputError
from qblock.ledger.kept import Kept
from qblock.ledger.stores import store_of
from qblock.publish.helpers import KINDS
from qblock.publish.targets import target_of
from qblock.release.apply import release
from qblock.release.move import move
from qblock.release.preview import preview
from qblock.release.retire import retire
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.spec import load_spec

NONE = {"joint": "none"}


def rows(job: Job, kind: str, columns: str = "*", more: str = "") -> list[tuple[Any, ...]]:
    return job.query(f"SELECT {columns} FROM published.people_{kind} {more}")


def test_columns_say_level_role_and_how_to_filter(job: Job) -> None:
    job.begin()
    found = {row[0]: row[1:] for row in rows(job, "columns")}
    assert list(found) == ["zip", "age", "age_low", "age_high", "disease", "ward"]
    assert found["zip"][:3] == ("quasi-identifier", 1, 6)
    assert found["zip"][5:7] == (len({row[0] for row in job.published()}), 0.0)
    assert found["age"][:4] == ("quasi-identifier", 2, 4, "age_20")
    assert "age_low < 40 AND age_high > 20" in found["age"][-1]
    assert found["age_low"] == ("bound of age", None, None, None, None, None, None, "see age")
    assert found["disease"][0] == "sensitive attribute"
    assert found["disease"][5] == len(set(PEOPLE["disease"]))
    assert {name.lower() for name in (found["age"][4],)} <= {"bigint", "integer"}


def test_a_name_that_needs_quotes_has_them_where_it_is_said_how_to_filter(make_job: MakeJob) -> None:
    ages = {"Alter (J.)": [20, 25, 30, 35] * 3, "disease": ["flu", "heart", "cancer"] * 4}
    attributes = {"Alter (J.)": {"role": "quasi_identifier", "hierarchy": {"ranges": [20]}}, "disease": "sensitive"}
    job = make_job(ages, attributes=attributes, privacy=[{"k_anonymity": {"k": 2}}], versions=NONE)
    job.run()
    ((how,),) = rows(job, "columns", "how_to_filter", "WHERE role = 'quasi-identifier'")
    condition = how.partition("possibly: ")[2]
    assert job.query(f"SELECT count(*) FROM published.people WHERE {condition}") == [(3,)]


def test_levels_list_the_labels_that_are_published_with_their_rows(job: Job) -> None:
    job.begin()
    published = job.published()
    for place, name in enumerate(("zip", "age")):
        counted = Counter(row[place] for row in published)
        said = rows(job, "levels", "label, rows", f"WHERE column_name = '{name}' ORDER BY sort")
        assert said == sorted(counted.items())
    assert rows(job, "levels", "low, high", "WHERE label = '20-39'") == [("20.0", "40.0")]
    assert rows(job, "levels", "DISTINCT level", "WHERE column_name = 'age'") == [(2,)]


def test_blocks_are_those_of_the_view(job: Job) -> None:
    job.begin()
    counted = Counter((row[0], row[1]) for row in job.published())
    found = rows(job, "blocks", "zip, age, rows", "ORDER BY block")
    assert {(zip_code, age): n for zip_code, age, n in found} == counted
    assert [number for (number,) in rows(job, "blocks", "block", "ORDER BY block")] == list(range(1, len(counted) + 1))


def test_the_version_and_what_it_guarantees(job: Job) -> None:
    job.set(versions=NONE).run()
    assert rows(job, "version", "version, rows, previous") == [(1, 12, None)]
    job.run(force=True)
    assert rows(job, "version", "version, rows, previous") == [(2, 12, 1)]
    assert rows(job, "version", "count(*)", "WHERE published_at > TIMESTAMP '2020-01-01'") == [(1,)]
    said = rows(job, "guarantees", "model, sensitive, asked, holds, satisfied")
    kept = {t.model: [v.parameter for v in t.values] for t in verify(job.spec).tightest}
    assert [row[0] for row in said] == list(kept)
    assert said[0] == ("k_anonymity", None, "k = 3", True, "k = 4")
    assert said[1][:4] == ("distinct_l_diversity", "disease", "l = 2", True)
    rollback(job.spec, 1)
    assert rows(job, "version", "version, rows, previous") == [(1, 12, None)]
    assert not verify(job.spec).problems


def test_what_takes_more_than_the_published_rows_is_not_said_to_be_reached(make_job: MakeJob) -> None:
    job = make_job(entity="name", count="entities", versions=NONE)
    job.run()
    found = rows(job, "guarantees", "model, asked, holds, satisfied")
    assert [(row[1], row[3]) for row in found] == [("k = 3", None), ("l = 2", None)]


def test_what_is_hidden_is_said_to_be(make_job: MakeJob) -> None:
    job = make_job(search={"node": [5, 3]}, privacy=[{"k_anonymity": {"k": 2}}], versions=NONE)
    job.run()
    assert rows(job, "columns", "column_name, level, level_name, share_suppressed", "WHERE level IS NOT NULL") == [
        ("zip", 5, "suppressed to *", 1.0),
        ("age", 3, "suppressed to *", 1.0),
    ]


def test_the_level_is_that_of_the_labels_not_of_the_search(make_job: MakeJob) -> None:
    """A label that reads the same at a coarser level does not tell that the finer one was chosen."""
    ages = {"age": [20, 21, 50, 51] * 3, "disease": ["flu", "heart", "cancer"] * 4}
    found = []
    for level in (1, 2):
        rows_of_file = [("20", "young", "young", "*"), ("21", "young", "young", "*")]
        rows_of_file += [("50", "old", "old", "*"), ("51", "old", "old", "*")]
        job = make_job(
            ages,
            table=f"people{level}",
            release=f"people{level}",
            attributes={
                "age": {"role": "quasi_identifier", "hierarchy": {"file": "ages.csv"}},
                "disease": "sensitive",
            },
            search={"node": [level]},
            privacy=[{"k_anonymity": {"k": 2}}],
            versions=NONE,
        )
        text = "\n".join(",".join(row) for row in (("age", "a", "b", "all"), *rows_of_file))
        (job.folder / "ages.csv").write_text(text + "\n")
        job.settings["publish"]["view"] = f"people{level}"
        if job.engine == "duckdb":
            job.settings["publish"]["url"] = f"duckdb:///{job.folder}/release.duckdb"
            job.target.unlink(missing_ok=True)
        job.run()
        found.append(
            job.query(f"SELECT level, level_name FROM published.people{level}_columns WHERE role LIKE 'quasi%'")
        )
    assert found == [[(2, "b")], [(2, "b")]]


def test_everything_says_what_it_is(job: Job) -> None:
    job.begin()
    if job.engine == "duckdb":
        said = dict(job.query("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"))
        said |= dict(job.query("SELECT table_name, comment FROM duckdb_tables()"))
        columns = dict(job.query("SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'people'"))
    else:
        query = "SELECT relname, obj_description(c.oid, 'pg_class') FROM pg_class AS c WHERE relnamespace = 'published'"
        said = dict(job.query(f"{query}::regnamespace AND relkind = 'v'"))
        query = "SELECT attname, col_description(attrelid, attnum) FROM pg_attribute WHERE attnum > 0 AND attrelid = "
        columns = dict(job.query(f"{query}'published.people'::regclass"))
    assert {f"people_{kind}" for kind in KINDS} | {"people"} <= set(said)
    assert all(said.values())
    assert "people_columns" in said["people"]
    assert "sha256" not in said["people"]
    assert columns["age"].startswith("Quasi-identifier")
    assert columns["age_high"].startswith("Bound of the label of age")
    assert all(columns.values())


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"levels": "people"}, "people would be the helper view of its levels, and is the name of the view itself"),
        ({"levels": "People_Columns"}, "is the name of the helper view of its columns"),
        ({"levels": "people_v3"}, "is the name of a version"),
        ({"levels": "x" * 64}, "has more than 63 bytes"),
    ],
)
def test_names_that_cannot_be_are_said_before_anything_is_written(job: Job, names: Any, message: str) -> None:
    job.settings["publish"]["names"] = names
    for look in (preview, release):
        with pytest.raises(InputError, match=message):
            look(job.spec)


@pytest.mark.either_engine
def test_a_name_of_nothing_is_refused_with_those_that_are_known(job: Job) -> None:
    job.settings["publish"]["names"] = {"labels": "x"}
    with pytest.raises(InputError, match=r"labels is neither a helper view nor a column of bounds; .*levels"):
        load_spec(job.spec.path)


def test_helper_views_have_other_names_where_the_spec_gives_them(job: Job) -> None:
    job.settings["publish"]["names"] = {"levels": "the labels", "age_low": "age from"}
    job.set(versions=NONE).run()
    assert job.query('SELECT count(*) FROM published."the labels"')[0][0] > 0
    assert job.query('SELECT min("age from") FROM published.people') == [(20.0,)]
    assert (job.run().status, verify(job.spec).problems) == ("unchanged", ())
    job.settings["publish"]["names"] = {}
    assert job.run().version == 2
    assert rows(job, "levels", "count(*)")[0][0] > 0
    assert rollback(job.spec, 1).status == "rolled_back"


def test_labels_that_are_not_those_published_are_found(job: Job) -> None:
    job.begin()
    if job.engine == "duckdb":
        with duckdb.connect(str(job.target)) as connection:
            connection.execute("UPDATE published.people_levels SET rows = rows + 1 WHERE column_name = 'age'")
    else:
        job.change("UPDATE qblock.now_levels_people SET rows = rows + 1 WHERE column_name = 'age'")
    assert any("the labels that published.people_levels lists" in one for one in verify(job.spec).problems)


def test_what_is_dropped_is_forgotten(job: Job) -> None:
    job.set(versions={"joint": "none", "keep": 1}).run()
    job.run(force=True)
    job.run(force=True)
    if job.engine == "postgresql":
        assert job.query("SELECT DISTINCT of_version FROM qblock.shown_levels") == [(3,)]
    assert rows(job, "version", "version, previous") == [(3, 2)]


@pytest.fixture
def readers(job: Job, server: str) -> Iterator[list[str]]:
    """Two logins: one that the spec names, and one that is granted the view by hand."""
    names = [f"qblock_reader_{secrets.token_hex(4)}" for _ in range(2)]
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE ROLE {name} LOGIN")
    job.settings["publish"]["readers"] = names[:1]
    job.set(versions=NONE)
    yield names
    with psycopg.connect(job.url, autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP OWNED BY {name} CASCADE")
            connection.execute(f"DROP ROLE {name}")


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_whoever_may_read_the_view_may_read_its_helpers_and_nobody_else(job: Job, readers: list[str]) -> None:
    job.run()
    named, other = (make_conninfo(job.url, user=name) for name in readers)

    def may(who: str) -> set[str]:
        found = set()
        for kind in KINDS:
            try:
                job.query(f"SELECT * FROM published.people_{kind}", who)
            except psycopg.errors.InsufficientPrivilege:
                continue
            found.add(kind)
        return found

    assert (may(named), may(other)) == (set(KINDS), set())
    job.change(f"GRANT USAGE ON SCHEMA published TO {readers[1]}")
    job.change(f"GRANT SELECT ON published.people TO {readers[1]}")
    assert job.run(force=True).version == 2
    assert may(other) == set(KINDS)
    job.change(f"REVOKE SELECT ON published.people FROM {readers[1]}")
    job.run(force=True)
    assert (may(named), may(other)) == (set(KINDS), set())
    for who, table in itertools.product((named, other), ("view", "shown_levels", "shown_columns")):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            job.query(f"SELECT * FROM qblock.{table}", who)
    retire(job.spec)
    assert may(named) == set()


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_an_altered_helper_view_is_found_and_made_again(job: Job) -> None:
    job.begin()
    job.change("CREATE OR REPLACE VIEW published.people_version AS SELECT 9::bigint AS version, NULL::timestamp AS "
               "published_at, 1::bigint AS rows, 0::bigint AS previous, "
               "0::bigint AS rows_new, ''::text AS in_words")  # fmt: skip
    assert any("is not as version 1 was published" in one for one in verify(job.spec).problems)
    job.run()
    assert rows(job, "version", "version, previous") == [(2, 1)]
    assert not verify(job.spec).problems


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_something_else_of_that_name_is_left_alone(job: Job) -> None:
    job.change("CREATE SCHEMA published")
    job.change("CREATE VIEW published.people_levels AS SELECT 1 AS one")
    for look in (preview, release):
        with pytest.raises(InputError, match=r"published.people_levels already exists, a view that does not belong to"):
            look(job.spec)
    job.settings["publish"]["names"] = {"levels": "people_labels"}
    assert job.run().version == 1
    assert job.query("SELECT * FROM published.people_levels") == [(1,)]


def test_a_release_is_moved_with_its_helper_views(job: Job) -> None:
    job.set(versions=NONE).run()
    job.run(force=True)
    job.settings["release"] = "patients"
    job.settings["publish"] |= {"view": "patients", "schema": "other"}
    move(job.spec, "people")
    for kind in KINDS:
        assert job.query(f"SELECT count(*) FROM other.patients_{kind}")[0][0] > 0
    assert job.query("SELECT version, previous FROM other.patients_version") == [(2, 1)]
    assert not verify(job.spec).problems
    assert rollback(job.spec, 1).status == "rolled_back"
    assert job.query("SELECT version FROM other.patients_version") == [(1,)]
    assert job.run(force=True).version == 3
    if job.engine == "postgresql":
        query = "SELECT count(*) FROM pg_views WHERE schemaname = 'published'"
        assert job.query(query) == [(0,)]


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_login_that_may_not_read_which_views_there_are_compares_them(job: Job, readers: list[str]) -> None:
    """Whoever verifies with rights on the ledger alone."""
    job.run()
    role = readers[1]
    job.change(f"GRANT USAGE ON SCHEMA qblock, published TO {role}")
    job.change(f"GRANT SELECT ON ALL TABLES IN SCHEMA qblock, published TO {role}")
    job.change(f"REVOKE ALL ON qblock.view FROM {role}")
    job.settings["source"]["url"] = sa.make_url(job.url).set(username=role).render_as_string(hide_password=False)
    with store_of(job.spec).read() as reader:
        columns = Kept.of_text(str(reader.reference("people", 1))).columns
    assert target_of(job.spec).intact(1, columns)
    job.change("CREATE OR REPLACE VIEW published.people_version AS SELECT 9::bigint AS version, NULL::timestamp AS "
               "published_at, 1::bigint AS rows, 0::bigint AS previous, "
               "0::bigint AS rows_new, ''::text AS in_words")  # fmt: skip
    assert not target_of(job.spec).intact(1, columns)
