"""`qblock search`: answers for people and for machines, refusals, and the statements behind a node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import sqlglot
import yaml
from engines import table_name
from integration.hostile import NAMES
from integration.sources import opened, quoted

from qblock.search.nodes import explain_sql
from qblock.search.strategies import STRATEGIES

pytestmark = pytest.mark.either_engine

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
PEOPLE = {
    "zip": ["101", "102", "111", "112", "101", "111"],
    "sex": ["m", "m", "f", "f", "f", "m"],
    "ill": ["flu", "cold", "flu", "cold", "flu", "cold"],
}
ATTRIBUTES = {
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 3}},
    "sex": QUASI,
    "ill": "sensitive",
}
ZIP_WORDS = (
    "as it is (4 values)",
    "by the first 2 of 3 digits (2 values)",
    "by the first of 3 digits (1 value)",
    "suppressed_attributes",
)
PRIVACY = [{"k_anonymity": {"k": 2}}, {"entropy_l_diversity": {"l": 1.5}}]


def test_json_has_what_the_design_promises(warehouse, qblock, spec) -> None:
    file = spec(warehouse("people", PEOPLE), "people", ATTRIBUTES, PRIVACY)
    ran = qblock("search", file, "--json", "--nodes", "all")
    assert (ran.status, ran.err) == (0, "")
    found = ran.json
    assert found["quasi_identifiers"] == ["zip", "sex"]
    assert found["heights"] == [3, 1]
    assert found["nodes_total"] == 8
    assert found["strategy"] == "chains"
    assert 0 < found["nodes_evaluated"] <= 8
    assert found["queries"] > found["nodes_evaluated"]
    assert found["seconds"] >= 0
    assert found["minimal"] == sorted(found["minimal"])
    chosen = found["chosen"]
    assert chosen["levels"] in found["minimal"]
    assert set(chosen["metrics"]) >= {"height", "average_block_size", "discernibility"}
    assert [entry["model"] for entry in chosen["tightest"]] == ["k_anonymity", "entropy_l_diversity"]
    for entry in chosen["tightest"]:
        assert entry["holds"] is True
        assert all({"parameter", "value", "attained"} <= value.keys() for value in entry["values"])
    assert len(found["nodes"]) == 8
    for node in found["nodes"]:
        assert {"levels", "satisfied", "tightest", "metrics"} <= node.keys()
        assert node["satisfied"] == all(entry["holds"] for entry in node["tightest"])
    minimal = [n["levels"] for n in found["nodes"] if n["satisfied"] and n["levels"] in found["minimal"]]
    assert sorted(minimal) == found["minimal"]
    assert "nodes" not in qblock("search", file, "--json").json


def test_infinity_is_a_text_and_recursive_reports_two_values(warehouse, qblock, spec) -> None:
    asked = [{"recursive_cl_diversity": {"c": 2, "l": 3}}, {"epsilon_privacy": {"epsilon": 2, "adversary": "IV"}}]
    file = spec(warehouse("people", PEOPLE), "people", ATTRIBUTES, asked)
    ran = qblock("search", file, "--json", "--nodes", "all")
    assert ran.status == 3
    recursive, fourth = ran.json["nodes"][0]["tightest"]
    assert [value["parameter"] for value in recursive["values"]] == ["l", "c"]
    assert [value["value"] for value in recursive["values"]] == [1, "inf"]
    assert fourth["values"][0]["value"] == "inf"
    assert ran.json["chosen"] is None
    assert ran.json["minimal"] == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_people_see_the_same(warehouse, qblock, spec, strategy: str) -> None:
    file = spec(warehouse("people", PEOPLE), "people", ATTRIBUTES, PRIVACY)
    ran = qblock("search", file, "--strategy", strategy, "--nodes", "all")
    found = qblock("search", file, "--strategy", strategy, "--json").json
    assert ran.status == 0
    assert "6 rows. Of 8 nodes" in ran.out
    assert f"({strategy})" in ran.out
    assert "Minimal nodes" in ran.out
    assert "All nodes" in ran.out
    chosen = ", ".join(f"{name} level {level}" for name, level in found["chosen"]["node"].items())
    assert f"Chosen: {chosen}" in ran.out
    reached = found["chosen"]["tightest"][0]["values"][0]["value"]
    assert re.search(rf"^k_anonymity +k=2 +k {reached} +yes", ran.out, re.M)
    for node in found["minimal"]:
        zip_ = ZIP_WORDS[node[0]]
        sex = ("as it is (2 values)", "suppressed to *")[node[1]]
        assert re.search(rf"^  {node[0]},{node[1]}  zip {re.escape(zip_)}; sex {re.escape(sex)} *$", ran.out, re.M)


def test_no_row_of_the_source_is_printed(warehouse, qblock, spec) -> None:
    people = {name: [f"secret-{value}" for value in values] for name, values in PEOPLE.items()}
    url = warehouse("people", people)
    attributes = {**ATTRIBUTES, "zip": QUASI}
    for asked in (PRIVACY, [{"k_anonymity": {"k": 7}}], [{"t_closeness": {"t": 0.01}}]):
        file = spec(url, "people", attributes, asked)
        for more in ([], ["--json"], ["--nodes", "all"], ["--explain-sql"]):
            ran = qblock("search", file, *more)
            assert ran.status in (0, 3)
            assert "secret" not in ran.out + ran.err


def test_refusals_say_how_far_the_most_general_node_is(warehouse, qblock, spec) -> None:
    url = warehouse("people", PEOPLE)
    for asked, said in (
        ([{"k_anonymity": {"k": 7}}], "k_anonymity asks k 7; the most general node satisfies k 6"),
        ([{"distinct_l_diversity": {"l": 3}}], "distinct_l_diversity asks l 3; the most general node satisfies l 2"),
        ([{"entropy_l_diversity": {"l": 2.5}}], "entropy_l_diversity asks l 2.5; the most general node satisfies l 2"),
        ([{"recursive_cl_diversity": {"c": 1, "l": 2}}], "recursive_cl_diversity asks c 1, l 2; the most"),
        ([{"k_anonymity": {"k": 2}}, {"frequency_l_diversity": {"l": 3}}], "frequency_l_diversity asks l 3"),
    ):
        for strategy in STRATEGIES:
            ran = qblock("search", spec(url, "people", ATTRIBUTES, asked), "--strategy", strategy)
            assert ran.status == 3
            assert ran.err.startswith("qblock: no node satisfies the spec: ")
            assert said in ran.err
            assert "Ask for less" in ran.err
            assert "Chosen" not in ran.out


def test_a_remedy_is_a_line_of_the_spec(warehouse, qblock, spec) -> None:
    """A name with what YAML, or the spec, reads as something else is written so that it is read back."""
    url = warehouse("t", {"a": ["x", "x", "y", "y"], "net $": ["u", "v", "u", "v"], "s": ["u", "u", "v", "v"]})
    attributes = {"a": QUASI, "net $": "sensitive", "s": "sensitive"}
    ran = qblock("search", spec(url, "t", attributes, [{"distinct_l_diversity": {"l": 3, "sensitive": "net $"}}]))
    assert ran.status == 3
    assert 'Ask for less (`- distinct_l_diversity: {l: 2, sensitive: "net $$"}` would pass)' in ran.err


def test_a_choice_by_sizes_alone(warehouse, qblock, spec) -> None:
    """The sizes choose a node; whether it satisfies is checked, and a better one is not looked for."""
    url = warehouse("t", {"a": ["x", "x", "y", "y"], "b": ["1", "2", "1", "2"], "s": ["u", "u", "v", "v"]})
    attributes = {"a": QUASI, "b": QUASI, "s": "sensitive"}
    asked = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]
    by_sizes = qblock("search", spec(url, "t", attributes, asked, search={"choose_from": "sizes"}), "--json")
    assert by_sizes.status == 3
    assert by_sizes.json["minimal"] == [[0, 1], [1, 0]]
    assert "the node [0, 1], chosen by block sizes alone, fails distinct_l_diversity" in by_sizes.err
    minimal = qblock("search", spec(url, "t", attributes, asked), "--json")
    assert (minimal.status, minimal.json["minimal"]) == (0, [[1, 0]])
    turned = {"b": QUASI, "a": QUASI, "s": "sensitive"}
    fits = qblock("search", spec(url, "t", turned, asked, search={"choose_from": "sizes"}), "--json")
    assert (fits.status, fits.json["chosen"]["levels"]) == (0, [0, 1])
    hopeless = [{"k_anonymity": {"k": 5}}]
    nothing = qblock("search", spec(url, "t", attributes, hopeless, search={"choose_from": "sizes"}))
    assert nothing.status == 3
    assert "k_anonymity asks k 5; the most general node satisfies k 4" in nothing.err


@pytest.mark.parametrize(
    "privacy",
    [
        [{"k_anonymity": {"k": 7}}],
        [{"k_anonymity": {"k": 7}}, {"distinct_l_diversity": {"l": 9}}],
        [{"entropy_l_diversity": {"l": 2.5}}],
        [{"alpha_k_anonymity": {"alpha": 0.1, "k": 2}}],
        [{"recursive_cl_diversity": {"c": 0.1, "l": 2}}],
    ],
    ids=str,
)
def test_the_remedy_of_a_refusal_passes(warehouse, qblock, spec, privacy) -> None:
    url = warehouse("people", PEOPLE)
    refused = qblock("search", spec(url, "people", ATTRIBUTES, privacy), "--quiet")
    assert refused.status == 3
    assert refused.out.startswith("Nothing can be published under this spec.")
    lines = re.findall(r"`- (\w+: \{.*?\})`", refused.err)
    # Of a model with two parameters there is no single number.
    assert bool(lines) == (len(next(iter(privacy[0].values()))) == 1)
    remedies = {name: given for line in lines for name, given in yaml.safe_load(line).items()}
    again = [{name: remedies.get(name, given) for name, given in entry.items()} for entry in privacy]
    if lines:
        assert again != privacy
        assert qblock("search", spec(url, "people", ATTRIBUTES, again), "--quiet").status == 0


def test_a_pinned_node_is_checked(warehouse, qblock, spec) -> None:
    url = warehouse("people", PEOPLE)
    good = qblock("search", spec(url, "people", ATTRIBUTES, PRIVACY, search={"node": {"zip": 3, "sex": 1}}), "--json")
    assert (good.status, good.json["chosen"]["levels"], good.json["strategy"]) == (0, [3, 1], "pinned")
    assert good.json["minimal"] == []
    file = spec(url, "people", ATTRIBUTES, PRIVACY, search={"node": [0, 0]})
    bad = qblock("search", file)
    assert bad.status == 3
    assert "the pinned node [0, 0] fails k_anonymity, entropy_l_diversity" in bad.err
    assert len(qblock("search", file, "--nodes", "all", "--json").json["nodes"]) == 8
    outside = qblock("search", spec(url, "people", ATTRIBUTES, PRIVACY, search={"node": [4, 0]}))
    assert outside.status == 2
    assert re.search(
        r"release\.yaml:\d+: node \[4, 0\] is not in the lattice; levels: zip 0\.\.3, sex 0\.\.1", outside.err
    )


def test_suppression(warehouse, qblock, spec) -> None:
    url = warehouse("people", {"zip": ["a", "a", "a", "b"], "ill": ["flu", "cold", "flu", "flu"]})
    attributes = {"zip": QUASI, "ill": "sensitive"}
    asked = [{"k_anonymity": {"k": 2}}]
    for limit, levels in ((0, [1]), (0.2, [1]), (0.25, [0]), (1, [0])):
        found = qblock("search", spec(url, "people", attributes, asked, suppression_limit=limit), "--json").json
        assert found["chosen"]["levels"] == levels
        assert found["chosen"]["suppressed"] == (levels == [0])
    people = qblock("search", spec(url, "people", attributes, asked, suppression_limit=1))
    assert "You can publish this: 3 rows" in people.out
    assert "1 of 4 rows are left out." in people.out
    scanned = qblock(
        "search",
        spec(url, "people", attributes, [{"entropy_l_diversity": {"l": 1.5}}], suppression_limit=1),
        "--verbose",
    )
    assert "not monotone" in scanned.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--strategy", "greedy"], "search strategy 'greedy' is unknown; use one of chains, incognito, exhaustive"),
        (["--nodes", "some"], "--nodes some: valid: minimal, all"),
        (["--explain-sql", "--node", "zip=9"], "write NAME=LEVEL,... or one level for each of: zip 0..3"),
    ],
)
def test_options_that_are_wrong(warehouse, qblock, spec, arguments: list[str], message: str) -> None:
    ran = qblock("search", spec(warehouse("people", PEOPLE), "people", ATTRIBUTES, PRIVACY), *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


def test_hostile_names_are_shown_as_they_are(warehouse, engine_name: str, qblock, spec) -> None:
    names = [name for name in NAMES if name.isprintable()]
    for start in range(0, len(names), 30):
        quasi, *others = names[start : start + 30]
        table = table_name(engine_name, f"t {quasi}")
        url = warehouse(table, {name: ["[/b]", ":smile:", "[/b]", ":smile:"] for name in [quasi, *others]})
        attributes = {quasi: QUASI, **dict.fromkeys(others, "sensitive")}
        asked = [{"distinct_l_diversity": {"l": 2, "sensitive": name}} for name in others]
        file = spec(url, quoted(table), attributes, asked)
        ran = qblock("search", file, "--nodes", "all")
        # Where it takes seconds, how far it is is said.
        said = [line for line in ran.err.splitlines() if "questions, " not in line]
        assert (ran.status, said) == (0, [])
        assert f"Chosen: {quasi} level 1" in ran.out
        assert [name for name in others if f"distinct_l_diversity ({name})" not in ran.out] == []
        assert qblock("search", file, "--json").json["quasi_identifiers"] == [quasi]


def run_sql(task: Any, sql: str) -> list[tuple[Any, ...]]:
    """A statement as a person would paste it."""
    if task.source.session.engine == "spark":
        return [tuple(row) for row in task.source.session.client.sql(sql).collect()]
    driver = task.source.session.connection.connection.driver_connection
    return driver.execute(sql).fetchall()


DIALECTS = {"DuckDB": "duckdb", "PostgreSQL": "postgres", "Spark": "spark"}


def shown_for(engine_name: str) -> list[str]:
    """The engines whose statements are printed: a cluster's, where it is the source's."""
    return ["DuckDB", "PostgreSQL", *(["Spark"] if engine_name == "spark" else [])]


@pytest.mark.parametrize("count", ["rows", "entities"])
def test_the_statements_of_a_node_can_be_run(warehouse, engine_name: str, tmp_path: Path, count: str) -> None:
    names = NAMES[::3]
    columns = {name: ["x", "x", "y", "%d :x"] for name in names}
    schema, name = table_name(engine_name, "%s ;"), table_name(engine_name, "100% of :them")
    url = warehouse(name, {**columns, "who": [1, 2, 2, 3]}, schema=schema)
    attributes = {**dict.fromkeys(names[:4], QUASI), **dict.fromkeys(names[4:6], "sensitive")}
    table = quoted(schema, name)
    with opened(url, table, attributes, tmp_path, entity="who" if count == "entities" else None, count=count) as task:
        found = explain_sql(task, "0,1,0,1")
        assert [title.split(":")[0] for title, _ in found] == [
            name for name in shown_for(engine_name) for _ in range(4)
        ]
        for title, sql in found:
            assert sqlglot.parse_one(sql, dialect=DIALECTS[title.split(":")[0]])
        mine = [sql for title, sql in found if title.lower().startswith(engine_name)]
        assert len(run_sql(task, mine[0])) == 4
        sizes = task.source.frequency_sets.blocks((0, 1, 0, 1), ())[0]
        assert sorted(row[-1] for row in run_sql(task, mine[1])) == sorted(sizes.rows.tolist())
        for i, sql in enumerate(mine[2:]):
            blocks = task.source.frequency_sets.blocks((0, 1, 0, 1), [i])[0]
            assert sorted(row[-1] for row in run_sql(task, sql)) == sorted(blocks.count.tolist())


def test_statements_are_printed_for_each_engine(warehouse, engine_name: str, qblock, spec) -> None:
    named = "spark_catalog.default.people" if engine_name == "spark" else "people"
    file = spec(warehouse("people", PEOPLE), named, ATTRIBUTES, PRIVACY)
    ran = qblock("search", file, "--explain-sql", "--node", "zip=1")
    assert ran.status == 0
    assert ("FROM `spark_catalog`.`default`.`people`" in ran.out.replace("\n", " ")) is (engine_name == "spark")
    titles = re.findall(r"^-- (.*)$", ran.out, re.M)
    assert [title.split(":")[0] for title in titles] == [name for name in shown_for(engine_name) for _ in range(3)]
    assert "PostgreSQL: counts of each value of ill in the blocks of node [1, 0]" in titles
    assert len(sqlglot.parse(ran.out.partition("-- Spark")[0], dialect="postgres")) >= 6
    assert len(sqlglot.parse(ran.out, dialect="spark")) >= len(titles)
    with pytest.raises(json.JSONDecodeError):
        json.loads(ran.out)
