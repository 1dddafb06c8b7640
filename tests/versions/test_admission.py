"""Who is let into a version: moves wait, people set apart stay out, newcomers wait until their cohort closes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from engines import sql_engine

from qblock.ledger.stores import store_of
from qblock.search.run import open_task
from qblock.search.task import Task
from qblock.spec import Spec, read_spec
from qblock.versions.admission import Admission, freeze
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, prepare
from qblock.versions.gate import Verdict, check
from qblock.versions.recorded import candidate, record
from qblock.versions.texts import join_texts, part_of

pytestmark = pytest.mark.either_engine

SPEC = """
version: 1
release: people
source: {{url: "${{URL}}", table: people}}
attributes:
{attributes}
  condition: sensitive
entity: id
privacy:
  - k_anonymity: {{k: 2}}
  - distinct_l_diversity: {{l: 2}}
suppression_limit: {limit}
"""
ATTRIBUTES = """
  zip: {hierarchy: {digits: 2}, role: quasi_identifier}
  age: {hierarchy: {ranges: [10]}, nulls: top, role: quasi_identifier}
"""


def make_spec(url: str, folder: Path, attributes: str = ATTRIBUTES, limit: int = 0) -> Spec:
    return read_spec(SPEC.format(attributes=attributes, limit=limit), folder / "spec.yaml", {"URL": url})


@contextmanager
def opened(spec: Spec, **more: Any) -> Iterator[tuple[Task, Crosswalk, Admission]]:
    """A task over what is admitted, and the crosswalk; committed at the end."""
    place = store_of(spec)
    place.upgrade()
    prepare(place)
    admission = Admission(spec, place, **more)
    with open_task(spec, relation=admission) as task:
        with open_crosswalk(place, task.source.session) as crosswalk:
            yield task, crosswalk, admission
        if place.engine == "postgresql":
            task.source.session.connection.commit()


def publish(spec: Spec, version: int, node: tuple[int, ...], **more: Any) -> Verdict:
    """Check and record a version at a node, as the job does."""
    with opened(spec, **more) as (task, crosswalk, _):
        chosen = task.assess(node)
        assert chosen.satisfied
        found = candidate(crosswalk, task, chosen, version)
        references = [[part.reference for part in parts] for parts in chosen.counts.parts]
        verdict = check(crosswalk, spec, references, found)
        record(crosswalk, found)
        freeze(crosswalk, task.source, found)
    return verdict


def change(url: str, statement: str, **values: Any) -> None:
    engine = sql_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(statement), values)
    engine.dispose()


def contents(task: Task) -> dict[Any, tuple[Any, ...]]:
    source = task.source
    columns = [source.expression(name).label(f"c{i}") for i, name in enumerate(source.quasi_identifiers)]
    query = sa.select(source.relation.c.id, *columns).select_from(source.relation)
    return {row["id"]: tuple(row.values())[1:] for row in source.session.fetch(query).to_pylist()}


PEOPLE = {
    "id": list(range(8)),
    "zip": ["11", "11", "12", "12", "21", "21", "22", "22"],
    "age": [21, 22, 23, 24, 31, 32, 33, None],
    "condition": ["flu", "cold"] * 4,
}


def test_a_move_waits_and_a_newcomer_is_where_he_is(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    spec = make_spec(url, tmp_path)
    assert publish(spec, 1, (1, 2)).passed
    change(url, "UPDATE people SET zip = '22', age = 39 WHERE id = 0")
    change(url, "INSERT INTO people VALUES (8, '11', 51, 'flu'), (9, '12', 52, 'cold')")
    with opened(spec) as (task, _, admission):
        found = contents(task)
        assert admission.moves(task.source.session) == 1
    assert found[0] == ("11", 21)
    assert found[8] == ("11", 51)
    assert found[7] == ("22", None)
    assert publish(spec, 2, (1, 2)).passed


def test_without_freezing_a_lone_move_would_be_refused(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    spec = make_spec(url, tmp_path)
    assert publish(spec, 1, (1, 2)).passed
    change(url, "UPDATE people SET zip = '22' WHERE id = 0")
    place = store_of(spec)
    with open_task(spec) as task, open_crosswalk(place, task.source.session) as crosswalk:
        chosen = task.assess((1, 2))
        references = [[part.reference for part in parts] for parts in chosen.counts.parts]
        verdict = check(crosswalk, spec, references, candidate(crosswalk, task, chosen, 2))
    assert not verdict.passed
    assert dict(verdict.models)["k_anonymity"] == 1


def test_who_was_never_shown_is_not_frozen(warehouse, tmp_path: Path) -> None:
    url = warehouse(
        "people",
        {name: [*values, other] for (name, values), other in zip(PEOPLE.items(), (8, "91", 91, "flu"), strict=True)},
    )
    spec = make_spec(url, tmp_path, limit=1)
    publish(spec, 1, (1, 2))
    change(url, "UPDATE people SET zip = '11' WHERE id = 8")
    with opened(spec) as (task, _, _admission):
        assert contents(task)[8] == ("11", 91)


def test_who_was_suppressed_for_the_values_of_a_block_is_frozen(warehouse, tmp_path: Path) -> None:
    more = ([8, 9], ["91", "92"], [91, 92], ["flu", "flu"])
    url = warehouse(
        "people", {name: [*values, *others] for (name, values), others in zip(PEOPLE.items(), more, strict=True)}
    )
    spec = make_spec(url, tmp_path, limit=2)
    publish(spec, 1, (1, 2))
    change(url, "UPDATE people SET zip = '11' WHERE id = 8")
    with opened(spec) as (task, _, _admission):
        assert contents(task)[8] == ("91", 91)


VALUES = {
    "t": ["", "a\x1fb", "a\x1eN", "\x1e", "\x1e1\x1f0", "ü|;", None, "x"],
    "i": [1, -2, 3, 4, 5, 6, None, 8],
    "d": [
        Decimal("1.50"),
        Decimal("2"),
        Decimal("0.001"),
        Decimal("-4"),
        Decimal("5"),
        Decimal("6"),
        None,
        Decimal("8"),
    ],
    "f": [0.1, 1e300, 1 / 3, -4.5, 5.0, 6.0, None, 8.0],
    "day": [date(2024, 1, day) for day in range(1, 7)] + [None, date(1999, 12, 31)],
    "time": [datetime(2024, 1, 1, 12, 30, s, 123456) for s in range(6)] + [None, datetime(1999, 12, 31)],
    "b": [True, False, True, False, True, False, None, True],
}


def test_values_of_every_type_are_frozen_as_they_are(warehouse, tmp_path: Path) -> None:
    columns = {"id": list(range(8)), **VALUES, "condition": ["flu", "cold"] * 4}
    url = warehouse("people", columns)
    attributes = "".join(f"  {name}: {{role: quasi_identifier, hierarchy: suppress, nulls: top}}\n" for name in VALUES)
    spec = make_spec(url, tmp_path, attributes)
    with opened(spec) as (task, _, _admission):
        before = contents(task)
    publish(spec, 1, (1,) * len(VALUES))
    change(
        url, f"UPDATE people SET {', '.join(f'{name} = (SELECT {name} FROM people WHERE id = 7)' for name in VALUES)}"
    )
    with opened(spec) as (task, _, _admission):
        assert contents(task) == before
        assert task.assess((1,) * len(VALUES)).satisfied


def test_a_quasi_identifier_that_is_added_later_is_frozen_from_then_on(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    only_zip = "  zip: {role: quasi_identifier, hierarchy: {digits: 2}}\n"
    publish(make_spec(url, tmp_path, only_zip), 1, (1,))
    change(url, "UPDATE people SET zip = '22', age = 91 WHERE id = 0")
    spec = make_spec(url, tmp_path)
    with opened(spec) as (task, _, _admission):
        assert contents(task)[0] == ("11", 91)
    publish(spec, 2, (1, 2))
    change(url, "UPDATE people SET age = 21 WHERE id = 0")
    with opened(spec) as (task, _, _admission):
        assert contents(task)[0] == ("11", 91)


def test_people_set_apart_are_left_out(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    spec = make_spec(url, tmp_path)
    publish(spec, 1, (1, 2))
    change(url, "INSERT INTO people VALUES (8, '11', 51, 'flu'), (9, '12', 52, 'cold')")
    with opened(spec) as (task, crosswalk, _admission):
        source = task.source
        who = crosswalk.entity(sa.cast(source.relation.c.id, sa.Text), source.relation).label("entity")
        query = sa.select(source.relation.c.id, who).select_from(source.relation)
        digests = {row["id"]: row["entity"] for row in source.session.fetch(query).to_pylist()}
    with opened(spec, leaving=[digests[3]]) as (task, _, _admission):
        assert set(contents(task)) == {0, 1, 2, 4, 5, 6, 7, 8, 9}
    with opened(spec) as (_, crosswalk, _admission):
        t = crosswalk.tables.apart
        states = {0: "out", 1: "leaving", 2: "queued", 3: "failed"}
        rows = [{"release": "people", "entity": digests[i], "why": "withdrawn", "state": s} for i, s in states.items()]
        crosswalk.own.connection.execute(sa.insert(t), rows)
    with opened(spec) as (task, _, _admission):
        assert set(contents(task)) == set(range(2, 10))


def test_a_release_whose_versions_are_not_checked_together_takes_the_table_as_it_is(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    spec = read_spec(
        SPEC.format(attributes=ATTRIBUTES, limit=0) + "versions: {joint: none}\n", tmp_path / "spec.yaml", {"URL": url}
    )
    with open_task(spec, relation=Admission(spec, store_of(spec))) as task:
        assert isinstance(task.source.relation, sa.TableClause)
    assert not (tmp_path / "qblock").exists()


def test_texts_of_any_kind_are_put_together_and_taken_apart(crosswalk: Crosswalk) -> None:
    texts = VALUES["t"]
    table = crosswalk.own.load(
        "qblock_texts", pa.table({"a": texts, "b": texts[::-1], "n": pa.array(range(8), pa.int64())})
    )
    place = join_texts([table.c.a, table.c.b]).label("place")
    query = sa.select(place, table.c.n).subquery()
    parts = sa.select(query.c.place, part_of(query.c.place, 0).label("a"), part_of(query.c.place, 1).label("b"))
    found = crosswalk.own.fetch(parts.order_by(query.c.n)).to_pylist()
    assert [row["a"] for row in found] == texts
    assert [row["b"] for row in found] == texts[::-1]
    assert len({row["place"] for row in found}) == 8
