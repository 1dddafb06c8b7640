"""The page of `qblock search --explore`: its own program chooses as a search does; no value is in it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qblock.errors import InputError
from qblock.report.explorer import embedded, explorer_page
from qblock.report.render import TEMPLATES
from qblock.search import explorer
from qblock.search.explorer import Options, explore, yaml_text
from qblock.search.run import open_task, run_search
from qblock.spec import Spec
from qblock.spec.document import parse

from .whole import load, rows_of

pytestmark = pytest.mark.either_engine

PRIVACY = ["k_anonymity: {k: 2}", "entropy_l_diversity: {l: 1, sensitive: s}", "t_closeness: {t: 1, sensitive: s}"]
METRICS = ("loss", "discernibility", "precision", "height")


def options_of(spec: Spec) -> Options:
    with open_task(spec) as task:
        return explore(task)


def program(data: dict[str, Any]) -> Any:
    """The page's own program, in a JavaScript engine."""
    context = pytest.importorskip("quickjs", reason="quickjs has no wheel for this Python").Context()
    context.eval((TEMPLATES / "explorer.js").read_text("utf-8"))
    context.set("text", json.dumps(data))
    context.eval("const data = JSON.parse(text)")
    return context


@pytest.mark.parametrize("seed", range(2))
def test_the_page_chooses_what_a_search_does(warehouse: Any, tmp_path: Path, seed: int) -> None:
    draw, rows, chosen = random.Random(seed), rows_of(seed, 40), 0
    loaded: list[str] = []

    def once(*table: Any) -> str:
        loaded[:] = loaded or [warehouse(*table)]
        return loaded[0]

    data = options_of(load(once, tmp_path, rows, PRIVACY)).to_json()
    context, names = program(data), [metric["name"] for metric in data["metrics"]]
    for _ in range(12):
        asked = [draw.choice("12345"), draw.choice(["1", "1.5", "2", "2.5"]), draw.choice(["0.1", "0.3", "1"])]
        metric = draw.choice(METRICS)
        entries = [f"k_anonymity: {{k: {asked[0]}}}", f"entropy_l_diversity: {{l: {asked[1]}, sensitive: s}}"]
        entries.append(f"t_closeness: {{t: {asked[2]}, sensitive: s}}")
        spec = load(once, tmp_path, rows, entries, f"search: {{choose_by: {metric}}}\n")
        with open_task(spec) as task:
            result = run_search(task).chosen
        given = json.dumps([*asked, *[None] * (len(data["models"]) - 3)])
        context.set("given", given)
        call = "best(data, holding(data, JSON.parse(given).map((t) => t && [t])), data.heights, {})"
        place = context.eval(call.format(names.index(metric)))
        levels = None if place < 0 else tuple(of[place] for of in data["levels"])
        assert levels == (None if result is None else result.node)
        chosen += result is not None
    assert chosen


def test_no_value_of_the_source_is_in_the_page(warehouse: Any, tmp_path: Path) -> None:
    rows = [
        {**row, "s": {"u": "u", "v": "v", "w": "w"}[row["s"]], "person": f"secret{i}"}
        for i, row in enumerate(rows_of(1, 40))
    ]
    options = options_of(load(warehouse, tmp_path, rows, PRIVACY))
    data, page = json.dumps(options.to_json()), explorer_page(options)
    for value in ("secret", "a01", "a23", "a0", "b0", "b1", '"u"', '"uv"'):
        assert value not in data
    assert "secret" not in page
    assert "Internal" in page


def test_names_end_no_element_and_no_line() -> None:
    hostile = '</script><script>x\n\u202e"\\'
    text = embedded({"name": hostile})
    assert "<" not in text
    assert "\u202e" not in text
    assert json.loads(text) == {"name": hostile}
    document = parse(f"{yaml_text(hostile)}: 1\n", "spec.yaml", {})
    assert list(document.data) == [hostile]
    assert [yaml_text(name) for name in ("age", "null", "a b")] == ["age", '"null"', '"a b"']


def test_a_large_lattice_is_refused(warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "MOST_EXPLORED", 5)
    with pytest.raises(InputError, match=r"6 nodes.*5 at most.*max: LEVEL"):
        options_of(load(warehouse, tmp_path, rows_of(1, 20), PRIVACY))


def test_bad_input_writes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "options.html"
    (tmp_path / "spec.yaml").write_text("version: 1\n", "utf-8")
    for more in ([], ["--json"]):
        start = "from qblock.cli import main; main()"
        command = [sys.executable, "-c", start, "search", str(tmp_path / "spec.yaml"), "--explore", str(page), *more]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 2
        assert not page.exists()
