"""The demo's folder: its own files are written again, other people's are not; and the same people in PostgreSQL."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import psycopg
import pytest
import sqlalchemy as sa
from rich.console import Console

from qblock.cli.app import run
from qblock.demo import run as demo_run
from qblock.demo import tables, write
from qblock.demo.people import generate, next_month, next_week
from qblock.demo.run import run_demo
from qblock.demo.tables import load_people
from qblock.demo.write import IN_POSTGRESQL, MADE, PRIVATE, PUBLISHED, WAREHOUSE, write_demo
from qblock.engines.registry import parse_url
from qblock.errors import InputError, QblockError
from qblock.spec import load_spec


def everybody(path: Path) -> list[tuple]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute("SELECT * FROM main.people ORDER BY person_id").fetchall()


def expected(rows: int, seed: int) -> list[tuple]:
    return [tuple(row.values()) for row in generate(rows, seed).to_pylist()]


def test_the_folder_holds_the_people_as_plain_text_and_numbers(tmp_path: Path) -> None:
    demo = write_demo(tmp_path / "new" / "demo", rows=300, seed=4)
    assert demo.warehouse is not None
    assert everybody(demo.warehouse) == expected(300, 4)
    with duckdb.connect(str(demo.warehouse), read_only=True) as connection:
        types = {row[1] for row in connection.execute("DESCRIBE main.people").fetchall()}
    assert types == {"BIGINT", "SMALLINT", "VARCHAR"}


def test_the_spec_is_valid_and_finds_its_hierarchies(tmp_path: Path) -> None:
    spec = load_spec(write_demo(tmp_path, rows=10).spec)
    assert spec.quasi_identifiers == ("age", "gender", "marital_status", "education", "country", "work_class")
    assert spec.sensitives == ("occupation", "salary_class")
    files = [
        spec.file(source)
        for attribute in spec.attributes.values()
        if (source := attribute.hierarchy or attribute.taxonomy) is not None
    ]
    assert [file.name for file in files if file] == [
        f"{name}.csv" for name in ("age", "marital_status", "education", "country", "work_class", "occupation")
    ]
    assert all(file.is_file() for file in files if file)


def test_the_spec_of_postgresql_takes_its_url_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = write_demo(tmp_path, rows=10, place=IN_POSTGRESQL)
    assert demo.warehouse is None
    assert not (tmp_path / WAREHOUSE).exists()
    monkeypatch.setenv("WAREHOUSE_URL", "postgresql://somebody@example.invalid/census")
    spec = load_spec(demo.spec)
    assert spec.source.url.url == "postgresql://somebody@example.invalid/census"
    assert spec.source.parts == (write.SCHEMA, write.TABLE)


def test_an_earlier_demo_is_written_again(tmp_path: Path) -> None:
    write_demo(tmp_path, rows=50, seed=1)
    (tmp_path / f"{WAREHOUSE}.wal").write_bytes(b"left by a crash")
    write_demo(tmp_path, rows=20, seed=2)
    assert everybody(tmp_path / WAREHOUSE) == expected(20, 2)
    assert not (tmp_path / f"{WAREHOUSE}.wal").exists()


def test_what_was_published_of_an_earlier_demos_people_goes_with_them(tmp_path: Path) -> None:
    write_demo(tmp_path, rows=10)
    (tmp_path / PUBLISHED).write_text("of an earlier demo")
    (tmp_path / PRIVATE).mkdir()
    (tmp_path / PRIVATE / "notes").write_text("of an earlier demo")
    write_demo(tmp_path, rows=10, place=IN_POSTGRESQL)
    assert (tmp_path / PUBLISHED).exists()
    assert (tmp_path / PRIVATE).exists()
    write_demo(tmp_path, rows=10)
    assert not (tmp_path / PUBLISHED).exists()
    assert not (tmp_path / PRIVATE).exists()


def test_a_week_of_the_demo_has_as_many_people_and_others(tmp_path: Path) -> None:
    before = generate(2000, 3)
    week = next_week(before, 2, 3)
    one, two = ({row["person_id"]: row for row in people.to_pylist()} for people in (before, week.people))
    assert (len(set(two) - set(one)), len(set(one) - set(two))) == (week.joined, week.left) == (20, 20)
    both = [(row, two[person]) for person, row in one.items() if person in two and row != two[person]]
    assert len(both) == week.changed == 2
    assert all({name for name in a if a[name] != b[name]} == {"salary_class"} for a, b in both)
    assert next_week(before, 2, 3).people == week.people
    assert len(next_week(week.people, 3, 3).people) == 2000


def test_a_month_of_the_demo_is_four_weeks_of_it() -> None:
    before = generate(2000, 3)
    month = next_month(before, 2, 3)
    people = before
    for number in range(8, 12):
        people = next_week(people, number, 3).people
    assert month.people == people
    one, two = ({row["person_id"]: row for row in table.to_pylist()} for table in (before, people))
    assert (month.joined, month.left) == (len(set(two) - set(one)), len(set(one) - set(two)))
    assert month.changed == sum(row != two[person] for person, row in one.items() if person in two)
    assert 70 < month.joined <= 80
    assert month.changed


def test_the_demo_shows_the_months_after_and_starts_over_in_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_run, "MONTHS", 2)
    for seed, width in (("1", 80), ("2", 140)):
        monkeypatch.setenv("COLUMNS", str(width))
        assert run(["demo", str(tmp_path), "--rows", "1000", "--seed", seed]) == 0
        lines = capsys.readouterr().out.splitlines()
        # Commands are not wrapped, so that they can be copied; they are as long as the folder's path.
        told = [line for line in lines if str(tmp_path) not in line]
        assert max(map(len, told)) <= width
        first = next(line.split() for line in told if line.startswith("age "))
        assert ("gender" in first) is (width == 140)
        said = " ".join(" ".join(lines).split())
        assert "1,000 rows as main.census" in said
        month = re.search(
            r"Month 2: (\d+) people join, (\d+) leave, (\d+) change salary\. version 2 is published: ", said
        )
        assert month is not None
        came, left, changed = map(int, month.groups())
        assert f"{1000 + came:,} rows, {came} of them newcomers, sum(weight) 1,0" in said
        assert f"{left} leavers and {changed} changes wait" in said
    # A release of somebody's own beside the demo's has its ledger there too.
    text = (tmp_path / "release.yaml").read_text().replace("published.duckdb", "mine.duckdb")
    text = text.replace("release: census", "release: mine").replace("newcomers: {within: 1}", "joint: none")
    (tmp_path / "mine.yaml").write_text(text)
    assert run(["release", str(tmp_path / "mine.yaml"), "--quiet", "--force"]) == 0
    assert run(["demo", str(tmp_path), "--rows", "1000"]) == 2
    assert "the ledger of other releases" in capsys.readouterr().err


def test_the_demo_goes_on_in_postgresql(
    postgresql_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_run, "MONTHS", 2)
    # Who came in the first demo's month is gone in the second one, and comes back in its month: out for good.
    for version, said_of_month in ((1, "version 2 is published: 1,039 rows"), (3, "version 3 stays: 1,000 rows")):
        assert run(["demo", str(tmp_path), "--rows", "1000", "--url", postgresql_url]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert f"1,000 rows as published.census, version {version} " in said
        assert f"Month 2: 39 people join, 39 leave, 4 change salary. {said_of_month}" in said


@pytest.mark.spark
def test_the_demo_reads_spark_and_begins_again(
    spark_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from qblock.engines.spark.client import connected, end

    monkeypatch.setattr(demo_run, "MONTHS", 2)
    # A table that is sent in parts.
    monkeypatch.setattr("qblock.engines.spark.session.PART_BYTES", 16 << 10)
    monkeypatch.setenv("WAREHOUSE_URL", spark_url)
    client = connected(parse_url(spark_url))
    for seed in ("1", "2"):
        assert run(["demo", str(tmp_path), "--rows", "1000", "--seed", seed, "--url", spark_url]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "1,000 rows as main.census" in said
        assert "1,000 invented people are in Spark, table census.people" in said
        assert "version 2 is published: 1,0" in said
        assert f"export WAREHOUSE_URL={spark_url} duckdb " in said
        client.sql("REFRESH TABLE census.people")  # a session remembers the files of a table
        rows = client.sql("SELECT * FROM census.people ORDER BY person_id").toArrow().to_pylist()
        assert rows == next_month(generate(1000, int(seed)), 2, int(seed)).people.sort_by("person_id").to_pylist()
    assert run(["verify", str(tmp_path / "release.yaml")]) == 0
    client.sql("COMMENT ON TABLE census.people IS 'mine'")
    with pytest.raises(InputError, match=r"census\.people is not the demo's"):
        load_people(spark_url, rows=10)
    client.sql("DROP SCHEMA census CASCADE")
    end(client)


@pytest.mark.parametrize("name", [*MADE, "release.yaml", "hierarchies/age.csv"])
def test_a_file_that_is_not_the_demos_is_left_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(InputError, match=f"{path.name} (is not a file of the demo|is not the demo's)"):
        write_demo(tmp_path, rows=10)
    assert path.read_text() == "mine"
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


def test_a_spec_edited_since_is_left_alone(tmp_path: Path) -> None:
    demo = write_demo(tmp_path, rows=10, seed=1)
    before = everybody(tmp_path / WAREHOUSE)
    edited = demo.spec.read_text("utf-8").replace("k: 10", "k: 20")
    demo.spec.write_text(edited, "utf-8")
    with pytest.raises(InputError, match="was edited since"):
        write_demo(tmp_path, rows=10, seed=2)
    assert demo.spec.read_text("utf-8") == edited
    assert everybody(tmp_path / WAREHOUSE) == before


def test_a_demo_in_postgresql_does_not_make_a_warehouse_file_of_the_folder_its_own(tmp_path: Path) -> None:
    write_demo(tmp_path, rows=10, place=IN_POSTGRESQL)
    (tmp_path / WAREHOUSE).write_text("mine")
    with pytest.raises(InputError, match="not the demo's"):
        write_demo(tmp_path, rows=10)


def test_what_an_interrupted_demo_left_does_not_stop_the_next(tmp_path: Path) -> None:
    write_demo(tmp_path, rows=10)
    (tmp_path / ".qblock-demo.json").unlink()
    (tmp_path / WAREHOUSE).unlink()
    write_demo(tmp_path, rows=10, seed=3)
    assert everybody(tmp_path / WAREHOUSE) == expected(10, 3)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        write_demo(tmp_path / "file", rows=10)
    with pytest.raises(QblockError, match="cannot be written"):
        write_demo(tmp_path / "file" / "demo", rows=10)


def test_postgresql_gets_the_same_people_and_again(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CHUNK", 64)
    load_people(postgresql_url, rows=40, seed=9)
    load_people(postgresql_url, rows=150, seed=5)
    with psycopg.connect(postgresql_url) as connection:
        rows = connection.execute("SELECT * FROM census.people ORDER BY person_id").fetchall()
    assert rows == expected(150, 5)


def test_a_table_of_postgresql_that_is_not_the_demos_is_left_alone(postgresql_url: str) -> None:
    with psycopg.connect(postgresql_url) as connection:
        connection.execute('CREATE SCHEMA "Odd ""name"; CREATE TABLE "Odd ""name".people AS SELECT 1 AS mine')
    with pytest.raises(InputError, match="not the demo's"):
        load_people(postgresql_url, rows=10, schema='Odd "name')
    load_people(postgresql_url, rows=10, schema='Odd "name', table="people two")
    with psycopg.connect(postgresql_url) as connection:
        assert connection.execute('SELECT mine FROM "Odd ""name".people').fetchall() == [(1,)]
        assert connection.execute('SELECT count(*) FROM "Odd ""name"."people two"').fetchone() == (10,)


def test_a_fault_of_postgresql_tells_the_table_and_no_password(postgresql_url: str) -> None:
    missing = sa.make_url(postgresql_url).set(database="no_such_database", password="hush-hush")
    with pytest.raises(QblockError, match=r"census\.people") as caught:
        load_people(missing.render_as_string(hide_password=False), rows=10)
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["duckdb:///people.duckdb", "spark:", "sc:///;token=hush", "nonsense", "postgresql://u:hush@h:port/d"]
)
def test_a_url_of_another_engine_is_refused(url: str) -> None:
    with pytest.raises(
        InputError, match=r"not one of PostgreSQL or Spark|names no host|cannot be read|port of the"
    ) as caught:
        load_people(url, rows=10)
    assert "hush" not in str(caught.value)


def test_nothing_is_written_for_a_url_of_another_engine(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not one of PostgreSQL"):
        run_demo(tmp_path / "demo", rows=1000, seed=1, url="duckdb:///people.duckdb", console=Console())
    assert not (tmp_path / "demo").exists()
