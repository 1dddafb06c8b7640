"""The reference of the documents' site, which is made from the code, leaves nothing out; the site has every page."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from importlib import import_module
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
    # As a build of the site has it: the page of the messages is made beside.
    sys.path.insert(0, str(ROOT / "site"))
    made: dict[str, str] = runpy.run_path(str(ROOT / "site" / "reference.py"))["pages"]()
    return made


def headings(text: str) -> list[str]:
    return re.findall(r"(?m)^##+ (.*)$", text)


def commands(group: Any, path: str = "qblock") -> list[str]:
    names = []
    for name, command in group.commands.items():
        names += commands(command, f"{path} {name}") if hasattr(command, "commands") else [f"{path} {name}"]
    return names


def test_every_command_has_a_page_with_its_options(pages: dict[str, str]) -> None:
    named = commands(get_command(application()))
    for name in named:
        path = f"commands/{name.removeprefix('qblock ').replace(' ', '-')}.md"
        text = pages[f"reference/{path}"]
        assert text.startswith(f"# {name}\n")
        assert headings(text) == ["Usage", "Options", "Examples", "Exit status"]
        assert f"[`{name}`]({path})" in pages["reference/command-line.md"]
    assert sum(path.startswith("reference/commands/") for path in pages) == len(named)
    for parameter in get_command(application()).commands["search"].params:  # type: ignore[attr-defined]
        if parameter.param_type_name == "option":
            assert any(f"{option}" in pages["reference/commands/search.md"] for option in parameter.opts)


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

    assert [path for path in pages if "/commands/" not in path] == [f"reference/{name}.md" for name in MADE]


def test_nothing_of_this_machine_is_in_the_reference(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert str(ROOT) not in text
        assert " object at 0x" not in text


def test_the_site_has_every_page() -> None:
    listed = yaml.safe_load((ROOT / "site" / "mkdocs.yml").read_text("utf-8").replace("!ENV ", ""))["nav"]

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


@pytest.mark.needs("chromium")
def test_the_site_is_searched_from_its_folder_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QBLOCK_EDIT_URL", "https://git.example.org/qblock/edit/main/docs/")
    pytest.importorskip("material", reason="needs the documents' extra: pip install -e '.[docs]'")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(ROOT / "site" / "mkdocs.yml")]
    subprocess.run([*build, "--site-dir", str(tmp_path)], check=True)
    said: list[str] = []
    with import_module("playwright.sync_api").sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if not request.url.startswith("file:") else None)
        page.goto((tmp_path / "reference" / "commands" / "search.html").as_uri())
        assert f"qblock {qblock.__version__}" in page.text_content("footer")
        assert "Made from the code" in page.text_content("article")
        assert page.query_selector("a[rel=edit]") is None
        page.fill("[data-md-component=search-query]", "crosswalk")
        page.wait_for_selector(".md-search-result__link")
        links = [link.get_attribute("href") for link in page.query_selector_all(".md-search-result__link")]
        page.goto(next(link for link in links if "operations.html" in link))
        assert "Source: docs/operations.md" in page.text_content("article")
        edit = page.get_attribute("a[rel=edit]", "href")
        assert edit == "https://git.example.org/qblock/edit/main/docs/operations.md"
        browser.close()
    assert said == []
