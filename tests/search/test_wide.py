"""Tables with so many quasi-identifiers that nothing may be held for each node of their lattice."""

from __future__ import annotations

import itertools
import random
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from engines import create_table
from integration.sources import opened, spec_text

from qblock.errors import InputError
from qblock.lattice import Lattice
from qblock.search import nodes
from qblock.search.compare import compare
from qblock.search.recodings import compare_recodings
from qblock.search.result import refusal
from qblock.search.run import run_search

pytestmark = pytest.mark.either_engine

RANGES = {"role": "quasi_identifier", "hierarchy": {"ranges": [2, 4, 8]}}
K3 = ({"k_anonymity": {"k": 3}},)
MAP = {"recoding": "multidimensional", "choose_by": "loss"}
ADDRESS_SPACE = 2_500_000_000
"""Bytes: less than one for each node of the lattices here, and enough for the libraries."""


def values(columns: int, rows: int, seed: int = 1) -> dict[str, list[Any]]:
    """Columns of numbers from 0 to 31 that go along with each other, and a sensitive one."""
    draw = random.Random(seed)
    centres = [draw.randrange(4) for _ in range(rows)]
    near = {f"q{i}": [8 * c + draw.randrange(8) for c in centres] for i in range(columns)}
    return near | {"s": [draw.choice("abc") for _ in range(rows)]}


def attributes(columns: int) -> dict[str, Any]:
    return {**{f"q{i}": RANGES for i in range(columns)}, "s": "sensitive"}


@pytest.fixture
def wide(warehouse: Any) -> str:
    """24 quasi-identifiers of five levels: 59,604,644,775,390,625 nodes."""
    url: str = warehouse("t", values(24, 150))
    return url


def test_the_nodes_come_by_height_and_then_by_levels() -> None:
    for heights in [(), (0,), (3,), (2, 0, 1), (1, 3, 2, 1)]:
        every = itertools.product(*(range(height + 1) for height in heights))
        assert list(Lattice(heights).nodes()) == sorted(every, key=lambda node: (sum(node), node))
    assert next(Lattice((9,) * 30).nodes()) == (0,) * 30


def test_a_map_of_a_wide_table_begins_at_the_top_alone(wide: str, tmp_path: Path) -> None:
    with opened(wide, "t", attributes(24), tmp_path, K3, search=MAP) as task:
        result = run_search(task)
        said = result.to_json()
    assert result.recoded is not None
    assert result.recoded.start == "top"
    boxes = result.recoded.assessment.counts.rows
    assert boxes.min() >= 3
    assert boxes.sum() == 150
    assert len(boxes) > 4
    assert said["full_domain"] is None
    assert (said["strategy"], said["optimality"], said["nodes_evaluated"]) == ("none", "none", 0)
    assert said["nodes_total"] == 5**24


def test_a_map_begins_at_a_node_too_where_the_lattice_is_small(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = warehouse("t", values(3, 60))
    with opened(url, "t", attributes(3), tmp_path, K3, search=MAP) as task:
        both = run_search(task).to_json()
    monkeypatch.setattr("qblock.search.run.MOST_BEFORE_A_MAP", 124)
    with opened(url, "t", attributes(3), tmp_path, K3, search=MAP) as task:
        alone = run_search(task).to_json()
    assert both["full_domain"] is not None
    assert alone["full_domain"] is None
    assert alone["chosen"]["start"] == "top"
    assert alone["chosen"]["metrics"]["loss"] >= both["chosen"]["metrics"]["loss"]


def test_a_wide_table_that_no_map_can_show_is_refused_by_what_its_top_reaches(wide: str, tmp_path: Path) -> None:
    with opened(wide, "t", attributes(24), tmp_path, ({"k_anonymity": {"k": 151}},), search=MAP) as task:
        result = run_search(task)
        assert result.chosen is None
        assert "k_anonymity asks k 151; the most general node satisfies k 150" in str(refusal(result))


def test_a_lattice_that_is_too_large_is_refused_with_what_makes_it_small_enough(wide: str, tmp_path: Path) -> None:
    with opened(wide, "t", attributes(24), tmp_path, K3) as task:
        before = task.statements
        with pytest.raises(InputError) as caught:
            run_search(task)
        assert task.statements == before
    said = str(caught.value)
    assert "59,604,644,775,390,625 nodes" in said
    assert "`search: {recoding: multidimensional}`" in said
    assert "`q0: identifying`" in said


def remedied(given: Mapping[str, Any], said: str) -> dict[str, Any]:
    """The attributes with the columns left out, or with the highest levels, that a refusal names."""
    remaining = dict(given)
    for name in given:
        if f"`{name}: identifying`" in said:
            remaining[name] = "identifying"
    return remaining


def test_what_a_refusal_names_is_enough(warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MOST_NODES", 500)
    given = attributes(5)
    given["q3"] = {"role": "quasi_identifier", "hierarchy": "suppress"}
    url = warehouse("t", values(5, 60))
    with opened(url, "t", given, tmp_path, K3) as task, pytest.raises(InputError) as caught:
        run_search(task)
    fewer = remedied(given, str(caught.value))
    assert fewer["q3"] == given["q3"]
    with opened(url, "t", fewer, tmp_path, K3) as task:
        assert len(task.lattice) <= 500
        assert f"leaves {len(task.lattice)} nodes" in str(caught.value)
        assert run_search(task).chosen is not None
    lowered = dict(given)
    for name in ("q0", "q1", "q2", "q4"):
        level = str(caught.value).split(f"` in the hierarchy of {name}")[0].rsplit("`max: ", 1)[1]
        lowered[name] = {"role": "quasi_identifier", "hierarchy": {"ranges": [2, 4, 8], "max": int(level)}}
    with opened(url, "t", lowered, tmp_path, K3) as task:
        assert len(task.lattice) <= 500
        run_search(task)


def test_a_memory_limit_bounds_the_lattice_and_the_remedy_raises_it_enough(warehouse: Any, tmp_path: Path) -> None:
    url = warehouse("t", values(10, 30))
    with opened(url, "t", attributes(10), tmp_path, K3, search={"memory_limit": "1GB"}) as task:
        said = nodes.too_large(task)
    assert said is not None
    assert "with this `search.memory_limit`" in said
    limit = said.split("`search: {memory_limit: ")[1].split("}")[0]
    with opened(url, "t", attributes(10), tmp_path, K3, search={"memory_limit": limit}) as task:
        assert nodes.too_large(task) is None


def test_every_node_is_listed_only_where_the_answer_fits_memory(wide: str, tmp_path: Path) -> None:
    with opened(wide, "t", attributes(24), tmp_path, K3, search=MAP) as task:
        with pytest.raises(InputError, match="`--nodes all` has an entry for each node"):
            run_search(task, all_nodes=True)
        with pytest.raises(InputError, match="a comparison has an entry for each node"):
            compare(task)


def test_both_recodings_of_a_wide_table_are_a_map_and_why_there_is_no_node(wide: str, tmp_path: Path) -> None:
    with opened(wide, "t", attributes(24), tmp_path, K3, search=MAP) as task:
        both = compare_recodings(task)
    assert both.full_domain is None
    assert both.multidimensional is not None
    assert both.refused is None
    assert "59,604,644,775,390,625 nodes" in both.why[0]


def test_closeness_to_every_generalization_is_refused_where_they_do_not_fit(wide: str, tmp_path: Path) -> None:
    closeness = ({"nt_closeness": {"n": 20, "t": 0.9, "sensitive": "s"}},)
    with opened(wide, "t", attributes(24), tmp_path, closeness) as task:
        assert task.assess(task.lattice.top).satisfied
        with pytest.raises(InputError, match="variant: own_or_top"):
            task.assess(task.lattice.bottom)


def test_levels_above_max_take_no_memory(wide: str, tmp_path: Path) -> None:
    entry = {"role": "quasi_identifier", "hierarchy": {"ranges": [2, 4, 8], "max": 0}}
    given = {**attributes(24), **{f"q{i}": entry for i in range(2, 24)}}
    with opened(wide, "t", given, tmp_path, ({"k_anonymity": {"k": 1}},)) as task:
        assert len(task.lattice) == 25
        assert run_search(task).minimal == [task.lattice.bottom]


PROGRAM = """
import sys
from qblock import Release
from qblock.errors import InputError

answer = Release(sys.argv[1]).search()
print(answer.chosen.boxes)
try:
    Release(sys.argv[2]).search()
except InputError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux alone")
def test_a_wide_table_is_recoded_or_refused_within_a_bound_of_memory(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'wide.duckdb'}"
    create_table(url, "t", values(24, 300))
    for name, search in (("map", MAP), ("node", {})):
        text = spec_text("t", attributes(24), K3, search=search, publish={"url": "duckdb:///out.duckdb"})
        (tmp_path / f"{name}.yaml").write_text(text.replace("${URL}", url))
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "map.yaml"), str(tmp_path / "node.yaml")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
        capture_output=True,
        text=True,
        check=True,
    )
    boxes, refused = ran.stdout.splitlines()
    assert int(boxes) > 4
    assert "59,604,644,775,390,625 nodes" in refused
