"""The JSON Schemas of answers, held against what commands print and write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest
from pydantic import TypeAdapter

from qblock.api import answer_schema
from qblock.cli.app import run
from qblock.errors import InputError
from qblock.results.schemas import ANSWERS

SPEC = """\
version: 1
release: patients
source: {{url: "duckdb:///../patients.duckdb", table: main.patients}}
{entity}
attributes:
  patient_id: identifying
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10, 20, 40]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  diagnosis: sensitive
privacy:
  - k_anonymity: {{k: {k}}}
  - distinct_l_diversity: {{l: 2}}
publish: {{url: "duckdb:///published.duckdb", schema: main, view: patients}}
{more}
"""
KINDS: dict[str, dict[str, Any]] = {
    "node": {},
    "map": {"more": "search: {recoding: multidimensional, choose_by: loss, weights: {age: 2}}"},
    "pinned": {"entity": "", "more": "search: {node: {age: 3, sex: 1}}\nversions: {joint: none, stale_after: 2d}"},
    "refused": {"k": 4000},
    "suppressing": {"more": "suppression_limit: 0.1\nsearch: {choose_from: sizes}"},
}
COMMANDS: dict[str, tuple[str, ...]] = {  # in this order
    "search": ("search --quiet", "search --quiet --nodes all --churn 0.01"),
    "audit": (
        "audit",
        "audit --node age=2",
        "audit --node age=2 --rule-out diagnosis=flu --adversary bayes --prior table",
        "audit --node age=2 --adversary bayes --prior ../weights.csv",
    ),
    "compare": ("compare --quiet", "compare --quiet --workload ../queries.yaml"),
    "recodings": ("compare --recoding both --quiet",),
    "plan": ("plan", "rollback 1 --plan", "erase p7 --now --plan"),
    "release": ("release --quiet", "release --quiet --force", "release --quiet --dry-run", "rollback 1"),
    "verify": ("verify",),
    "report": ("report", "report --internal --quiet", "report --candidate --quiet", "report --for ema"),
    "history": ("history",),
    "erase": ("erase p7", "erase p9 --now --yes"),
    "grants": ("grants",),
    "hierarchy-check": ("hierarchy check",),
    "hierarchy-build": ("hierarchy build",),
    "hierarchy-load": ("hierarchy load",),
    "ledger-upgrade": ("ledger upgrade",),
    "ledger-retype": ("ledger retype",),
    "ledger-rekey": ("ledger rekey",),
    "retire": ("retire",),
}
OF_ALL_ALIKE = ("compare", "recodings", "hierarchy-build", "hierarchy-load")
OF_ALL_ALIKE += ("ledger-upgrade", "ledger-retype", "ledger-rekey")
"""What is asked of one kind alone."""
WITHOUT_ENTITY = ("search --quiet --nodes all --churn 0.01", "erase p7 --now --plan", *COMMANDS["erase"])
"""What is asked of releases that name an entity alone; churn also where there is an answer."""
FAILING = {"refused": ("audit", "audit --node age=2", "release --quiet --dry-run", "history", "plan", "grants")}
FAILING["refused"] += ("search --quiet", "release --quiet", "release --quiet --force", "hierarchy check")
"""What a release that is refused answers nevertheless."""


def check(of: str, answer: Any) -> None:
    schema = answer_schema(of)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(answer)
    model = TypeAdapter(ANSWERS[of][1]).validate_python(answer)  # which knows every key
    assert model.to_dict() == answer


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    with duckdb.connect(str(folder / "patients.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE patients AS SELECT 'p' || i AS patient_id, 20 + (i * 7) % 50 AS age, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, "
            "['flu', 'cold', 'asthma'][i % 3 + 1] AS diagnosis FROM range(1, 241) AS n(i)"
        )
    ills = ("flu", "cold", "asthma")
    lines = [f"{age},{sex},{ill},1" for age in range(20, 70) for sex in "fm" for ill in ills]
    (folder / "weights.csv").write_text("\n".join(["age,sex,diagnosis,weight", *lines]) + "\n", "utf-8")
    (folder / "queries.yaml").write_text("- {age: {from: 30, to: 39}, diagnosis: [flu]}\n- {sex: [f]}\n", "utf-8")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_what_commands_print(
    kind: str, source: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = source / kind
    folder.mkdir()
    monkeypatch.chdir(folder)
    values = {"entity": "entity: patient_id", "k": 4, "more": "", **KINDS[kind]}
    (folder / "release.yaml").write_text(SPEC.format(**values), "utf-8")
    checked = set()
    for of, lines in COMMANDS.items():
        if kind != "node" and of in OF_ALL_ALIKE:
            continue
        for line in lines:
            if line not in FAILING.get(kind, (line,)) or (kind == "pinned" and line in WITHOUT_ENTITY):
                continue
            if line == "rollback 1 --plan" and kind == "map":
                continue
            words = line.split()
            verb = 2 if words[0] in ("hierarchy", "ledger") else 1
            arguments = [*words[:verb], "release.yaml", *words[verb:], "--json"]
            if of == "release":
                arguments += ["--result", "result.json"]
            capfd.readouterr()
            status = run(arguments)
            out, err = capfd.readouterr()
            assert out or status, (line, err)
            if out:
                check(of, json.loads(out))
                checked.add(of)
            if of == "release":
                found = json.loads(Path("result.json").read_text("utf-8"))
                check("result", found)
                assert found["exit_status"] == status
                os.unlink("result.json")
    always = {"search", "audit", "release", "history", "grants", "hierarchy-check"}
    # A plan ends as the run would.
    assert checked >= always | (set() if kind == "refused" else {"plan"})
    if kind == "node":
        assert checked == COMMANDS.keys()
    if kind != "refused":
        assert checked >= {"verify", "report", "retire"}


@pytest.mark.parametrize("of", ANSWERS)
def test_a_schema_refuses_what_lacks_a_key(of: str) -> None:
    schema = answer_schema(of)
    assert not jsonschema.Draft202012Validator(schema).is_valid({})


def test_a_result_that_lags_and_one_that_failed() -> None:
    run_ = {"release": "r", "run": None, "exit_status": 1, "reason": "no connection"}
    assert jsonschema.Draft202012Validator(answer_schema("result")).is_valid({"status": "failed", **run_})
    assert not jsonschema.Draft202012Validator(answer_schema("result")).is_valid({"status": "done", **run_})
    without = {name: value for name, value in run_.items() if name != "reason"}
    assert not jsonschema.Draft202012Validator(answer_schema("result")).is_valid({"status": "failed", **without})


@pytest.mark.parametrize("more", [(), ("--sensitive", "diagnosis"), ("--entity", "none")])
def test_what_init_prints(
    more: tuple[str, ...],
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"duckdb:///{source}/patients.duckdb"
    assert run(["init", url, "patients", "--json", *more]) == 0
    found = json.loads(capfd.readouterr().out)
    check("init", found)
    assert bool(found["open"]) == ("--sensitive" not in more)


def test_what_examples_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["examples", "new", "--json"]) == 0
    check("examples", json.loads(capfd.readouterr().out))


def test_an_answer_without_a_schema() -> None:
    with pytest.raises(InputError, match="there is no JSON Schema of serach; did you mean search"):
        answer_schema("serach")
