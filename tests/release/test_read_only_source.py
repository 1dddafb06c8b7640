"""A PostgreSQL database of which a login may SELECT and nothing else: copied, and published as a DuckDB file."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from engines import create_table, database

from qblock.engines.from_spec import warehouse_of
from qblock.engines.postgresql import copied as postgresql_copied
from qblock.engines.postgresql.copied import PostgresqlCopy, ServerTable
from qblock.engines.tables import TableName
from qblock.errors import InputError, QblockError, Refused
from qblock.profiling.first_spec import init
from qblock.publish.targets import target_of
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import PEOPLE, Job, check_second_version, new_job

TWELVE: dict[str, list[Any]] = {
    **PEOPLE,
    "ward": ["A\nB", "", None, 'say "x"', "ü", "*", "\\N", "NULL", ",", " ", "%s %%", "\\"],
    "paid": [f"{i}.{i:02}" for i in range(11)] + [None],
    "seen": [f"2026-11-{i + 1:02} 12:00:00.5+02" for i in range(11)] + ["1969-12-31 23:59:59Z"],
    "share": [0.1, 1e300, 5e-324, None, -0.0, 3.5, 1.0, 2.0, 4.0, 5.0, 6.0, float("nan")],
    "born": ["0001-01-01", "9999-12-31", *["2000-02-29"] * 10],
    "here": [True, False, None, *[True] * 9],
    "spent": [f"{i}.5" for i in range(12)],
}
COLUMNS = {**{name: values * 3 for name, values in TWELVE.items()}, "name": [f"person {i}" for i in range(36)]}
"""No value singles out a row."""
TYPES = {
    "paid": "NUMERIC(10, 4)",
    "seen": "TIMESTAMP WITH TIME ZONE",
    "share": "DOUBLE PRECISION",
    "born": "DATE",
    "spent": "REAL",
    "age": "SMALLINT",
}
SHOWN = dict.fromkeys(("paid", "seen", "share", "born", "here", "spent"), "insensitive")
ACCEPT = [
    {"check": "determines", "column": name, "of": of, "because": "three rows of each"}
    for name in ("ward", *SHOWN)
    for of in ("zip", "age")
]


@pytest.fixture
def reader(postgresql_url: str) -> Iterator[str]:
    """The URL of a database for a login that may SELECT: not even temporary tables are its own."""
    create_table(postgresql_url, "people", COLUMNS, TYPES, "Clinic")
    url, role = sa.make_url(postgresql_url), f"reader_{secrets.token_hex(4)}"
    with psycopg.connect(postgresql_url, autocommit=True) as owner:
        for statement in (
            f"CREATE ROLE {role} LOGIN PASSWORD 'x'",
            f"REVOKE ALL ON DATABASE {url.database} FROM PUBLIC",
            f"GRANT CONNECT ON DATABASE {url.database} TO {role}",
            f'GRANT USAGE ON SCHEMA "Clinic" TO {role}',
            f'GRANT SELECT ON ALL TABLES IN SCHEMA "Clinic" TO {role}',
        ):
            owner.execute(statement)
        yield url.set(username=role, password="x").render_as_string(hide_password=False)
        owner.execute(f"DROP OWNED BY {role}")
        owner.execute(f"DROP ROLE {role}")


def job_of(url: str, folder: Path, table: str = '"Clinic"."people"', **settings: Any) -> Job:
    job = new_job("duckdb", folder, url, table)
    return job.set(attributes={**job.settings["attributes"], **SHOWN}, accept=ACCEPT, **settings)


def change(owner: str, statement: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[arg-type]


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in which NaN is equal to itself."""
    return [tuple("NaN" if value != value else value for value in row) for row in rows]


def test_a_login_that_may_only_select_is_enough(reader: str, postgresql_url: str, tmp_path: Path) -> None:
    job = job_of(reader, tmp_path)
    first = job.run()
    assert (first.status, first.rows) == ("published", 36)
    assert not verify(job.spec).problems
    with psycopg.connect(postgresql_url) as owner:
        made = owner.execute("SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('qblock')").fetchone()
    assert made == (0,)
    assert (tmp_path / "qblock" / "ledger.sqlite").exists()


def test_the_content_is_that_of_the_same_table_in_a_duckdb_file(reader: str, tmp_path: Path) -> None:
    (tmp_path / "copied").mkdir()
    copied = job_of(reader, tmp_path / "copied")
    file = f"duckdb:///{tmp_path}/warehouse.duckdb"
    create_table(file, "people", COLUMNS, TYPES, "Clinic")
    here = job_of(file, tmp_path)
    assert copied.run().digest == here.run().digest
    assert comparable(copied.published()) == comparable(here.published())


def test_what_is_published_coarser_is_copied_as_it_is_published(reader: str, tmp_path: Path) -> None:
    """By the server, so that the copy has no number."""
    edges = {"role": "sensitive", "publish_as": {"edges": [30, 50]}}
    age = {"attributes": {"zip": {"role": "quasi_identifier", "hierarchy": "suppress"}, "age": edges}}
    job = new_job("duckdb", tmp_path, reader, '"Clinic"."people"', **age, versions={"joint": "none"})
    assert job.run().status == "published"
    expected = Counter("<30" if age < 30 else ">=50" if age >= 50 else "[30, 50)" for age in COLUMNS["age"])
    assert Counter(age for _, age in job.published()) == expected
    with warehouse_of(job.spec).snapshot() as session:
        assert session.columns(TableName.parse('"Clinic"."people"'))["age"].type == "VARCHAR"


def test_another_place_of_the_server_is_another_source(reader: str, postgresql_url: str, tmp_path: Path) -> None:
    job = job_of(reader, tmp_path)
    job.run()
    create_table(postgresql_url, "others", COLUMNS, TYPES, "Clinic")
    role = sa.make_url(reader).username
    change(postgresql_url, f'GRANT SELECT ON "Clinic".others TO {role}')
    job.settings["source"]["table"] = '"Clinic"."others"'
    with pytest.raises(QblockError, match="others"):
        job.run()


def test_another_database_is_another_source_and_another_login_is_not(tmp_path: Path) -> None:
    place = "postgresql://{}@db.example/{}"
    sources = [("job", "clinic"), ("officer", "clinic"), ("job", "trial")]
    known = [target_of(job_of(place.format(*source), tmp_path).spec).identity().database for source in sources]
    assert known[0] == known[1] != known[2]


def test_an_empty_table_and_one_that_is_not_there_are_said(reader: str, postgresql_url: str, tmp_path: Path) -> None:
    change(postgresql_url, 'DELETE FROM "Clinic".people')
    with pytest.raises(QblockError, match="is empty: there is nothing to release"):
        job_of(reader, tmp_path).run()
    with pytest.raises(InputError, match=r"table Clinic\.persons does not exist.*Clinic\.people"):
        job_of(reader, tmp_path, '"Clinic"."persons"').run()


def test_rows_that_a_policy_hides_are_no_source(reader: str, postgresql_url: str, tmp_path: Path) -> None:
    change(postgresql_url, 'ALTER TABLE "Clinic".people ENABLE ROW LEVEL SECURITY')
    with pytest.raises(QblockError, match="row level security"):
        job_of(reader, tmp_path).run()


def test_a_value_that_the_copy_does_not_hold_is_named_by_its_column(
    reader: str, postgresql_url: str, tmp_path: Path
) -> None:
    change(postgresql_url, """UPDATE "Clinic".people SET born = 'infinity' WHERE name IN ('person 3', 'person 15')""")
    with pytest.raises(InputError, match="born") as caught:
        job_of(reader, tmp_path).run()
    assert "person 3" not in str(caught.value)


def test_numbers_without_bounds_are_exact(reader: str, postgresql_url: str, tmp_path: Path) -> None:
    change(postgresql_url, 'ALTER TABLE "Clinic".people ALTER paid TYPE numeric')
    change(
        postgresql_url,
        """UPDATE "Clinic".people SET paid = 12345678901234567890.125 WHERE name IN ('person 3', 'person 15')""",
    )
    job = job_of(reader, tmp_path)
    job.run()
    paid = {str(row[0]) for row in job.query("SELECT paid FROM published.people WHERE paid IS NOT NULL")}
    assert "12345678901234567890.125" in paid
    change(
        postgresql_url,
        """UPDATE "Clinic".people SET paid = 1e30 + 0.0000000001 WHERE name IN ('person 3', 'person 15')""",
    )
    with pytest.raises(InputError, match="paid has numbers of 41 digits"):
        job.run()


def test_a_hierarchy_of_the_server_is_copied_with_it(reader: str, postgresql_url: str, tmp_path: Path) -> None:
    zips = sorted(set(PEOPLE["zip"]))
    levels = {"leaf": zips, "town": [z[:3] for z in zips], "top": ["*"] * len(zips)}
    create_table(postgresql_url, "zips", levels, None, "Clinic")
    change(postgresql_url, f'GRANT SELECT ON "Clinic".zips TO {sa.make_url(reader).username}')
    job = job_of(reader, tmp_path)
    form = {"table": '"Clinic"."zips"', "levels": ["leaf", "town", "top"]}
    job.settings["attributes"]["zip"] = {"role": "quasi_identifier", "hierarchy": form}
    assert job.run().status == "published"
    assert {row[0] for row in job.published()} <= {*zips, "130", "148", "*"}


def test_what_the_server_sees_is_select_and_copy(reader: str, postgresql_url: str, tmp_path: Path) -> None:
    seen: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        import psycopg as driver

        for name in ("execute", "copy"):
            plain = getattr(driver.Cursor, name)

            def watched(self: Any, query: Any, *rest: Any, plain: Any = plain, **more: Any) -> Any:
                seen.append(query.decode() if isinstance(query, bytes) else str(query))
                return plain(self, query, *rest, **more)

            patched.setattr(driver.Cursor, name, watched)
        job_of(reader, tmp_path).run()
    words = {re.split(r"\W+", text.strip(), maxsplit=1)[0].upper() for text in seen}
    assert "COPY" in words
    assert words <= {"SELECT", "COPY", "SET", "SHOW", "WITH", "BEGIN"}


def test_search_and_audit_need_no_temporary_table(reader: str, tmp_path: Path) -> None:
    job = job_of(reader, tmp_path)
    del job.settings["publish"]["url"]
    assert Release(job.write()).search().chosen is not None
    with pytest.raises(QblockError, match=r"publish: \{url: 'duckdb:///release\.duckdb'\}"):
        job.run()
    job.set(search={"roll_up": "warehouse"})
    with pytest.raises(InputError, match=r"roll_up is warehouse, and the login may make no temporary tables \(GRANT"):
        Release(job.write()).search()


def test_a_login_whose_transactions_only_read_needs_none_either(
    reader: str, postgresql_url: str, tmp_path: Path
) -> None:
    url = sa.make_url(reader)
    change(postgresql_url, f"GRANT TEMPORARY, CREATE ON DATABASE {url.database} TO {url.username}")
    change(postgresql_url, f"ALTER ROLE {url.username} SET default_transaction_read_only = on")
    job = job_of(reader, tmp_path)
    del job.settings["publish"]["url"]
    assert Release(job.write()).search().chosen is not None
    with pytest.raises(QblockError, match=r"is read-only .*; use the primary server, or ALTER ROLE \.\.\. SET"):
        job.run()
    job.set(search={"roll_up": "warehouse"})
    lets = r"only reads \(ALTER ROLE .* SET default_transaction_read_only = off lets it make temporary tables\)"
    with pytest.raises(InputError, match=lets):
        Release(job.write()).search()


def test_a_first_spec_of_such_a_login_publishes_a_file(reader: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("WAREHOUSE_URL", reader)
    init(reader, '"Clinic"."people"', tmp_path, sensitive=["disease"])
    spec = Release(tmp_path / "release.yaml").spec
    assert spec.publish.url is not None
    assert spec.publish.url.url == "duckdb:///people_published.duckdb"


@pytest.fixture
def elsewhere(server: str) -> Iterator[str]:
    """The URL of another database, which the job may create schemas in."""
    with database(server) as url:
        yield url


def placed(job: Job, url: str) -> Job:
    """The job, published in another database of PostgreSQL."""
    job.engine, job.url = "postgresql", url
    job.settings["publish"] = {"schema": "published", "view": "people", "url": url}
    return job


def test_it_is_published_in_another_database(reader: str, elsewhere: str, postgresql_url: str, tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    in_a_file = job_of(reader, tmp_path / "file")
    job = placed(job_of(reader, tmp_path), elsewhere)
    first = job.run()
    assert (first.status, first.rows) == ("published", 36)
    assert first.digest == in_a_file.run().digest
    assert sorted(map(repr, job.published())) == sorted(map(repr, in_a_file.published()))
    assert not verify(job.spec).problems
    with psycopg.connect(postgresql_url) as owner:
        assert owner.execute("SELECT to_regnamespace('qblock'), to_regnamespace('published')").fetchone() == (
            None,
            None,
        )
    types = dict(job.query("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people'"))
    assert types["paid"] == "numeric"
    assert types["born"] == "date"
    assert types["spent"] == "real"


@pytest.mark.parametrize("place", ["file", "database"])
def test_versions_follow_the_source(
    place: str, reader: str, postgresql_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    job = job_of(reader, tmp_path, entity="name", versions={"newcomers": {"within": 1, "box": 6}})
    job.settings["attributes"] = {**job.settings["attributes"], **dict.fromkeys((*SHOWN, "ward"), "identifying")}
    if place == "database":
        placed(job, request.getfixturevalue("elsewhere")).set(search={"recoding": "multidimensional"})
    job.run()
    assert job.run().status == "unchanged"
    rows = ", ".join(f"('new {i}', '1305{i % 4}', {20 + i}, '{'fvh'[i % 3]}')" for i in range(12))
    change(postgresql_url, f'INSERT INTO "Clinic".people (name, zip, age, disease) VALUES {rows}')
    check_second_version(job)


def test_versions_of_a_release_file_are_not_forgotten(reader: str, elsewhere: str, tmp_path: Path) -> None:
    job_of(reader, tmp_path).run()
    with pytest.raises(InputError, match=r"readers may hold its versions.*release: people_2"):
        placed(job_of(reader, tmp_path), elsewhere).run()


def test_a_reader_of_the_same_table_in_the_other_database_is_no_reader_of_the_release(
    reader: str, elsewhere: str, tmp_path: Path
) -> None:
    create_table(elsewhere, "people", COLUMNS, TYPES, "Clinic")
    role = sa.make_url(reader).username
    change(elsewhere, f'GRANT SELECT ON "Clinic".people TO {role}')
    job = placed(job_of(reader, tmp_path), elsewhere)
    job.settings["publish"]["readers"] = [role]
    with pytest.raises(Refused, match=r"Clinic.*people"):
        job.run()
    change(elsewhere, f"DROP OWNED BY {role}")


@pytest.mark.parametrize("analyzed", [True, False])
def test_the_server_groups_rows_where_that_is_smaller(
    reader: str, postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, analyzed: bool
) -> None:
    """The same rows arrive, however they are copied."""
    columns = {name: (COLUMNS[name] if name != "disease" else ["flu", "Flu"] * 18) * 100 for name in COLUMNS}
    del columns["name"]
    create_table(postgresql_url, "many", columns, TYPES, "Clinic")
    change(postgresql_url, f'GRANT SELECT ON "Clinic".many TO {sa.make_url(reader).username}')
    change(postgresql_url, f'{"ANALYZE" if analyzed else "SELECT * FROM"} "Clinic".many')
    monkeypatch.setattr(postgresql_copied, "SENT", 50)
    copied: list[str] = []
    batches = ServerTable._batches

    def watched(self: ServerTable, query: Any, schema: Any) -> Any:
        copied.append(str(query))
        return batches(self, query, schema)

    monkeypatch.setattr(ServerTable, "_batches", watched)
    names = ["age", "ward", "disease"]
    warehouse = PostgresqlCopy(sa.make_url(reader), TableName("Clinic", "many"), dict.fromkeys(names, ""), ())
    with warehouse.snapshot() as session:
        relation = session.relation(TableName("Clinic", "many"), names)
        arrived = session.fetch(sa.select(*(relation.c[name] for name in names))).to_pylist()
    warehouse.close()
    assert Counter(tuple(row.values()) for row in arrived) == Counter(zip(*(columns[n] for n in names), strict=True))
    assert [("GROUP BY CAST" in query, query.count('COLLATE "C"')) for query in copied] == [(analyzed, 6 * analyzed)]
