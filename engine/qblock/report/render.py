"""A report as a file: HTML that needs nothing else, Markdown, or JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from qblock.printable import printable, printable_json
from qblock.report.frameworks.pages import framework_pages
from qblock.report.pages import PAGES
from qblock.report.parts import UNBROKEN, Page
from qblock.results import report as results

Format = Literal["html", "md", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
LONGEST = 200
"""Characters of a text in a cell; the rest of a longer one is left out."""
TEMPLATES = Path(__file__).parent / "templates"
SPECIAL = re.compile(r"([\\`*_\[\]<>|~&]|^[#+-])")


class Report(results.Report):
    """A report that can be written to a file."""

    def text(self, form: Format = "html") -> str:
        """The file: `html` (which needs nothing else), `md` or `json`."""
        return rendered(self, form)


def rendered(report: results.Report, form: Format) -> str:
    """The text of the file."""
    if form == "json":
        return printable_json(json.dumps(report.to_dict(), ensure_ascii=False, indent=2)) + "\n"
    pages = [(page, parts) for page in _pages(report) if (parts := page.parts(report))]
    script = "" if report.internal is None else scripts("report.js")
    return page(f"report.{form}.j2", script, report=report, pages=pages)


def _pages(report: results.Report) -> Sequence[Page]:
    """Those of the document that was named, or those that there is something for."""
    if report.framework is not None:
        return framework_pages(report.framework, internal=report.internal is not None)
    there = {True: report.internal is not None, False: report.published is not None}
    return [page for page in PAGES if there[page.internal]]


def scripts(*files: str) -> str:
    """The programs of a page, one after the other."""
    return "".join((TEMPLATES / file).read_text("utf-8") for file in files)


def page(template: str, script: str, **values: Any) -> str:
    """The text of a template with its script, which its policy allows by the digest."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template(template).render(script=Markup(script), digest=digest, **values) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": short, "md": markdown, "width": _width, "lines": escape}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.tests["kind"] = lambda part, name: type(part).__name__ == name
    return environment


def _shown(value: object) -> object:
    """What a template puts in, without what a terminal obeys or a browser does not show; our own pieces have lines."""
    if isinstance(value, Markup):
        return Markup(printable(value, keep="\n"))
    return printable(value) if isinstance(value, str) else value


def short(text: str) -> str:
    """A text that fits a cell."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\u2026"


def _width(text: str | None) -> Markup:
    """A label of few characters stays in one line: a browser would break 20-39 after the hyphen. One of several words
    (w) is broken in a table of many columns."""
    if text is not None and len(text) > UNBROKEN:
        return Markup("")
    return Markup(' class="s w"' if text is not None and " " in text else ' class="s"')


def markdown(text: str) -> str:
    """A text as it is, in a line of Markdown."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
