"""Reports in a browser: no error, nothing that axe-core finds wrong, no wider than the window, and arrow keys."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from qblock.report import rendered
from report.test_render import HOSTILE, internal, report

PAGES = {
    "for readers": report(),
    "failed": report(holds=False),
    "internal": internal(),
    "tag": internal("</script><script>document.title = 'x'</script>"),
    "long": internal("a" * 10_000),
    "right to left": internal(HOSTILE[2]),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, which fetches nothing."""
    program = shutil.which("chromium")
    assert program is not None, "chromium is not installed; apt-get install chromium"
    with import_module("playwright.sync_api").sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_report_in_a_browser(browser: Any, tmp_path: Path, name: str, scheme: str, width: int) -> None:
    (tmp_path / "report.html").write_text(rendered(PAGES[name], "html"), "utf-8")
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if "report.html" not in request.url else None)
    page.goto((tmp_path / "report.html").as_uri())
    assert page.title() != "x"
    found = import_module("axe_playwright_python.sync_playwright").Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    page.close()


@pytest.mark.needs("chromium")
def test_rows_of_a_table_are_looked_for_by_their_words(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(rendered(internal(), "html"), "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    rows = "table.filtered tbody tr"
    assert page.locator(rows).count() == 2
    page.get_by_label("Rows with the words").fill("AGE published")
    assert page.locator(f"{rows}:visible").all_text_contents() == page.locator(rows).all_text_contents()[1:]
    assert "1 of 2 rows" in page.locator("output").all_text_contents()
    page.get_by_label("Rows with the words").fill("")
    assert page.locator(f"{rows}:visible").count() == 2
    page.close()


@pytest.mark.needs("chromium")
def test_the_lattice_is_followed_with_the_arrow_keys(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(rendered(internal(), "html"), "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.focus("svg.lattice")
    told = [page.text_content("output")]
    for key in ("ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        told.append(page.text_content("output"))
    levels = [text.partition(";")[0] for text in told]
    assert levels == ["age 1", "age 2", "age 2", "age 1", "age 0", "age 2", "age 0"]
    assert told[0] == "age 1; k 2; loss 0.5"
    page.close()
