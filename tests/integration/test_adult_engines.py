"""The Adult data on both engines: how many nodes satisfy, as other programs count them, by every strategy."""

from __future__ import annotations

import csv
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from integration.sources import execute, make_spec
from qblock.lattice import Node, minimal
from qblock.search.run import open_task, run_search
from qblock.search.strategies import search
from qblock.search.task import Task

FIVE = ("age", "gender", "race", "marital_status", "education")
SEVEN = (*FIVE, "native_country", "work_class")
ASKED: dict[str, tuple[dict[str, Any], int]] = {
    "k": ({"k_anonymity": {"k": 6}}, 32),
    "entropy": ({"entropy_l_diversity": {"l": 6}}, 11),
    "recursive": ({"recursive_cl_diversity": {"c": 3, "l": 6}}, 12),
    "distinct": ({"distinct_l_diversity": {"l": 6}}, 25),
    "t": ({"t_closeness": {"t": 0.2}}, 3),
}
"""What is asked of occupation, and how many of the 240 nodes of five quasi-identifiers satisfy it."""
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def databases(shared: Path, request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Callable[[str], str]]:
    """URL of a database with the table adult on an engine, filled once."""
    file = shared / "data" / "adult" / "adult.csv"
    if not file.exists():
        pytest.skip("the Adult data beside the checkout (../shared/data/adult) is absent")
    made: list[str] = []

    @cache
    def database(engine: str) -> str:
        if engine == "duckdb":
            url = f"duckdb:///{tmp_path_factory.mktemp('adult') / 'adult.duckdb'}"
            execute(url, f"CREATE TABLE adult AS FROM read_csv('{file}', all_varchar = true)")
            return url
        server = request.getfixturevalue("postgresql_server")
        name = f"qblock_test_adult_{secrets.token_hex(4)}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        made.append(name)
        url = sa.make_url(server).set(database=name).render_as_string(hide_password=False)
        with file.open(encoding="utf-8", newline="") as text, psycopg.connect(url) as connection:
            columns = ", ".join(f"{column} text" for column in next(csv.reader(text)))
            text.seek(0)
            connection.execute(f"CREATE TABLE adult ({columns})")
            with connection.cursor() as cursor, cursor.copy("COPY adult FROM STDIN (FORMAT CSV, HEADER)") as copy:
                copy.write(text.read())
        return url

    yield database
    for name in made:
        with psycopg.connect(request.getfixturevalue("postgresql_server"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def adult(databases: Callable[[str], str], shared: Path, tmp_path: Path) -> Open:
    """`adult(engine, names, privacy, ...)`: the task of a spec over some quasi-identifiers, open."""
    folder = shared / "data" / "adult" / "hierarchies"

    @contextmanager
    def open_(engine: str, names: tuple[str, ...], privacy: list[Any], **more: Any) -> Iterator[Task]:
        attributes: dict[str, Any] = {
            name: {"role": "quasi_identifier", "hierarchy": {"file": str(folder / f"{name}.csv")}} for name in names
        }
        attributes["occupation"] = "sensitive"
        with open_task(make_spec(databases(engine), "adult", attributes, privacy, tmp_path, **more)) as task:
            assert task.source.rows == 45222
            yield task

    return open_


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, list[Node]]]:
    """What was found on each engine: the satisfying nodes of each of ASKED."""
    return {}


def satisfying(task: Task) -> dict[str, list[Node]]:
    """Every node decided on its own from its counts, for each requirement apart."""
    found: dict[str, list[Node]] = {name: [] for name in ASKED}
    for node in task.lattice.nodes():
        counts = task.counts(node)
        for name, (part,) in zip(ASKED, counts.parts, strict=True):
            if not part.failing(len(counts.rows)).any():
                found[name].append(node)
    return {name: sorted(nodes) for name, nodes in found.items()}


def test_five_quasi_identifiers(adult: Open, engine_name: str, known: dict[str, Any]) -> None:
    with adult(engine_name, FIVE, [asked for asked, _ in ASKED.values()]) as task:
        assert len(task.lattice) == 240
        known[engine_name] = oracle = satisfying(task)
        assert {name: len(nodes) for name, nodes in oracle.items()} == {name: n for name, (_, n) in ASKED.items()}
        assert len(minimal(oracle["k"])) == 11
        requirements = dict(zip(ASKED, task.spec.privacy, strict=True))
        for name, requirement in requirements.items():
            # The same source, asked for one of the models alone.
            alone = Task(replace(task.source, spec=replace(task.spec, privacy=(requirement,))))
            for strategy in ("chains", "incognito"):
                task.source.frequency_sets.forget()
                outcome = search(alone, strategy=strategy)
                assert outcome.satisfying() == oracle[name], (name, strategy)
                assert outcome.minimal == minimal(oracle[name])
                assert outcome.nodes_evaluated < 240
                assert outcome.optimality == "minimal"
        together = run_search(task)
        assert together.outcome is not None
        assert together.outcome.satisfying() == sorted(set.intersection(*map(set, oracle.values())))
        assert known.get("duckdb", oracle) == known.get("postgresql", oracle)


@pytest.mark.either_engine
@pytest.mark.parametrize("asked", ["k", "entropy"])
def test_seven_quasi_identifiers(adult: Open, engine_name: str, asked: str) -> None:
    found = {}
    for strategy in ("chains", "incognito"):
        with adult(engine_name, SEVEN, [ASKED[asked][0]]) as task:
            assert len(task.lattice) == 2160
            outcome = search(task, strategy=strategy)
            found[strategy] = (outcome.minimal, outcome.satisfying())
            assert 0 < outcome.nodes_evaluated < 2160 / 2
            assert task.statements < 3 * outcome.nodes_evaluated + 200
    assert found["chains"] == found["incognito"]
    assert found["chains"][0] == minimal(found["chains"][1])


def test_rolled_up_locally_the_answer_is_the_same(adult: Open) -> None:
    answers = []
    for where in ("warehouse", "local", "auto"):
        with adult("postgresql", FIVE, [ASKED["entropy"][0]], search={"roll_up": where}) as task:
            answer = run_search(task).to_json()
            assert (task.source.frequency_sets.session is task.source.session) is (where == "warehouse")
            answers.append({key: answer[key] for key in ("minimal", "chosen", "nodes_evaluated", "satisfying", "why")})
    assert answers[0] == answers[1] == answers[2]
