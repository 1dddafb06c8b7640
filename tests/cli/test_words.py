"""Words of answers: which requirement binds, that most is hidden, ten minimal nodes, and a line for each run."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from release.jobs import Job

from qblock.cli.app import run
from qblock.cli.output import display
from qblock.cli.render import few_shown, limit, minimal_lines
from qblock.results.base import Guarantee

pytestmark = pytest.mark.either_engine


def entry(model: str, asked: Any, satisfied: Any, holds: bool | None = True, *sensitive: str) -> Guarantee:
    value = {"parameter": "p", "value": satisfied, "attained": True}
    fields = {"model": model, "holds": holds, "sensitive": sensitive, "asked": {"p": asked}, "values": [value]}
    return Guarantee.model_validate(fields)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([entry("k", 4, 5), entry("t", 0.3, 0.29, True, "ill")], "Limit: t of ill (p asked 0.3, satisfied 0.29)"),
        ([entry("k", 4, 4), entry("t", 0.3, 0.29)], "Limit: k (p asked 4, satisfied 4)"),
        ([entry("k", 4, 5), entry("t", 0.3, 0.31, False)], "Not met: t (p asked 0.3, satisfied 0.31)"),
        ([entry("k", 4, 5), entry("l", 2, 2, False)], "Not met: l (p asked 2, satisfied 2)"),
        ([entry("k", 4, "inf"), entry("t", 0.3, None), entry("z", 0, 1), entry("m", [1], 1)], None),
        ([entry("k", 4, 5, None)], None),
        ([], None),
    ],
)
def test_the_requirement_with_the_least_room_binds(entries: list[Guarantee], said: str | None) -> None:
    assert limit(entries) == said


def test_most_hidden_is_of_little_use() -> None:
    names = ["a", "b", "c", "d"]
    assert few_shown(2, names) is None
    assert few_shown(3, names) == "3 of 4 quasi-identifiers are suppressed: of little use"
    assert few_shown(1, names[:1]) == "1 of 1 quasi-identifier is suppressed: of little use"


def test_ten_minimal_nodes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [[11 - i, i] for i in range(12)]
    words = {name: tuple(f"{name} at {level}" for level in range(12)) for name in ("a", "b")}
    display(minimal_lines(nodes, words, every=False))
    ten = capsys.readouterr().out
    assert ten.count("a at") == 10
    assert ten.rstrip().endswith("... and 2 more: --nodes minimal")
    display(minimal_lines(nodes, words, every=True))
    out = capsys.readouterr().out
    assert (out.count("a at"), "more" in out) == (12, False)


def test_a_node_of_many_levels_is_not_cut_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = {f"column_{i}": ("suppressed to *",) for i in range(60)}
    display(minimal_lines([[0] * 60], words, every=False))
    out = capsys.readouterr().out
    assert "…" not in out
    assert "".join(re.findall(r"^  ([0,]+)", out, re.M)) == ",".join("0" * 60)
    joined = "".join(out.split())
    assert all(f"column_{i}" in joined for i in range(60))
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_release_verify_rollback_and_plan_say_what_readers_see(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.set(search={"node": [1, 2]}, versions={"joint": "none"})
    path, said = str(job.write()), {}
    for command in (["release", path, "--quiet"], ["verify", path], ["rollback", path, "1"], ["plan", path]):
        if command[0] == "rollback":
            assert run(["release", path, "--force", "--quiet"]) == 0
        capsys.readouterr()
        assert run(command) == 0
        said[command[0]] = " ".join(capsys.readouterr().out.split())
    for words in (
        "zip: by the first 4 of 5 digits (3 values) age: in ranges of 20 (2 values) Limit: k_anonymity (k asked 3, ",
        "satisfied 4) model",
    ):
        assert all(words in said[command] for command in ("release", "verify", "rollback"))
    assert "as version 1 zip: by the first 4 of 5 digits age: in ranges of 20 1. Take" in said["plan"]
    assert run(["release", path, "--force", "--quiet", "--json"]) == 0
    assert not {"values", "in_words"} & json.loads(capsys.readouterr().out).keys()
    assert run(["verify", path, "--json"]) == 0
    assert not {"values", "in_words", "node"} & json.loads(capsys.readouterr().out).keys()
