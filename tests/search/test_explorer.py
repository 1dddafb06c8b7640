"""The page of `qblock search --explore`: its own program chooses as a search does; no value is in it."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from report.in_page import program

from qblock.canonical import decimal_text
from qblock.lattice import Lattice
from qblock.report.explorer import explorer_page
from qblock.search import explorer
from qblock.search.compare import read_definitions
from qblock.search.explorer import Options, exact_text, explore
from qblock.search.run import open_task, run_search
from qblock.spec import Spec, read_spec

from .whole import HIERARCHIES, load, rows_of, text_of

pytestmark = pytest.mark.either_engine

PRIVACY = ["k_anonymity: {k: 2}", "entropy_l_diversity: {l: 1, sensitive: s}", "t_closeness: {t: 1, sensitive: s}"]
PRIVACY_OF = """k_anonymity: {{k: {}}}
entropy_l_diversity: {{l: {}, sensitive: s}}
t_closeness: {{t: {}, sensitive: s}}"""
CHOOSE_BY = "search: {{choose_by: {}}}\n"
NODES = "among(data, holding(data, JSON.parse(given)), false)"
METRICS = ("loss", "discernibility", "precision", "height")


def options_of(spec: Spec) -> Options:
    with open_task(spec) as task:
        return explore(task)


def chosen_of(context: Any, data: dict[str, Any], metric: str) -> tuple[int, ...] | None:
    """The node that the page chooses by a metric, of those that hold `given`."""
    number = [of["name"] for of in data["metrics"]].index(metric)
    place = context.eval(f"best(data, {NODES}, data.heights, {number})")
    return None if place < 0 else tuple(of[place] for of in data["levels"])


@pytest.mark.parametrize("seed", range(4))
def test_the_page_chooses_what_a_search_does(warehouse: Any, tmp_path: Path, seed: int) -> None:
    draw, chosen = random.Random(seed), 0
    spec = load(warehouse, tmp_path, rows_of(seed, 40), PRIVACY)
    data = options_of(spec).to_json()
    context = program("explorer.js", data)
    stops = [[Decimal(stop) for stop in model["bounds"][0]["stops"]] for model in data["models"][:3]]
    for _ in range(50):
        # Where the answer changes, and beside it.
        asked = [str(draw.choice([*own, *(stop + Decimal("0.001") for stop in own)])) for own in stops]
        asked[0], metric = str(draw.choice(stops[0])), draw.choice(METRICS)
        texts = PRIVACY_OF.format(*asked).splitlines()
        with open_task(read_spec(text_of(spec.source.url.url, texts, CHOOSE_BY.format(metric)), spec.path, {})) as task:
            result = run_search(task).chosen
        context.set("given", json.dumps([*([text] for text in asked), *[None] * (len(data["models"]) - 3)]))
        assert chosen_of(context, data, metric) == (None if result is None else result.node), (asked, metric)
        chosen += result is not None
    assert 0 < chosen < 50


@pytest.mark.parametrize("seed", range(3))
def test_it_does_so_by_any_of_its_models(warehouse: Any, tmp_path: Path, seed: int) -> None:
    """Those of the spec and those that it offers, by the lines that are pasted."""
    draw, chosen = random.Random(seed), 0
    spec = load(warehouse, tmp_path, rows_of(seed, 40), PRIVACY)
    data = options_of(spec).to_json()
    context = program("explorer.js", data)
    drawn = set[str]()
    assert len({model["name"] for model in data["models"]}) >= 9
    for _ in range(25):
        given: list[list[str] | None] = [None] * len(data["models"])
        for i in draw.sample(range(len(given)), draw.randint(1, 3)):
            # Weak ones, so that several hold together.
            given[i] = [
                draw.choice(bound["stops"][: len(bound["stops"]) // 2 + 1]) for bound in data["models"][i]["bounds"]
            ]
            drawn.add(data["models"][i]["name"])
        context.set("given", json.dumps(given))
        pasted = yaml.safe_load(context.eval("lines(data, JSON.parse(given), 0)"))["privacy"]
        privacy = [yaml.safe_dump(entry, default_flow_style=True, width=1000).strip()[1:-1] for entry in pasted]
        with open_task(
            read_spec(text_of(spec.source.url.url, privacy, CHOOSE_BY.format("loss")), spec.path, {})
        ) as task:
            result = run_search(task).chosen
        assert chosen_of(context, data, "loss") == (None if result is None else result.node), pasted
        chosen += result is not None
    assert chosen > 5
    assert len(drawn) >= 9


def test_what_must_be_shown_is_shown(warehouse: Any, tmp_path: Path) -> None:
    """The best of those that hold and are no coarser, by looking at each."""
    draw = random.Random(3)
    data = options_of(load(warehouse, tmp_path, rows_of(3, 40), PRIVACY)).to_json()
    context, choices = program("explorer.js", data), list(zip(*data["levels"], strict=True))
    assert data["maps"]
    order = data["metrics"][0]["order"]
    for _ in range(30):
        most = [draw.randrange(height + 1) for height in data["heights"]]
        holds = [draw.random() < 0.5 for _ in choices]
        context.set("text", json.dumps([holds, most]))
        place = context.eval("(([holds, most]) => best(data, holds, most, 0))(JSON.parse(text))")
        left = [
            i
            for i, levels in enumerate(choices)
            if holds[i] and all(level <= top for level, top in zip(levels, most, strict=True))
        ]
        assert place == min(left, key=order.__getitem__, default=-1)


@pytest.mark.parametrize("more", ["", "search: {recoding: multidimensional, box: {least: 2}}\n"])
def test_the_lines_to_paste_ask_for_what_is_shown(warehouse: Any, tmp_path: Path, more: str) -> None:
    """They replace what the spec has, also what a map asks for, which no pinned node may have beside it."""
    spec = load(warehouse, tmp_path, rows_of(2, 40), PRIVACY, more)
    data = options_of(spec).to_json()
    context = program("explorer.js", data)
    context.set("text", json.dumps([["3"], ["1.2"], ["0.9"], *[None] * (len(data["models"]) - 3)]))
    place = context.eval("const asked = JSON.parse(text); best(data, holding(data, asked), data.heights, 0)")
    pasted = yaml.safe_load(context.eval(f"lines(data, asked, {place})"))
    document = yaml.safe_load(text_of(spec.source.url.url, PRIVACY, more)) | pasted
    with open_task(read_spec(yaml.safe_dump(document), spec.path, {})) as task:
        chosen = run_search(task).chosen
    assert chosen is not None
    assert chosen.node == tuple(of[place] for of in data["levels"])


MORE_OF_MAPS = (
    "",
    "search: {recoding: multidimensional, choose_by: kl_divergence, box: {least: 4}, weights: {a: 3}}\n",
    "suppression_limit: 0.2\n",
)


def searched(spec: Spec, pasted: str) -> Any:
    """The map that a search of a spec finds with lines that were pasted into it. Nothing is suppressed."""
    document = yaml.safe_load(spec.path.read_text("utf-8")) | yaml.safe_load(pasted) | {"suppression_limit": 0}
    with open_task(read_spec(yaml.safe_dump(document), spec.path, {})) as task:
        recoded = run_search(task).recoded
        assert recoded is not None
        return recoded.stated, recoded.assessment.tightest, recoded.metrics(["loss", "discernibility"])


@pytest.mark.parametrize("more", MORE_OF_MAPS)
def test_a_map_is_what_a_search_of_its_lines_finds(warehouse: Any, tmp_path: Path, more: str) -> None:
    """The map itself, what the models say of it, and its metrics."""
    spec = load(warehouse, tmp_path, rows_of(6, 60), PRIVACY, more)
    spec.path.write_text(text_of(spec.source.url.url, PRIVACY, more), "utf-8")
    options = options_of(spec)
    data, count = options.to_json(), len(options.nodes)
    context, names = program("explorer.js", data), list(options.metrics)
    assert len(data["maps"]) >= 3
    for i, searched_for in enumerate(options.maps.maps):
        own = [of.model for of in searched_for.question.privacy]
        given = [
            [decimal_text(Fraction(getattr(model, data["models"][j]["bounds"][0]["parameter"])))]
            for j, model in enumerate(own)
        ]
        context.set("text", json.dumps([*given, *[None] * (len(data["models"]) - len(own))]))
        assert context.eval(f"holding(data, JSON.parse(text))[{count + i}]")
        stated, tightest, metrics = searched(spec, context.eval(f"lines(data, JSON.parse(text), {count + i})"))
        assert stated == searched_for.recoded.stated
        for j, verdict in enumerate(tightest):
            assert (
                exact_text(verdict.values[0].value)
                == data["models"][j]["bounds"][0]["values"][data["models"][j]["bounds"][0]["at"][count + i]]
            )
        assert {name: options.metrics[name][count + i] for name in metrics} == metrics
        assert data["smallest"][count + i] == tightest[0].values[0].value
        assert data["metrics"][names.index("height")]["order"][count + i] is None


def test_a_map_shows_what_nine_rows_of_ten_show(warehouse: Any, tmp_path: Path) -> None:
    """By the labels of its blocks."""
    options = options_of(load(warehouse, tmp_path, rows_of(6, 60), PRIVACY))
    data, seen = options.to_json(), set()
    for i, searched_for in enumerate(options.maps.maps, len(options.nodes)):
        recoded = searched_for.recoded
        labels = [
            [ladder.labels[number].level for number in recoded.specialized.tree.numbers[recoded.published, j]]
            for j, ladder in enumerate(recoded.specialized.tree.ladders)
        ]
        rows = recoded.specialized.groups.rows[recoded.kept].tolist()
        for j in range(2):
            shown = [sum(n for level, n in zip(labels[j], rows, strict=True) if level <= most) for most in range(4)]
            expected = next(level for level in range(4) if shown[level] >= 0.9 * 60)
            assert data["levels"][j][i] == expected
            seen.add(expected)
            assert sum(data["maps"][i - len(options.nodes)]["labels"][j]) == 60
    assert len(seen) > 1


def test_labels_are_pictures_of_their_rows(warehouse: Any, tmp_path: Path) -> None:
    rows = rows_of(1, 40)
    data = options_of(load(warehouse, tmp_path, rows, PRIVACY)).to_json()
    for column in data["columns"]:
        paths = HIERARCHIES[column["name"]]
        for level, bars in enumerate(column["labels"]):
            counts = Counter(paths[row[column["name"]]][level] for row in rows)
            order = dict.fromkeys(path[level] for path in paths.values())
            assert bars == [counts[label] for label in order if counts[label]]


def test_no_map_is_begun_after_its_time(warehouse: Any, tmp_path: Path) -> None:
    with open_task(load(warehouse, tmp_path, rows_of(6, 60), PRIVACY)) as task:
        times = iter([0.0, 0.0, 0.0])
        options = explore(task, clock=lambda: next(times, 1e9))
    assert 1 <= len(options.maps.maps) <= 3
    assert "maps are not here" in str(options.maps.why_not)
    assert "Some maps are left out" in explorer_page(options)


def test_a_spec_that_no_map_can_answer_has_none(warehouse: Any, tmp_path: Path) -> None:
    nodes_alone = [*PRIVACY, "nt_closeness: {n: 10, t: 0.5, sensitive: s, variant: lattice}"]
    options = options_of(load(warehouse, tmp_path, rows_of(1, 40), nodes_alone))
    assert options.to_json()["maps"] == []
    assert "Recoding maps are left out: " in explorer_page(options)


def test_no_name_in_the_lines_to_paste_stands_for_a_variable(warehouse: Any, tmp_path: Path) -> None:
    options = options_of(load(warehouse, tmp_path, rows_of(2, 40), PRIVACY))
    entropy = replace(options.requirements[1], sensitive=("a$b",))
    data = replace(options, requirements=(options.requirements[0], entropy, *options.requirements[2:])).to_json()
    assert data["models"][1]["yaml"] == ['sensitive: "a$$b"']


def test_what_fails_whatever_is_asked_is_no_choice(warehouse: Any, tmp_path: Path) -> None:
    """By the sizes of all groups, counted from the rows: those below the least box of the spec."""
    box = "search: {recoding: multidimensional, box: {least: 4}}\n"
    rows = rows_of(2, 40)
    data = options_of(load(warehouse, tmp_path, rows, PRIVACY, box)).to_json()
    small = [
        i
        for i, (a, b) in enumerate(zip(*data["levels"], strict=True))
        if min(Counter((HIERARCHIES["a"][row["a"]][a], HIERARCHIES["b"][row["b"]][b]) for row in rows).values()) < 4
    ]
    assert 0 < len(small) < len(data["smallest"])
    assert data["barred"] == small
    context = program("explorer.js", data)
    context.set("given", json.dumps([None] * len(data["models"])))
    holds = json.loads(context.eval("JSON.stringify(holding(data, JSON.parse(given)))"))
    assert [i for i, held in enumerate(holds) if not held] == small


def test_no_value_of_the_source_is_in_the_page(warehouse: Any, tmp_path: Path) -> None:
    rows = [{**row, "person": f"secret{i}"} for i, row in enumerate(rows_of(1, 40))]
    options = options_of(load(warehouse, tmp_path, rows, PRIVACY))
    data, page = json.dumps(options.to_json()), explorer_page(options)
    for value in ("secret", "a01", "a23", "a0", "b0", "b1", '"u"', '"uv"'):
        assert value not in data
    assert "secret" not in page
    assert "Internal" in page


def test_names_end_no_element_and_no_line(warehouse: Any, tmp_path: Path) -> None:
    """The data of the page, as a browser finds them: up to the first end of a script after their beginning."""
    hostile = '</script><script>x\n\u202e"\\'
    options = options_of(load(warehouse, tmp_path, rows_of(2, 40), PRIVACY))
    entropy = replace(options.requirements[1], sensitive=(hostile,))
    options = replace(options, requirements=(options.requirements[0], entropy, *options.requirements[2:]))
    page = explorer_page(options)
    text = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert text.isprintable()
    assert json.loads(text) == json.loads(json.dumps(options.to_json()))
    assert page.count("<script") == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_large_lattice_has_the_best_and_those_near_them(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """At the numbers that were searched for, the page still chooses what a search does."""
    spec = load(warehouse, tmp_path, rows_of(seed, 40), PRIVACY)
    numbers = [*((k, "1") for k in (2, 3, 5, 10, 11, 20)), *((2, entropy) for entropy in ("1.5", "2", "2.5", "3", "4"))]
    chosen = {}
    for k, entropy in numbers:
        texts = PRIVACY_OF.format(k, entropy, 1).splitlines()
        with open_task(read_spec(text_of(spec.source.url.url, texts), spec.path, {})) as task:
            result = run_search(task).chosen
        chosen[k, entropy] = None if result is None else result.node
    best = {(2, 1), *chosen.values()} - {None}
    monkeypatch.setattr(explorer, "MOST_EXPLORED", len(best))
    options = options_of(spec)
    assert set(options.nodes) == best
    assert 1 < len(best) < 6
    page, data = explorer_page(options), options.to_json()
    assert "There are 6 combinations of levels." in page
    assert f"{len(best)} of the 6 combinations of one level per column" in page
    context = program("explorer.js", data)
    for (k, entropy), node in chosen.items():
        context.set("given", json.dumps([[str(k)], [entropy], ["1"], *[None] * (len(data["models"]) - 3)]))
        assert chosen_of(context, data, "discernibility") == node, (k, entropy)


def test_the_nearest_nodes_are_fewest_steps_away(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, lattice = random.Random(5), Lattice((3, 2, 4))
    nodes = list(lattice.nodes())
    for most in (1, 2, 7, 30, len(nodes), 100):
        monkeypatch.setattr(explorer, "MOST_EXPLORED", most)
        best = draw.sample(nodes, 1)
        kept = explorer._nearest(lattice, best)
        assert kept == [node for node in nodes if node in kept]
        assert len(kept) == min(most, len(nodes))
        steps = {
            node: min(sum(abs(a - b) for a, b in zip(node, of, strict=True)) for of in (*best, lattice.top))
            for node in nodes
        }
        assert max(steps[node] for node in kept) <= min((steps[of] for of in nodes if of not in kept), default=99)
        assert most == 1 or {*best, lattice.top} <= set(kept)


@pytest.mark.parametrize("privacy", [PRIVACY, ["k_anonymity: {k: 41}"]])
def test_no_search_of_a_large_lattice_begins_after_the_time(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, privacy: list[str]
) -> None:
    """But the first: the node that the spec chooses is there, if there is one."""
    monkeypatch.setattr(explorer, "MOST_EXPLORED", 5)
    searched = list[int]()
    monkeypatch.setattr(explorer, "run_search", lambda *of, **more: searched.append(1) or run_search(*of, **more))
    spec = load(warehouse, tmp_path, rows_of(1, 40), privacy)
    with open_task(spec) as task:
        explore(task, clock=itertools.count(0, 1000).__next__)
    assert searched == [1]


def test_definitions_of_a_file_are_offered_once(warehouse: Any, tmp_path: Path) -> None:
    """With their own numbers, off, before the usual ones; those of the spec are not offered again."""
    spec = load(warehouse, tmp_path, rows_of(2, 40), PRIVACY)
    (tmp_path / "more.yaml").write_text(
        "privacy:\n  - t_closeness: {t: 0.45, distance: hierarchical, sensitive: s}\n"
        "  - t_closeness: {t: 0.35, distance: hierarchical, sensitive: s}\n"
        "  - alpha_k_anonymity: {alpha: 0.5, k: 3, values: [u], sensitive: s}\n  - k_anonymity: {k: 7}\n"
    )
    with open_task(spec) as task:
        data = explore(task, definitions=read_definitions(tmp_path / "more.yaml", spec)).to_json()
    offered = data["models"][len(PRIVACY) :]
    assert [model["name"] for model in offered[:2]] == ["t_closeness", "alpha_k_anonymity"]
    assert [offered[0]["fixed"], offered[0]["bounds"][0]["start"]] == [["distance: hierarchical"], "0.45"]
    assert not any(model["on"] for model in offered)
    assert len(offered) > 3
    assert "k_anonymity" not in {model["name"] for model in offered}
    given = [*[None] * len(PRIVACY), ["0.45"], ["0.5", "3"], *[None] * (len(offered) - 2)]
    context = program("explorer.js", data)
    context.set("given", json.dumps(given))
    pasted = context.eval("lines(data, JSON.parse(given), 0)").splitlines()
    assert pasted[1:3] == [
        "  - t_closeness: {t: 0.45, distance: hierarchical, sensitive: s}",
        "  - alpha_k_anonymity: {alpha: 0.5, k: 3, sensitive: s}  # and the other parameters of this entry",
    ]
    privacy = (tmp_path / "more.yaml").read_text("utf-8").splitlines()
    asked = [entry.removeprefix("  - ") for entry in (privacy[1], privacy[3])]
    with open_task(read_spec(text_of(spec.source.url.url, asked), spec.path, {})) as task:
        chosen = run_search(task).chosen
    assert chosen is not None
    assert chosen_of(context, data, "discernibility") == chosen.node


def test_bad_input_writes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "options.html"
    (tmp_path / "spec.yaml").write_text("version: 1\n", "utf-8")
    for more in ([], ["--json"]):
        start = "from qblock.cli import main; main()"
        command = [sys.executable, "-c", start, "search", str(tmp_path / "spec.yaml"), "--explore", str(page), *more]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 2
        assert not page.exists()
