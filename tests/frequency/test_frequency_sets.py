"""The counts of every node are those of counting the raw rows by hand, whatever the names and values are."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import has_type, table_name
from hypothesis import given
from hypothesis import strategies as st
from integration.hostile import NAMES, few, tables
from integration.sources import Rows, counted, from_file, keys_of, opened, quoted, sensitive, suppressed

from qblock.blocks import number_keys
from qblock.errors import QblockError
from qblock.frequency import FrequencySets
from qblock.search.task import Task

pytestmark = pytest.mark.either_engine

ASKED = ("sizes", "blocks", "joint", "row_counts", "leaf_counts")
MOST = 40
"""Questions of a table in an order of their own, before every node is asked once."""


def check(task: Task, rows: Rows, node: tuple[int, ...], asked: str) -> None:
    """One question about a node, held against the raw rows."""
    sets = task.source.frequency_sets
    sizes = rows.sizes(node)
    several = range(len(rows.sensitive))
    if asked == "sizes":
        histogram = sets.sizes(node)
        assert histogram.size.tolist() == sorted(set(sizes.values()))
        assert dict(zip(histogram.size.tolist(), histogram.blocks.tolist(), strict=True)) == Counter(sizes.values())
        assert histogram.number == len(sizes)
        assert int((histogram.size * histogram.blocks).sum()) == rows.size
    elif asked == "blocks":
        plain = sets.blocks(node, ())[0]
        found = [plain, *sets.blocks(node, several)] if several else [plain]
        for i, blocks in enumerate(found):
            assert dict(zip(keys_of(task, node, blocks.keys), blocks.rows.tolist(), strict=True)) == sizes
            assert np.array_equal(blocks.keys, plain.keys)
            if i:
                assert counted(task, node, blocks, i - 1) == rows.joint(node, [i - 1])
    elif asked == "joint" and several:
        for chosen in itertools.permutations(several):
            keys, values, counts = sets.joint(node, chosen)
            domains = [list(task.source.sensitives.values())[i].reference.domain for i in chosen]
            texts = [tuple(d[v] for d, v in zip(domains, row, strict=True)) for row in values.tolist()]
            found = dict(zip(zip(keys_of(task, node, keys), texts, strict=True), counts.tolist(), strict=True))
            assert len(found) == len(counts)
            assert found == rows.joint(node, chosen)
    elif asked == "row_counts":
        keys = sets.blocks(node, ())[0].keys
        assert dict(zip(keys_of(task, node, keys), sets.row_counts(node).tolist(), strict=True)) == sizes
    elif asked == "leaf_counts":
        keys, values, counts = sets.leaf_counts(several)
        bottom = task.lattice.bottom
        assert len(set(map(tuple, np.column_stack([keys, values]).tolist()))) == len(counts)
        assert Counter(counts.tolist()) == Counter(rows.joint(bottom, several).values())


@few
@given(data=st.data())
def test_every_node_counts_the_raw_rows(warehouse, engine_name: str, tmp_path: Path, data: st.DataObject) -> None:
    number = len(list(tmp_path.glob("table*")))
    (folder := tmp_path / f"table{number}").mkdir()
    rows = data.draw(tables(folder))
    table = table_name(engine_name, f"{data.draw(st.sampled_from(NAMES))} {number}")
    schema = data.draw(st.sampled_from([None, *(table_name(engine_name, name) for name in NAMES)]))
    url = rows.fill(warehouse, table, schema)
    name = quoted(table) if schema is None else quoted(schema, table)
    where = data.draw(st.sampled_from(["warehouse", "local"]))
    with opened(url, name, rows.attributes(), folder, search={"roll_up": where}) as task:
        assert task.lattice.heights == tuple(column.height for column in rows.quasi)
        assert task.source.rows == rows.size
        questions = data.draw(st.permutations([(n, a) for n in rows.nodes() for a in ASKED]))
        for node, asked in questions[:MOST]:
            check(task, rows, node, asked)
        task.source.frequency_sets.forget()
        for node in rows.nodes():
            check(task, rows, node, "blocks")


@few
@given(data=st.data())
def test_entities_are_counted_once(warehouse, engine_name: str, tmp_path: Path, data: st.DataObject) -> None:
    number = len(list(tmp_path.glob("table*")))
    (folder := tmp_path / f"table{number}").mkdir()
    rows = data.draw(tables(folder))
    people = data.draw(st.lists(st.integers(1, 4), min_size=rows.size, max_size=rows.size))
    types = {"BIGINT": people, "VARCHAR": [f"p {p}" for p in people], "UUID": [f"{p:032x}" for p in people]}
    type_ = data.draw(st.sampled_from([type_ for type_ in types if has_type(engine_name, type_)]))
    filled = {column.name: column.values for column in rows.columns} | {"who is it": types[type_]}
    declared = {column.name: column.type for column in rows.columns if column.type} | {"who is it": type_}
    table = table_name(engine_name, f"entities {number}")
    url = warehouse(table, filled, declared)
    where = data.draw(st.sampled_from(["warehouse", "local"]))
    more: dict[str, Any] = {"entity": "who is it", "count": "entities", "search": {"roll_up": where}}
    with opened(url, quoted(table), rows.attributes(), folder, **more) as task:
        sets = task.source.frequency_sets
        for node in data.draw(st.permutations(rows.nodes())):
            sizes = rows.sizes(node, people)
            histogram = sets.sizes(node)
            assert Counter(sizes.values()) == dict(zip(histogram.size.tolist(), histogram.blocks.tolist(), strict=True))
            plain = sets.blocks(node, ())[0]
            assert dict(zip(keys_of(task, node, plain.keys), plain.rows.tolist(), strict=True)) == sizes
            for i in range(len(rows.sensitive)):
                blocks = sets.blocks(node, [i])[0]
                assert dict(zip(keys_of(task, node, blocks.keys), blocks.rows.tolist(), strict=True)) == sizes
                assert counted(task, node, blocks, i) == rows.joint(node, [i], people)
            by_row = dict(zip(keys_of(task, node, plain.keys), sets.row_counts(node).tolist(), strict=True))
            assert by_row == rows.sizes(node)
        for i, values in enumerate(task.source.sensitives.values()):
            whole = {text: n for (_, (text,)), n in rows.joint(task.lattice.top, [i], people).items()}
            totals = zip(values.reference.domain, values.reference.totals.tolist(), strict=True)
            assert {text: n for text, n in totals if n} == whole


def test_values_without_a_leaf_become_one_where_the_spec_says_so(warehouse, tmp_path: Path) -> None:
    paths = {"a": ("a", "ab", "*"), "b": ("b", "ab", "*")}
    column = from_file("q", ["a", "b", "a"], paths, tmp_path / "q.csv")
    entry = {**column.entry, "nulls": "top", "uncovered": "top"}
    url = warehouse("t", {"q": ["a", "x", "b", None, "y", "a", "x"], "who": [1, 1, 2, 3, 3, 4, 3]})
    attributes: dict[str, Any] = {"q": entry}
    with opened(url, "t", attributes, tmp_path) as task:
        assert task.source.frequency_sets.sizes((0,)).size.tolist() == [1, 2, 4]
        assert task.source.frequency_sets.sizes((1,)).size.tolist() == [3, 4]
        blocks = task.source.frequency_sets.blocks((0,), ())[0]
        assert dict(zip(keys_of(task, (0,), blocks.keys), blocks.rows.tolist(), strict=True)) == {
            ("a",): 2, ("b",): 1, ("*",): 4
        }  # fmt: skip
    with opened(url, "t", attributes, tmp_path, entity="who", count="entities") as task:
        sets = task.source.frequency_sets
        assert dict(zip(sets.sizes((0,)).size.tolist(), sets.sizes((0,)).blocks.tolist(), strict=True)) == {1: 1, 2: 2}
        assert sorted(sets.row_counts((0,)).tolist()) == [1, 2, 4]


def test_counts_that_do_not_add_up_are_refused(warehouse, tmp_path: Path) -> None:
    rows = Rows([suppressed("a", ["x", "x", "y"]), suppressed("b", [1, 2, 2])], [sensitive("s", [1, 1, 2])])
    with opened(rows.fill(warehouse, "t"), "t", rows.attributes(), tmp_path) as task:
        whole = task.source.frequency_sets
        broken = FrequencySets(whole.session, whole.base, whole.coding, rows.size + 1)
        for ask in (
            broken.sizes,
            lambda n: broken.small(n, 2),
            lambda n: broken.blocks(n, []),
            lambda n: broken.blocks(n, [0]),
            lambda n: broken.joint(n, [0]),
        ):
            with pytest.raises(
                QblockError, match=r"add up to 3, not to the 4 rows.*nothing may be published"
            ) as caught:
                ask((1, 0))
            assert caught.value.exit_status == 1


def test_a_coarser_node_reads_no_more_than_the_smallest_hub(warehouse, tmp_path: Path) -> None:
    rows = Rows([suppressed("a", list("uvwxyz") * 4), suppressed("b", list("abcd") * 6)], [sensitive("s", [1] * 24)])
    with opened(rows.fill(warehouse, "t"), "t", rows.attributes(), tmp_path) as task:
        sets = task.source.frequency_sets
        assert sets.cost((1, 1)) == rows.size
        assert sets.hub((0, 1)) == len(rows.sizes((0, 1)))
        assert sets.cost((1, 1)) == len(rows.sizes((0, 1)))
        assert sets.hub((1, 0)) == sets.cost((1, 1)) == len(rows.sizes((1, 0))) == 4
        assert sets.cost((0, 0)) == sets.cost((0, 0), [0]) == rows.size
        sets.hub((0, 1), [0])
        assert sets.cost((0, 1), [0]) == len(rows.sizes((0, 1)))
        for node in rows.nodes():
            for asked in ASKED:
                check(task, rows, node, asked)
        sets.sizes((1, 0))
        sent = task.statements
        sets.sizes((1, 0))
        assert task.statements == sent
        sets.forget()
        assert sets.cost((1, 1)) == rows.size


def test_keys_beyond_what_one_integer_holds_are_told_apart() -> None:
    keys = np.array([[1, 0, 0, 0, 5], [0, 0, 0, 0, 5], [1, 0, 0, 0, 5], [0, 0, 0, 1, 2]])
    for unit in (1, 2**31):  # 24 keys, and nearly 2**96, where the first column would leave 64 bits
        numbers, first = number_keys(keys * unit)
        assert numbers.tolist() == [2, 0, 2, 1]
        assert first.tolist() == [1, 3, 0]
