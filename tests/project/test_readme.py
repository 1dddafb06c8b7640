"""The README and the pages that it sends to against the program: commands, models and the spec that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from typer.main import get_command

from qblock.cli.app import application
from qblock.models.examples import markdown
from qblock.spec import read_spec

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = (ROOT / "docs" / "commands.md").read_text("utf-8")


def test_the_table_of_models_is_the_registry() -> None:
    assert markdown() in (ROOT / "docs" / "privacy-models.md").read_text("utf-8")


def test_every_command_is_named_and_every_named_command_exists() -> None:
    commands = set(get_command(application()).commands)  # type: ignore[attr-defined]
    named = set(re.findall(r"(?m)(?:`|^ {4})qblock ([a-z]+)", COMMANDS))
    assert named == commands


def test_the_spec_shown_is_a_spec(tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(version: 1\n.*?)```", README, re.S)
    assert block is not None
    spec = read_spec(block[1], tmp_path / "release.yaml", {"WAREHOUSE_URL": "postgresql://u@h/d"})
    assert spec.quasi_identifiers == ("zip_code", "age", "gender")
    assert [q.model.name for q in spec.privacy] == ["k_anonymity", "entropy_l_diversity", "t_closeness"]
    assert block[0] in (ROOT / "docs" / "your-table.md").read_text("utf-8")


def test_the_demo_prints_what_is_shown(tmp_path: Path) -> None:
    (block,) = re.findall(r"```text\n(.*?)```", README, re.S)
    shown = lines(block)
    command = [str(Path(sys.executable).with_name("qblock")), "demo", "demo"]
    # As wide as it is where nobody says how wide a page is.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    printed = lines(done.stdout.replace(f"{tmp_path.resolve()}/", ""))
    assert printed[: len(shown)] == shown
    # Make adds a line, and the whole is read on one screen.
    assert 15 <= len(shown) < len(printed) < 40


def lines(text: str) -> list[str]:
    """Without the blanks at their ends; of how long somebody has waited, which depends on the machine, nothing."""
    known = re.sub(r"oldest\s+(less\s+than\s+a|\d+)\s+(minutes?|seconds?)\)", "oldest ...)", text)
    return [line.rstrip() for line in known.strip().splitlines()]
