"""k-anonymity of households or other groups, too: k of them beside k people (docs/models.md section 2)."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.cases import quick

from qblock.blocks import Blocks, Reference
from qblock.cli.app import run
from qblock.errors import InputError
from qblock.models import KAnonymity
from qblock.models.examples import in_words
from qblock.search.audit import audit_spec
from qblock.search.compare import collect
from qblock.search.recodings import compare_recodings
from qblock.search.run import open_task, run_search
from qblock.spec import read_spec

from .whole import HIERARCHIES, load, rows_of, text_of

Row = dict[str, Any]
NODES = list(itertools.product(range(3), range(2)))
ALONE = "versions: {joint: none}\n"
GROUPS = "groups: home\n" + ALONE


def housed(seed: int, size: int, homes: int, people: int | None = None) -> list[Row]:
    """Random rows, each of one of so many households; some are of none, and one household has the name ''."""
    draw = random.Random(seed)
    names = ["", *(f"h{i}" for i in range(1, homes))]
    return [row | {"home": draw.choice([*names, None])} for row in rows_of(seed, size, people)]


def slow_blocks(rows: Sequence[Row], node: Sequence[int], *, entities: bool = False) -> list[tuple[int, int]]:
    """For each block its rows, and the less of its people and its groups: members of sets, one row after the other."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(HIERARCHIES[name][row[name]][level] for name, level in zip("ab", node, strict=True))].append(row)
    result = []
    for members in found.values():
        people = len({row["person"] for row in members}) if entities else len(members)
        homes = []
        for row in members:
            if row["home"] not in homes:
                homes.append(row["home"])
        result.append((len(members), min(people, len(homes))))
    return result


def verdict(blocks: Sequence[tuple[int, int]], k: int, budget: int) -> tuple[bool, int, int]:
    """Whether what is left without the failing blocks may be published, its least count, and the rows left out."""
    out = sum(rows for rows, least in blocks if least < k)
    satisfied = out <= budget
    left = [least for _, least in blocks if least >= k or not satisfied]
    return satisfied, min(left), out if satisfied else 0


CASES = [
    ("", {}, 0),
    ("suppression_limit: 9\n", {}, 9),
    ("count: entities\n", {"people": 30, "entities": True}, 0),
    ("count: entities\nsuppression_limit: 0.2\n", {"people": 30, "entities": True}, 10),
]


@pytest.mark.either_engine
@pytest.mark.parametrize("roll_up", ["warehouse", "local"])
@pytest.mark.parametrize(("more", "how", "budget"), CASES, ids=["rows", "suppressed", "entities", "both"])
def test_a_search_and_an_audit_count_as_the_slow_count_does(
    warehouse: Any, tmp_path: Path, roll_up: str, more: str, how: dict[str, Any], budget: int
) -> None:
    entities = bool(how.get("entities"))
    rows = housed(11, 50, 4, how.get("people"))
    more += f"search: {{roll_up: {roll_up}}}\n"
    spec = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 3}"], more + GROUPS)
    blocks = {node: slow_blocks(rows, node, entities=entities) for node in NODES}
    expected = {node: verdict(blocks[node], 3, budget) for node in NODES}
    with open_task(spec) as task:
        outcomes = [run_search(task, strategy=name).outcome for name in ("chains", "incognito", "exhaustive")]
        assessed = {node: task.assess(node) for node in task.lattice.nodes()}
    found = {node: (a.satisfied, a.tightest[0].values[0].value, a.suppressed) for node, a in assessed.items()}
    assert found == expected
    for outcome in outcomes:
        assert outcome is not None
        assert outcome.satisfying() == sorted(node for node in NODES if expected[node][0])
    apart = [row | {"home": i} for i, row in enumerate(rows)]
    assert any(verdict(slow_blocks(apart, node, entities=entities), 3, budget) != expected[node] for node in NODES)
    assert len({satisfied for satisfied, _, _ in expected.values()}) == 2
    (first, *_) = audit_spec(spec, "0,0")["tightest"]
    assert (first["values"][0]["value"], first["holds"]) == (expected[0, 0][1], expected[0, 0][1] >= 3)


@pytest.mark.either_engine
def test_an_example_by_hand(warehouse: Any, tmp_path: Path) -> None:
    """a01: a couple and a child of one household, and two rows of none: 5 people, 2 groups. a23: one '' and one of none
    and three of h2: 5 people, 3 groups, since '' is a household and NULL is not."""
    homes = ["h1", "h1", "h1", None, None, "", None, "h2", "h2", "h2"]
    rows = [
        {"person": f"p{i}", "a": "a0" if i < 5 else "a2", "b": "b0", "s": "u", "y": 1, "home": home}
        for i, home in enumerate(homes)
    ]
    spec = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 3}"], GROUPS + "suppression_limit: 5\n")
    with open_task(spec) as task:
        assert dict(zip(*_counted(task, (1, 0)), strict=True)) == {0: 2, 2: 3}
        assessment = task.assess((1, 0))
        assert (assessment.satisfied, assessment.suppressed, assessment.kept.tolist()) == (True, 5, [False, True])
        # Together: h1, none, '' and h2. A sum over the blocks would say 5.
        assert task.assess((2, 0)).tightest[0].values[0].value == 4
        assert not task.sizes_only


@pytest.mark.either_engine
def test_rows_that_wait_are_of_no_group(warehouse: Any, tmp_path: Path) -> None:
    """A leaf that the hierarchy lacks: its row, of a household of its own, is not among those that are counted."""
    rows = [
        {"person": f"p{i}", "a": a, "b": "b0", "s": "u", "y": 1, "home": home}
        for i, (a, home) in enumerate([("a0", "h1"), ("a1", "h1"), ("a2", "h2"), ("new", "h3")])
    ]
    url = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 2}"], GROUPS).source.url.url
    text = text_of(url, ["k_anonymity: {k: 2}"], GROUPS).replace(
        "{file: a.csv}", "{file: a.csv}, uncovered: quarantine"
    )
    with open_task(read_spec(text, tmp_path / "spec.yaml", {})) as task:
        assert [task.groups(node, task.counts(node).keys).tolist() for node in ((1, 0), (2, 0))] == [[1, 1], [2]]


@pytest.mark.either_engine
def test_somebody_of_two_households_is_one_person(warehouse: Any, tmp_path: Path) -> None:
    """A child who is counted in both parents' households: 2 groups, 1 person."""
    rows = [{"person": "p", "a": "a0", "b": "b0", "s": "u", "y": 1, "home": home} for home in ("h1", "h2")]
    spec = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 2}"], GROUPS + "count: entities\n")
    with open_task(spec) as task:
        assessment = task.assess((0, 0))
        assert task.groups((0, 0), assessment.counts.keys).tolist() == [2]
        assert (assessment.satisfied, assessment.tightest[0].values[0].value) == (False, 1)


def _counted(task: Any, node: tuple[int, ...]) -> tuple[list[int], list[int]]:
    keys = task.counts(node).keys
    return keys[:, 0].tolist(), task.groups(node, keys).tolist()


tables = st.lists(st.tuples(*[st.integers(0, 2)] * 3, st.none() | st.integers(0, 4)), min_size=1, max_size=25)


def grouped(rows: Sequence[tuple[Any, ...]]) -> Blocks:
    members: dict[tuple[int, ...], list[Any]] = defaultdict(list)
    for *key, home in rows:
        members[tuple(key)].append(home)
    sizes, homes = (
        np.array([f(members[key]) for key in sorted(members)], np.int64) for f in (len, lambda m: len({*m}))
    )
    number = np.arange(len(sizes), dtype=np.int64)
    blocks = Blocks.from_pairs(number, np.zeros_like(number), sizes, np.array(sorted(members), np.int64))
    return Blocks(blocks.start, blocks.value, blocks.count, blocks.rows, blocks.keys, groups=homes)


@quick
@given(rows=tables, k=st.integers(1, 4), drop=st.integers(0, 2))
def test_generalizing_and_leaving_out_keep_it_and_it_implies_k_people(
    rows: list[tuple[Any, ...]], k: int, drop: int
) -> None:
    """A law: what passes is a union of passing blocks or larger above, so no more rows fail there."""
    model, nothing = KAnonymity(k=k), Reference(len(rows), (), np.zeros(0, np.int64))
    fine = grouped(rows)
    coarse = grouped([(min(a, 1), b, 0, home) for a, b, _, home in rows])
    failing = [int(blocks.rows[~model.passes(blocks, nothing)].sum()) for blocks in (fine, coarse)]
    assert failing[1] <= failing[0]
    assert model.tightest(coarse, nothing).values[0].value >= model.tightest(fine, nothing).values[0].value
    passing = model.passes(fine, nothing)
    assert (fine.rows[passing] >= k).all()
    assert fine.groups is not None
    assert (fine.groups[passing] >= k).all()
    assert ((fine.rows < k) | (fine.groups < k))[~passing].all()
    left = fine.select(np.flatnonzero(passing)[drop:])
    assert model.passes(left, nothing).all()
    assert model.monotone.generalization
    assert model.monotone.suppression


def test_what_it_means_says_both() -> None:
    assert in_words(KAnonymity(k=3), groups=True).endswith("look the same, of at least 3 households or other groups")
    assert "households" not in in_words(KAnonymity(k=3))


WRONG = [
    ("groups: home\n", ["k_anonymity: {k: 3}"], "groups needs `versions: {joint: none}`"),
    (GROUPS + "search: {recoding: multidimensional}\n", ["k_anonymity: {k: 3}"], "`search: {recoding: full_domain}`"),
    (GROUPS, ["distinct_l_diversity: {l: 2, sensitive: s}"], "add `k_anonymity: {k: 5}` to privacy"),
    (GROUPS, ["k_anonymity: {k: 3, any: 1}"], "add `k_anonymity: {k: 5}` to privacy"),
    ("groups: person\n" + ALONE, ["k_anonymity: {k: 3}"], "another column than `entity`"),
    *(
        (f"groups: {name}\n" + ALONE, ["k_anonymity: {k: 3}"], f"the role of {name} is {role}; make it identifying")
        for name, role in (("a", "quasi_identifier"), ("s", "sensitive"))
    ),
]


@pytest.mark.either_engine
@pytest.mark.parametrize(("more", "privacy", "said"), WRONG)
def test_what_cannot_be_counted_is_refused(
    warehouse: Any, tmp_path: Path, more: str, privacy: list[str], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        load(warehouse, tmp_path, housed(7, 12, 3), privacy, more)
    assert said in str(refused.value)


@pytest.mark.either_engine
def test_a_column_that_is_not_there_and_a_comparison_of_both_recodings_are_refused(
    warehouse: Any, tmp_path: Path
) -> None:
    rows = housed(7, 12, 3)
    spec = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 1}"], GROUPS)
    with open_task(spec) as task, pytest.raises(InputError, match="the boxes of a map are not cut by groups"):
        compare_recodings(task)
    said = "has no column 'hom'; did you mean home"
    with pytest.raises(InputError, match=said), open_task(replace(spec, groups="hom")):
        pass


@pytest.mark.either_engine
def test_a_comparison_tells_it_from_k_people(warehouse: Any, tmp_path: Path) -> None:
    spec = load(warehouse, tmp_path, housed(7, 30, 3), ["k_anonymity: {k: 2}"], GROUPS)
    with open_task(spec) as task:
        definitions, _ = collect(task.source, ())
    names = {d.name: d.requirement.groups for d in definitions if d.model.name == "k_anonymity"}
    assert names == {"k_anonymity": False, "k_anonymity(k=2) of groups": True}


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("homes", "said"),
    [("xxyy", "2 of 2 blocks are"), ("xxyz", "1 of 2 blocks is"), ("xyzx", None)],
)
def test_an_audit_says_how_many_blocks_are_of_one_group(
    warehouse: Any, tmp_path: Path, homes: str, said: str | None
) -> None:
    rows = [
        {"person": f"p{i}", "a": "a0" if i < 2 else "a1", "b": "b0", "s": "u", "y": 1, "home": home}
        for i, home in enumerate(homes)
    ]
    spec = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 1}"], GROUPS)
    warnings = [line for line in audit_spec(spec)["warnings"] if "group" in line]
    if said is None:
        assert warnings == []
    else:
        (line,) = warnings
        assert line.startswith(f"{said} of one group each (one value of home)")
        assert "`k_anonymity: {k: 2}`" in line


@pytest.mark.either_engine
def test_commands_say_it_and_refuse_with_2(warehouse: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = housed(11, 50, 7)
    path = tmp_path / "spec.yaml"
    url = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 3}"], GROUPS).source.url.url
    path.write_text(text_of(url, ["k_anonymity: {k: 3}"], GROUPS), "utf-8")
    assert run(["search", str(path), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["chosen"]["tightest"]
    assert entry["meaning"].endswith("of at least 3 households or other groups")
    assert entry["asked"] == {"k": 3, "groups": True}
    least = entry["values"][0]["value"]
    assert run(["search", str(path)]) == 0
    assert f"in groups of at least {least} rows, of as many households" in capsys.readouterr().out
    assert run(["search", str(path), "--explain-sql"]) == 0
    assert "households or other groups in the blocks" in capsys.readouterr().out
    path.write_text(text_of(url, ["k_anonymity: {k: 3}"], "groups: home\n"), "utf-8")
    assert run(["search", str(path)]) == 2
    assert "groups needs `versions: {joint: none}`" in capsys.readouterr().err
