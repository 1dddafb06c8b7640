"""What `audit` says to a person: verdicts on what was asked alone, and attacks as sentences."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from qblock.attacks import BackgroundKnowledge, Homogeneity, Similarity
from qblock.search.audit import Sentences

pytestmark = pytest.mark.either_engine

TABLE: dict[str, list[Any]] = {
    "q": ["x", "x", "x", "y", "y", "z", "z", "z", "z"],
    "s": ["a", "a", "b", "c", "c", "a", "b", "c", "d"],
    "income": [100, 101, 300, 7, 8, 1, 400, 800, 1001],
}
"""Block x has two values of s, y one and z four; the incomes of y alone are within 50, a twentieth of their range."""
QUASI = {"role": "quasi_identifier", "hierarchy": "suppress"}
WHO = "Somebody who knows the quasi-identifiers"


def flat(text: str) -> str:
    return " ".join(text.split())


def lines(text: str) -> list[str]:
    """The table of models, without what is wrapped."""
    return [line for line in text.split("tightest:")[0].splitlines() if re.match(r"[a-z_]+(_[a-z]+)+ ", line)]


def test_what_nobody_asked_has_no_verdict(warehouse, qblock, spec) -> None:
    url = warehouse("t", TABLE)
    asked = [{"distinct_l_diversity": {"l": 2, "sensitive": "s"}}]
    file = spec(url, "t", {"q": QUASI, "s": "sensitive"}, asked)
    ran = qblock("audit", file, "--all")
    assert ran.status == 0
    (verdict,) = [line for line in lines(ran.out) if line.rstrip().endswith(("yes", "NO"))]
    assert re.match(r"distinct_l_diversity \(s\) +l 1 +l=2 +NO", verdict)
    assert len(lines(ran.out)) > 8
    first, limit, *_ = ran.out.splitlines()
    assert first == "Not all that the spec asks for is met: 1 of 1 fail."
    assert limit == "Not met: distinct_l_diversity of s (l asked 2, satisfied 1)"
    assert "asked, holds: what the spec asks for; blank where it asks for nothing." in flat(ran.out)
    alone = qblock("audit", file)
    assert [line.split()[0] for line in lines(alone.out)] == ["distinct_l_diversity"]
    assert f"{len(lines(ran.out)) - 1} more that the spec does not ask for: --all" in alone.out
    assert "not computed" not in alone.out
    found = qblock("audit", file, "--json").json
    assert found == qblock("audit", file, "--json", "--all").json
    assert [entry["holds"] for entry in found["tightest"]] == [False, *[None] * (len(found["tightest"]) - 1)]
    assert found["satisfied"] is False


def test_a_table_is_audited_without_a_verdict(warehouse, qblock) -> None:
    command = ["audit", "--url", warehouse("t", TABLE), "--table", "t", "-q", "q", "-s", "s"]
    ran = qblock(*command)
    assert ran.status == 0
    assert ran.out.splitlines()[0] == "The smallest group has 2 that look the same."
    assert not [line for line in lines(ran.out) if line.rstrip().endswith(("yes", "NO"))]
    assert re.search(r"^k_anonymity +k 2 *$", ran.out, re.M)
    assert "blank, since an audit of a table asks for nothing" in flat(ran.out)
    found = qblock(*command, "--json").json
    assert {entry["holds"] for entry in found["tightest"]} == {found["satisfied"]} == {None}
    assert [entry["model"] for entry in found["tightest"]].count("k_anonymity") == 1


def test_each_attack_is_a_sentence_with_its_numbers(warehouse, qblock) -> None:
    command = ["audit", "--url", warehouse("t", TABLE), "--table", "t", "-q", "q", "-s", "s", "-s", "income"]
    out, told = flat(qblock(*command).out), qblock(*command, "--json").json["attacks"]
    known = [
        f"{WHO} finds s with certainty for 2 of 9 rows, in 1 of 3 blocks.",
        f"{WHO} and can rule out 1 value of s finds it with certainty for up to 5 of 9 rows, in 2 of 3 blocks.",
        f"{WHO} and can rule out 2 values of s finds it with certainty for up to 5 of 9 rows, in 2 of 3 blocks.",
        f"{WHO} and can rule out 3 values of s finds it with certainty for up to 9 of 9 rows, in 3 of 3 blocks.",
        f"{WHO} finds a value of s (c) up to 3 times as frequent in a block as in the whole table.",
        f"{WHO} finds income with certainty for none of 9 rows: every block holds at least 2 values of it.",
        f"{WHO} and can rule out 1 value of income finds it with certainty for up to 2 of 9 rows, in 1 of 3 blocks.",
        f"{WHO} finds income to within 50 for 2 of 9 rows, in 1 of 3 blocks.",
    ]
    for sentence in known:
        assert f"- {sentence}" in out
    assert told[0]["homogeneity"] | {"sentence": known[0]} == told[0]["homogeneity"]
    assert told[0]["homogeneity"]["rows"] == 2
    assert [one["sentence"] for one in told[0]["background_knowledge"]] == known[1:4]
    assert "None" not in out


def test_people_are_said_where_people_are_counted(warehouse, qblock, spec, tmp_path) -> None:
    """Two rows of one person in one block: one person, whose values are two."""
    (tmp_path / "s.csv").write_text("s,group,all\na,A,*\nb,A,*\nc,C,*\nd,C,*\n")
    url = warehouse("t", {"id": ["1", "1", "2", "3", "4", "5"], "q": list("xxyyzz"), "s": list("abccad")})
    attributes = {"q": QUASI, "s": {"role": "sensitive", "taxonomy": {"file": "s.csv"}}}
    file = spec(url, "t", attributes, [{"k_anonymity": {"k": 1}}], entity="id", count="entities")
    out = flat(qblock("audit", file).out)
    assert f"{WHO} finds s with certainty for 2 of 5 people, in 1 of 3 blocks." in out
    level = f"{WHO} finds the label of s at level 1 of its taxonomy with certainty for 3 of 5 people, in 2 of 3 blocks."
    assert level in out


def test_one_row_in_one_block(warehouse, qblock, spec) -> None:
    url = warehouse("t", {"q": ["x"], "s": ["a"]})
    attributes = {"q": QUASI, "s": {"role": "sensitive", "domain": ["a", "b"]}}
    out = flat(qblock("audit", spec(url, "t", attributes, [{"k_anonymity": {"k": 1}}])).out)
    assert f"{WHO} finds s with certainty for 1 of 1 row, in 1 of 1 block." in out
    assert "- No value of s is more frequent in a block than in the whole table." in out
    alone = flat(qblock("audit", "--url", url, "--table", "t", "-q", "q", "-s", "s").out)
    assert "- s has only one value, so nothing about it can be found out." in alone


def test_what_an_attacker_knows_of_a_table_that_anyone_generalized(warehouse, qblock, tmp_path) -> None:
    (tmp_path / "s.csv").write_text("s,group,all\na,A,*\nb,A,*\nc,C,*\nd,C,*\n")
    table = {**TABLE, "s": ["a", "a", "b", "c", "d", "a", "b", "c", "d"]}
    more = ["--rule-out", "s=b", "--rule-out", "s=d", "--near", "income=1", "--taxonomy", f"s={tmp_path / 's.csv'}"]
    command = ["audit", "--url", warehouse("t", table), "--table", "t", "-q", "q", "-s", "s", "-s", "income", *more]
    out = flat(qblock(*command).out)
    for said in (
        f"{WHO} has to rule out at least 1 value of s (b) to find it with certainty for 5 of 9 rows, in 2 of 3 blocks.",
        f"{WHO} and rules out 2 given values of s finds it with certainty for 5 of 9 rows, in 2 of 3 blocks.",
        f"{WHO} finds the label of s at level 1 of its taxonomy with certainty for 5 of 9 rows, in 2 of 3 blocks.",
        f"{WHO} finds income to within 1 for 2 of 9 rows, in 1 of 3 blocks.",
    ):
        assert said in out
    told = {one["sensitive"]: one for one in qblock(*command, "--json").json["attacks"]}
    assert told["s"]["eliminated"]["values"] == ["b", "d"]
    assert told["s"]["certainty"]["values"] == ["b"]
    assert told["s"]["similarity"][0]["rows"] == 5
    assert told["income"]["proximity"]["epsilon"] == 1
    assert "eliminated" not in told["income"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--rule-out", "s=nothing"), "rule_out s: (not shown) is not a value of s"),
        (("--rule-out", "s"), "--rule-out s: write NAME=VALUE"),
        (("--rule-out", "t=a"), "rule_out t: not a sensitive attribute"),
        (("--near", "s=1"), "near s: s has values that are not numbers"),
        (("--near", "income=-1"), "--near income is out of range"),
        (("--near", "income=x"), "--near income: not a number"),
        (("--taxonomy", "q=s.csv"), "--taxonomy q: not a sensitive attribute"),
    ],
)
def test_what_an_attacker_cannot_know(warehouse, qblock, more: tuple[str, str], said: str) -> None:
    table = ["audit", "--url", warehouse("t", TABLE), "--table", "t", "-q", "q", "-s", "s", "-s", "income"]
    ran = qblock(*table, *more)
    assert (ran.status, said in flat(ran.err)) == (2, True), ran.err


@pytest.mark.parametrize(
    ("share", "said"),
    [("1/3", "33.4%"), ("1/2", "50%"), ("9999/10000", "99.99%"), ("0", "0%"), ("1/1000000", "0.0001%")],
)
def test_a_share_below_one_is_never_rounded_down_nor_to_certainty(share: str, said: str) -> None:
    told = Sentences("s", 3, 10, 2, people=True)
    attack = Similarity(level=1, share=Fraction(share), blocks=0, rows=0)
    assert told.of_attack(attack).endswith(f"one label makes up at most {said} of a block.")
    nearly = BackgroundKnowledge(eliminated=2, posterior=1 - Fraction(1, 10**30), blocks=0, rows=0)
    assert told.of_attack(nearly).endswith("none of 10 people: they are at most nearly 100% sure.")
    one = Sentences("s", 3, 1, 1, people=True)
    whole = Homogeneity(blocks=1, rows=1, mean_size=Fraction(1), vulnerable=True)
    assert one.of_attack(whole).endswith("for 1 of 1 person, in 1 of 1 block.")
