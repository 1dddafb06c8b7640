"""`audit --adversary bayes`: what somebody who knows a population comes to believe, at a node and of any table."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

import qblock as package
from qblock.errors import InputError

pytestmark = pytest.mark.either_engine

# l-diversity (ICDE 2006), section 3, as a table (models.md section 5): nobody with q1 or q2 but those listed.
TABLE: dict[str, list[Any]] = {"q": ["q1", "q1", *["q2"] * 4], "s": ["s1", "s2", *["s2"] * 4]}
POPULATION: dict[str, list[Any]] = {"q": ["q1", "q1", "q2", "q2"], "s": ["s1", "s2", "s2", "s2"]}
QUASI = {"role": "quasi_identifier", "hierarchy": "suppress"}
ATTRIBUTES = {"q": QUASI, "s": "sensitive"}
BAYES = ("--adversary", "bayes")
RHO = ("--rho1", "0.55", "--rho2", "3/5")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_example_of_the_paper_at_a_node(warehouse, qblock, spec, tmp_path) -> None:
    url = warehouse("t", TABLE)
    warehouse("population", POPULATION)
    file = spec(url, "t", ATTRIBUTES)
    weights = tmp_path / "weights.csv"
    weights.write_text("q,s,weight\nq1,s1,0.25\nq1,s2,0.25\nq2,s2,0.5\n")
    for prior in ("population", weights):
        asked = ("audit", file, *BAYES, "--prior", prior, *RHO)
        (fine,), (merged,) = (qblock(*asked, "--node", n, "--json").json["beliefs"] for n in ("bottom", "top"))
        assert fine["breach"]["disclosures"] == 0
        assert fine["rise"] is None
        assert {k: merged["breach"][k] for k in ("disclosures", "combinations", "people")} == {
            "disclosures": 2,
            "combinations": 1,
            "people": 2,
        }
        assert merged["rise"]["value"] == "s2"
        assert merged["rise"]["exact"] == {"prior": "1/2", "posterior": "5/8"}
        assert merged["fall"]["exact"] == {"prior": "1/2", "posterior": "3/8"}
        out = flat(qblock(*asked, "--node", "top").out)
        assert "(0.55, 0.6)-breach: for 2 of 6 rows a belief about s rises from below 0.55 to above 0.6" in out
        assert "The largest rise of a belief about s is from 0.5 to 0.625 (s2)." in out


def test_the_source_itself_as_the_population_teaches_nothing(warehouse, qblock, spec) -> None:
    file = spec(warehouse("t", TABLE), "t", ATTRIBUTES)
    ran = qblock("audit", file, *BAYES, "--prior", "table", "--node", "top")
    assert "Beliefs about s of somebody who knows the population (the source itself)" in flat(ran.out)
    assert "- No belief changes." in ran.out


def test_a_table_that_anyone_generalized(warehouse, qblock) -> None:
    """Its labels are the leaves: what is believed of a block is its share, whatever the population says."""
    url = warehouse("t", {"age": ["20-39"] * 4 + ["*"] * 2, "ill": list("aaabcc")})
    warehouse("census", {"age": ["20-39"] * 4 + ["*", "40-59"], "ill": list("abcbcd")})
    command = ["audit", "--url", url, "--table", "t", "-q", "age", "-s", "ill", *BAYES]
    (found,) = qblock(*command, "--prior", "census", "--json").json["beliefs"]
    assert found["rise"]["exact"] == {"prior": "1/4", "posterior": "3/4"}
    assert found["rise"]["value"] == "a"
    assert (found["positive"]["people"], found["combinations"]) == (2, 2)
    # d is of nobody here: the fourth value that a is not, in both blocks.
    assert found["negative"]["disclosures"] == 2 + 3


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("q,s,weight\nq1,s1,1\nq2,s1,1\n", "1 times a block holds a sensitive value that the prior gives to nobody"),
        ("q,s,weight\nq1,s1,1\nq1,s2,1\n", "it has nobody with 1 combinations of quasi-identifiers that 4 rows"),
        ("q,s,weight\nq1,s1,-1\n", ":2: column weight: not a number from 0 on"),
        ("q,s,weight\nq1,s1,1,1\n", ":2: 4 fields, and the header has 3"),
        ("q,s,weight\nq1,s1,0\n", "no weight above 0"),
        ("q,s\nq1,s1\n", "it has no column 'weight'"),
        ("q,q,weight\nq1,s1,1\n", "two columns are called 'q'"),
        ("q1,q1,1\nq1,s1,1\n", "it has no column 'weight'"),
        ("s,weight\ns1,1\n", "it has no column 'q'"),
        ("q,t,weight\nq1,s1,1\n", "no column of a sensitive attribute (s)"),
    ],
)
def test_a_prior_that_is_wrong(warehouse, qblock, spec, tmp_path, file: str, said: str) -> None:
    weights = tmp_path / "weights.csv"
    weights.write_text(file)
    ran = qblock("audit", spec(warehouse("t", TABLE), "t", ATTRIBUTES), *BAYES, "--prior", weights, "--node", "top")
    assert ran.status == 2
    assert said in flat(ran.err)
    assert "q2" not in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (BAYES, "--adversary bayes needs --prior"),
        (("--prior", "table"), "add --adversary bayes"),
        (("--rho1", "0.1"), "add --adversary bayes"),
        (("--adversary", "frequentist"), "valid: bayes"),
        ((*BAYES, "--prior", "table", "--rho1", "0.6", "--rho2", "0.5"), "valid: 0 < rho1 < rho2 < 1"),
        ((*BAYES, "--prior", "table", "--factor", "two"), "--factor two: not a number"),
        ((*BAYES, "--prior", "table", "--factor", "1e999999999"), "--factor 1e999999999: not a number"),
        ((*BAYES, "--prior", "table", "--factor", "1/0"), "--factor 1/0: not a number"),
        ((*BAYES, "--prior", "nowhere"), "does not exist"),
    ],
)
def test_a_question_that_is_wrong(warehouse, qblock, spec, options: tuple[str, ...], said: str) -> None:
    ran = qblock("audit", spec(warehouse("t", TABLE), "t", ATTRIBUTES), *options)
    assert (ran.status, said in flat(ran.err)) == (2, True), ran.err


def test_an_uncovered_value_of_the_population(warehouse, qblock, spec, tmp_path) -> None:
    """At level 0 it is in a block of its own, at * in the one of all; between, its block is unknown."""
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}}, "s": "sensitive"}
    file = spec(warehouse("t", {"age": [21, 22, 31, 31], "s": list("abab")}), "t", attributes)
    weights = tmp_path / "weights.csv"
    weights.write_text("age,s,weight\n21,a,1\n21.0,b,1\n22,a,1\n22,b,1\n31,a,1\n31,b,1\n57,a,4\n")
    asked = ("audit", file, *BAYES, "--prior", weights, "--json", "--node")
    (bottom,) = qblock(*asked, "0").json["beliefs"]
    assert bottom["rise"]["exact"] == {"prior": "1/2", "posterior": "1"}
    (top,) = qblock(*asked, "2").json["beliefs"]
    # f(a|*) = 7/10 with the four of 57: n(a) f(a|q)/f(a|*) = 2 (1/2)/(7/10), that of b 2 (1/2)/(3/10).
    assert top["rise"]["exact"] == {"prior": "1/2", "posterior": "7/10"}
    between = qblock(*asked, "1")
    assert between.status == 2
    assert "1 of its 7 combinations have a value of age that its hierarchy does not cover" in flat(between.err)


@pytest.mark.parametrize("number", ["1e99", "9" * 40, f"1{'0' * 39}/3"])
def test_thresholds_that_nothing_reaches(warehouse, qblock, spec, number: str) -> None:
    warehouse("population", POPULATION)
    file = spec(warehouse("t", TABLE), "t", ATTRIBUTES)
    ran = qblock("audit", file, *BAYES, "--prior", "population", "--node", "top", "--factor", number, "--json")
    assert ran.status == 0, ran.err
    assert ran.json["beliefs"][0]["moved"]["people"] == 0


def test_several_rows_of_a_person_are_refused(warehouse, qblock, spec) -> None:
    url = warehouse("t", {"id": ["1", "1", "2"], "q": list("xxy"), "s": list("aba")})
    file = spec(url, "t", ATTRIBUTES, [{"k_anonymity": {"k": 1}}], entity="id", count="entities")
    ran = qblock("audit", file, *BAYES, "--prior", "table")
    assert (ran.status, "one row for each person" in flat(ran.err)) == (2, True)


def test_it_agrees_with_counting_people(warehouse, qblock, spec) -> None:
    """A few hundred people of a random population, with NULL among them, at every node."""
    draw = random.Random(7)
    ages, sexes, ills = [20, 21, 30, 31, None], ["f", "m"], ["a", "b", "c", None]
    everybody = [(draw.choice(ages), draw.choice(sexes), draw.choice(ills)) for _ in range(600)]
    sample = everybody[:150]
    url = warehouse("t", _columns(sample))
    warehouse("census", _columns(everybody))
    attributes = {
        "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}, "nulls": "top"},
        "sex": QUASI,
        "ill": {"role": "sensitive", "nulls": "value"},
    }
    file = spec(url, "t", attributes)
    for levels in ((0, 0), (1, 0), (1, 1), (2, 1)):
        node = ",".join(map(str, levels))
        (found,) = qblock("audit", file, *BAYES, "--prior", "census", "--node", node, "--json").json["beliefs"]
        f, n = Counter(everybody), Counter(sample)

        def block(one: tuple[Any, ...], levels: tuple[int, int] = levels) -> tuple[Any, ...]:
            age = one[0] if levels[0] == 0 else "*" if levels[0] == 2 or one[0] is None else one[0] // 10
            return age, one[1] if levels[1] == 0 else "*"

        rises = []
        for q in {one[:2] for one in sample}:
            mass = {s: sum(c for o, c in f.items() if block(o) == block(q) and o[2] == s) for s in ills}
            count = {s: sum(c for o, c in n.items() if block(o) == block(q) and o[2] == s) for s in ills}
            score = {s: Fraction(count[s] * f[*q, s], mass[s]) if mass[s] else Fraction(0) for s in ills}
            total, of = sum(score.values()), sum(f[*q, s] for s in ills)
            rises += [score[s] / total - Fraction(f[*q, s], of) for s in ills]
        exact = found["rise"]["exact"]
        assert Fraction(exact["posterior"]) - Fraction(exact["prior"]) == max(rises)
        assert found["impossible"] == 0


def _columns(people: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [one[i] for one in people] for i, name in enumerate(("age", "sex", "ill"))}


def test_from_python(tmp_path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q,s\n" + "\n".join(f"*,{s}" for s in TABLE["s"]) + "\n")
    weights = tmp_path / "w.csv"
    weights.write_text("q,s,weight\n*,s1,3\n*,s2,3\n")
    asked: dict[str, Any] = {"adversary": "bayes", "prior": weights}
    found = package.audit(table, ["q"], ["s"], **asked, rho1=0.55, rho2=Fraction(3, 5))
    (beliefs,) = found.beliefs
    assert isinstance(beliefs, package.Beliefs)
    assert beliefs.rise is not None
    assert (beliefs.rise.exact.prior, beliefs.rise.exact.posterior) == (Fraction(1, 2), Fraction(5, 6))
    assert (beliefs.breach.people, beliefs.people, beliefs.moved.own) == (6, 6, 1)
    assert beliefs.breach.sentence in found._repr_html_()
    assert package.audit(table, ["q"], ["s"]).beliefs == ()
    with pytest.raises(InputError, match="rho3"):
        package.audit(table, ["q"], ["s"], **asked, rho3=1)
