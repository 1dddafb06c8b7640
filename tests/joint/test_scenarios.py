"""The worked scenarios of successive releases: every rule's verdict, from statements on both engines."""

from __future__ import annotations

import pytest

from qblock.release.joint.book import Book

from .register import Register, each_release, joint_cells
from .versions import make_spec, verdict

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


@pytest.mark.parametrize("scenario_id", IDS)
def test_the_gate_says_of_a_scenario_what_is_listed(book: Book, scenarios, scenario_id: str) -> None:
    scenario = next(s for s in scenarios if s["id"] == scenario_id)
    register = Register.of_csv(scenario["register_csv"], scenario["model"]["k"], scenario["model"]["distinct_l"])
    k, l = register.k, register.l  # noqa: E741
    for rule, joint in (("J1", "episodes"), ("J1-linked", "linked")):
        privacy = (f"k_anonymity: {{k: {k}}}", f"distinct_l_diversity: {{l: {l}}}")
        spec = make_spec(joint, privacy, release=joint)
        found = verdict(book, register, spec)
        assert found.passed == (scenario["verdict"][rule] == "allow"), rule
        assert found.versions == len(register.versions)
        if joint == "episodes":
            cells = joint_cells(register)
            failing = [cell for cell in cells.values() if not register.passes(cell)]
            assert (found.cells, found.failing, found.rows) == (len(cells), len(failing), sum(map(len, failing)))
    assert each_release(register) == (scenario["verdict"]["each release alone"] == "allow")
