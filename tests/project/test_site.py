"""The reference of the documents' site, which is made from the code, leaves nothing out; the site has every page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

import qblock
from qblock.cli.app import application
from qblock.models import REGISTRY
from qblock.publish.helpers import KINDS
from qblock.results.schemas import ANSWERS
from qblock.spec.schema import json_schema

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    made: dict[str, str] = runpy.run_path(str(ROOT / "site" / "reference.py"))["pages"]()
    return made


def headings(text: str) -> list[str]:
    return re.findall(r"(?m)^##+ (.*)$", text)


def commands(group: Any, path: str = "qblock") -> list[str]:
    found = []
    for name, command in group.commands.items():
        found += [f"{path} {name}", *commands(command, f"{path} {name}")] if hasattr(command, "commands") else []
        found += [] if hasattr(command, "commands") else [f"{path} {name}"]
    return found


def test_every_command_has_its_options(pages: dict[str, str]) -> None:
    text = pages["reference/command-line.md"]
    assert headings(text) == commands(get_command(application()))
    search = text.split("## qblock search\n")[1].split("\n## ")[0]
    for parameter in get_command(application()).commands["search"].params:  # type: ignore[attr-defined]
        if parameter.param_type_name == "option":
            assert any(f"{option}" in search for option in parameter.opts)


def test_every_key_of_a_spec_is_there(pages: dict[str, str]) -> None:
    text, schema = pages["reference/spec.md"], json_schema()
    keys = set(schema["properties"])
    for name in ("Source", "Attribute", "Search", "Publish", "Versions", "Ranges", "Dates", "Cutting", "CsvFile"):
        keys |= set(schema["$defs"][name]["properties"])
    assert [key for key in sorted(keys) if f"| `{key}` |" not in text] == []


def test_every_model_view_answer_and_name_is_there(pages: dict[str, str]) -> None:
    assert headings(pages["reference/models.md"]) == [model.name for model in REGISTRY]
    assert set(headings(pages["reference/views.md"])) == {f"stays_{kind}" for kind in KINDS}
    assert headings(pages["reference/json.md"]) == list(ANSWERS)
    names = {name for name in qblock.__all__ if callable(getattr(qblock, name))}
    assert names <= set(headings(pages["reference/python.md"]))
    assert "Release.publish" in headings(pages["reference/python.md"])


def test_the_pages_that_are_made_are_those_that_others_link_to(pages: dict[str, str]) -> None:
    from project.test_documents import MADE

    assert list(pages) == [f"reference/{name}.md" for name in MADE]


def test_nothing_of_this_machine_is_in_the_reference(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert str(ROOT) not in text
        assert " object at 0x" not in text


def test_the_site_has_every_page() -> None:
    listed = yaml.safe_load((ROOT / "site" / "mkdocs.yml").read_text("utf-8").replace("!!python", "python"))["nav"]

    def paths(part: Any) -> list[str]:
        if isinstance(part, dict):
            part = list(part.values())
        return [path for one in part for path in paths(one)] if isinstance(part, list) else [part]

    found = paths(listed)
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md") if path.parent.name != "decisions"}
    assert {path for path in found if not path.startswith("reference/")} - {"decisions/"} == pages
    assert sorted(path for path in found if path.startswith("reference/")) == sorted(
        runpy.run_path(str(ROOT / "site" / "reference.py"))["pages"]()
    )


def test_the_pictures_are_what_the_script_draws() -> None:
    drawn = runpy.run_path(str(ROOT / "site" / "pictures.py"))["PICTURES"]
    files = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    assert files == {name: draw().svg() for name, draw in drawn.items()}
    page = (ROOT / "docs" / "concepts.md").read_text("utf-8")
    assert set(re.findall(r"!\[[^\]]+\]\(pictures/([\w-]+)\.svg\)", page)) == set(drawn)
    assert all("<title " in text and "<desc " in text for text in files.values())
