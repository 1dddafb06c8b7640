"""Samples of blocks and stored hubs spare work and change no answer: here they are used on the smallest tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration.sources import Rows, from_file, opened, sensitive, suppressed

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.frequency import hubs, sets, slices
from qblock.frequency.sets import SAMPLED, Portion
from qblock.search.run import run_search

pytestmark = pytest.mark.either_engine


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (sets, "LEAST_SAMPLED", 0),
        (sets, "LEAVES_SAMPLED", 3),
        (slices, "PARTS", 3),
        (slices, "SLICED", 4),
        (slices, "MISSED", 2),
        (hubs, "LEAST_ROWS", 0),
        (hubs, "FIRST", 0),
        (hubs, "AGAIN", 0),
        (hubs, "STATEMENT", 0),
        (sets, "LEAST_SHARED", 0),
        (duckdb_session, "cores", lambda: 6),
    ):
        monkeypatch.setattr(module, name, value)


def people(folder: Path, n: int, seed: int) -> Rows:
    """n rows over 4 x 3 x 3 nodes."""
    rng = np.random.default_rng(seed)
    leaves = {f"{i:02}": (f"{i:02}", f"{i // 2}x", f"{i // 4}y", "*") for i in range(12)}
    places = {c: (c, {"a": "ab", "b": "ab"}.get(c, "cde"), "*") for c in "abcde"}
    drawn = (rng.choice(12, n, p=np.arange(1, 13) / 78), rng.choice(5, n), rng.choice(2, n))
    return Rows(
        [
            from_file("age", [f"{i:02}" for i in drawn[0]], leaves, folder / "age.csv"),
            from_file("place", ["abcde"[i] for i in drawn[1]], places, folder / "place.csv"),
            suppressed("sex", ["fm"[i] for i in drawn[2]]),
        ],
        [
            sensitive("ill", [int(i) for i in rng.choice(5, n, p=[0.4, 0.3, 0.1, 0.1, 0.1])]),
            sensitive("job", [int(i) for i in rng.choice(4, n)]),
        ],
    )


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("entities", [False, True])
def test_a_sample_is_of_whole_blocks(warehouse: Any, tmp_path: Path, entities: bool) -> None:
    rows = people(tmp_path, 240, 1)
    who = [i % 150 for i in range(rows.size)]
    filled = {column.name: column.values for column in rows.columns} | ({"who": who} if entities else {})
    more = {"entity": "who", "count": "entities"} if entities else {}
    seen = whole = 0
    with opened(warehouse("t", filled), "t", rows.attributes(), tmp_path, **more) as task:
        source = task.source.frequency_sets
        for node in rows.nodes():
            (all_of_them,), (some,) = source.blocks(node, [0]), source.blocks(node, [0], portion=SAMPLED)
            (again,) = source.blocks(node, [0], portion=SAMPLED)
            assert (again.keys.tolist(), again.rows.tolist()) == (some.keys.tolist(), some.rows.tolist())
            known = {tuple(key): i for i, key in enumerate(all_of_them.keys.tolist())}
            assert len(known) == len(all_of_them)
            for i, key in enumerate(some.keys.tolist()):
                j = known[tuple(key)]
                assert some.histogram(i) == all_of_them.histogram(j)
                assert some.rows[i] == all_of_them.rows[j]
            (plain,) = source.blocks(node, [], portion=SAMPLED)
            assert plain.keys.tolist() == some.keys.tolist()
            assert plain.rows.tolist() == some.rows.tolist()
            assert len(source.row_counts(node, portion=SAMPLED)) == len(some)
            least = int(np.median(all_of_them.rows)) + 1
            below = int(some.rows[some.rows < least].sum())
            assert source.sampled_below(node, least) == below <= source.small(node, least).small_n
            seen, whole = seen + len(some), whole + len(all_of_them)
        assert 0.1 * whole < seen < 0.7 * whole


PRIVACY = {
    "k": ([{"k_anonymity": {"k": 4}}], {}),
    "suppressed": ([{"k_anonymity": {"k": 4}}], {"suppression_limit": 20}),
    "entropy": ([{"entropy_l_diversity": {"l": 3, "sensitive": "ill"}}], {}),
    "closeness": (
        [{"t_closeness": {"t": 0.3, "distance": "equal", "sensitive": "ill"}}, {"k_anonymity": {"k": 2}}],
        {},
    ),
    "recursive": ([{"recursive_cl_diversity": {"c": 3, "l": 2, "sensitive": "ill"}}], {"suppression_limit": 9}),
    "two": (
        [{"distinct_l_diversity": {"l": 3, "sensitive": "ill"}}, {"entropy_l_diversity": {"l": 2, "sensitive": "job"}}],
        {},
    ),
    "joint": ([{"distinct_l_diversity": {"l": 2, "sensitive": ["ill", "job"]}}], {}),
}


@pytest.mark.parametrize("entities", [False, True])
def test_portions_are_all_blocks_once(warehouse: Any, tmp_path: Path, entities: bool) -> None:
    rows = people(tmp_path, 240, 1)
    who = [i % 150 for i in range(rows.size)]
    filled = {column.name: column.values for column in rows.columns} | ({"who": who} if entities else {})
    more = {"entity": "who", "count": "entities"} if entities else {}
    with opened(warehouse("t", filled), "t", rows.attributes(), tmp_path, **more) as task:
        source = task.source.frequency_sets
        for node in rows.nodes():
            (whole,) = source.blocks(node, [1])
            known = {tuple(key): (whole.histogram(i), whole.rows[i]) for i, key in enumerate(whole.keys.tolist())}
            found = {}
            for number in range(3):
                (part,) = source.blocks(node, [1], portion=Portion(number=number, of=3))
                keys = [tuple(key) for key in part.keys.tolist()]
                assert not set(keys) & set(found)
                found |= {key: (part.histogram(i), part.rows[i]) for i, key in enumerate(keys)}
            assert found == known


@pytest.mark.parametrize("entities", [False, True])
@pytest.mark.parametrize("asked", PRIVACY)
def test_what_does_not_fit_is_decided_portion_by_portion(
    warehouse: Any, tmp_path: Path, asked: str, entities: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    privacy, more = PRIVACY[asked]
    rows = people(tmp_path, 240, 2)
    who = [i % 200 for i in range(rows.size)]
    filled = {column.name: column.values for column in rows.columns} | ({"who": who} if entities else {})
    counted = {"entity": "who", "count": "entities"} if entities else {}
    url = warehouse("t", filled)
    found, most = [], []
    real = sets.FrequencySets._fetched

    def fetched(self: Any, *given: Any) -> Any:
        words, counts = real(self, *given)
        most[-1] = max(most[-1], len(counts["n"]))
        return words, counts

    monkeypatch.setattr(sets.FrequencySets, "_fetched", fetched)
    for rows_at_once in (None, 12):
        most.append(0)
        with opened(url, "t", rows.attributes(), tmp_path, privacy=privacy, **more, **counted) as task:
            of = task.source.frequency_sets
            if rows_at_once:
                of.memory = of._bytes * rows_at_once
            most[-1] = 0
            found.append([task.passes(node) for node in rows.nodes()])
    assert found[0] == found[1]
    assert True in found[0]
    if asked in ("entropy", "closeness", "recursive"):
        assert most[1] < most[0] / 3


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("entities", [False, True])
@pytest.mark.parametrize("asked", PRIVACY)
def test_hubs_and_samples_change_no_answer(
    warehouse: Any, tmp_path: Path, asked: str, entities: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    privacy, more = PRIVACY[asked]
    rows = people(tmp_path, 240, 2)
    who = [i % 200 for i in range(rows.size)]
    filled = {column.name: column.values for column in rows.columns} | ({"who": who} if entities else {})
    counted = {"entity": "who", "count": "entities"} if entities else {}
    url = warehouse("t", filled)
    found = []
    for strategy in ("chains", "by statements", "incognito", "exhaustive"):
        if strategy == "by statements":
            monkeypatch.setattr(sets.FrequencySets, "count_in_memory", lambda _: None)
            strategy = "chains"
        with opened(url, "t", rows.attributes(), tmp_path, privacy=privacy, **more, **counted) as task:
            result = run_search(task, strategy=strategy)
            found.append((result.minimal, result.chosen and result.chosen.node, result.metrics))
            counted_at_once = task.source.frequency_sets.max_concurrency
            assert counted_at_once == (3 if task.source.frequency_sets.session.engine == "duckdb" else 1)
            hubs_used = task.source.frequency_sets.cost(task.lattice.top) < rows.size
            assert hubs_used or strategy == "incognito"
    assert found == [found[0]] * 4
    assert found[0][0]


def test_a_hub_that_no_open_node_needs_goes_before_a_larger_one(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = people(tmp_path, 240, 2)
    url = warehouse("t", {column.name: column.values for column in rows.columns})
    with opened(url, "t", rows.attributes(), tmp_path) as task:
        of, lattice = task.source.frequency_sets, task.lattice
        fine, coarse = (1, 0, 0), (2, 1, 0)
        wanted = np.zeros(lattice.shape)
        wanted[1, 1, 0] = 1  # above the fine one alone
        of.plan_hubs(wanted)
        large, small = of.hub(fine), of.hub(coarse)
        assert (of.cost(fine), of.cost(coarse)) == (large, small)
        assert large > small
        monkeypatch.setattr(sets, "KEEP_ROWS", large + small)
        of.hub(lattice.top)
        assert (of.cost(fine), of.cost(coarse)) == (large, large)
