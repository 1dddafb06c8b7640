"""The plain rules and attackers say of the worked scenarios what is listed there."""

from __future__ import annotations

from .register import (
    Register,
    candidates,
    each_release,
    j1,
    j1_versions,
    linkable,
    pairs,
    target_only,
)

RULES = {
    "each release alone": each_release,
    "J1 on last values only (too weak)": lambda r: j1(r.with_last_values()),
    "J1 on last values, pairs of versions only (too weak)": lambda r: pairs(r, lambda p: j1(p.with_last_values())),
    "J1 each version of the value": lambda r: j1_versions(r.weak(), changes=False),
    "J1": j1,
    "J1, pairs of versions only (too weak)": lambda r: pairs(r, j1),
    "J1-linked": lambda r: j1_versions(r, changes=True),
}


def test_the_rules_and_attackers_agree_with_the_scenarios(scenarios) -> None:
    for scenario in scenarios:
        if "register_csv" not in scenario:
            continue
        register = Register.of_csv(scenario["register_csv"], 2, 2)
        for rule, verdict in scenario["verdict"].items():
            if rule in RULES:
                assert RULES[rule](register) == (verdict == "allow"), (scenario["id"], rule)
        listed = scenario["candidates"]
        found = {
            "target only": target_only(register),
            "register": candidates(register, rule=False),
            "register, knows the suppression rule": candidates(register, rule=True),
        }
        for attacker, expected in listed.items():
            assert {k: sorted(v) for k, v in found[attacker].items()} == expected, (scenario["id"], attacker)
        assert linkable(register) == scenario["smallest"]["linkable"], scenario["id"]
