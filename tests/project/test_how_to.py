"""The pages that say how to add a model, a metric and a form of hierarchy, followed on a copy of the code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("add-a-model", "add-a-metric", "add-a-hierarchy-form")
BLOCK = re.compile(r"^```\w+ file=(\S+)(?: after=([^\n]*))?\n(.*?)^```$", re.M | re.S)
COPIED = ("engine", "sql", "migrations", "tests", "docs", "README.md")


def text_of(page: str) -> str:
    return (ROOT / "docs" / "how-to" / f"{page}.md").read_text("utf-8")


def follow(page: str, copy: Path) -> set[str]:
    """Put each block of a page into its file, after the one line that its text is in; returns the files."""
    found = BLOCK.findall(text_of(page))
    assert found
    for name, after, block in found:
        path = copy / name
        if not after:
            assert not path.exists(), f"{page}: {name} is there already"
            path.parent.mkdir(exist_ok=True)
            path.write_text(block, "utf-8")
            continue
        lines = path.read_text("utf-8").splitlines(keepends=True)
        places = [number for number, line in enumerate(lines, 1) if after in line]
        assert len(places) == 1, f"{page}: {after!r} is in {len(places)} lines of {name}"
        path.write_text("".join([*lines[: places[0]], block, *lines[places[0] :]]), "utf-8")
    return {name for name, _, _ in found}


ASK = """
import json, sys
from pathlib import Path

import duckdb
from hierarchy import test_forms
from laws import test_registry
from search import test_ranking, test_utility

from qblock.metrics import BY_NAME as METRICS
from qblock.models import BY_NAME as MODELS
from qblock.search.audit import audit_spec
from qblock.search.run import open_task, run_search
from qblock.spec import read_spec
from qblock.spec.schema import json_schema
from qblock.spec.sources import FORMS

folder = Path(sys.argv[1])
with duckdb.connect(str(folder / "a.duckdb")) as database:
    rows = "('E11.9', 'a'), ('E11.65', 'b'), ('E11.9', 'a'), ('I10', 'a'), ('I10', 'b'), ('I21', 'a')"
    database.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) v(code, s)")

TEXT = '''version: 1
release: followed
source: {url: "duckdb:///a.duckdb", table: t}
attributes:
  code: {role: quasi_identifier, hierarchy: {first: LENGTHS}}
  s: sensitive
privacy:
  - k_anonymity: {k: 2}
  - size_limit: {most: 3}
suppression_limit: 1
search: {choose_by: largest_block}
'''


def spec(lengths):
    return read_spec(TEXT.replace("LENGTHS", lengths), folder / "spec.yaml", {})


def refused(lengths):
    try:
        with open_task(spec(lengths)):
            return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"


laws = (
    [test_registry.test_attributes, test_registry.test_every_parameter_has_kind_range_and_example]
    + [test_registry.test_every_model_says_in_words_what_it_means]
    + [test_registry.test_every_model_is_audited_with_what_a_table_of_numbers_has]
    + [test_registry.test_every_model_has_a_slow_reference_an_example_by_hand_and_its_place_in_the_documents]
)
for law in laws:
    law(MODELS["size_limit"])
test_registry.test_parameters_out_of_range_are_refused("size_limit")
test_utility.test_every_metric_declares_what_is_derived_from_it(METRICS["largest_block"])
test_utility.test_the_page_of_the_spec_has_the_table_of_metrics()
test_ranking.test_the_spec_offers_every_metric()
(form,) = (form for form in FORMS if form.form == "first")
test_forms.test_the_example_of_a_form_is_read_as_that_form(form)
test_forms.test_the_example_of_a_form_builds_what_nests(form)

with open_task(spec("[3, 1]")) as task:
    searched = run_search(task, all_nodes=True).to_json()
schema = json_schema()
answer = {
    "schema": schema["properties"]["privacy"]["items"]["properties"]["size_limit"],
    "choose_by": schema["$defs"]["Search"]["properties"]["choose_by"]["enum"],
    "forms": sorted(schema["$defs"]),
    "searched": searched,
    "audited": audit_spec(spec("[3, 1]"), "1"),
    "refused": refused("[1, 3]"),
}
print(json.dumps(answer))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("how_to")
    unneeded = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=unneeded)
        else:
            shutil.copy(ROOT / name, folder / name)
    for page in PAGES:
        follow(page, folder)
    return folder


@pytest.fixture(scope="module")
def answer(copy: Path) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(copy / "engine"), str(copy / "tests")])}
    command = [sys.executable, "-c", ASK, str(copy)]
    done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_lists_the_files_that_its_steps_touch(page: str) -> None:
    listed = {name.replace("\\", "") for name in re.findall(r"^\| ([\w\\./-]+\.(?:py|md)) \|", text_of(page), re.M)}
    assert listed == {name for name, _, _ in BLOCK.findall(text_of(page))}


def test_a_new_model_is_in_the_schema_a_search_and_an_audit(answer: dict[str, Any]) -> None:
    most = answer["schema"]["properties"]["most"]
    assert (most["type"], most["minimum"], most["examples"]) == ("integer", 1, [100])
    assert "most >= 1" in most["description"]
    assert answer["schema"]["description"] == "at most most people look the same: n(q) <= most (this page)"
    verdicts = {
        node["levels"][0]: {entry["model"]: entry["holds"] for entry in node["tightest"]}["size_limit"]
        for node in answer["searched"]["nodes"]
    }
    # Blocks of E11.9 (2), E11.65, I10 (2) and I21; of E11 (3), I10 and I21; of E (3) and I (3); of all 6.
    assert verdicts == {0: True, 1: True, 2: True, 3: False}
    assert answer["searched"]["optimality"] == "scanned"
    (entry,) = [entry for entry in answer["audited"]["tightest"] if entry["model"] == "size_limit"]
    assert (entry["holds"], entry["values"][0]["value"]) == (True, 3)


def test_a_new_metric_is_in_the_schema_a_search_and_an_audit(answer: dict[str, Any]) -> None:
    assert answer["choose_by"][0] == "largest_block"
    assert [node["metrics"]["largest_block"] for node in answer["searched"]["nodes"]] == [2, 3, 3, 6]
    assert answer["searched"]["chosen"]["levels"] == [1]
    assert answer["audited"]["metrics"]["largest_block"] == 3


def test_a_new_form_is_in_the_schema_and_a_search_and_must_nest(answer: dict[str, Any]) -> None:
    assert "First" in answer["forms"]
    assert answer["searched"]["heights"] == [3]
    assert answer["refused"].startswith("InputError: ")
    assert "is under" in answer["refused"]


def test_a_block_that_no_longer_fits_is_noticed(copy: Path) -> None:
    """Followed once more, the first page finds its new file there."""
    with pytest.raises(AssertionError, match="is there already"):
        follow(PAGES[0], copy)
