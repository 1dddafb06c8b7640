"""Writes the package's examples, which are in the wheel as in a checkout, into a folder of the person who asks."""

from __future__ import annotations

import shlex
from pathlib import Path

from qblock.errors import InputError, QblockError
from qblock.resources import directory
from qblock.results.examples import Example, ExampleFiles

MEANINGS = {
    "airflow": "a DAG for Airflow 3 that runs a release",
    "cron": "a script for cron: it prints only what a person must know",
    "dbt": "a job around dbt, macros, and a test of what is published",
    "experiments": "the experiments of two papers, on the Adult data or on invented people",
    "notebooks": "a notebook for analysts: from a data frame to answers that say how far off they are",
    "openlineage": "a hook that writes an OpenLineage event for each run",
    "papers": "tables of the papers, with a spec for each",
}
"""What each folder of `examples/` is."""
FIRST = "inpatients.yaml"
"""The spec of the papers to look at first."""


def write_examples(folder: Path) -> ExampleFiles:
    """Write every example into a folder, which is new or empty.

    Raises InputError, before anything is written, where the folder holds something; QblockError where it cannot be
    written.
    """
    source = directory("examples")
    names = example_names(source)
    try:
        _check(folder)
        for name in names:
            _copy(source / name, folder / name)
    except OSError as error:
        raise QblockError(f"the examples cannot be written to {folder}: {error.strerror or error}") from error
    papers = folder / "papers"
    return ExampleFiles(
        directory=folder,
        examples=tuple(Example(name=name, what=what) for name, what in MEANINGS.items()),
        files=tuple(folder / name for name in names),
        next=(
            f"python {shlex.quote(str(papers / 'make.py'))} {shlex.quote(str(papers))}",
            f"qblock search {shlex.quote(str(papers / FIRST))}",
        ),
    )


def example_names(source: Path) -> list[Path]:
    """The files of the examples, as paths within their folder; without what running them leaves there."""
    files = (path.relative_to(source) for path in source.rglob("*") if path.is_file())
    return sorted(name for name in files if not any(part.startswith((".", "__pycache__")) for part in name.parts))


def _check(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a new folder")
    if folder.exists() and any(folder.iterdir()):
        inner = shlex.quote(str(folder / "qblock-examples"))
        raise InputError(f"{folder} is not empty; write into a new folder: qblock examples {inner}")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    data = source.read_bytes()
    target.write_bytes(data)
    if data.startswith(b"#!"):
        # By its first line: an installer may drop the mode. Readers of the file may run it.
        mode = target.stat().st_mode
        target.chmod(mode | (mode & 0o444) >> 2)
