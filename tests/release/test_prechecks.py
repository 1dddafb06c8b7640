"""A later version that spec, ledger, crosswalk or column types rule out is refused before the source is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from qblock.engines.sql_session import SqlSession
from qblock.errors import QblockError, Refused
from qblock.ledger.history import history
from qblock.release import apply
from release.jobs import ATTRIBUTES, Job

pytestmark = pytest.mark.either_engine
RETYPED = "ALTER TABLE people ALTER COLUMN {0} TYPE INTEGER USING {1}"

OTHER_CONTENT = "version 1 of release people was published with other content"
NEW = "INSERT INTO people VALUES ('new', '13053', 28, 'flu', 'A')"
CHANGED = "UPDATE people SET disease = 'viral' WHERE name = 'person 0'"
SHOWN = {name: entry for name, entry in ATTRIBUTES.items() if name != "ward"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that read the source, or what a run made of it, as text."""
    found: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        real = getattr(SqlSession, name)

        def noted(session: SqlSession, statement: Any, *more: Any) -> Any:
            text = statement if isinstance(statement, str) else str(statement.compile(dialect=session.dialect))
            if "people" in text or "qblock_" in text:
                found.append(text)
            return real(session, statement, *more)

        return noted

    for name in ("run", "fetch", "scalar", "counts", "attempt"):
        monkeypatch.setattr(SqlSession, name, noting(name))
    return found


def of_source(asked: list[str]) -> list[str]:
    """Those that read rows of the source."""
    return [text for text in asked if '"people"' in text and "LIMIT 0" not in text]


def refused(job: Job, **options: Any) -> str:
    with pytest.raises(QblockError) as error:
        job.run(**options)
    event = history(job.spec)["events"][-1]
    assert event["state"] == ("refused" if isinstance(error.value, Refused) else "failed")
    return str(error.value)


@pytest.mark.parametrize(
    ("first", "change", "now", "said"),
    [
        ({}, None, {"attributes": SHOWN}, OTHER_CONTENT),
        ({"entity": "name", "count": "entities"}, None, {"attributes": SHOWN}, "made with other columns"),
        ({"attributes": SHOWN}, None, {"entity": "name"}, "has no crosswalk"),
        (
            {"entity": "name", "versions": {"on_refusal": "refuse"}, "attributes": SHOWN},
            None,
            {"attributes": ATTRIBUTES | {"ward": "sensitive"}, "privacy": [{"k_anonymity": {"k": 3}}]},
            "version 1 of release people has the sensitive attributes disease",
        ),
        (
            {"entity": "name", "attributes": SHOWN},
            None,
            {"attributes": {n: e for n, e in SHOWN.items() if n != "age"}},
            "made with other columns",
        ),
        (
            {"entity": "name", "versions": {"cohort": "auto"}},
            RETYPED.format("zip", "zip::integer"),
            {},
            "column zip is of type",
        ),
        (
            {"entity": "name"},
            RETYPED.format("ward", "ascii(ward)"),
            {},
            "column ward is of type",
        ),
    ],
)
def test_what_is_known_is_said_before_a_row_is_read(
    job: Job, asked: list[str], first: dict[str, Any], change: str | None, now: dict[str, Any], said: str
) -> None:
    job.set(**first).run()
    before = job.published()
    job.change(change or NEW)
    assert len(of_source(asked)) > 1
    asked.clear()
    assert said in refused(job.set(**now))
    assert of_source(asked) == []
    assert job.published() == before


def test_other_rows_without_an_entity_are_counted_once(job: Job, asked: list[str]) -> None:
    job.run()
    job.change(NEW)
    asked.clear()
    for options in ({}, {"force": True}):
        assert OTHER_CONTENT in refused(job, **options)
    assert [" ".join(text.split()[:4]) for text in of_source(asked)] == ["SELECT count(*) AS count_1"] * 2
    assert not any("GROUP BY" in text for text in of_source(asked))
    job.change("DELETE FROM people WHERE name = 'new'")
    assert job.run().status == "unchanged"


def test_as_many_rows_that_show_something_else_are_refused_before_the_search(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    search = apply.run_search
    monkeypatch.setattr(apply, "run_search", lambda *a, **more: (searched.append("search"), search(*a, **more))[1])
    job.run()
    job.change(CHANGED)
    assert OTHER_CONTENT in refused(job)
    job.change("UPDATE people SET disease = 'heart'")
    # The node that readers see fails for these.
    assert OTHER_CONTENT in refused(job)
    assert searched == ["search"]
    job.set(versions={"joint": "none"})
    with pytest.raises(Refused, match="no node satisfies"):
        job.run()
    assert searched == ["search"] * 2


def test_what_no_reader_would_see_differently_is_still_found_unchanged(job: Job) -> None:
    assert job.run().node["age"] > 0
    job.change("UPDATE people SET age = 44 - age WHERE age IN (21, 23)")
    job.change("UPDATE people SET name = name || ' by another name'")
    assert (job.run().status, job.run(force=True).version) == ("unchanged", 2)


def test_suppressed_rows_may_be_more_or_fewer(job: Job) -> None:
    attributes = ATTRIBUTES | {"age": "identifying"}
    privacy = [{"k_anonymity": {"k": 4}}]
    first = job.set(attributes=attributes, suppression_limit=5, search={"node": [0]}, privacy=privacy).run()
    assert first.suppressed == 4
    job.change("INSERT INTO people VALUES ('new', '14850', 30, 'flu', 'A')")
    again = job.run()
    assert (again.status, again.suppressed, again.digest) == ("unchanged", 5, first.digest)


def test_a_level_that_was_put_into_a_file_makes_another_node_show_the_same(job: Job) -> None:
    file = job.folder / "age.csv"
    ages = [21, 23, 28, 29, 31, 35, 36, 37, 47, 49, 50, 55]
    file.write_text("age,decade,all\n" + "".join(f"{a},{a // 10},*\n" for a in ages), encoding="utf-8")
    age = {"role": "quasi_identifier", "hierarchy": {"file": "age.csv"}}
    privacy = [{"k_anonymity": {"k": 2}}]
    job.set(attributes=ATTRIBUTES | {"age": age, "zip": "identifying"}, privacy=privacy)
    assert job.run().node == {"age": 1}
    file.write_text("age,five,decade,all\n" + "".join(f"{a},{a // 5}+,{a // 10},*\n" for a in ages), encoding="utf-8")
    result = job.run()
    assert (result.status, result.version, result.node) == ("published", 2, {"age": 2})
