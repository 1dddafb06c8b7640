"""The reports from the crosswalk of both engines: the same counts as from the register, and the worked examples."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from qblock.hierarchy import from_rows
from qblock.versions.bounds import Change, bounds, fewest, supports
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import VersionKey
from qblock.versions.explanation import _margins, _rows, _vectors, evidence_of, explanation, joined_labels
from qblock.versions.gate import check
from qblock.versions.recorded import recorded

from .cases import CASES
from .histories import history
from .register import Register
from .test_explain import evidence_of as plain_evidence
from .versions import candidate_of, make_spec, publish, references

pytestmark = pytest.mark.either_engine

BY_NAME = {case.name: case for case in CASES}


def gathered(crosswalk: Crosswalk, release: str):
    versions = recorded(crosswalk, release)
    rows = _rows(crosswalk, versions, None)
    return evidence_of(*_vectors(crosswalk, rows, len(versions)), _margins(crosswalk, rows), 0)


def canonical(evidence, failed):
    """The same whatever the blocks are numbered."""
    sets = {(v, "P", b): tuple(m.tolist()) for (v, b), m in evidence.margins.items()}
    sets |= {(v, "S", b): tuple(m.tolist()) for (v, b), m in failed.items()}
    cells = [
        (tuple(label and (label[0], sets[v, *label]) for v, label in enumerate(vector)), n)
        for vector, n in zip(evidence.vectors, evidence.rows.tolist(), strict=True)
    ]
    return sorted(cells, key=str), sorted(sets.values()), evidence.values


def test_the_counts_of_the_crosswalk_are_those_of_the_register(crosswalk: Crosswalk) -> None:
    changing = [seed for seed in range(8, 200) if len(history(seed).episodes) > len(history(seed).people) + 2]
    for seed in (*range(8), *changing[:4]):
        register = history(seed)
        publish(crosswalk, register, make_spec(release=f"h{seed}"))
        assert canonical(*gathered(crosswalk, f"h{seed}")) == canonical(*plain_evidence(register)), seed


def test_the_reports_say_of_the_worked_scenarios_what_is_listed(crosswalk: Crosswalk, scenarios) -> None:
    for number, scenario in enumerate(scenarios):
        if "register_csv" not in scenario:
            continue
        register = Register.of_csv(scenario["register_csv"], 2, 2)
        spec = make_spec(release=f"s{number}")
        publish(crosswalk, register, spec)
        one_block = from_rows(["block", "all"], [(b, "*") for b in blocks(register)], attribute="block")
        found = explanation(crosswalk, spec, [one_block], 2)
        (left,) = found.left
        verdict = scenario["verdict"]
        assert left.supports == scenario["smallest"]["target_only"], scenario["id"]
        assert (left.supports >= 2) == (verdict["J2"] == "allow"), scenario["id"]
        assert (left.bounds >= 2) == (verdict["J3"] == "allow"), scenario["id"]
        if scenario["id"] in ("move_between_blocks", "all_changed_newcomer", "newcomers_same_value"):
            assert (not found.changes) == (verdict["delta check"] == "allow"), scenario["id"]


def blocks(register: Register) -> list[str]:
    return sorted({row.block for row in register.rows} - {"*"}) or ["-"]


def test_the_worked_releases(crosswalk: Crosswalk, golden, shared) -> None:
    for name in ("disclosing", "xor"):
        entry = golden[f"releases.{name}"]
        with (shared / "golden" / entry["file"]).open(encoding="utf-8", newline="") as file:
            people = list(csv.DictReader(file))
        lines = [
            f"p{i},{version},{column}={person[column]},{person['s']},yes"
            for version, column in ((1, "x"), (2, "y"))
            for i, person in enumerate(people)
        ]
        register = Register.of_csv("person,version,block,value,published\n" + "\n".join(lines))
        spec = make_spec(release=name)
        verdicts = publish(crosswalk, register, spec)
        expected = entry["expected"]
        assert [v.passed for v in verdicts] == [True, False]
        assert min(expected["distinct_l of each"]) == 2
        quantities = references(spec, [row for row in register.rows if row.version == 2])
        for l in (1, 2):  # noqa: E741
            asked = make_spec(release=name, privacy=[f"distinct_l_diversity: {{l: {l}}}"])
            assert check(crosswalk, asked, quantities[1:]).passed == (l <= expected["distinct_l at the meet (J1)"])
        evidence, _ = gathered(crosswalk, name)
        assert fewest(supports(evidence), evidence) == expected["joint distinct_l J2"]
        found = bounds(evidence)
        labels = [{0: "x=0", 1: "x=1"}, {0: "y=0", 1: "y=1"}]
        for cell, vector in enumerate(evidence.vectors):
            named = ",".join(labels[v][label[1]] for v, label in enumerate(vector))
            listed = expected["iterated bounds of n(cell,s) (J3)"][named]
            for i, value in enumerate(evidence.values):
                assert [found.lower[cell, i], found.upper[cell, i]] == listed[value], (name, named, value)


def test_an_explanation_names_what_too_few_people_did(crosswalk: Crosswalk) -> None:
    register = BY_NAME["a lone mover"].register
    spec = make_spec()
    publish(crosswalk, register.of_versions([1]), spec)
    hierarchy = from_rows(["block", "all"], [("g", "*"), ("h", "*")], attribute="block")
    rows = [row for row in register.rows if row.version == 2]
    found = candidate_of(crosswalk, rows, 2, 2)
    said = explanation(crosswalk, spec, [hierarchy], 2, found)
    assert said.compared == 1
    assert said.changes == (
        (VersionKey("r", 1), Change("moved into", "h", 1)),
        (VersionKey("r", 1), Change("moved out of", "g", 1)),
    )
    assert said.lines()[0] == "since version 1 of r too few people moved into 1 block, moved out of 1 block"
    assert any("leaves an attacker at least" in line for line in said.lines())
    assert said.versions == (VersionKey("r", 1), VersionKey("r", 2))


def test_a_history_with_too_many_cells_is_not_explained(crosswalk: Crosswalk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qblock.versions.explanation.LIMIT", 3)
    spec = make_spec()
    publish(crosswalk, BY_NAME["two nodes that cross"].register, spec)
    hierarchy = from_rows(["block", "all"], [(b, "*") for b in "ABCD"], attribute="block")
    found = explanation(crosswalk, spec, [hierarchy], 2)
    assert not found.explained
    assert found.left == found.components == ()
    assert found.lines()[-1] == "there are more than 3 joint cells: too many to say which values remain in each"


def test_labels_in_the_join_of_two_nodes() -> None:
    zips = from_rows(["leaf", "two", "all"], [("11", "1*", "*"), ("12", "1*", "*")], attribute="zip")
    sex = from_rows(["leaf", "all"], [("f", "*"), ("m", "*")], attribute="sex")
    labels = {0: ["11", "*"], 1: ["12", "*"]}
    assert joined_labels(labels, [zips, sex], (0, 1), (1, 1)) == {0: "1*, *", 1: "1*, *"}
    assert joined_labels({0: ["13", "*"]}, [zips, sex], (0, 1), (1, 1)) is None
    assert np.array_equal(zips.codes[2], [0, 0])
