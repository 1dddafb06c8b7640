"""One release has one source and one view: a second spec of the same name is refused before it reads a row."""

from __future__ import annotations

import copy
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from engines import create_table

from qblock.errors import QblockError, Refused
from qblock.ledger.history import history
from qblock.release.apply import plan
from qblock.release.erase import erase
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import ATTRIBUTES, PEOPLE, Job

pytestmark = pytest.mark.either_engine

OTHERS = {name: [f"other {v}" if name == "name" else v for v in values] for name, values in PEOPLE.items()}


def second(job: Job, table: str | None = None, view: str | None = None, file: str | None = None) -> Job:
    """A second spec of the same name: of another table, or as another view."""
    settings = copy.deepcopy(job.settings)
    if table is not None:
        create_table(job.url, table, OTHERS)
        settings["source"]["table"] = table
    if view is not None:
        settings["publish"]["view"] = view
    if file is not None and job.engine == "duckdb":
        settings["publish"]["url"] = f"duckdb:///{job.folder}/{file}"
    return Job(job.engine, job.folder, job.url, settings)


def test_another_table_under_the_name_of_a_release_is_not_shown_to_its_readers(released: Job) -> None:
    before = released.published()
    other = second(released, table="patients")
    with pytest.raises(Refused, match=r"people is published from \S+\.people as .* publish it from \S+\.patients as"):
        other.run()
    assert released.published() == before
    event = history(released.spec)["events"][-1]
    assert (event["state"], event["version"]) == ("refused", None)
    assert "ledger move SPEC --from people" in event["reason"]
    assert released.run().status == "unchanged"
    assert not verify(released.spec).problems


def test_another_view_under_the_name_of_a_release_is_refused(released: Job) -> None:
    other = second(released, view="more", file="more.duckdb")
    with pytest.raises(Refused, match="One release has one source and one view"):
        other.run()
    assert not (released.folder / "more.duckdb").exists()
    assert released.run().status == "unchanged"


def test_a_second_spec_with_one_more_column_does_not_empty_the_first_view(released: Job) -> None:
    before = released.published()
    other = second(released, table="patients", view="patients", file="patients.duckdb")
    other.settings["attributes"] = {n: a for n, a in ATTRIBUTES.items() if n != "ward"}
    with pytest.raises(Refused, match="patients"):
        other.run()
    assert released.published() == before


@pytest.mark.parametrize("what", ["plan", "rollback", "erase"])
def test_no_command_works_on_the_release_of_another_table(released: Job, what: str) -> None:
    other = second(released, table="patients").set(entity="name")
    commands: dict[str, Any] = {
        "plan": lambda: plan(other.spec),
        "rollback": lambda: rollback(other.spec, 1),
        "erase": lambda: erase(other.spec, ["other person 1"]),
    }
    with pytest.raises(Refused, match="One release has one source and one view"):
        commands[what]()


def test_the_second_spec_is_refused_before_its_table_is_read(released: Job) -> None:
    other = second(released, table="patients")
    # A value that no hierarchy covers would end a run that looks at the rows.
    released.change("UPDATE patients SET zip = 'x'")
    with pytest.raises(Refused, match="One release has one source"):
        other.run()


def test_one_table_written_in_several_ways_is_one_source(released: Job) -> None:
    names = ['"people"', '"main".people'] if released.engine == "duckdb" else ['"people"', "public.people"]
    for name in names:
        released.settings["source"] = released.settings["source"] | {"table": name}
        assert released.run(force=True).status == "published"
    assert not verify(released.spec).problems


@pytest.mark.each_engine
def test_a_table_of_the_same_name_in_another_database_is_another_source(released: Job) -> None:
    if released.engine == "postgresql":
        pytest.skip("on PostgreSQL the ledger is in the source's own database")
    url = f"duckdb:///{released.folder}/elsewhere.duckdb"
    create_table(url, "people", OTHERS)
    released.settings["source"] = {"url": url, "table": "people"}
    with pytest.raises(Refused, match="people of another database"):
        released.run()


@pytest.mark.each_engine
def test_a_schema_earlier_in_the_search_path_does_not_change_the_source(released: Job) -> None:
    if released.engine == "duckdb":
        pytest.skip("DuckDB has no search path of a login")
    create_table(released.url, "people", OTHERS, schema="aside")
    with psycopg.connect(released.url) as connection:
        name = sa.make_url(released.url).database
        connection.execute(f'ALTER DATABASE "{name}" SET search_path = aside, public')  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"published from public\.people .* publish it from aside\.people"):
        released.run()


def test_a_table_that_is_not_there_is_an_error_of_the_spec(released: Job) -> None:
    released.settings["source"] = released.settings["source"] | {"table": "peopel"}
    with pytest.raises(QblockError, match=r"did you mean .*people|publish it from main\.peopel"):
        released.run()


@pytest.mark.each_engine
def test_a_folder_that_is_moved_with_its_files_keeps_its_releases(released: Job) -> None:
    if released.engine == "postgresql":
        pytest.skip("a PostgreSQL release is in no folder")
    # `released` is a copy of a folder that was somewhere else.
    assert released.run().status == "unchanged"
