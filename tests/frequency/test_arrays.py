"""What is counted in memory is what statements count: each question, each model, and whatever the keys look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import examples, table_name
from hypothesis import example, given, settings
from hypothesis import strategies as st
from integration.hostile import few, tables
from integration.sources import Column, Rows, opened, quoted, sensitive, suppressed
from integration.worlds import fill, models, task_of, worlds

from qblock.blocks import Blocks
from qblock.frequency import FrequencySets, arrays, coding, sets, slices
from qblock.frequency.arrays import Keys, scattered
from qblock.frequency.coding import spans_of
from qblock.frequency.sets import SAMPLED, Portion
from qblock.models import BY_NAME
from qblock.search.run import run_search
from qblock.search.task import Task

pytestmark = pytest.mark.either_engine

FEW_BITS = st.lists(st.integers(0, 62), max_size=12).map(lambda places: sum(1 << place for place in set(places)))
NARROW_BITS = st.integers(0, 255)


def few_people(rows: int) -> Any:
    return st.lists(st.integers(1, 3), min_size=rows, max_size=rows)


@given(data=st.data())
@example(data=None)
@example(data=[5, 1, 1])
@example(data=[1 << 53, 1, 1])  # more rows than a double counts one by one
def test_rows_of_keys_are_added_up(data: Any) -> None:
    if isinstance(data, list):  # no more keys than rows
        mask, rows, n = (1,), [(1,), (3,), (0,)], data
    elif data is None:  # of four bits and 61 of a count, which are no one number together
        mask, rows, n = (15, 0), [(3, 1), (11, 2), (19, 0)], [1 << 60, 1, 2]
    else:
        mask = tuple(data.draw(st.lists(data.draw(st.sampled_from([FEW_BITS, NARROW_BITS])), min_size=1, max_size=3)))
        rows = data.draw(st.lists(st.tuples(*(st.integers(0, 2**63 - 1) for _ in mask)), min_size=1, max_size=30))
        counts = st.lists(st.integers(1, data.draw(st.sampled_from([3, 1000, 2**40]))), min_size=len(rows))
        n = data.draw(st.none() | counts.map(lambda found: found[: len(rows)]))
    words = {i: np.array([row[i] for row in rows], dtype=np.int64) for i in range(len(mask))}
    spans = spans_of(mask)
    if spans is None:
        return
    numbers = st.lists(st.integers(0, 2**62), min_size=len(rows), max_size=len(rows))
    people = None if data is None or isinstance(data, list) else data.draw(st.none() | numbers | few_people(len(rows)))
    entities = None if people is None else np.array(people, dtype=np.int64)
    found = Keys(words, None if n is None else np.array(n, dtype=np.int64), entities).counted(mask, spans)
    expected: Counter[tuple[int, ...]] = Counter()
    theirs: dict[tuple[int, ...], set[int]] = {}
    for row, count, who in zip(rows, n or [1] * len(rows), people or [0] * len(rows), strict=True):
        key = tuple(word & bits for word, bits in zip(row, mask, strict=True))
        expected[key] += count
        theirs.setdefault(key, set()).add(who)
    keys = list(zip(*(word.tolist() for word in scattered(found.keys, spans)), strict=True))
    assert keys == sorted(expected)
    assert found.rows.tolist() == [expected[key] for key in keys]
    assert found.n.tolist() == [expected[key] if people is None else len(theirs[key]) for key in keys]


@contextmanager
def tiny(bits: int) -> Iterator[None]:
    """Samples of the smallest sets, and words of so many bits."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (sets, "LEAST_SAMPLED", 0),
            (sets, "LEAVES_SAMPLED", 2),
            (slices, "PARTS", 2),
            (slices, "SLICED", 2),
            (slices, "MISSED", 2),
            (coding, "BITS", bits),
            (arrays, "BITS", bits),
        ):
            patch.setattr(module, name, value)
        yield


def written(blocks: Blocks) -> list[Any]:
    """Every number of the blocks, in their order."""
    found = (blocks.start, blocks.value, blocks.count, blocks.rows, blocks.keys)
    return [None if array is None else array.tolist() for array in found]


def in_no_order(*columns: np.ndarray) -> list[Any]:
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def answers(of: FrequencySets, node: tuple[int, ...], several: range) -> dict[str, Any]:
    """Everything that is asked about a node, and how many rows were read for that."""
    sizes, plain = of.sizes(node), of.blocks(node, ())[0]
    found: dict[str, Any] = {
        "cost": [of.cost(node), *(of.cost(node, (i,)) for i in several)],
        "below": [of.sampled_below(node, least) for least in (2, 3)],
        "sizes": (sizes.size.tolist(), sizes.blocks.tolist()),
        "small": [of.small(node, least) for least in (1, 2, 4)],
        "plain": written(plain),
        "row counts": of.row_counts(node).tolist(),
    }
    for portion in (Portion(), SAMPLED, Portion(number=1, of=3)):
        found[f"blocks, {portion}"] = [written(one) for one in of.blocks(node, several, portion=portion)]
        found[f"without keys, {portion}"] = [
            written(one) for one in of.blocks(node, several, portion=portion, keyed=False)
        ]
    if several:
        found["joint"] = in_no_order(*of.joint(node, several))
    return found | {"read": of.rows_read}


def whole(of: FrequencySets, several: range) -> dict[str, Any]:
    """Everything that is asked of the whole table."""
    return {
        "leaves": of.leaves,
        "marginals": [in_no_order(*one) for one in of.marginals()],
        "totals": [in_no_order(*of.totals(i)) for i in several],
        "leaf counts": in_no_order(*of.leaf_counts(several)),
        "leaf sizes": in_no_order(*of.leaf_sizes(several)),
    }


@few
@given(data=st.data())
def test_memory_answers_what_statements_answer(
    warehouse: Any, engine_name: str, tmp_path: Path, data: st.DataObject
) -> None:
    number = len(list(tmp_path.glob("table*")))
    (folder := tmp_path / f"table{number}").mkdir()
    rows, more = data.draw(tables(folder)), {}
    if data.draw(st.booleans()):
        people = data.draw(st.lists(st.sampled_from(["", "a", "A", "b "]), min_size=rows.size, max_size=rows.size))
        rows = replace(rows, others=[Column("the person", people, "identifying")])
        more = {"entity": "the person", "count": "entities"}
    table = table_name(engine_name, f"table {number}")
    url = rows.fill(warehouse, table)
    with (
        tiny(data.draw(st.sampled_from([63, 63, 8, 5]))),
        opened(url, quoted(table), rows.attributes(), folder, search={"roll_up": "local"}, **more) as task,
    ):
        by_statements = task.source.frequency_sets
        session, entities = by_statements.session, by_statements.entities
        held = FrequencySets(
            session, by_statements.base, by_statements.coding, rows.size, entities=entities, name="held"
        )
        held.count_in_memory()
        held.rows_read = by_statements.rows_read
        several = range(len(rows.sensitive))
        for node in data.draw(st.permutations(rows.nodes())):
            if data.draw(st.booleans()):
                kind = data.draw(st.sampled_from([(), *((i,) for i in several)]))
                assert held.hub(node, kind) == by_statements.hub(node, kind)
            assert answers(held, node, several) == answers(by_statements, node, several)
        assert whole(held, several) == whole(by_statements, several)
        held.forget()
        assert held.cost(task.lattice.top) == rows.size
        assert written(held.blocks(task.lattice.top, ())[0]) == written(by_statements.blocks(task.lattice.top, ())[0])


@pytest.mark.parametrize("count", ["rows", "entities"])
def test_words_that_are_needed_come_once(warehouse: Any, tmp_path: Path, count: str) -> None:
    rows = Rows([suppressed("a", list("uvwxyz") * 4), suppressed("b", list("abcd") * 6)], [sensitive("s", [1, 2] * 12)])
    url = warehouse("t", {column.name: column.values for column in rows.columns} | {"who": [i % 12 for i in range(24)]})
    more = {"entity": "who", "count": "entities"} if count == "entities" else {}
    with opened(url, "t", rows.attributes(), tmp_path, search={"roll_up": "local"}, **more) as task:
        of = task.source.frequency_sets
        task.materialize_locally()
        sent = of.session.statements
        for node in rows.nodes():
            of.sizes(node)
            of.blocks(node, [0])
        # Each leaf is two rows of a person.
        assert [array.tolist() for array in of.leaf_sizes([0])] == [[2], [12]]
        assert of.session.statements - sent == 1


def test_what_does_not_fit_is_counted_by_statements_until_a_hub_does(warehouse: Any, tmp_path: Path) -> None:
    rows = Rows([suppressed("a", list("uvwxyz") * 20), suppressed("b", list("abcd") * 30)], [])
    with opened(rows.fill(warehouse, "t"), "t", rows.attributes(), tmp_path, search={"roll_up": "local"}) as task:
        of = task.source.frequency_sets
        of.memory = 2 * 8 * 5 * 30
        of.count_in_memory()
        for hub in (False, True):
            if hub:
                of.hub((0, 1))
            sent = of.session.statements
            assert of.small((0, 1), 21 - hub).small == (0 if hub else 6)
            assert of.small((1, 1), 2 + hub).small == 0
            assert of.session.statements - sent == (1 if hub else 2)


@pytest.mark.parametrize("name", BY_NAME)
@settings(few, max_examples=examples(2))
@given(data=st.data())
def test_each_model_has_one_answer(warehouse: Any, tmp_path: Path, name: str, data: st.DataObject) -> None:
    """With NULLs, several models and a budget, and with the population that a model counts."""
    number = len(list(tmp_path.glob("case*")))
    (folder := tmp_path / f"case{number}").mkdir()
    world = data.draw(worlds(folder))
    asked = data.draw(models(name, world.case, world.table))
    further = tuple(one for one in world.asked if one.name != name)[: data.draw(st.integers(0, 1))]
    world = type(world)(world.table, world.case, (asked, *further), world.limit, world.attributes, None)
    url = fill(world, warehouse, f"case{number}")
    bits, found, read = data.draw(st.sampled_from([63, 8, 5])), [], []
    for held, alone in ((True, True), (True, False), (False, False)):
        with tiny(bits), pytest.MonkeyPatch.context() as patch:
            if not held:
                patch.setattr(FrequencySets, "count_in_memory", lambda _: None)
            if not alone:  # in memory more is asked, for less
                patch.setattr(Task, "_fails_alone", lambda _, __: False)
            with task_of(world, url, f"case{number}", folder, roll_up="local") as task:
                found.append(run_search(task, all_nodes=True).to_json() | {"seconds": 0, "queries": 0})
                read.append(task.source.frequency_sets.rows_read)
    assert found[0] == found[1] == found[2]
    assert read[1] == read[2]
