"""What runs before a commit and on the build machine is what the Makefile and `.ci/run` run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


def recipe(target: str) -> list[str]:
    """The commands of a target, as the Makefile has them."""
    text = (ROOT / "Makefile").read_text("utf-8").replace("$(BIN)", ".venv/bin")
    (lines,) = re.findall(rf"(?m)^{target}:.*\n((?:\t.*\n)+)", text)
    return lines.replace("\t", "").splitlines()


def jobs() -> dict[str, Any]:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    return yaml.safe_load(text)["jobs"]


def commands(job: str) -> list[str]:
    return [step["run"] for step in jobs()[job]["steps"] if "run" in step]


def test_a_commit_is_checked_by_the_commands_of_make_lint_and_make_types() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert local["repo"] == "local"
    assert [hook["entry"] for hook in local["hooks"]] == recipe("lint") + recipe("types")
    for hook in local["hooks"]:
        # The whole tree, as make does; a system hook installs nothing.
        assert (hook["language"], hook["pass_filenames"], hook["always_run"]) == ("system", False, True)


def test_the_workflow_runs_the_build_and_makes_the_wheel_and_the_site() -> None:
    assert set(jobs()) == {"test", "wheel", "documents"}
    assert commands("test") == ["bash .ci/run"]
    assert (ROOT / ".ci" / "run").is_file()
    assert commands("wheel") == ["python -m pip wheel --no-deps --wheel-dir dist ."]
    assert commands("documents") == ["make docs"]
    assert jobs()["documents"]["env"]["QBLOCK_EDIT_URL"].endswith("/edit/main/docs/")


def test_the_workflow_has_the_oldest_python() -> None:
    oldest = re.search(r'requires-python = ">=(3\.\d+)', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert oldest is not None
    for job in jobs().values():
        versions = [step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
        assert versions == [oldest[1]]
