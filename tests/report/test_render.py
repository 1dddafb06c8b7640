"""A report as a file: whole without a network, readable in both colour schemes, and whatever a label says is a text."""

from __future__ import annotations

import base64
import hashlib
import importlib
import itertools
import json
import pkgutil
import re
from collections import Counter
from html.parser import HTMLParser
from typing import get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock import attacks as attack_classes
from qblock.attacks import Attacks
from qblock.report import pages as rooms
from qblock.report import rendered
from qblock.report.drawings import MOST
from qblock.report.pages import PAGES
from qblock.report.pages.readers import NAMES
from qblock.report.render import LONGEST
from qblock.results.report import ColumnShown
from report.reports import HOSTILE, changed, internal, of, report, with_map

VOID = {"meta", "br", "rect", "img", "link", "input"}


class Read(HTMLParser):
    """The elements of a file, in order, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def tags(self) -> Counter[str]:
        return Counter(tag for tag, _ in self.elements)


@pytest.mark.parametrize("label", HOSTILE)
def test_a_label_is_a_text_whatever_it_says(label: str) -> None:
    plain, read = Read(rendered(report(), "html")), Read(rendered(report(label, label, f"age{label[:30]}"), "html"))
    assert read.tags == plain.tags
    more = Read(rendered(internal(label, f"age{label[:30]}"), "html"))
    assert more.tags == Read(rendered(internal(), "html")).tags
    of_map = Read(rendered(with_map(label, f"age{label[:30]}"), "html"))
    assert of_map.tags == Read(rendered(with_map(), "html")).tags
    assert more.tags["script"] == 1
    assert {"script", "img", "link", "iframe", "object"}.isdisjoint(read.tags)
    text = "".join(read.texts)
    seen = label if len(label) <= LONGEST else label[: LONGEST - 1]
    for hidden in ("\u202e", "\u202c", "\u200b", "\n"):
        seen = seen.replace(hidden, repr(hidden)[1:-1])
    assert seen in text
    assert all(name[:2] != "on" for _, attributes in read.elements for name in attributes)


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_text_leaves_the_page_as_it_is(label: str, value: str) -> None:
    assert Read(rendered(report(label, value), "html")).tags == Read(rendered(report(), "html")).tags


@pytest.mark.parametrize("label", HOSTILE)
def test_a_label_stays_in_its_cell_of_markdown(label: str) -> None:
    lines = rendered(report(label, label), "md").splitlines()
    plain = rendered(report(), "md").splitlines()

    def form(text: list[str]) -> list[tuple[int, int]]:
        """Of each line the depth of its heading and how many cells it has."""
        bare = [re.sub(r"\\.", "", line) for line in text]
        return [(len(line) - len(line.lstrip("#")), line.count("|")) for line in bare]

    assert form(lines) == form(plain)
    both = [rendered(internal(one), "md").splitlines() for one in (label, "20-29")]
    assert form(both[0])[: len(form(plain))] == form(both[1])[: len(form(plain))]
    assert not any("<" in re.sub(r"\\.", "", line) for line in lines)


def test_the_file_needs_nothing_else() -> None:
    text = rendered(report(), "html")
    read = Read(text)
    assert not re.search(r"(https?:)?//", text)
    assert "url(" not in text
    targets = [found["href"] for tag, found in read.elements if tag == "a"]
    ids = Counter(found["id"] for _, found in read.elements if "id" in found)
    assert set(ids.values()) == {1}
    assert {str(target).removeprefix("#") for target in targets} <= set(ids)
    policy = next(found["content"] for _, found in read.elements if found.get("http-equiv"))
    assert str(policy).startswith("default-src 'none'")


def test_pictures_and_tables_have_names_and_headings_follow_each_other() -> None:
    read = Read(rendered(internal(), "html"))
    for tag, found in read.elements:
        if tag == "svg" and found.get("aria-hidden") != "true":
            assert found["role"] == "img"
            assert re.fullmatch(
                r"\d+\.\d %|3 nodes, 1 of them minimal\.|Smallest epsilon .* follows\.|Blocks over .* labels\.",
                found["aria-label"] or "",
            )
        if tag == "th":
            assert found["scope"] in ("row", "col")
        if tag == "div" and found.get("class") == "wide":
            # What is wider than the window is scrolled with the keyboard.
            assert (found["tabindex"], found["role"]) == ("0", "region")
            assert found["aria-label"]
    assert read.tags["table"] == read.tags["caption"]
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert ("html", {"lang": "en"}) in read.elements


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(scheme: int) -> None:
    """A contrast of 4.5 (WCAG 2.2, 1.4.3), and of 3 for bars (1.4.11)."""
    text = rendered(report(), "html")
    blocks = re.findall(r":root \{([^}]*)\}", text)
    colours = dict(re.findall(r"--(\w+): (#\w{6})", blocks[scheme]))

    def contrast(one: str, other: str) -> float:
        light, dark = sorted((luminance(colours[one]), luminance(colours[other])), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    pairs = [(text, "page") for text in ("text", "dim", "link")]
    pairs += [("text", "head"), ("good", "goodback"), ("bad", "badback")]
    assert all(contrast(*pair) >= 4.5 for pair in pairs)
    ends = [[int(colours[name][i : i + 2], 16) for i in (1, 3, 5)] for name in ("bar", "page")]
    mixed = [round(MOST * bar + (1 - MOST) * page) for bar, page in zip(*ends, strict=True)]
    colours["deepest"] = "#" + "".join(f"{one:02x}" for one in mixed)
    assert contrast("text", "deepest") >= 4.5
    assert contrast("bar", "page") >= 3
    assert contrast("bar", "all") >= 3


def test_a_bar_says_what_readers_see_and_markdown_does_in_words() -> None:
    text = rendered(report(), "html")
    row = re.search(r'<th scope="row"><bdi class="s">age</bdi></th>\s*<td class="bar".*?</td>', text, re.DOTALL)
    assert row is not None
    pieces = re.findall(r'<title>(.*?)</title><rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"', row[0])
    assert pieces == [
        ("as it is in the source: 50.0 %", "plain", "0.00", "50.00"),
        ("in ranges or coarser labels: 25.0 %", "coarse", "50.00", "25.00"),
        ("hidden (*): 25.0 %", "hidden", "75.00", "25.00"),
    ]
    assert '<span class="said">20-29</span>' in row[0]
    heads = next(line for line in rendered(report(), "md").splitlines() if line.startswith("| column | what"))
    assert heads == "| column | what readers see | most frequent | role | in the source |"
    assert "| age | 20-29 | 20-29 | quasi-identifier | a whole number |" in rendered(report(), "md")


def test_each_bar_and_drawing_has_a_legend() -> None:
    """Of whatever has marks of its own, the classes of these; the lines of a plot are named in the drawing."""
    text = rendered(internal(), "html")
    parts = re.findall(r"<(table|figure)\b(.*?)</\1>", text, re.DOTALL)
    drawn = [(kind, part) for kind, part in parts if "<svg" in part]
    assert {kind for kind, _ in drawn} == {"table", "figure"}
    for kind, part in drawn:
        legend = re.search(r'<ul class="legend">(.*?)</ul>', part, re.DOTALL)
        if legend is None:
            assert 'class="figure curves"' in part
            continue
        named = set(re.findall(r'<rect class="([\w ]*)"', legend[1]))
        if kind == "table":
            marks = set(re.findall(r'<rect class="(\w+)"', part.replace(legend[0], "")))
            assert marks <= named
        assert len(re.findall("<li>", legend[1])) >= 2


def test_a_weight_has_no_more_digits_than_a_person_reads() -> None:
    given = report()
    column = of(ColumnShown, "weight", "weight", None, "the share", "not a filter")
    sample = changed(given.shown.sample, columns=("age", "weight"), rows=(("0.8941176470588236",) * 2, (None, None)))
    shown = changed(given.shown, columns=(*given.shown.columns, column), sample=sample)
    assert "| 0.8941176470588236 | 0.89412 |" in rendered(changed(given, published=shown), "md")


def test_a_label_is_beside_its_share_of_the_source() -> None:
    text = rendered(internal(), "html")
    table = text[text.index("Shares of the rows by age") :].partition("</table>")[0]
    rows = [
        re.findall(r'<title>(.*?)</title><rect class="(\w+)" x="[\d.]+" width="([\d.]+)"', row)
        for row in table.split("<tr>")[2:]
    ]
    kept, missing, more = "in both: 25.0 %", "missing in the release: 25.0 %", "more than in the source: 25.0 %"
    assert rows == [
        [(kept, "plain", "50.00"), (missing, "hidden", "50.00")],
        [(kept, "plain", "50.00"), (more, "coarse", "50.00")],
        [(kept, "plain", "50.00")],
    ]
    markdown = rendered(internal(), "md")
    assert "| 20-29 | 50.0 % | 25.0 % | 25.0 % less than in the source |" in markdown
    assert "| NULL | 25.0 % | 50.0 % | 25.0 % more than in the source |" in markdown
    assert "| age, disease | Cramer's V | 0.750 | 0.500 | 0.250 |" in markdown
    assert "| age | source | 40.5 | 30 | 40 | 51 |" in markdown
    assert r"| age | release | \- | \- | \- | \- |" in markdown


def test_a_guarantee_that_fails_is_the_verdict() -> None:
    kept, failed = rendered(report(), "html"), rendered(report(holds=False), "html")
    assert "keeps what it promises" in kept
    assert "1 of them cannot be counted again" in kept
    assert 'class="failed"' in failed
    assert "does not keep what it promises: everybody is hidden" in failed
    assert '<bdi class="s">NO</bdi>' in failed


def test_the_script_of_the_picture_is_the_one_that_the_page_allows() -> None:
    text = rendered(internal(), "html")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "script-src" not in rendered(report(), "html")
    assert not re.search(r"fetch|XMLHttp|import\(|innerHTML|eval", script)


def test_marks_of_the_picture_say_what_they_are() -> None:
    read = Read(rendered(internal(), "html"))
    marks = [found for tag, found in read.elements if tag == "circle" and "point" not in (found["class"] or "")]
    kinds = [found["class"] for found in marks if found["cx"] != "10"]
    assert kinds == ["satisfied published", "satisfied minimal frontier chosen", "fails"]
    heights = [float(found["cy"] or 0) for found in marks if found["cx"] != "10"]
    assert heights == sorted(heights)
    assert "age 2; k 4; 3 rows suppressed" in "".join(read.texts)


def test_what_a_verification_found_is_the_first_thing_of_its_page() -> None:
    assert "Verified: readers see what was checked" in rendered(internal(), "md")
    assert "**A verification found: it is gone.**" in rendered(internal(problems=("it is gone",)), "md")


def test_without_a_population_it_says_how_to_name_one() -> None:
    given = internal()
    none = changed(given, internal=changed(given.inside, beliefs=()))
    assert "No population was named" in rendered(none, "html")
    assert "of somebody who knows the population (20-29)" in rendered(given, "html")


def test_what_is_published_as_it_is_is_not_promised() -> None:
    given = report()
    ward = of(ColumnShown, "ward", "insensitive", "text", "as it is in the source", "as it is", 2)
    shown = changed(given.shown, columns=(*given.shown.columns, ward))
    assert "Nothing is hidden in ward" in rendered(changed(given, published=shown), "md")
    assert "Nothing is hidden" not in rendered(given, "md")


def test_a_report_without_a_sensitive_column() -> None:
    given = report()
    columns = tuple(column for column in given.shown.columns if column.name != "disease")
    shown = changed(given.shown, columns=columns, attacks=())
    assert "No column is sensitive" in rendered(changed(given, published=shown), "html")


def test_each_attack_that_exposes_rows_has_a_name() -> None:
    figures = get_type_hints(Attacks, vars(attack_classes))
    exposing = {
        name
        for name, hint in figures.items()
        for found in (hint, *get_args(hint))
        if "rows" in getattr(found, "__dataclass_fields__", {})
    }
    # Nobody who reads a report is asked which values somebody can rule out.
    assert exposing - {"eliminated"} == set(NAMES)


def test_each_page_is_listed() -> None:
    modules = [module.name for module in pkgutil.iter_modules(rooms.__path__)]
    every = [vars(importlib.import_module(f"{rooms.__name__}.{name}")) for name in modules]
    pages = {name: page for names in every for name, page in names.items() if name.endswith("_page")}
    assert sorted(pages) == sorted(f"{page.id}_page" for page in PAGES)
    assert set(pages.values()) == {page.parts for page in PAGES}
    assert len({page.id for page in PAGES}) == len({page.title for page in PAGES}) == len(PAGES)
    headings = re.findall(r"^## (.*)$", rendered(report(), "md"), re.MULTILINE)
    assert headings == [page.title for page in PAGES if not page.internal]
    headings = re.findall(r"^## (.*) \(internal\)$", rendered(with_map(), "md"), re.MULTILINE)
    assert headings == [page.title for page in PAGES]
    nodes = re.findall(r"^## (.*) \(internal\)$", rendered(internal(), "md"), re.MULTILINE)
    assert nodes == [title for title in headings if title not in ("Blocks of the map", "The frontier")]


def test_json_is_the_report() -> None:
    assert json.loads(rendered(report(), "json")) == json.loads(json.dumps(report().to_dict()))
