"""The compare command: what a person and what a program reads."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from search.whole import load, rows_of, text_of

from qblock.cli.app import run

pytestmark = pytest.mark.either_engine

ASKED = ["k_anonymity: {k: 3}", "distinct_l_diversity: {l: 2, sensitive: s}"]


@pytest.fixture
def spec(warehouse, tmp_path: Path) -> str:
    url = load(warehouse, tmp_path, rows_of(9, 30), ASKED).source.url.url
    (tmp_path / "spec.yaml").write_text(text_of(url, ASKED), "utf-8")
    return str(tmp_path / "spec.yaml")


def test_for_a_person(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", spec, "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    text = " ".join(shown.out.split())
    assert "30 rows. 41 definitions were compared at each of 6 nodes" in text
    assert "Smallest epsilon of s by node (a, b) and adversary (class, stubbornness, prior)" in text
    assert "distinct_l_diversity(l=2) s admits every node that k_anonymity(k=3) admits, and 1 more" in text
    assert "None does." in text
    assert "k_anonymity(k=3) grants no epsilon of s: it looks at no sensitive value" in text
    assert "Against class IV, who may know anything, no definition grants any." in text


def test_what_is_granted_beside_what_is_reached(spec: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("privacy:\n  - recursive_cl_diversity: {c: 2, l: 2, sensitive: s}\n", "utf-8")
    assert run(["compare", spec, "--quiet", "-s", "s", "--definitions", str(more)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Epsilon of s that each definition grants against each adversary, and the largest at a node" in text
    granted = text[text.index("that each definition grants") :]
    of = granted[granted.index("recursive_cl_diversity(c=2, l=2) s I 1000 uniform") :]
    assert re.search(r"III uniform +2\.66667 ", of)  # V = 4: max(4 * 2/3, 3 * 3/4)


def test_for_a_program(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("privacy:\n  - frequency_l_diversity: {l: 2, sensitive: s}\n", "utf-8")
    options = ["--sensitive", "s", "--definitions", str(more), "--csv", str(tmp_path / "all.csv"), "--json"]
    assert run(["compare", spec, *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [entry["definition"] for entry in answer["asked"]][-1] == "frequency_l_diversity(l=2) s"
    assert answer["sensitive"] == ["s"]
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == answer["nodes_total"] == 6


def test_what_is_wrong_is_said_and_nothing_printed(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", spec, "--sensitive", "a"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "qblock: --sensitive a: not a sensitive attribute of the spec; valid: s, y\n"


def test_two_recodings_for_a_person(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", spec, "--recoding", "both", "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    text = " ".join(shown.out.split())
    assert "30 rows. Two recodings under the same privacy models, with at most 0 rows suppressed in each. " in text
    assert "full-domain: a level 2, b level 0. The condition is monotone here" in text
    assert "multidimensional: 6 boxes after 4 rounds of splits" in text
    assert "figure full-domain multidimensional published blocks 3 6 suppressed rows 0 0 average block size " in text
    assert "over 200 drawn queries" in text
    assert "asked full-domain multidimensional k_anonymity: k=3 k 7 k 3 distinct_l_diversity (s): l=2 l 3 l 2" in text
    assert "a suppressed to * for 100 % as it is for 53 %, groups like " in text
    assert " for 23 %, suppressed to * for 23 % b as it is for 100 %" in text


def test_two_recodings_for_a_program(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", spec, "--recoding", "both", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer["recodings"]) == list(answer["why"]) == ["full_domain", "multidimensional"]
    assert [side["blocks"] for side in answer["recodings"].values()] == [3, 6]
    assert run(["compare", spec, "--recoding", "full_domain", "--json"]) == 0
    assert "recodings" not in json.loads(capsys.readouterr().out)


def test_recodings_that_nothing_satisfies_end_with_status_3(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(spec).read_text("utf-8")
    Path(spec).write_text(text.replace("k: 3", "k: 31"), "utf-8")
    assert run(["compare", spec, "--recoding", "both", "--json"]) == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out)["recodings"] == {"full_domain": None, "multidimensional": None}
    assert "k_anonymity asks k 31; the most general node satisfies k 30" in shown.err
    assert run(["compare", spec, "--recoding", "both", "--quiet"]) == 3
    text = capsys.readouterr().out
    assert "full-domain: no answer: no node satisfies" in text
    assert "figure" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sensitive", "s"], "--sensitive: it is about definitions at every node"),
        (["--definitions", "more.yaml"], "--definitions: it is about definitions at every node"),
        (["--csv", "all.csv"], "leave --csv out, or write --recoding full_domain"),
        (["--explore", "all.html"], "leave --explore out, or write --recoding full_domain"),
    ],
)
def test_options_of_definitions_do_not_go_with_two_recodings(
    spec: str, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", spec, "--recoding", "both", *options]) == 2
    shown = capsys.readouterr()
    assert (shown.out, said in shown.err) == ("", True)


def test_a_page_offers_the_definitions(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more, page = tmp_path / "more.yaml", tmp_path / "options.html"
    more.write_text("privacy:\n  - frequency_l_diversity: {l: 2.5, sensitive: s}\n", "utf-8")
    assert run(["compare", spec, "--definitions", str(more), "--explore", str(page), "--quiet"]) == 0
    assert "internal facts of the source" in capsys.readouterr().out
    data = json.loads(page.read_text("utf-8").split('id="data">')[1].split("</script>")[0])
    of_s = [model for model in data["models"] if model["name"] == "frequency_l_diversity" and "s" in model["sensitive"]]
    assert [bound["start"] for model in of_s for bound in model["bounds"]] == ["2.5"]


@pytest.mark.parametrize("option", ["--json", "--csv", "--parquet", "--workload", "--sensitive"])
def test_a_page_is_no_answer(spec: str, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    page, value = tmp_path / "options.html", [] if option == "--json" else ["s"]
    assert run(["compare", spec, "--explore", str(page), option, *value]) == 2
    assert f"--explore writes a page and prints no answer; leave {option} out" in capsys.readouterr().err
    assert not page.exists()


def test_an_unknown_recoding_is_refused(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", spec, "--recoding", "multidimensional"]) == 2
    assert "--recoding multidimensional: valid: full_domain, both" in capsys.readouterr().err
