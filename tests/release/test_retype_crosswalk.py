"""`ledger retype`: what it moves, and what it refuses."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from faults.nursery import Nursery
from typer.testing import CliRunner

from qblock.cli.app import application
from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused
from qblock.release.erase import erase
from qblock.release.retype import retype
from qblock.versions.types import First, Types, entity_text, entity_text_of
from release.crossing import ATTRIBUTES, CROSSING, alter, at, events, two
from release.jobs import Job
from release.state import ask

pytestmark = pytest.mark.either_engine

FOUR = "4 of 4 joint cells fail"


def refused(job: Job, node: dict[str, int]) -> str:
    with pytest.raises(Refused) as raised:
        at(job, node).run()
    return str(raised.value)


def types(job: Job) -> list[Types | None]:
    found = ask(job, "crosswalk", "SELECT types FROM {}crosswalk_version ORDER BY version")
    return [None if text is None else Types.of_text(text) for (text,) in found]


def test_values_that_do_not_read_the_same_are_counted_and_nothing_moves(crossing: Any) -> None:
    job = crossing(two("001", "2"), {"s": "VARCHAR(9)"})
    job.begin()
    before = ask(job, "crosswalk", "SELECT types FROM {}crosswalk_version")
    alter(job, "s", "INTEGER")
    with pytest.raises(Refused, match=r"1 of 2 values of column s, of type .* now, do not read the same") as raised:
        retype(job.spec)
    assert "001" not in str(raised.value)
    assert ask(job, "crosswalk", "SELECT types FROM {}crosswalk_version") == before
    assert events(job, "retyped") == []


def test_frozen_places_and_domains_move_too(crossing: Any) -> None:
    job = crossing(
        two("2026-01-01", "2026-01-02") | {"age": ["2026-01-01", "2026-02-01"] * 4}, {"s": "DATE", "age": "DATE"}
    )
    job.set(attributes={**ATTRIBUTES, "age": {"role": "quasi_identifier", "hierarchy": {"dates": ["month", "year"]}}})
    at(job, {"age": 3, "zip": 5}).run()
    for column in ("s", "age"):
        alter(job, column, "TIMESTAMP", f"{column}::timestamp")
    retype(job.spec)
    (content,) = ask(job, "crosswalk", "SELECT content FROM {}crosswalk_version")[0]
    assert '"domain":["2026-01-01 00:00:00","2026-01-02 00:00:00"]' in content
    places = {place.split(chr(31))[0] for (place,) in ask(job, "crosswalk", "SELECT place FROM {}crosswalk_frozen")}
    assert places == {"2026-01-01 00:00:00", "2026-02-01 00:00:00"}
    assert at(job, {"age": 3, "zip": 5}).run().status in ("unchanged", "published")


@pytest.mark.each_engine
def test_another_session_time_zone_changes_nothing(crossing: Any, engine_name: str) -> None:
    if engine_name == "duckdb":
        pytest.skip("a DuckDB file has no time zone of its own")
    job = crossing(two("2026-01-01 10:00:00+00", "2026-01-01 11:00:00+00"), {"s": "TIMESTAMP WITH TIME ZONE"})
    job.begin()
    name = sa.make_url(job.url).database
    job.change(f"ALTER DATABASE {name} SET timezone = 'Asia/Kathmandu'")
    assert FOUR in refused(job, CROSSING)


def test_people_whose_type_changed_withdraw_by_the_text_of_now(crossing: Any) -> None:
    days = [f"2026-01-0{n}" for n in range(1, 9)]
    job = crossing({"person": days}, {"person": "DATE"})
    job.begin()
    alter(job, "person", "TIMESTAMP", "person::timestamp")
    retype(job.spec)
    assert FOUR in refused(job, CROSSING)
    assert erase(job.spec, ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]).shown == 2
    with pytest.raises(InputError, match="1 of 1 name matches nobody"):
        erase(job.spec, ["2026-01-01"])


def test_releases_of_one_audience_write_people_alike(crossing: Any) -> None:
    job = crossing()
    job.begin()
    job.change("CREATE TABLE others AS SELECT 'p' || person AS person, age, zip, s FROM people")
    publish = {**job.settings["publish"], "view": "others"}
    if job.engine == "duckdb":
        publish["url"] = f"duckdb:///{job.folder}/others.duckdb"
    source = {**job.settings["source"], "table": "others"}
    job.set(release="others", source=source, publish=publish, versions={"audience": ["people"]})
    message = refused(job, {"age": 1, "zip": 5})
    assert "release others writes people by column person in type" in message
    assert "release people" in message


def test_releases_of_one_audience_write_values_alike(crossing: Any) -> None:
    job = crossing(two("0.1", "0.5"), {"s": "REAL"})
    job.begin()
    job.change("CREATE TABLE others AS SELECT person, age, zip, CAST(s AS DOUBLE PRECISION) AS s FROM people")
    publish = {**job.settings["publish"], "view": "others"}
    if job.engine == "duckdb":
        publish["url"] = f"duckdb:///{job.folder}/others.duckdb"
    source = {**job.settings["source"], "table": "others"}
    job.set(release="others", source=source, publish=publish, versions={"audience": ["people"]})
    assert "release others writes values of column s in type" in refused(job, {"age": 1, "zip": 5})


def test_a_move_that_is_killed_is_none_or_whole(crossing: Any) -> None:
    job = crossing()
    job.begin()
    alter(job, "s", "NUMERIC(10,1)")
    code = (
        "import os, signal, sys\nfrom qblock.release import retype\nfrom qblock.spec import load_spec\n"
        "real = retype._record\n"
        "def killed(*given):\n    real(*given)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "retype._record = killed\nretype.retype(load_spec(sys.argv[1]))\n"
    )
    with Nursery() as nursery:
        pid = nursery.start([str(job.write())], job.folder / "output.txt", code=code)
        assert nursery.wait(pid) == -signal.SIGKILL
    assert "ledger retype" in refused(job, CROSSING)
    assert retype(job.spec).status == "retyped"
    assert FOUR in refused(job, CROSSING)


def test_the_command_says_what_it_did(crossing: Any) -> None:
    job = crossing()
    job.begin()
    alter(job, "s", "NUMERIC(10,1)")
    planned = CliRunner().invoke(application(), ["plan", str(job.write()), "--json"])
    assert "ledger retype" in " ".join(json.loads(planned.stdout)["notes"])
    found = CliRunner().invoke(application(), ["ledger", "retype", str(job.write()), "--json"])
    said = json.loads(found.stdout)
    assert (said["status"], said["versions"], [one["column"] for one in said["columns"]]) == ("retyped", 1, ["s"])
    again = CliRunner().invoke(application(), ["ledger", "retype", str(job.write())])
    assert "nothing to do" in again.stdout


def test_only_releases_that_are_checked_together_are_moved(job: Job) -> None:
    with pytest.raises(InputError, match="entity: COLUMN"):
        retype(job.spec)


ENTITIES = [
    ("NUMERIC(10,2)", "1.50", "NUMERIC(10,2)", "1.5"),
    ("NUMERIC(12,4)", "1.5050", "NUMERIC(10,2)", "1.505"),
    ("BIGINT", "9999999999", "NUMERIC(10,2)", "9999999999"),
    ("INTEGER", "7", "NUMERIC(10,2)", "7"),
    ("NUMERIC(10,1)", "7", "INTEGER", "7"),
    ("VARCHAR(9)", "07", "INTEGER", "07"),
    ("TIMESTAMP", "2026-01-01", "DATE", "2026-01-01"),
    ("TIMESTAMP", "2026-01-01 01:00:00", "DATE", "2026-01-01 01:00:00"),
    ("TIMESTAMP WITH TIME ZONE", "2026-01-01 01:00:00+01", "TIMESTAMP", "2026-01-01 00:00:00"),
    ("TIMESTAMP", "2026-01-01 01:00:00", "TIMESTAMP WITH TIME ZONE", "2026-01-01 01:00:00+00"),
]


@pytest.mark.parametrize(("now", "value", "before", "text"), ENTITIES)
def test_entities_are_written_in_their_first_type(
    warehouse: Any, tmp_path: Path, now: str, value: str, before: str, text: str
) -> None:
    url = warehouse("t", {"now": [value], "before": [None]}, {"now": now, "before": before})
    opened = open_warehouse(url, tmp_path)
    with opened.snapshot() as session:
        table = TableName(None, "t")
        columns, relation = session.columns(table), session.relation(table)
        first = First(columns["before"])
        value_ = session.comparable(relation.c.now, columns["now"])
        assert session.scalar(sa.select(entity_text(session, value_, columns["now"], first))) == text
        shown = session.scalar(sa.select(session.text_of(value_, columns["now"].kind)))
        assert entity_text_of(shown, columns["now"], first) == text
    opened.close()
