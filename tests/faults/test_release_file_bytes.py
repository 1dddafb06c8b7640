"""The bytes of a release file: what only the source has is not in it, whatever DuckDB writes beside the rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from release.jobs import Job, MakeJob, make_job  # noqa: F401

from qblock.engines.session import Session
from qblock.publish.targets.duckdb import DuckdbTarget

PEOPLE = 600
CITIES = 120
REGIONS = 6
LONELY = 8
"""People of the one region that has too few for its diseases: each has one that nobody else has."""
LIMIT = 1000


@pytest.fixture
def engine_name() -> str:
    """PostgreSQL publishes no file."""
    return "duckdb"


@pytest.fixture
def token() -> Callable[[str], str]:
    """Words that no file holds by accident; their length and beginning differ from word to word."""
    numbers = random.Random(4)
    return lambda what: f"{numbers.randrange(16**6):06x}{what}{numbers.randrange(16**8):08x}"


@pytest.fixture
def made(make_job: MakeJob, token: Callable[[str], str], tmp_path: Path) -> tuple[Job, list[str], list[str]]:  # noqa: F811
    """A job, what only its source holds, and what is published."""
    regions = [token("region") for _ in range(REGIONS)]
    cities = {token("city"): regions[i % REGIONS] for i in range(CITIES)}
    lonely = {token("village"): token("valley")}
    diseases, wards = [token("disease") for _ in range(12)], [token("ward") for _ in range(12)]
    rare = [token("rare") for _ in range(LONELY)]
    names, notes = ([token(what) for _ in range(PEOPLE + LONELY)] for what in ("name", "note"))
    path = tmp_path / "city.csv"
    places = cities | lonely
    path.write_text("city,region\n" + "".join(f"{city},{region}\n" for city, region in places.items()))
    order = list(cities)
    job = make_job(
        {
            "name": names,
            "note": notes,
            "city": [order[i % CITIES] for i in range(PEOPLE)] + list(lonely) * LONELY,
            "disease": [diseases[(i // REGIONS) % 12] for i in range(PEOPLE)] + rare,
            "ward": [wards[i % 12] for i in range(PEOPLE + LONELY)],
        },
        attributes={
            "name": "identifying",
            "city": {"role": "quasi_identifier", "hierarchy": {"file": "city.csv"}},
            "disease": "sensitive",
            "ward": "insensitive",
        },
        privacy=[{"k_anonymity": {"k": LONELY + 1}}],
        suppression_limit=LONELY,
        search={"node": [1]},
    )
    raw = [*names, *notes, *places, *lonely.values(), *rare]
    return job, raw, [*regions, *diseases, *wards]


def found(file: Path, words: list[str]) -> list[str]:
    content = file.read_bytes()
    return [word for word in words if word.encode() in content]


@pytest.mark.parametrize("compression", ["uncompressed", "auto"])
def test_only_what_is_published_is_in_the_file(
    compression: str, made: tuple[Job, list[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, raw, published = made
    stage = DuckdbTarget.stage

    def forced(self: DuckdbTarget, session: Session, *rest: Any) -> None:
        session.run(f"SET force_compression = '{compression}'")
        stage(self, session, *rest)

    monkeypatch.setattr(DuckdbTarget, "stage", forced)
    result = job.run()
    assert (result.rows, result.suppressed) == (PEOPLE, LONELY)
    assert len(raw) >= LIMIT
    assert found(job.target, raw) == []
    for file in (job.target, *(job.folder / "qblock" / "versions").rglob("*.duckdb")):
        assert found(file, raw) == []
    if compression == "uncompressed":
        assert compressions(job.target) <= {"Uncompressed", "Constant", "Empty Validity"}
        assert found(job.target, published) == published


def test_the_search_finds_the_words_where_they_are(made: tuple[Job, list[str], list[str]]) -> None:
    job, raw, _ = made
    plain = job.folder / "plain.duckdb"
    with duckdb.connect(str(plain)) as connection:
        connection.execute("SET force_compression = 'uncompressed'")
        connection.execute(f"ATTACH '{job.folder / 'warehouse.duckdb'}' AS source (READ_ONLY)")
        connection.execute("CREATE TABLE people AS SELECT * FROM source.people")
    regions = {word for word in raw if "valley" in word}
    assert set(found(plain, raw)) == {*raw} - regions  # the hierarchy's labels are in no table


def compressions(file: Path) -> set[str]:
    with duckdb.connect(str(file), read_only=True) as connection:
        name = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()[0][0]
        query = f"SELECT DISTINCT compression FROM pragma_storage_info('published.{name}')"
        return {value for (value,) in connection.execute(query).fetchall()}
