"""The worked scenarios of successive releases: every rule's verdict, from statements on both engines."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from qblock.errors import InputError
from qblock.search.run import open_task, run_search
from qblock.spec import read_spec
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import Mode

from .attacker import refused_seeds
from .register import Register, Row, each_release, joint_cells
from .versions import SPEC, make_spec, verdict

pytestmark = pytest.mark.either_engine

PRIVACY = "  - k_anonymity: {k: 2}\n  - distinct_l_diversity: {l: 2}"

IDS = (
    "two_nodes_register_pins",
    "xor_needlessly_refused",
    "pairs_pass_triple_discloses",
    "changed_value_latest",
    "changed_value_J1_J2_pass",
    "newcomers_same_value",
    "erasure_batch_same_value",
    "suppressed_for_diversity",
    "move_between_blocks",
    "all_changed_newcomer",
)
WITHOUT_REGISTER = ("hold_back_until_diverse", "minimality", "hold_back_by_size_only", "quarantine_of_sensitive_value")


def test_no_scenario_is_forgotten(scenarios) -> None:
    assert {s["id"] for s in scenarios} == {*IDS, *WITHOUT_REGISTER}
    assert {s["id"] for s in scenarios if "register_csv" in s} == set(IDS)


def test_the_gate_says_of_each_scenario_what_is_listed(crosswalk: Crosswalk, scenarios) -> None:
    known = {scenario["id"]: scenario for scenario in scenarios}
    for scenario_id in IDS:
        scenario = known[scenario_id]
        register = Register.of_csv(scenario["register_csv"], scenario["model"]["k"], scenario["model"]["distinct_l"])
        k, l = register.k, register.l  # noqa: E741
        modes: tuple[tuple[str, Mode | None], ...] = (("J1", "episodes"), ("J1-linked", "linked"), ("J1-linked", None))
        for rule, mode in modes:
            privacy = (f"k_anonymity: {{k: {k}}}", f"distinct_l_diversity: {{l: {l}}}")
            found = verdict(crosswalk, register, make_spec(privacy, release=f"{mode}_{scenario_id}"), mode)
            assert found.passed == (scenario["verdict"][rule] == "allow"), (scenario_id, rule)
            assert found.versions == len(register.versions)
            if mode == "episodes":
                cells = joint_cells(register)
                failing = [cell for cell in cells.values() if not register.passes(cell)]
                assert (found.cells, found.failing, found.rows) == (len(cells), len(failing), sum(map(len, failing)))
        assert each_release(register) == (scenario["verdict"]["each release alone"] == "allow")


WEAK = {
    "J1 on last values only (too weak)": lambda r: [r.with_last_values()],
    "J1 on last values, pairs of versions only (too weak)": lambda r: [p.with_last_values() for p in pairs_of(r)],
    "J1, pairs of versions only (too weak)": lambda r: pairs_of(r),
}


def pairs_of(register: Register) -> list[Register]:
    return [register.of_versions(pair) for pair in itertools.combinations(register.versions, 2)]


def test_rules_that_are_too_weak_say_what_is_listed(crosswalk: Crosswalk, scenarios) -> None:
    """The gate is asked about the registers that such a rule would see."""
    registers = {s["id"]: Register.of_csv(s["register_csv"]) for s in scenarios if "register_csv" in s}
    asked = [(i, name, one) for name, rule in WEAK.items() for i, r in registers.items() for one in rule(r)]
    refused = set()
    # One label for all that is suppressed: no block has as many rows as this k.
    for least in (None, 10**6):
        some = [(n, one) for n, (_, _, one) in enumerate(asked) if one.one_suppressed == (least is not None)]
        refused |= refused_seeds(crosswalk, make_spec(release=f"weak_{least}"), some, least, "episodes")
    for scenario in scenarios:
        if scenario["id"] in registers:
            for name in WEAK:
                mine = {n for n, (i, rule, _) in enumerate(asked) if (i, rule) == (scenario["id"], name)}
                assert (not mine & refused) == (scenario["verdict"][name] == "allow"), (scenario["id"], name)


def multiset_assignments(people: Sequence[str], values: Sequence[str]) -> list[dict[str, str]]:
    return [dict(zip(people, order, strict=True)) for order in set(itertools.permutations(values))]


def left(assignments: Iterable[dict[str, str]], people: Sequence[str]) -> dict[str, list[str]]:
    return {person: sorted({a[person] for a in assignments}) for person in people}


def read_values(text: str) -> list[str]:
    return [line.split(",")[1] for line in text.split()[1:]]


def test_waiting_until_diverse_tells_and_waiting_by_size_does_not(scenarios) -> None:
    """The attacker knows who waits, the policy, and what was published."""
    known = {scenario["id"]: scenario for scenario in scenarios}
    people = ("t", "u", "w")
    until = known["hold_back_until_diverse"]
    before, after = (Counter(read_values(until["published_csv"][i])) for i in (1, 2))
    new = sorted((after - before).elements())
    waited = [a for a in multiset_assignments(people, new) if a["t"] == a["u"]]
    assert left(waited, people) == until["candidates"]["register, knows the policy"]
    by_size = known["hold_back_by_size_only"]
    tables = [sorted(read_values(text)) for text in by_size["published_csv"]]
    assert tables[0] == tables[1] == tables[2]
    domain = by_size["domain"]
    failed = [dict(zip(people, v, strict=True)) for v in itertools.product(domain, repeat=3) if v[0] == v[1]]
    assert left(failed, people) == by_size["candidates"]["register, knows the policy"]


def test_the_gate_does_not_see_that_somebody_waited(crosswalk: Crosswalk, scenarios) -> None:
    """What waiting until diverse publishes passes J1: only the rule for cohorts keeps it from being published."""
    known = {scenario["id"]: scenario for scenario in scenarios}
    for scenario_id in ("hold_back_until_diverse", "hold_back_by_size_only"):
        scenario = known[scenario_id]
        rows = []
        for version, text in enumerate(scenario["published_csv"], 1):
            seen: Counter = Counter()
            for line in sorted(text.split()[1:]):
                seen[line] += 1
                first = seen[line] == 1 and line in scenario["published_csv"][0]
                person = f"p{line}" if first else f"n{line}{seen[line]}"
                rows.append(Row(person, version, *line.split(","), True))
        found = verdict(crosswalk, Register(tuple(rows)), make_spec(release=scenario_id))
        assert found.passed == (scenario["verdict"]["J1"] == "allow")


def test_that_a_node_is_minimal_tells_and_the_engine_says_so(warehouse, tmp_path: Path, scenarios) -> None:
    scenario = next(s for s in scenarios if s["id"] == "minimality")
    people = list(scenario["true_values"])
    blocks = {person: person[0] for person in people}
    published = sorted(read_values(scenario["published_csv"][0]))

    def passes(values: list[str]) -> bool:
        return len(values) >= 2 and len(set(values)) >= 2

    consistent = [
        a
        for a in multiset_assignments(people, published)
        if not all(passes([a[p] for p in people if blocks[p] == block]) for block in ("t", "u"))
    ]
    assert left(consistent, people) == scenario["candidates"]["register, knows the policy"]
    url = warehouse("people", {"id": people, "block": [blocks[p] for p in people], "value": list(published)})
    text = SPEC.format(release="r", joint="episodes", audience="", privacy=PRIVACY)
    text = text.replace('"duckdb:///w.duckdb"', '"${URL}"').replace("person", "id")
    spec = read_spec(text, tmp_path / "spec.yaml", {"URL": url})
    with open_task(spec) as task:
        found = run_search(task)
        assert found.levels() == {"block": 1}
        assert (found.choice, task.protected) == ("minimal", False)


def test_a_sensitive_value_that_nothing_covers_is_refused_never_left_out(warehouse, tmp_path: Path, scenarios) -> None:
    """Leaving out the rows with a new value would say who has it."""
    scenario = next(s for s in scenarios if s["id"] == "quarantine_of_sensitive_value")
    absent = set(scenario["true_values"])
    assert {person: ["new"] for person in absent} == scenario["candidates"]["register, knows the policy"]
    values = {"p1": "a", "p2": "b", **scenario["true_values"]}
    url = warehouse("people", {"id": list(values), "block": ["q"] * 4, "value": list(values.values())})
    text = SPEC.format(release="r", joint="episodes", audience="", privacy=PRIVACY)
    text = text.replace('"duckdb:///w.duckdb"', '"${URL}"').replace("person", "id")
    declared = text.replace("value: sensitive", "value: {role: sensitive, domain: [a, b]}")
    spec = read_spec(declared, tmp_path / "spec.yaml", {"URL": url})
    with pytest.raises(InputError, match=r"1 value of column value \(2 rows\) is missing"), open_task(spec):
        pass
    quarantined = declared.replace("domain: [a, b]", "domain: [a, b], uncovered: quarantine")
    with pytest.raises(InputError, match="uncovered"):
        read_spec(quarantined, tmp_path / "spec.yaml", {"URL": url})
