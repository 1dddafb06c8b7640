"""Commands run in this process, specs for them, and jobs to publish."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration.sources import spec_text
from release.jobs import copy_job, first_runs, job, job_templates, make_job, released  # noqa: F401

from qblock.cli.app import run


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.out)


@pytest.fixture
def qblock(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`qblock("search", spec)`: run a command as the command line does."""

    def ran(*arguments: object) -> Ran:
        capfd.readouterr()
        status = run([str(argument) for argument in arguments])
        return Ran(status, *capfd.readouterr())

    return ran


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`spec(url, table, attributes, privacy, **more)`: a spec file whose URL comes from the environment."""

    def write(url: str, table: str, attributes: Mapping[str, Any], privacy: Sequence[Any] = (), **more: Any) -> Path:
        monkeypatch.setenv("URL", url)
        file = tmp_path / "release.yaml"
        file.write_text(spec_text(table, attributes, privacy or [{"k_anonymity": {"k": 1}}], **more), encoding="utf-8")
        return file

    return write
