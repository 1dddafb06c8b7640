"""Readers see what the published rows and the spec say, and nothing of what is suppressed, set aside or waits."""

from __future__ import annotations

import copy
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from engines import create_table, database
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.cases import plain_case, quick
from release.jobs import Job, new_job

from publish.readers_see import Seen, check_same, everything, same_moment
from qblock.errors import Refused
from qblock.models import REGISTRY, Model, parameters_of
from qblock.models.base import Range
from qblock.models.examples import in_setting
from qblock.release.erase import erase

Columns = Mapping[str, Sequence[Any]]
MakeJobs = Callable[..., list[Job]]
MakeCopies = Callable[[Job, int], list[Job]]


@pytest.fixture
def reader(engine_name: str, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """A role that the specs name."""
    if engine_name != "postgresql":
        yield None
        return
    name = f"qblock_reader_{secrets.token_hex(4)}"
    with psycopg.connect(request.getfixturevalue("server"), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        yield name
        connection.execute(f"DROP ROLE {name}")


@pytest.fixture
def make_jobs(
    engine_name: str, reader: str | None, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[MakeJobs]:
    """`make_jobs(tables, tables, ..., types=, files=, **settings)`: jobs by one spec over several sources, each in a
    folder and a database of its own. files: by name, beside each spec."""
    with ExitStack() as stack:

        def make(
            *sources: Mapping[str, Columns],
            types: Mapping[str, str] | None = None,
            files: Mapping[str, str] | None = None,
            **given: Any,
        ) -> list[Job]:
            jobs = []
            for tables in sources:
                folder = tmp_path / secrets.token_hex(4)
                folder.mkdir()
                for name, text in (files or {}).items():
                    (folder / name).write_text(text)
                url = f"duckdb:///{folder}/warehouse.duckdb"
                if engine_name == "postgresql":
                    url = stack.enter_context(database(request.getfixturevalue("server")))
                for table, columns in tables.items():
                    create_table(url, table, columns, {k: v for k, v in (types or {}).items() if k in columns})
                job = new_job(engine_name, folder, url, **given)
                if reader:
                    job.settings["publish"] |= {"readers": [reader]}
                jobs.append(job)
            return jobs

        yield make


@pytest.fixture
def make_copies(engine_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakeCopies]:
    """`make_copies(job, number)`: as many jobs that go on from where it is, each in a folder and a database of its own,
    with the source, the private state and what is published."""
    with ExitStack() as stack:

        def copied(job: Job, number: int) -> list[Job]:
            copies = []
            for _ in range(number):
                folder = tmp_path / secrets.token_hex(4)
                shutil.copytree(job.folder, folder)
                url = f"duckdb:///{folder}/warehouse.duckdb"
                if engine_name == "postgresql":
                    of = sa.make_url(job.url).database or ""
                    url = stack.enter_context(database(request.getfixturevalue("server"), of))
                settings = copy.deepcopy(job.settings)
                more = {name: value for name, value in settings.items() if name not in ("source", "publish")}
                made = new_job(engine_name, folder, url, **more)
                made.settings["publish"] |= {k: v for k, v in settings["publish"].items() if k == "readers"}
                copies.append(made)
            return copies

        yield copied


def released(jobs: Sequence[Job], reader: str | None) -> list[Seen]:
    """What readers see of each job after a run."""
    seen = []
    with same_moment():
        for job in jobs:
            job.run()
            seen.append(everything(job, reader))
    return seen


SHOWN = [("x", value) for value in (1, 1, 1, 2, 2, 3)] + [("y", value) for value in (1, 2, 3, 3)]
"""Block and value of people who are shown."""
HIDDEN: dict[str, list[list[tuple[str, int]]]] = {
    "values": [[("z", 1), ("z", 1)], [("z", 2), ("z", 3)]],
    "numbers": [[("z", 1)], [("z", 1), ("z", 1), ("v", 2), ("w", 3), ("w", 2)]],
    "nobody": [[], [("z", 2), ("v", 2)]],
}
"""Of people in blocks of less than three, or in blocks that no hierarchy covers: two cases each."""
BLOCKS = "q,all\n" + "".join(f"{q},*\n" for q in "xyzvw")
VALUES = "s,kind,all\n1,a,*\n2,a,*\n3,b,*\n"
PLAIN = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "s": "sensitive"}
K = {"k_anonymity": {"k": 3}}


def people(rows: Sequence[tuple[str, Any]]) -> dict[str, Columns]:
    """A table of them, and a population."""
    return {
        "people": {"q": [q for q, _ in rows], "s": [s for _, s in rows]},
        "register": {"q": [*"xxxxxxxxyyyyyyzzzvvvwww"]},
    }


def loosest(model: Model) -> dict[str, Any]:
    """The parameters of a model as a spec has them, asking as little as they may."""
    given = {name: value for name, value in parameters_of(model).items() if value is not None}
    for bound in model.about.bounds:
        (valid,) = (parameter.valid for parameter in model.about.parameters if parameter.name == bound.parameter)
        assert isinstance(valid, Range)
        least, most = valid.least + valid.open_least, 10**6 if valid.most is None else valid.most
        given[bound.parameter] = least if bound.stricter == "larger" else most
    if "population" in model.needs:
        given["population"] = {"table": "register"}
    if model.about.uses_sensitive:
        given["sensitive"] = "s"
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in given.items()}


def every_model() -> list[dict[str, Any]]:
    """Each registered model in each of its settings, as entries of `privacy`."""
    _, reference = plain_case([{0: 5, 1: 5, 2: 5}]).engine
    entries: list[dict[str, Any]] = []
    for model in REGISTRY:
        for setting in model.about.settings:
            entry = {model.name: loosest(in_setting(model, setting, reference))}
            if entry not in entries:
                entries.append(entry)
    return entries


@pytest.mark.parametrize("hidden", HIDDEN)
def test_no_model_tells_of_the_suppressed(make_jobs: MakeJobs, reader: str | None, hidden: str) -> None:
    privacy = [K, *every_model()]
    jobs = make_jobs(
        *(people([*SHOWN, *rows]) for rows in HIDDEN[hidden]),
        types={"s": "INTEGER"},
        files={"q.csv": BLOCKS, "s.csv": VALUES},
        attributes={
            "q": {"role": "quasi_identifier", "hierarchy": {"file": "q.csv"}},
            "s": {"role": "sensitive", "taxonomy": {"file": "s.csv"}},
        },
        privacy=privacy,
        suppression_limit=5,
        search={"node": [0]},
    )
    check_same(*released(jobs, reader))
    told = jobs[0].query("SELECT model, asked, satisfied FROM published.people_guarantees")
    assert {name for name, _, _ in told} == {model.name for model in REGISTRY}
    assert (told[0], all(asked for _, asked, _ in told)) == (("k_anonymity", "k = 3", "k = 4"), True)
    assert len({kind for name, _, kind in told if name == "distinct_l_diversity"} - {None}) == 1


NEW: dict[str, tuple[dict[str, Any], list[list[tuple[str, int]]]]] = {
    "a value that only the suppressed have": (
        {"suppression_limit": 5, "attributes": PLAIN},
        [[("z", 1)], [("z", 9), ("v", 2)]],
    ),
    "people of whom no hierarchy knows": (
        {
            "attributes": {
                **PLAIN,
                "q": {"role": "quasi_identifier", "hierarchy": {"file": "q.csv"}, "uncovered": "quarantine"},
            }
        },
        [[("new", 1)] * 4, [("new", 9), ("newer", 2)]],
    ),
}


@pytest.mark.parametrize("hidden", NEW)
def test_nothing_is_told_of_values_that_are_not_shown(make_jobs: MakeJobs, reader: str | None, hidden: str) -> None:
    given, cases = NEW[hidden]
    privacy = [
        {"k_anonymity": {"k": 3}},
        {"t_closeness": {"t": 1, "distance": "ordered"}},
        {"beta_likeness": {"beta": 1000}},
        {"epsilon_privacy": {"epsilon": 10**6, "adversary": "III"}},
        {"nt_closeness": {"n": 1, "t": 1, "variant": "own_or_top"}},
    ]
    jobs = make_jobs(
        *(people([*SHOWN, *rows]) for rows in cases),
        types={"s": "INTEGER"},
        files={"q.csv": "q,all\nx,*\ny,*\n"},
        privacy=privacy,
        search={"node": [0]},
        **given,
    )
    check_same(*released(jobs, reader))


def test_nothing_is_told_of_the_table_that_a_prior_is_from(make_jobs: MakeJobs, reader: str | None) -> None:
    prior = {"from_table": "elsewhere", "column": "s"}
    sources = [people(SHOWN) | {"elsewhere": {"s": values}} for values in ([1, 2, 3], [1, 1, 1, 2, 3, 3])]
    privacy = [K, {"epsilon_privacy": {"epsilon": 10**6, "adversary": "III", "prior": prior}}]
    jobs = make_jobs(*sources, types={"s": "INTEGER"}, attributes=PLAIN, privacy=privacy, search={"node": [0]})
    check_same(*released(jobs, reader))
    assert jobs[0].query("SELECT satisfied FROM published.people_guarantees WHERE model <> 'k_anonymity'") == [(None,)]


HIDING: dict[str, dict[str, Any]] = {
    "nothing": {},
    "suppression": {"suppression_limit": 1},
    "quarantine": {"attributes": {**PLAIN, "q": {**PLAIN["q"], "uncovered": "quarantine"}}},
    "people": {"entity": "who", "versions": {"joint": "none"}},
}
"""What lets rows of some source go unpublished."""


@pytest.mark.parametrize("hides", HIDING)
def test_what_the_rows_give_is_told_where_no_row_of_any_source_is_hidden(make_jobs: MakeJobs, hides: str) -> None:
    """Of block y half have 3, of all 3 in 10: an equal distance of 1/5; of block x it is 4/30."""
    tables = people(SHOWN)
    tables["people"] = {**tables["people"], "who": [*range(len(SHOWN))]}
    given = {"attributes": PLAIN, "privacy": [K, {"t_closeness": {"t": 1}}], "search": {"node": [0]}, **HIDING[hides]}
    (job,) = make_jobs(tables, types={"s": "INTEGER"}, **given)
    assert [entry.values[0].exact for entry in job.run().tightest[1:]] == [Fraction(1, 5)]
    told = job.query("SELECT asked, satisfied FROM published.people_guarantees")
    assert told == [("k = 3", "k = 4"), ("t = 1", "t = 1/5" if hides == "nothing" else None)]


FORMS: dict[str, tuple[Any, str, st.SearchStrategy[Any], int]] = {
    "ranges": ({"ranges": [5, 10, 20]}, "INTEGER", st.integers(-20, 40), 3),
    "decimals": ({"ranges": [0.5, 10]}, "DECIMAL(8,2)", st.decimals(0, 40, places=2), 2),
    "digits": ({"digits": 3}, "VARCHAR", st.from_regex(r"[01]{3}", fullmatch=True), 3),
    "dates": ({"dates": ["month", "year"]}, "DATE", st.dates().filter(lambda day: day.year > 999), 2),
    "edges": ({"edges": [0, 1, 5, 10]}, "INTEGER", st.integers(0, 30), 1),
}
"""A hierarchy, the type of its column, values of it, and its height without `*`."""
MODELS = [
    {"t_closeness": {"t": 1}},
    {"beta_likeness": {"beta": 1000}},
    {"epsilon_privacy": {"epsilon": 10**6, "adversary": "III", "prior": "table"}},
    {"distinct_l_diversity": {"l": 1}},
]


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[list[tuple[Any, ...]]], dict[str, Any]]:
    """Two sources and settings: what is drawn apart for each has a block `z` of its own, of less than k people."""
    hierarchy, type_, values, height = FORMS[draw(st.sampled_from(sorted(FORMS)))]
    secret = st.sampled_from("abcd")
    shown: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(1, 4))):
        known = draw(values), draw(st.sampled_from("xy"))
        shown += [(*known, value, "w") for value in draw(st.lists(secret, min_size=3, max_size=5))]
    alone = st.lists(st.tuples(values, st.just("z"), st.sampled_from("abcdef"), st.sampled_from("wv")), max_size=2)
    attributes = {
        "a": {"role": "quasi_identifier", "hierarchy": hierarchy},
        "b": {"role": "quasi_identifier", "hierarchy": "suppress"},
        "s": "sensitive",
        "w": "insensitive",
    }
    pinned = {"node": [draw(st.integers(0, height)), 0]}
    search = draw(st.sampled_from([pinned, {"recoding": "multidimensional", "choose_by": "loss"}]))
    privacy = [K, *draw(st.lists(st.sampled_from(MODELS), min_size=1, max_size=2, unique_by=str))]
    given = {"attributes": attributes, "privacy": privacy, "search": search, "types": {"a": type_}}
    return [shown + draw(alone), draw(alone) + shown], given


@settings(quick, max_examples=5)
@given(question=questions())
def test_what_readers_see_is_what_the_rows_and_the_spec_say(
    make_jobs: MakeJobs, reader: str | None, question: tuple[list[list[tuple[Any, ...]]], dict[str, Any]]
) -> None:
    rows, given = question
    sources = [{"people": {name: [row[i] for row in each] for i, name in enumerate("absw")}} for each in rows]
    jobs = make_jobs(*sources, suppression_limit=2, **given)
    seen = released(jobs, reader)
    if jobs[0].published() == jobs[1].published():
        check_same(*seen)
    else:
        assert "recoding" in given["search"], "of a node that is pinned they publish the same rows"


BASE = [(f"p{i:02}", "q", "ab"[i % 2]) for i in range(16)] + [(f"r{i:02}", "r", "ab"[i % 2]) for i in range(16)]
LATER = "INSERT INTO people VALUES ('n1', 'r', 'a'), ('n2', 'r', 'b'), ('n3', 'r', 'a'), ('n4', 'r', 'b')"
"""A batch that closes, of people of another block than those below."""
AWAITED: dict[str, list[str]] = {
    "a newcomer": ["INSERT INTO people VALUES ('t', 'q', 'a')"],
    "newcomers who are out for good": ["INSERT INTO people VALUES ('t', 'q', 'a'), ('u', 'q', 'a')"],
    "a newcomer in a block of their own": ["INSERT INTO people VALUES ('t', 'alone', 'c')"],
    "a leaver": ["DELETE FROM people WHERE id = 'p00'"],
    "a changed value": ["UPDATE people SET value = 'c' WHERE id = 'p00'"],
    "somebody who moved": ["UPDATE people SET block = 'r' WHERE id = 'p00'"],
    "another person in the place of one": [
        "DELETE FROM people WHERE id = 'p00'",
        "INSERT INTO people VALUES ('t', 'q', 'a')",
    ],
    "somebody who withdraws": ["erase p00"],
}
"""What happens to people of whom nothing is shown yet."""


def weeks(job: Job, reader: str | None, *changes: Sequence[str]) -> list[Seen]:
    """What readers see each week, after the changes of that week and a run, which may be refused."""
    seen = []
    for statements in changes:
        for statement in statements:
            if statement.startswith("erase "):
                erase(job.spec, [statement.removeprefix("erase ")])
            else:
                job.change(statement)
        with suppress(Refused):
            job.run()
        seen.append(everything(job, reader))
    return seen


def test_nothing_is_told_of_people_who_wait(make_jobs: MakeJobs, make_copies: MakeCopies, reader: str | None) -> None:
    table = {"people": {name: [row[i] for row in BASE] for i, name in enumerate(("id", "block", "value"))}}
    nobody, first = make_jobs(
        *[table] * 2,
        attributes={"block": PLAIN["q"], "value": "sensitive"},
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}, {"t_closeness": {"t": 1}}],
        entity="id",
        versions={"on_refusal": "hold_back", "cohort": 2},
    )
    with same_moment():
        expected = weeks(nobody, reader, (), (), [LATER])
        (begun,) = weeks(first, reader, ())
        check_same(expected[0], begun)
        for awaited, job in zip(AWAITED.values(), make_copies(first, len(AWAITED)), strict=True):
            for week, seen in zip(expected[1:], weeks(job, reader, awaited, [LATER]), strict=True):
                check_same(week, seen)
    assert nobody.query("SELECT version, previous FROM published.people_version") == [(2, 1)]


UNSEEN: dict[str, list[str]] = {
    "suppressed people leave": ["DELETE FROM people WHERE q = 'z'"],
    "suppressed people change": ["UPDATE people SET s = 9 WHERE q = 'z'"],
    "more are suppressed": ["INSERT INTO people VALUES ('v', 1), ('w', 2)"],
    "more are set aside": ["INSERT INTO people VALUES ('new', 1)"],
    "a run that is refused": ["DELETE FROM people WHERE q = 'z'", "INSERT INTO people SELECT 'z', 1 FROM people"],
}


def test_nothing_is_told_of_changes_that_show_nothing(
    make_jobs: MakeJobs, make_copies: MakeCopies, reader: str | None
) -> None:
    """Not even that there was one: the version stays."""
    table = people([*SHOWN, ("z", 2), ("new", 3)])
    unchanged, first = make_jobs(
        *[table] * 2,
        types={"s": "INTEGER"},
        files={"q.csv": BLOCKS},
        attributes={
            "q": {"role": "quasi_identifier", "hierarchy": {"file": "q.csv"}, "uncovered": "quarantine"},
            "s": "sensitive",
        },
        privacy=[K, {"distinct_l_diversity": {"l": 2}}, {"t_closeness": {"t": 1}}],
        suppression_limit=5,
        search={"node": [0]},
        versions={"joint": "none"},
    )
    shown = ["DELETE FROM people WHERE q = 'z'", "INSERT INTO people VALUES ('y', 1), ('y', 2)"]
    with same_moment():
        expected = weeks(unchanged, reader, (), (), shown)
        (begun,) = weeks(first, reader, ())
        check_same(expected[0], begun)
        for unseen, job in zip(UNSEEN.values(), make_copies(first, len(UNSEEN)), strict=True):
            for week, seen in zip(expected[1:], weeks(job, reader, unseen, shown), strict=True):
                check_same(week, seen)
    assert unchanged.query("SELECT version, previous, rows FROM published.people_version") == [(2, 1, 12)]
