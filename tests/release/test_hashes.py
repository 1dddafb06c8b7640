"""A source that may not have the key of the crosswalk, as a cluster: it sends hashes, and all else is the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from qblock.engines.registry import ENGINES
from qblock.engines.sql_session import SqlSession
from qblock.errors import Refused
from qblock.ledger.stores import store_of, store_of_url
from qblock.release.erase import erase
from qblock.release.rekey import rekey
from qblock.release.verify import verify
from qblock.versions.crosswalk import HEXADECIMAL, Crosswalk, open_crosswalk, prepare
from qblock.versions.people import digests_of
from qblock.versions.recorded import recorded
from release.jobs import Job, MakeJob
from release.test_rekey import PEOPLE, rows_of
from release.test_waiting import HOLD_BACK, insert, people_job, shown

pytestmark = pytest.mark.either_engine

NAMES = [one.split(":")[0] for one in PEOPLE.split()]


@pytest.fixture
def job(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> Job:
    """One whose source is given no key."""
    made = people_job(make_job, PEOPLE, **HOLD_BACK)
    monkeypatch.setattr(ENGINES[made.engine].adapter, "keeps_secrets", False)
    return made


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HEXADECIMAL]


def known(job: Job) -> tuple[set[str], set[str]]:
    """The digests in the crosswalk, and those of everybody's hash by the program's own arithmetic."""
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        key = crosswalk.own.scalar(sa.select(crosswalk.tables.key.c.secret).where(crosswalk.tables.key.c.id == 1))
        assert [one.types.first.hashed for one in recorded(crosswalk) if one.types] == [True] * len(recorded(crosswalk))
    return {row["entity"] for row in rows_of(job)}, {sha(key + sha(key + sha(name))) for name in NAMES}


def test_people_are_known_by_digests_of_their_hashes(job: Job) -> None:
    job.run()
    found, expected = known(job)
    assert found == expected
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        assert not found & set(digests_of(crosswalk, NAMES))
        assert found == set(digests_of(crosswalk, NAMES, hashed=True))


def test_a_release_goes_on_as_with_keyed_texts(job: Job) -> None:
    job.run()
    rekey(store_of(job.spec))
    job.change("DELETE FROM people WHERE id = 'q0'")
    assert job.run().waiting == {"leavers": 1}
    insert(job, "n1:q:a n2:q:b")
    assert (job.run().status, len(shown(job).split())) == ("published", 14)
    assert (erase(job.spec, ["q1", "q2"]).shown, erase(job.spec, missing=True, confirm=1).asked) == (2, 1)
    assert not verify(job.spec).problems


def test_the_source_is_lent_no_key(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    lent: list[str] = []
    true = Crosswalk.lend

    def lending(self: Crosswalk, query: Any) -> Any:
        lent.append(json.dumps(self.own.fetch(query).to_pylist()))
        return true(self, query)

    monkeypatch.setattr(Crosswalk, "lend", lending)
    job.run()
    insert(job, "n1:q:a n2:q:b")
    assert job.run().status == "published"
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        (key,) = crosswalk.own.fetch(sa.select(crosswalk.tables.key.c.secret))["secret"].to_pylist()
    assert lent
    assert not [text for text in lent if key in text]


def test_each_person_is_sent_once_and_nobody_by_name(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[str]] = []
    true = SqlSession.load

    def loading(self: SqlSession, name: str, columns: pa.Table) -> Any:
        if columns.column_names == ["hashed"]:
            sent.append(columns["hashed"].to_pylist())
        return true(self, name, columns)

    monkeypatch.setattr(SqlSession, "load", loading)
    job.run()
    assert [sorted(one) for one in sent] == [sorted(map(sha, NAMES))]


@pytest.mark.parametrize("copied", [False, True])
def test_whoever_was_sent_with_a_copy_is_not_sent_again(
    job: Job, monkeypatch: pytest.MonkeyPatch, *, copied: bool
) -> None:
    """The source is opened again as a map shows it: where the first time read a copy of all of it, nobody is new."""
    sent: list[int] = []
    true = SqlSession.load

    def loading(self: SqlSession, name: str, columns: pa.Table) -> Any:
        if columns.column_names == ["hashed"]:
            sent.append(columns.num_rows)
        return true(self, name, columns)

    monkeypatch.setattr(SqlSession, "load", loading)
    monkeypatch.setattr(SqlSession, "is_copy", lambda _, rows: copied and getattr(rows, "name", None) == "people")
    job.set(search={"recoding": "multidimensional", "choose_by": "loss"})
    job.run()
    assert sent == [len(NAMES)] * (1 if copied else 2)
    found, expected = known(job)
    assert found == expected
    insert(job, "n1:q:a n2:q:b")
    assert job.run().status == "published"
    assert not verify(job.spec).problems


def test_a_release_of_texts_does_not_go_on_with_hashes(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = people_job(make_job, PEOPLE, **HOLD_BACK)
    job.begin()
    insert(job, "n1:q:a n2:q:b")
    with monkeypatch.context() as patched:
        patched.setattr(ENGINES[job.engine].adapter, "keeps_secrets", False)
        with pytest.raises(Refused, match="cannot be compared with this source"):
            job.run()
    assert job.run().status == "published"


def test_releases_of_texts_and_of_hashes_have_no_readers_in_common(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = people_job(make_job, PEOPLE)
    job.run()
    other = {**job.settings, "release": "others", "versions": {"audience": ["people"], "on_refusal": "refuse"}}
    other["publish"] = {**job.settings["publish"], "view": "others"}
    if job.engine == "duckdb":
        other["publish"]["url"] = f"duckdb:///{job.folder}/others.duckdb"
    second = Job(job.engine, job.folder, job.url, other)
    with monkeypatch.context() as patched:
        patched.setattr(ENGINES[job.engine].adapter, "keeps_secrets", False)
        with pytest.raises(Refused, match="cannot be compared with release"):
            second.run()
    assert second.run().status == "published"


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_a_crosswalk_beside_another_source_is_read_with_temporary_tables(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = "sqlite:///qblock/ledger.sqlite"
    if engine == "postgresql":
        url = request.getfixturevalue("postgresql_url")
    place: Any = store_of_url(url, tmp_path)
    place.atomic = False
    place.upgrade()
    prepare(place)
    nobody: Any = None
    for _ in range(2):  # nor is a table left to be in the way of the next
        with open_crosswalk(place, nobody, read_only=True) as crosswalk:
            assert (
                crosswalk.own.scalar(sa.select(crosswalk.own.load("hashes", pa.table({"hashed": ["a"]})).c.hashed))
                == "a"
            )
            if engine == "postgresql":  # a file is open for reading alone
                crosswalk.own.run(sa.insert(crosswalk.tables.key).values(id=2, secret="none"))
    with open_crosswalk(place) as crosswalk:
        assert crosswalk.key_numbers() == [1]
