"""No parameter, however large or small, ends in an internal error: a command decides it, or says what is valid."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.ledger.history import history
from qblock.release.apply import release
from qblock.spec import load_spec

pytestmark = pytest.mark.handed_on

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
VALUES = ["1e400", "10000000000000000000", "1e-400"]
ENTRIES = [
    "k_anonymity: {k: HUGE}",
    "distinct_l_diversity: {l: HUGE, sensitive: n}",
    "frequency_l_diversity: {l: HUGE, sensitive: n}",
    "entropy_l_diversity: {l: HUGE, sensitive: n}",
    "recursive_cl_diversity: {c: HUGE, l: 2, sensitive: n}",
    "recursive_cl_diversity: {c: 2, l: HUGE, sensitive: n}",
    "pd_recursive_cl_diversity: {c: 2, l: HUGE, allowed: [1], sensitive: n}",
    "npd_recursive_cl_diversity: {c1: HUGE, c2: 1, l: 2, sensitive: n}",
    "npd_recursive_cl_diversity: {c1: 2, c2: HUGE, l: 2, protected: [1], sensitive: n}",
    "alpha_k_anonymity: {alpha: HUGE, k: 1, sensitive: n}",
    "alpha_k_anonymity: {alpha: 1, k: HUGE, sensitive: n}",
    "epsilon_m_anonymity: {epsilon: HUGE, m: 1, sensitive: n}",
    "epsilon_m_anonymity: {epsilon: 1, m: HUGE, sensitive: n}",
    "epsilon_m_anonymity: {epsilon: HUGE, m: 1, relative: true, sensitive: n}",
    "delta_l_diversity: {delta: HUGE, l: 2, sensitive: n}",
    "delta_l_diversity: {delta: 1, l: HUGE, sensitive: n}",
    "delta_l_diversity: {delta: 1, l: HUGE, reading: literal, sensitive: n}",
    "t_closeness: {t: HUGE, sensitive: n}",
    "t_closeness: {t: 0.1, distance: kernel_js, bandwidth: HUGE, sensitive: n}",
    "nt_closeness: {n: HUGE, t: 0.1, sensitive: n}",
    "nt_closeness: {n: 2, t: HUGE, distance: ordered, sensitive: n}",
    "beta_likeness: {beta: HUGE, sensitive: n}",
    "delta_disclosure: {delta: HUGE, sensitive: n}",
    "epsilon_privacy: {epsilon: HUGE, adversary: III, sensitive: n}",
    "epsilon_privacy: {epsilon: 2, adversary: II, stubbornness: HUGE, sensitive: n}",
    "epsilon_privacy: {epsilon: 2, adversary: I, stubbornness: HUGE, prior: table, sensitive: n}",
    "epsilon_privacy: {epsilon: 2, adversary: I, stubbornness: 9, known: HUGE, sensitive: n}",
    "epsilon_privacy: {epsilon: 2, adversary: III, known: HUGE, predicates: negative, sensitive: n}",
    "epsilon_privacy: {epsilon: 2, adversary: III, prior: {values: {1: HUGE, 2: 1, 3: 1}}, sensitive: n}",
    "k_map: {k: HUGE, population: {table: t}}",
    "delta_presence: {min: HUGE, max: 1, population: {table: t}}",
]


@pytest.mark.parametrize("value", VALUES)
def test_no_parameter_is_an_internal_error(warehouse, qblock, spec, value: str, engine_name: str) -> None:
    url = warehouse("t", {"a": ["x", "x", "y", "y", "y"], "n": [1, 2, 1, 2, 3]})
    file = spec(url, "t", {"a": QUASI, "n": "sensitive"})
    text = file.read_text("utf-8")
    start = text.index("privacy:")
    seen = set()
    entries = ENTRIES if engine_name == "postgresql" or os.environ.get("QBLOCK_TEST_ENGINES") == "all" else ENTRIES[:6]
    for entry in entries:
        privacy = f"privacy:\n  - {entry.replace('HUGE', value)}\n"
        file.write_text(text[:start] + privacy, "utf-8")
        for command in ("search", "compare") if value == "1e400" else ("search",):
            ran = qblock(command, file, "--json")
            assert ran.status in ((0, 2, 3) if command == "search" else (0, 2)), (entry, ran.err)
            assert "internal error" not in ran.err
            if ran.status == 0:
                json.loads(ran.out, parse_constant=lambda name: pytest.fail(name))
            else:
                assert "qblock: " in ran.err
            seen.add(ran.status)
    if entries == ENTRIES:
        assert seen == {0, 2, 3}


def test_a_refusal_of_a_huge_parameter_is_recorded(make_job) -> None:
    job = make_job(privacy=[{"k_anonymity": {"k": 3}}])
    path = job.write()
    path.write_text(path.read_text("utf-8").replace("k: 3", "k: 1e400"), "utf-8")
    with pytest.raises(Refused, match="no node satisfies the spec: k_anonymity asks k 10000"):
        release(load_spec(path))
    event = history(load_spec(path))["events"][0]
    assert event["state"] == "refused"


def test_the_same_column_in_two_roles_of_an_audit(warehouse, qblock) -> None:
    url = warehouse("t", {"a": ["x", "y"], "n": [1, 2]})
    ran = qblock("audit", "--url", url, "--table", "t", "-q", "n", "-s", "n")
    assert (ran.status, ran.out) == (2, "")
    assert "--quasi-identifier n is also named as --sensitive: a column has one role; name it once" in ran.err
