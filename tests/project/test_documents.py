"""The documents against the code and each other: what is cited exists, links lead somewhere, no key is forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from project import prose

from qblock.results.base import Answer
from qblock.results.release import Published, Verified
from qblock.spec.schema import json_schema

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FOLDERS = ("engine", "tests", "docs", "migrations", "sql", "examples", "benchmarks")
PAGES = (*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("examples/**/*.md")))
MADE = ("command-line", "spec", "models", "views", "json", "python", "messages")
"""The pages of the site that are made from the code; test_site.py holds that they are these."""
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))

NAMED = re.compile(r"(?<![\w./-])((?:docs/(?:[\w-]+/)*)?[\w-]+\.md)\b")
NUMBERS = r"\d+(?:\.\d+)?(?:(?:,| and| to|, and) \d+(?:\.\d+)?)*"
CITED = re.compile(rf"\b([\w-]+\.md)(?:\]\([\w./-]+\))?,? (?:(?:items?|sections?) )?({NUMBERS}|E\d+)\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def texts() -> Iterator[tuple[str, str]]:
    """What may cite: the path and the text of each file, a sentence that goes on in the next line in one."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".sql")]
    for path in [*files, *ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "Makefile"]:
        if path != Path(__file__).resolve():
            yield path.relative_to(ROOT).as_posix(), re.sub(r"\s+(?:(?:#|--) )?", " ", path.read_text("utf-8"))


def page(name: str, of: str) -> Path | None:
    """The document that a file means by a name: beside it, in docs/, or at the top."""
    near = (ROOT / of).parent / name
    return next((path for path in (near, DOCS / name, ROOT / name) if path.is_file()), None)


@cache
def places(path: Path) -> frozenset[str]:
    """What can be cited of a document: sections "2", their numbered items "2.8", errata "E13"."""
    found, section = set(), ""
    for line in path.read_text("utf-8").splitlines():
        if heading := re.match(r"#+ (\d+)\. ", line):
            section = heading[1]
            found.add(section)
        elif line.startswith("#"):
            section = ""
        elif section and (item := re.match(r"(\d+)\. ", line)):
            found.add(f"{section}.{item[1]}")
        found |= set(re.findall(r"\bE\d+\b", line)) if line.startswith("- **E") else set()
    return frozenset(found)


def numbers(written: str) -> set[str]:
    """`2 to 4 and 12` as 2, 3, 4, 12."""
    found = set(re.findall(r"E?\d+(?:\.\d+)?", written))
    for first, last in re.findall(r"\b(\d+) to (\d+)\b", written):
        found |= {str(number) for number in range(int(first), int(last))}
    return found


def unresolved(of: str, text: str) -> list[str]:
    """What a text cites that no document has."""
    names = {name for name in NAMED.findall(text) if page(name, of) is None}
    for name, written in CITED.findall(text):
        path = page(name, of)
        names |= {f"{name} {one}" for one in numbers(written) - (places(path) if path else frozenset())}
    return sorted(names)


@pytest.mark.parametrize(
    "text",
    ["nosuch.md", "models.md section 99", "models.md sections 2 to 99", "models.md 2.99", "papers.md E99"],
)
def test_a_citation_that_leads_nowhere_is_found(text: str) -> None:
    assert unresolved("engine/qblock/any.py", f"as it says ({text})")


def test_a_citation_that_leads_somewhere_is_let_through() -> None:
    text = "models.md section 10, models.md sections 2 to 7, models.md 2.8, papers.md E13, docs/threats.md"
    assert not unresolved("engine/qblock/any.py", text)


def test_every_citation_in_code_tests_and_documents_resolves() -> None:
    assert {of: found for of, text in texts() if (found := unresolved(of, text))} == {}


def test_comments_do_cite_the_documents() -> None:
    cited = {name for of, text in texts() if of.startswith("engine") for name, _ in CITED.findall(text)}
    assert cited >= {"models.md", "releases.md"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(path: Path) -> None:
    links = [link.split("#")[0] for link in LINK.findall(path.read_text("utf-8")) if "://" not in link]
    made = {DOCS / "reference" / f"{name}.md" for name in MADE}
    assert [link for link in links if link and not ((at := path.parent / link).exists() or at in made)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_of_the_code_that_are_named_exist(path: Path) -> None:
    named = re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|sql))`", path.read_text("utf-8"))
    places = (path.parent, ROOT, ROOT / "engine" / "qblock")
    assert [name for name in named if not any((place / name).is_file() for place in places)] == []


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_a_record_that_the_index_lists(path: Path) -> None:
    text = path.read_text("utf-8")
    title = re.match(r"# (\d{4})\. (.+)\n", text)
    assert title is not None
    assert path.name.startswith(f"{title[1]}-")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "What was seen", "When to revisit"]
    assert f"[{title[2]}]({path.name})" in (path.parent / "README.md").read_text("utf-8")


def properties(schema: Any) -> Iterator[str]:
    """Every key that a JSON Schema knows."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from properties(part)


def words(name: str) -> set[str]:
    """Every word of what a document has in backticks."""
    return {
        word for code in re.findall(r"`([^`]+)`", (DOCS / name).read_text("utf-8")) for word in re.findall(r"\w+", code)
    }


def test_the_page_of_the_spec_names_every_key() -> None:
    schema = json_schema()
    del schema["properties"]["privacy"]  # models and their parameters: privacy-models.md and models.md
    assert set(properties(schema)) - words("spec.md") == set()


@pytest.mark.parametrize("result", [Published, Verified])
def test_the_page_of_the_answers_names_every_key(result: type[Answer]) -> None:
    printed = {name for name, field in result.model_fields.items() if not field.exclude}
    assert printed - words("json.md") == set()


def test_sentences_are_short() -> None:
    """Fewer than 22 words on average on each page, which a reader need not read twice."""
    long = {page.path: page.mean for page in prose.pages() if page.mean >= 22}
    assert long == {}
