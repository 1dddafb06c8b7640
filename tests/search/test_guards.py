"""Predicates that people guard themselves: every block against the slow reference, for the people who are in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml
from reference import adversary, lattices
from reference.exact import Exact
from reference.tables import Block, Row, Table

from qblock.blocks import Blocks, Guards, Reference
from qblock.errors import InputError, ParameterError, Refused
from qblock.models import EpsilonPrivacy, parameters_of
from qblock.search.compare import compare
from qblock.search.compare_results import epsilons
from qblock.search.run import open_task, run_search
from qblock.spec import GuardTable, Spec, read_spec
from qblock.spec.schema import json_schema
from qblock.versions.gate import check_models

from .whole import load, rows_of, slow, text_of

pytestmark = pytest.mark.either_engine

Wish = tuple[str, str, int]
"""A person, a value to guard, and the number of the set that the value belongs to."""
Guarded = dict[str, list[frozenset[str]]]

WISHES: list[Wish] = [
    *(("p0", v, 1) for v in "uv"),
    ("p0", "w", 2),
    *(("p3", v, 7) for v in "vwx"),
    ("p5", "u", 1),
    ("p6", "u", 1),
    ("p8", "v", 1),
    ("p11", "x", 1),
    ("p11", "x", 2),
    ("p13", "w", 1),
    ("nobody", "u", 1),
]
KINDS: dict[str, dict[str, Any]] = {
    "adversary: III, prior: table": {"adversary": "III", "shape": adversary.observed},
    "adversary: III, known: 1": {"adversary": "III", "shape": adversary.uniform, "b": 1},
    "adversary: I, stubbornness: 30, prior: table": {
        "adversary": "I",
        "shape": adversary.observed,
        "sigma": Fraction(30),
    },
    "adversary: I, stubbornness: 5, at_most: false, known: 2": {
        "adversary": "I",
        "shape": adversary.uniform,
        "sigma": Fraction(5),
        "at_most": False,
        "b": 2,
    },
    "adversary: II, stubbornness: 9": {"adversary": "II", "sigma": Fraction(9)},
    "adversary: IV": {"adversary": "IV"},
}


def guarded(wishes: Sequence[Wish], groups: bool) -> Guarded:
    """What each person guards: the sets, or without groups each value for itself."""
    sets: dict[tuple[str, Any], set[str]] = {}
    for person, value, group in wishes:
        sets.setdefault((person, group if groups else value), set()).add(value)
    of_person: Guarded = {}
    for (person, _), values in sets.items():
        of_person.setdefault(person, []).append(frozenset(values))
    return of_person


def smallest(block: Block, wishes: Guarded, kind: dict[str, Any]) -> Exact:
    """The smallest epsilon of a block for the people in it; 1 where none of them guards anything."""
    predicates = [phi for row in block.rows for phi in wishes.get(row["person"], [])]
    if not predicates:
        return Fraction(1)
    shape = kind.get("shape")
    return adversary.epsilon_tightest(block, predicates=predicates, **{**kind, "shape": shape and shape(block.table)})


def put(
    warehouse: Callable[..., str], folder: Path, rows: Sequence[Row], entry: str, more: str = "", groups: bool = True
) -> Spec:
    """A spec with a table `wishes` of predicates beside the rows."""
    people, values, numbers = zip(*WISHES, strict=True)
    warehouse("wishes", {"who": people, "what": values, "set": numbers}, schema="private")
    group = ", group: set" if groups else ""
    table = f"predicates: {{table: private.wishes, entity: who, value: what{group}}}"
    return load(warehouse, folder, rows, [f"epsilon_privacy: {{{entry}, {table}, sensitive: s}}"], more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [True, False])
def test_every_block_is_guarded_for_its_people(warehouse: Any, tmp_path: Path, kind: str, groups: bool) -> None:
    rows = rows_of(2, 30)
    spec = put(warehouse, tmp_path, rows, f"epsilon: 2, {kind}", groups=groups)
    table, wishes = slow(rows), guarded(WISHES, groups)
    seen = set()
    with open_task(spec) as task:
        for node in task.lattice.nodes():
            blocks = sorted(smallest(block, wishes, KINDS[kind]) for block in table.blocks(node).values())
            assessment = task.assess(node)
            ((part,),) = assessment.counts.parts
            each = [part.model.tightest(part.blocks.select([i]), part.reference) for i in range(len(part.blocks))]
            assert sorted(tightest.values[0].value for tightest in each) == blocks
            assert assessment.tightest[0].values[0].value == blocks[-1]
            assert int(assessment.counts.failing.sum()) == sum(value > 2 for value in blocks)
            assert assessment.satisfied == (blocks[-1] <= 2)
            seen |= set(blocks)
    assert len(seen) > 2 or kind == "adversary: IV"


@pytest.mark.parametrize("limit", ["0", "5"])
@pytest.mark.parametrize("epsilon", ["1.5", "2", "3"])
def test_minimal_nodes_with_and_without_suppression(warehouse: Any, tmp_path: Path, epsilon: str, limit: str) -> None:
    rows = rows_of(5, 24)
    kind = "adversary: III, prior: table"
    spec = put(warehouse, tmp_path, rows, f"epsilon: {epsilon}, {kind}", f"suppression_limit: {limit}\n")
    table, wishes = slow(rows), guarded(WISHES, True)
    nodes = lattices.satisfying(table, lambda b: smallest(b, wishes, KINDS[kind]) <= Fraction(epsilon), int(limit))
    with open_task(spec) as task:
        result = run_search(task)
    assert result.outcome is not None
    assert result.outcome.satisfying() == sorted(nodes)
    assert result.minimal == lattices.minimal(nodes)
    assert result.outcome.optimality == "scanned"


def test_entities_with_several_rows(warehouse: Any, tmp_path: Path) -> None:
    rows = rows_of(7, 30, people=12)
    kind = "adversary: III, prior: table"
    spec = put(warehouse, tmp_path, rows, f"epsilon: 2, {kind}", "count: entities\n")
    table, wishes = slow(rows, entity="person"), guarded(WISHES, True)
    with open_task(spec) as task:
        for node in task.lattice.nodes():
            blocks = [smallest(block, wishes, KINDS[kind]) for block in table.blocks(node).values()]
            assert task.assess(node).tightest[0].values[0].value == max(blocks)


def test_people_are_matched_in_the_type_of_the_source(warehouse: Any, tmp_path: Path) -> None:
    rows = [{**row, "person": int(row["person"][1:])} for row in rows_of(2, 18)]
    kind = "adversary: III, prior: table"
    wishes = [w for w in WISHES if w[0] != "nobody"]
    people, values, numbers = zip(*((p[1:], v, n) for p, v, n in wishes), strict=True)
    warehouse("wishes", {"who": people, "what": values, "set": numbers})
    table = "predicates: {table: wishes, entity: who, value: what, group: set}"
    spec = load(warehouse, tmp_path, rows, [f"epsilon_privacy: {{epsilon: 2, {kind}, {table}, sensitive: s}}"])
    known = {int(person[1:]): sets for person, sets in guarded(wishes, True).items()}
    with open_task(spec) as task:
        node = task.lattice.bottom
        blocks = slow(rows).blocks(node).values()
        assert task.assess(node).tightest[0].values[0].value == max(smallest(b, known, KINDS[kind]) for b in blocks)


ENTRY = (
    "epsilon_privacy: {epsilon: 2, adversary: III, sensitive: s, predicates: {table: wishes, entity: who, value: %s}}"
)


@pytest.mark.parametrize(
    ("columns", "entry", "message"),
    [
        (
            {"who": ["p1"], "what": ["y"]},
            ENTRY % "what",
            "what of wishes is NULL or not in the domain of s in 1 row; correct the table",
        ),
        (
            {"who": ["p1"], "what": [None]},
            ENTRY % "what",
            "what of wishes is NULL or not in the domain of s in 1 row; correct the table",
        ),
        ({"who": [None], "what": ["u"]}, ENTRY % "what", "who of wishes is NULL in 1 row; correct the table"),
        ({"who": ["p1"], "what": ["u"]}, ENTRY % "why", "wishes has no column 'why'; its columns are who, what"),
        (
            {"who": ["p1"] * 4, "what": list("uvwx"), "g": [1] * 4},
            ENTRY % "what, group: g",
            "a person of wishes guards every value of s",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    warehouse: Any, tmp_path: Path, columns: dict[str, list[Any]], entry: str, message: str
) -> None:
    warehouse("wishes", columns)
    spec = load(warehouse, tmp_path, rows_of(2, 18), [entry])
    with pytest.raises(InputError) as caught, open_task(spec):
        pass
    assert str(caught.value).startswith(f"{tmp_path}/spec.yaml:12: ")
    assert message in str(caught.value)
    assert "p1" not in str(caught.value)


def test_nobody_guards_anything(warehouse: Any, tmp_path: Path) -> None:
    warehouse("wishes", {"who": ["nobody"], "what": ["u"]})
    with open_task(load(warehouse, tmp_path, rows_of(2, 18), [ENTRY % "what"])) as task:
        assert task.warnings == [f"{tmp_path}/spec.yaml:12: nobody in the source is in wishes, so nothing is guarded"]
        assert task.assess(task.lattice.bottom).tightest[0].values[0].value == 1


def counted(histograms: list[dict[int, int]], guards: list[list[int]]) -> Blocks:
    plain = Blocks.of(histograms)
    start = np.cumsum([0, *map(len, guards)]).astype(np.int64)
    return Blocks(
        plain.start,
        plain.value,
        plain.count,
        plain.rows,
        guards=Guards(start, np.array([g for gs in guards for g in gs], dtype=np.int64)),
    )


def of_one_person(block: Block, person: Row, phi: frozenset[str], kind: dict[str, Any]) -> Exact:
    """Definition of models.md section 6 for one individual and one predicate of their list: u is this person."""
    n, x, b = block.mass(), sum(block.count(value) for value in phi), kind.get("b", 0)
    if n <= b or kind["adversary"] == "IV":
        return math.inf
    shape, inside = kind.get("shape", adversary.uniform)(block.table), person[block.table.sensitive] in phi
    seen = [p_in for is_inside, p_in in adversary.beliefs_inside(block, phi, b) if is_inside == inside]
    if kind["adversary"] == "III":
        outside = [sum(shape[value] for value in phi)]
    else:
        members = (
            adversary.members_one(kind["sigma"], shape, kind.get("at_most", True))
            if kind["adversary"] == "I"
            else adversary.members_two(kind["sigma"], block.table.values())
        )
        outside = [(x - inside + sum(m[value] for value in phi)) / (n - 1 + sum(m.values())) for m in members]
    return max((adversary.needed(p_in, p_out) for p_in in seen for p_out in outside), default=Fraction(1))


def of_everybody(block: Block, wishes: Guarded, kind: dict[str, Any]) -> Exact:
    pairs = ((row, phi) for row in block.rows for phi in wishes.get(row["person"], []))
    return max((of_one_person(block, row, phi, kind) for row, phi in pairs), default=Fraction(1))


@pytest.mark.parametrize("kind", KINDS)
def test_never_less_than_what_the_people_of_a_block_ask_for_and_no_more_where_they_guard_their_own_value(
    kind: str,
) -> None:
    wishes, asks, above = guarded(WISHES, True), KINDS[kind], 0
    for seed in range(2, 8):
        rows = rows_of(seed, 60)
        own: Guarded = {row["person"]: [frozenset([row["s"], "x"])] for row in rows[::4]}
        table = slow(rows)
        for block in (block for node in table.nodes() for block in table.blocks(node).values()):
            bound, exact = smallest(block, wishes, asks), of_everybody(block, wishes, asks)
            assert bound >= exact
            above += bound > exact
            assert smallest(block, own, asks) == of_everybody(block, own, asks)
    if asks["adversary"] in ("I", "II"):
        assert above
    elif not asks.get("b"):
        assert not above


D = (Fraction(12000), Fraction(18000))
RACHEL = {
    "I": ({"stubbornness": 30000, "at_most": False, "prior": "values"}, Fraction(200000, 49999), Fraction(1)),
    "II": ({"stubbornness": 30000}, Fraction(319990, 49999), Fraction(49999, 20000)),
    "III": ({"prior": "values"}, Fraction(6), Fraction(1)),
    "IV": ({}, math.inf, math.inf),
}
"""EP Example 3 by class: what a list of flu and cancer asks for, and one of cancer alone."""


@pytest.mark.parametrize("kind", RACHEL)
def test_rachels_list_in_the_table_of_the_paper(kind: str) -> None:
    parameters, both, cancer = RACHEL[kind]
    model = EpsilonPrivacy(epsilon=2, adversary=kind, predicates="guarded", **parameters)
    counts = [{0: 200, 1: 300}, {0: 1800, 1: 2700}, {0: 18000, 1: 2000}]
    reference = Reference(25000, ("Flu", "Cancer"), np.array([20000, 5000]), prior=D, guarded=((0,), (1,)))
    women: list[Row] = [*({"person": i, "s": "Flu"} for i in range(18000)), *([{"person": -1, "s": "Cancer"}] * 2000)]
    block = Block(Table(women, domain=("Flu", "Cancer")), women)
    shape = {"Flu": Fraction(2, 5), "Cancer": Fraction(3, 5)}
    slowly = {"adversary": kind, "shape": lambda _: shape, "sigma": Fraction(30000), "at_most": False}
    for guards, expected in (([0, 1], both), ([1], cancer)):
        assert model.tightest(counted(counts, [[], [], guards]), reference).values[0].value == expected
        phis = [frozenset([("Flu", "Cancer")[place]]) for place in guards]
        assert smallest(block, {0: phis}, slowly) == expected  # type: ignore[dict-item]
        own = of_everybody(block, {0: phis}, slowly)  # type: ignore[dict-item]
        assert own == (Fraction(2000 * 49999, 20000 * 2001) if (kind, guards) == ("II", [1]) else expected)
    everybody = counted(counts, [[0, 1]] * 3)
    assert model.tightest(everybody, reference).values[0].value == {"II": Fraction(30499, 500)}.get(kind, both)


def test_not_monotone_the_union_guards_over_the_rows_of_those_who_guard_nothing() -> None:
    model = EpsilonPrivacy(epsilon=Fraction(3, 2), adversary="III", predicates="guarded")
    assert not model.monotone.generalization
    assert not model.monotone.suppression
    parts, union = counted([{0: 1, 1: 1}, {0: 10}], [[0], []]), counted([{0: 11, 1: 1}], [[0]])
    reference = Reference(12, ("u", "v"), np.array([11, 1]), guarded=((0,),))
    assert model.passes(parts, reference).all()
    assert model.tightest(union, reference).values[0].value == Fraction(12, 2)
    assert EpsilonPrivacy(epsilon=2, adversary="III").monotone.generalization


def test_blocks_carry_their_guards_through_a_selection() -> None:
    blocks = counted([{0: 1}, {0: 2, 1: 1}, {1: 3}], [[0, 1], [], [1]])
    chosen = blocks.select([2, 0])
    assert chosen.guards is not None
    assert chosen.guards.start.tolist() == [0, 1, 3]
    assert chosen.guards.predicate.tolist() == [1, 0, 1]


def test_the_model_needs_the_table() -> None:
    model = EpsilonPrivacy(epsilon=2, adversary="III", predicates="guarded")
    assert "guards" in model.needs
    with pytest.raises(ParameterError, match="a table of what each person guards"):
        model.validate(Reference(2, ("u", "v"), np.array([1, 1])))


def test_the_spec_names_the_table(tmp_path: Path) -> None:
    url = "duckdb:///a.duckdb"
    spec = read_spec(text_of(url, [ENTRY % "what, group: g"]), "spec.yaml", {})
    (requirement,) = spec.privacy
    assert requirement.guards == GuardTable("wishes", "who", "what", "g")
    assert parameters_of(requirement.model)["predicates"] == "guarded"
    schema = json_schema()
    jsonschema.validate(yaml.safe_load(text_of(url, [ENTRY % "what"])), schema)
    for entry, message in (
        (ENTRY % "what, grup: g", "grup is not a key of predicates; did you mean group? valid: table, entity"),
        (ENTRY.replace(", entity: who", "") % "what", "entity is missing; write {table: TABLE"),
        ("epsilon_privacy: {epsilon: 2, adversary: III, sensitive: s, predicates: guarded}", "needs its table"),
    ):
        with pytest.raises(InputError, match=r"^spec\.yaml:12: ") as caught:
            read_spec(text_of(url, [entry]), "spec.yaml", {})
        assert message in str(caught.value)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(yaml.safe_load(text_of(url, [entry])), schema)
    without = text_of(url, [ENTRY % "what"]).replace("entity: person\n", "")
    with pytest.raises(InputError, match="a person's predicates need `entity: COLUMN` in the spec"):
        read_spec(without, "spec.yaml", {})


def test_a_comparison_tells_tables_of_predicates_apart(warehouse: Any, tmp_path: Path) -> None:
    rows, kind = rows_of(2, 30), "adversary: III, prior: table"
    url = put(warehouse, tmp_path, rows, f"epsilon: 2, {kind}").source.url.url
    entries = [
        f"epsilon_privacy: {{epsilon: 2, {kind}, sensitive: s, "
        f"predicates: {{table: private.wishes, entity: who, value: what{group}}}}}"
        for group in (", group: set", "")
    ]
    text = text_of(url, entries)
    with open_task(read_spec(text, tmp_path / "spec.yaml", {})) as task:
        comparison = compare(task, sensitives=["s"])
    ((_, adversaries),) = epsilons(comparison)
    guarding = [i for i, definition in adversaries if definition.requested]
    assert len(guarding) == 2
    table = slow(rows)
    for row in comparison.rows:
        for i, groups in zip(guarding, (True, False), strict=True):
            blocks = table.blocks(row.node).values()
            expected = max(smallest(block, guarded(WISHES, groups), KINDS[kind]) for block in blocks)
            assert row.values[i][0].value == expected


def test_versions_are_not_checked_together_for_it() -> None:
    spec = read_spec(text_of("duckdb:///a.duckdb", [ENTRY % "what"]), "spec.yaml", {})
    with pytest.raises(Refused, match="epsilon_privacy is defined by what the people of each block guard"):
        check_models(spec)
    check_models(read_spec(text_of("duckdb:///a.duckdb", ["k_anonymity: {k: 2}"]), "spec.yaml", {}))


def test_the_reference_takes_a_blocks_own_people_only() -> None:
    rows: list[Row] = [{"person": "p5", "s": "u"}, {"person": "p1", "s": "v"}]
    table = Table(rows, domain=("u", "v"))
    wishes = guarded(WISHES, True)
    assert smallest(Block(table, rows), wishes, KINDS["adversary: III, known: 1"]) > 1
    assert smallest(Block(table, rows[1:]), wishes, KINDS["adversary: III, known: 1"]) == 1
