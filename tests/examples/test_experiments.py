"""The experiments run on a few invented people, on every engine, and their files say what the definitions say."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from faults.nursery import Nursery

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "experiments" / "run.py"
ROWS = 150


def script(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the experiments."""
    # As `python SCRIPT` does.
    path = f"import runpy, sys\nsys.path.insert(0, {str(SCRIPT.parent)!r})\n"
    code = f"{path}runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    out, err = folder / "out.txt", folder / "err.txt"
    with Nursery() as nursery:
        status = nursery.wait(nursery.start(arguments, out, error=err, code=code))
    return status, out.read_text("utf-8"), err.read_text("utf-8")


@pytest.fixture
def results(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, list[dict[str, str]]]:
    """Each CSV file by its name, and the summary as `printed`."""
    arguments = ["--demo", "--rows", str(ROWS), "--quasi-identifiers", "2", "--runs", "1", "--out", str(tmp_path)]
    if engine_name == "postgresql":
        arguments += ["--url", request.getfixturevalue("postgresql_url")]
    status, out, err = script(tmp_path, *arguments)
    assert status == 0, err
    found: dict[str, list[dict[str, str]]] = {"printed": [{"line": line} for line in out.splitlines()]}
    for path in tmp_path.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            found[path.stem] = list(csv.DictReader(file))
    return found


def test_a_tiny_run(results: dict[str, list[dict[str, str]]]) -> None:
    printed = [line["line"] for line in results.pop("printed")]
    assert printed[0].startswith(f"{ROWS} people; quasi-identifiers age, gender")
    assert {line[:3] for line in printed} >= {"(a)", "(b)", "(c)", "(d)", "(e)", "(f)", "(g)"}
    assert "values that get weaker upward: 0" in "".join(printed)
    assert len(results) == 9
    # (a) a block with one value makes every epsilon infinite
    nodes = {(row["sensitive"], row["age"], row["gender"]): row for row in results["d_epsilon_by_node"]}
    assert results["a_homogeneity"]
    for row in results["a_homogeneity"]:
        exposed = int(row["open_blocks"]) > 0
        assert (nodes[row["sensitive"], row["age"], row["gender"]]["A_c^inf"] == "inf") == exposed
    # (c) what is asked for costs, and k-anonymity is what everything else implies at the same parameter
    height = {
        (row["definition"], row["sensitive"], int(row["parameter"])): float(row["min_height"] or "inf")
        for row in results["c_utility"]
        if row["data"] == "all"
    }
    for (definition, sensitive, parameter), least in height.items():
        assert least >= height["k-anonymity", "", parameter]
        assert least >= height.get((definition, sensitive, parameter - 2), 0)
    # (d) class I lies below class II, and more stubborn adversaries of class II are harder to convince
    for row in nodes.values():
        assert float(row["A_d^1e6"]) <= float(row["A_-^1e6"])
        assert float(row["A_-^1e3"]) <= float(row["A_-^1e6"])
    # (e) ends at class III
    for row in results["e_epsilon_by_stubbornness"]:
        if row["stubbornness"] == "inf":
            at = nodes[row["sensitive"], row["age"], row["gender"]]
            assert (row["A_d^"], row["A_c^"]) == (at["A_d^inf"], at["A_c^inf"])
    # (f) and (g) count the same nodes
    for row in results["f_utility_by_stubbornness"]:
        if (row["adversary"], row["stubbornness"]) == ("A_c", "inf"):
            passing = [r for r in results["g_sets"] if r["sensitive"] == row["sensitive"] and r["A_c^inf"] == "true"]
            assert int(row["satisfying"]) == len(passing)
            values = [float(r["A_c^inf"]) for key, r in nodes.items() if key[0] == row["sensitive"]]
            assert len(passing) == sum(value <= 2.5 for value in values)
    assert all(row["A_d^inf"] == "false" or row["(4,2)-diversity"] == "true" for row in results["g_sets"])


def test_the_papers_page_says_what_they_print_of_adult(shared: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "papers.md").read_text("utf-8").split("\n## Experiments of the papers\n")[1]
    said = [line.removeprefix("#> ") for line in page.splitlines() if line.startswith("#> (")]
    status, out, err = script(
        tmp_path, "--adult", str(shared / "data" / "adult"), "--out", str(tmp_path), "--only", "acdg"
    )
    assert status == 0, err
    printed = [line for line in out.splitlines() if line.startswith("(") and not line.startswith("(d-g)")]
    assert printed == [line for line in said if line[1] in "acdg"]
    assert {line[1] for line in said} == set("abcdefg")


def test_the_papers_page_says_what_table_5_prints(shared: Path) -> None:
    with (shared / "golden" / "vldb_table5_printed.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    *counts, last = (sum(float(row[name]) <= 2.5 for row in rows) for name in list(rows[0])[1:])
    text = f"| {', '.join(map(str, counts))} and {last} of {len(rows)} nodes"
    assert text in (ROOT / "docs" / "papers.md").read_text("utf-8")


def test_an_experiment_that_is_not_there(tmp_path: Path) -> None:
    status, _, err = script(tmp_path, "--demo", "--out", str(tmp_path), "--only", "ah")
    assert status == 2
    assert "there is no experiment h" in err


def test_a_folder_without_the_data(tmp_path: Path) -> None:
    status, _, err = script(tmp_path, "--adult", str(tmp_path / "nothing"), "--out", str(tmp_path / "out"))
    assert status == 1
    assert "nothing/adult.csv" in err
