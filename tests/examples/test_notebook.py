"""The notebook for analysts: each cell is run by a kernel of this environment, and shows what the notebook says.

`QBLOCK_NOTEBOOKS=update` writes what it shows into it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)


def run(path: Path, folder: Path) -> dict[str, Any]:
    """The notebook with what its cells show, run in a folder of its own."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [shown(output) for output in cell.outputs]
    result: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return result


def shown(output: Any) -> Any:
    """An output as it is kept: a table as a browser has it, without the look of a library's version."""
    if "data" in output:
        html = output.data.get("text/html")
        output.data = {"text/plain": output.data["text/plain"]} if html is None else {"text/html": STYLE.sub("", html)}
        output.metadata = {}
    if "execution_count" in output:
        output.execution_count = None
    return output


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the kernel, which finds the package that is tested and leaves nothing in the home of its user."""
    (tmp_path / "home").mkdir()
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name.lower()))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.mark.needs("notebook")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_cell_shows_what_the_notebook_says(path: Path, kernel: Path) -> None:
    again = run(path, kernel)
    if os.environ.get("QBLOCK_NOTEBOOKS") == "update":
        path.write_text(json.dumps(again, indent=1, ensure_ascii=False) + "\n", "utf-8")
    kept = json.loads(path.read_text("utf-8"))
    for number, (cell, other) in enumerate(zip(kept["cells"], again["cells"], strict=True), 1):
        assert other == cell, f"cell {number} shows something else: QBLOCK_NOTEBOOKS=update writes it"
    assert sum(cell["cell_type"] == "code" for cell in kept["cells"]) >= 8


def test_there_is_one() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["analyst"]
    text = NOTEBOOKS[0].read_text("utf-8")
    assert "people_midpoints" in text
    assert '"error"' not in text
