"""Reports in a browser: no error, nothing that axe-core finds wrong, no wider than the window, and arrow keys."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pytest

from qblock.api import propose_spec
from qblock.releases import Release
from qblock.report import rendered
from report.in_page import CARDS, CONTRASTS, CUT
from report.reports import HOSTILE, changed, internal, report, with_map
from report.test_frameworks import shown_in, spec_of

SHEET = 680
"""Pixels between the margins of a sheet of A4."""


def many_columns() -> Any:
    """With a table of more columns than stand beside each other."""
    given = report()
    names = tuple(f"the_column_no_{i}" for i in range(14))
    sample = changed(given.shown.sample, columns=names, rows=(tuple(f"20-29 or {i}0-{i}9" for i in range(14)),) * 40)
    return changed(given, published=changed(given.shown, sample=sample))


PAGES = {
    "many columns": many_columns(),
    "for readers": report(),
    "failed": report(holds=False),
    "internal": internal(),
    "tag": internal("</script><script>document.title = 'x'</script>"),
    "long": internal("a" * 10_000),
    "right to left": internal(HOSTILE[2]),
    "for a regulator": shown_in("hipaa", spec_of()),
    "map": with_map(),
    "long map": with_map("a" * 10_000),
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
@pytest.mark.parametrize("name", PAGES)
def test_a_report_in_a_browser(browser: Any, tmp_path: Path, name: str, width: int) -> None:
    (tmp_path / "report.html").write_text(rendered(PAGES[name], "html"), "utf-8")
    page = browser.new_page(color_scheme="light", viewport={"width": width, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if "report.html" not in request.url else None)
    page.goto((tmp_path / "report.html").as_uri())
    assert page.title() != "x"
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert min(page.evaluate(CONTRASTS)) >= [4.5]
    # The same elements in other colours.
    page.emulate_media(color_scheme="dark")
    assert min(page.evaluate(CONTRASTS)) >= [4.5]
    assert violations(page, runOnly=["cat.color"]) == []
    check_cards(page, width)
    assert said == []
    page.close()


def violations(page: Any, **options: Any) -> list[tuple[str, list[str]]]:
    """What axe-core finds wrong, and where. options: of its run."""
    axe = import_module("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in found]


def check_cards(page: Any, width: int) -> None:
    """On a phone each cell is below the name of its column; elsewhere the names are above."""
    cells = page.evaluate(CARDS)
    assert cells
    for name, label, within in cells:
        assert (label, within) == (json.dumps(name, ensure_ascii=False), True) if width < 640 else label == "none"
    assert page.locator("thead").first.bounding_box()["height"] > 1 or width < 640


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", PAGES)
def test_a_report_on_paper(browser: Any, tmp_path: Path, name: str) -> None:
    """Black on white whatever the screen is, no table cut at the edge, and bars said in words."""
    (tmp_path / "report.html").write_text(rendered(PAGES[name], "html"), "utf-8")
    page = browser.new_page(viewport={"width": SHEET, "height": 1000}, color_scheme="dark")
    page.goto((tmp_path / "report.html").as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(CUT) == []
    assert min(page.evaluate(CONTRASTS)) >= [4.5]
    said = page.locator(".said")
    # In the order of a document nothing is a bar.
    assert (said.count() == 0) == (name == "for a regulator")
    assert all(said.nth(i).bounding_box()["height"] > 1 for i in range(min(said.count(), 3)))
    sheets = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", page.pdf(prefer_css_page_size=True))
    assert {(round(float(across)), round(float(down))) for across, down in sheets} == {(595, 842)}
    page.close()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1200])
def test_rows_of_a_table_are_looked_for_by_their_words(browser: Any, tmp_path: Path, width: int) -> None:
    (tmp_path / "report.html").write_text(rendered(internal(), "html"), "utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
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


@pytest.fixture(scope="module")
def choices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a table with a hostile name, in a file."""
    folder, name = tmp_path_factory.mktemp("choices"), "</script><b>"
    with duckdb.connect(str(folder / "w.duckdb")) as database:
        database.execute(
            f"CREATE TABLE t AS SELECT if(i < 400, i % 40, 3) AS age, ['f', 'm'][1 + i % 2] AS \"{name}\", "
            "['a', 'b', 'c'][1 + i % 3] AS s FROM range(600) r(i)"
        )
    attributes = {
        "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10, 20]}},
        name: {"role": "quasi_identifier", "hierarchy": "suppress"},
        "s": "sensitive",
    }
    spec = {
        "version": 1,
        "release": "people",
        "source": {"url": f"duckdb:///{folder / 'w.duckdb'}", "table": "t"},
        "attributes": attributes,
        "privacy": [{"k_anonymity": {"k": 5}}],
    }
    (folder / "options.html").write_text(Release(spec).explorer(), "utf-8")
    return folder / "options.html"


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 768, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_to_choose_from_answers_to_the_keyboard(browser: Any, choices: Path, scheme: str, width: int) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(choices.as_uri())
    first = page.inner_text("#answer")
    assert first.startswith("You can publish this: 600 rows in groups of at least 10 rows")
    page.focus("#s-0-0")
    page.keyboard.press("End")
    assert page.inner_text("#answer").startswith("You can publish this: 600 rows in groups of at least 600 rows")
    assert "k_anonymity: {k: 600}" in page.inner_text("#yaml")
    page.fill("#t-0-0", "601")
    assert page.inner_text("#answer") == "Nothing here holds this. Ask for less."
    page.fill("#t-0-0", "5")
    assert page.inner_text("#answer") == first
    page.focus("#picture")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#looked").startswith(("Holds", "Fails"))
    page.fill("#t-0-0", "11")
    page.check("#maps")
    assert "The best is a map" in page.inner_text("#answer")
    assert "recoding: multidimensional" in page.inner_text("#yaml")
    assert page.locator("#marks path:visible").count() > page.locator("#marks path").count() - 9
    page.select_option("#colour", label="k of k anonymity")
    assert not page.is_visible("#states")
    assert re.fullmatch(r"[\d,]+( to [\d,]+)?", page.inner_text("#q4"))
    page.focus("#picture")
    page.keyboard.press("ArrowRight")
    assert re.search(r", k \d+: ", page.inner_text("#looked"))
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#copy")
    page.wait_for_selector("#copied:not(:empty)")  # the clipboard answers later
    assert page.inner_text("#copied") in ("Copied.", "Selected. Copy with Ctrl+C.")
    page.click("summary:text('Its metrics')")
    assert min(page.evaluate(CONTRASTS)) >= [4.5]
    check_cards(page, width)
    assert said == []
    page.close()


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of roles of a table with hostile names, and columns to decide."""
    folder, names = tmp_path_factory.mktemp("roles"), ("</script><b>", HOSTILE[2], "a" * 300)
    with duckdb.connect(str(folder / "w.duckdb")) as database:
        flags = ", ".join(f'i * i // {n + 9} % 3 AS "{name}"' for n, name in enumerate(names))
        database.execute(
            f"CREATE TABLE t AS SELECT i AS patient_id, i % 40 AS age, '130' || i % 7 AS zip, {flags}, "
            "['flu', 'cold', 'cough'][1 + i * i // 5 % 3] AS diagnosis FROM range(400) r(i)"
        )
    page = propose_spec(f"duckdb:///{folder / 'w.duckdb'}", "t", folder, page=True).page
    assert page is not None
    return page


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 768, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_roles_answers_to_the_keyboard(browser: Any, roles: Path, scheme: str, width: int) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if request.url != roles.as_uri() else None)
    page.goto(roles.as_uri())
    written = (roles.parent / "release.yaml").read_text("utf-8")
    assert page.text_content("#yaml") == written
    assert page.inner_text("#answer").endswith("before you give it a role: diagnosis")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == f"#{page.get_by_role('group', name='diagnosis').get_attribute('id')}"
    page.get_by_role("group", name="diagnosis").get_by_role("radio", name="quasi_identifier").focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#answer").startswith("The spec is ready: ")
    assert "  diagnosis: sensitive  #" in page.text_content("#yaml")
    for name in ("age", "zip"):
        page.get_by_role("group", name=name).get_by_role("radio", name="left out").check()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert min(page.evaluate(CONTRASTS)) >= [4.5]
    page.click("#copy")
    page.wait_for_selector("#copied:not(:empty)")  # the clipboard answers later
    assert page.inner_text("#copied") in ("Copied.", "Selected. Copy with Ctrl+C.")
    page.click("#reset")
    assert page.text_content("#yaml") == written
    assert page.title() != "x"
    assert said == []
    page.close()


@pytest.mark.needs("chromium")
def test_the_page_of_roles_on_paper(browser: Any, roles: Path) -> None:
    """Black on white, and nothing cut at the edge."""
    page = browser.new_page(viewport={"width": SHEET, "height": 1000}, color_scheme="dark")
    page.goto(roles.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= SHEET
    assert min(page.evaluate(CONTRASTS)) >= [4.5]
    page.close()
