"""`search.roll_up`: where nodes are counted decides how long a search takes, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
import sqlalchemy as sa
from integration.sources import execute, make_spec
from search.whole import load, rows_of

from qblock.engines.registry import ENGINES
from qblock.engines.session import Session
from qblock.engines.spark.session import SparkSession
from qblock.engines.sql_session import SqlSession
from qblock.errors import QblockError
from qblock.frequency import coding
from qblock.search.audit import audit_spec
from qblock.search.compare import compare
from qblock.search.compare_results import to_json
from qblock.search.run import open_task, run_search
from qblock.search.task import Task
from qblock.source.open import fits_memory
from qblock.spec import Spec
from qblock.spec.sections import Search

pytestmark = pytest.mark.either_engine

WHERE: tuple[Literal["warehouse", "local", "auto"], ...] = ("warehouse", "local", "auto")
ASKED = [
    "k_anonymity: {k: 3}",
    "distinct_l_diversity: {l: 2, sensitive: s}",
    "entropy_l_diversity: {l: 1.5, sensitive: y}",
]


@pytest.fixture
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qblock.source.open.LEAST_COUNTED", 0)


@pytest.fixture
def apart(engine_name: str) -> bool:
    """Whether the source's engine runs in another process."""
    return engine_name != "duckdb"


@pytest.fixture
def pulling(engine_name: str) -> type[Session]:
    """The session whose `pull` brings coded rows."""
    return SparkSession if engine_name == "spark" else SqlSession


def moved(task: Task) -> bool:
    return task.source.frequency_sets.session is not task.source.session


def answer(spec: Spec) -> dict[str, Any]:
    """What was found, wherever it was: the rows that were read, too, beside those that were copied, and what in memory
    is read of one requirement alone."""
    answers = []
    for alone in (True, False):
        with open_task(spec) as task, pytest.MonkeyPatch.context() as patched:
            if not alone:
                patched.setattr(Task, "_fails_alone", lambda _, __: False)
            found = run_search(task, all_nodes=True).to_json()
            assert found["queries"] == task.statements
            read = task.source.frequency_sets.rows_read - (task.source.rows if moved(task) else 0)
        answers.append({name: value for name, value in found.items() if name not in ("seconds", "queries")})
    assert answers[0] == answers[1]
    return answers[0] | {"rows_read": read}


def asking(
    warehouse: Any, folder: Path, where: str, more: str = "", *, further: Sequence[str] = (), people: int | None = None
) -> Spec:
    rows = rows_of(7, 80, people)
    return load(warehouse, folder, rows, [*ASKED, *further], f"search: {{roll_up: {where}}}\n{more}")


def rolled_up(spec: Spec, where: Literal["warehouse", "local", "auto"]) -> Spec:
    return replace(spec, search=Search(roll_up=where))


@pytest.mark.usefixtures("however_small")
@pytest.mark.parametrize("bits", [63, 4])
@pytest.mark.parametrize("more", ["suppression_limit: 7\n", "count: entities\n"])
def test_the_answer_is_the_same(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool, bits: int, more: str
) -> None:
    monkeypatch.setattr(coding, "BITS", bits)
    spec = asking(warehouse, tmp_path, "auto", more, people=50 if "entities" in more else None)
    with open_task(spec) as task:
        assert not moved(task)
        assert (task.source.frequency_sets.coding.words > 1) is (bits < 63)
        run_search(task)
        assert moved(task) is apart
    answers = [answer(rolled_up(spec, where)) for where in WHERE]
    assert answers[0]["chosen"] is not None
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.usefixtures("however_small")
def test_what_identifies_people_stays(warehouse: Any, tmp_path: Path, apart: bool) -> None:
    spec = asking(warehouse, tmp_path, "local", "count: entities\n", people=30)
    with open_task(spec) as task:
        sets, session = task.source.frequency_sets, task.source.session
        found = sets.session.fetch(sa.select(sets.base.c.e).distinct())["e"].to_pylist()
        people = session.scalar(sa.select(sa.func.count(sa.distinct(task.source.relation.c.person))))
        if apart:
            assert sorted(found) == list(range(1, people + 1))
            assert "qblock_numbered" not in [table.name for table in session._temporary.values()]  # type: ignore[attr-defined]
        assert sets.people() == people


@pytest.mark.usefixtures("however_small")
def test_where_it_does_not_pay_the_table_stays(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool, engine_name: str
) -> None:
    spec = asking(warehouse, tmp_path, "auto")
    with open_task(spec) as task:
        nodes, rows = len(task.lattice), task.source.rows
    jobs = ENGINES[engine_name].adapter.statements_are_jobs
    for name, value, brought in (
        ("LEAST_COUNTED", rows * nodes + 1, jobs),
        ("LEAST_COUNTED", rows * nodes, True),
        ("FEW", nodes, False),
        ("FEW", nodes - 1, True),
        ("MEMORY", f"{rows * 8 * 4}kB", True),
        ("MEMORY", f"{(rows * 8 * 4 - 1) / 1000:.3f}kB", False),
        ("MEMORY", f"{(rows * 8 * 4) / 1000:.3f}kB", True),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"qblock.source.open.{name}", value)
            with open_task(spec) as task:
                run_search(task)
                assert moved(task) is (brought and apart), (name, value)


@pytest.mark.usefixtures("however_small")
def test_one_node_is_counted_where_the_table_is(
    warehouse: Any, tmp_path: Path, apart: bool, pulling: type[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = asking(warehouse, tmp_path, "auto")
    pinned = replace(spec, search=Search(node=(0, 1)))
    pulled: list[str] = []
    pull = pulling.pull

    def told(session: Session, table: sa.TableClause) -> Any:
        pulled.append(table.name)
        return pull(session, table)

    monkeypatch.setattr(pulling, "pull", told)
    with open_task(pinned) as task:
        run_search(task)
        assert not moved(task)
        run_search(task, all_nodes=True)
        assert moved(task) is apart
    assert pulled == (["qblock_base"] if apart else [])
    pulled.clear()
    audit_spec(spec, "0,1")
    assert pulled == []
    with open_task(spec) as task:
        compare(task)
        compare(task)
    assert pulled == (["qblock_base"] if apart else [])


@pytest.mark.usefixtures("however_small")
def test_comparisons_and_populations(warehouse: Any, tmp_path: Path, apart: bool) -> None:
    among = "population: {table: everybody}"
    further = [f"k_map: {{k: 4, {among}}}", f"delta_presence: {{min: 0, max: 0.9, {among}}}"]
    spec = asking(warehouse, tmp_path, "auto", further=further)
    rows = rows_of(7, 80) + rows_of(8, 90)
    warehouse("everybody", {name: [row[name] for row in rows] for name in ("a", "b")})
    answers, compared = [], []
    for where in WHERE:
        there = rolled_up(spec, where)
        answers.append(answer(there))
        with open_task(there) as task:
            found = to_json(compare(task))
            compared.append({name: value for name, value in found.items() if name not in ("seconds", "queries")})
            counted = [task.source.frequency_sets, *(one._sets for one in task._populations.values())]
            assert len({id(one.session) for one in counted}) == 1
            assert moved(task) is (apart and where != "warehouse")
            task.assess(task.lattice.top)
            assert list(task._populations) == ["everybody"]
    assert answers[0]["chosen"] is not None
    assert answers[0] == answers[1] == answers[2]
    assert compared[0] == compared[1] == compared[2]


@pytest.mark.each_engine
def test_a_row_that_is_lost_is_noticed(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool, pulling: type[Session]
) -> None:
    if not apart:
        pytest.skip("nothing is brought anywhere")
    pull = pulling.pull

    def losing(session: Session, table: sa.TableClause) -> Any:
        for part in pull(session, table):
            yield {name: column[1:] for name, column in part.items()}

    monkeypatch.setattr(pulling, "pull", losing)
    with pytest.raises(QblockError, match="79 of 80 coded rows were brought here"):
        answer(asking(warehouse, tmp_path, "local"))


def test_limits() -> None:
    quarter = 2**28
    assert fits_memory(quarter // 8, 1, entities=False, limit=None)
    assert not fits_memory(quarter // 8 + 1, 1, entities=False, limit=None)
    assert fits_memory(quarter // 16, 1, entities=True, limit=None)
    assert not fits_memory(quarter // 16 + 1, 1, entities=True, limit=None)
    assert fits_memory(quarter // 24, 2, entities=True, limit="1GiB")
    assert not fits_memory(quarter // 24 + 1, 2, entities=True, limit="1GiB")
    assert fits_memory(quarter // 4, 1, entities=False, limit="2GiB")
    assert not fits_memory(1_000, 2, entities=False, limit="63kB")
    assert fits_memory(1_000, 2, entities=False, limit="64kB")


@pytest.mark.usefixtures("however_small")
@pytest.mark.each_engine
def test_people_are_told_apart_as_the_column_does(warehouse: Any, engine_name: str, tmp_path: Path) -> None:
    """Numbers that are written otherwise are the same person where the type says so."""
    url = warehouse("t", {"q": list("xxxyyy"), "s": list("uvwuvw")})
    type_, one, same = ("numeric", "1.0", "1.00") if engine_name == "postgresql" else ("DOUBLE", "0.0", "-0.0")
    told = f"UPDATE t SET who = CASE s WHEN 'u' THEN {one} WHEN 'v' THEN {same} ELSE 2 END"
    execute(url, f"ALTER TABLE t ADD who {type_}", told)
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    for where in WHERE:
        more: dict[str, Any] = {"entity": "who", "count": "entities", "search": {"roll_up": where}}
        with open_task(make_spec(url, "t", attributes, [{"k_anonymity": {"k": 2}}], tmp_path, **more)) as task:
            assert task.source.frequency_sets.people() == 2
            assert run_search(task).minimal == [(0,)]


@pytest.mark.parametrize("further", [False, True])
def test_a_comparison_lets_go_of_what_it_has_brought_here(postgresql_url: str, tmp_path: Path, further: bool) -> None:
    execute(postgresql_url, "CREATE TABLE t AS SELECT i % 7 AS q, i % 3 AS s FROM generate_series(1, 90) AS rows(i)")
    population = [{"delta_presence": {"min": 0, "max": 1, "population": {"table": "t"}}}] if further else []
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": {"ranges": [2, 4]}}, "s": {"role": "sensitive"}}
    asked = [{"k_anonymity": {"k": 3}}, *population]
    spec = make_spec(postgresql_url, "t", attributes, asked, tmp_path, search={"roll_up": "local"})
    found: list[Any] = []
    for last in (False, True):
        locked: list[bool] = []

        def lock(_: Any, locked: list[bool] = locked) -> None:
            with psycopg.connect(postgresql_url) as connection:
                try:
                    connection.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE NOWAIT")
                    locked.append(True)
                except psycopg.errors.LockNotAvailable:
                    locked.append(False)

        with open_task(spec) as task:
            found.append(to_json(compare(task, progress=lock, last=last)))
        assert locked
        # A population is read when the first node is asked.
        assert set(locked) == {last and not further}
    assert {**found[0], "seconds": 0} == {**found[1], "seconds": 0}
