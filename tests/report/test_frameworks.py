"""Reports in the order of documents: each section is answered once, by figures, by declared text, or not at all."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from release.jobs import Job, MakeJob

from qblock.errors import InputError
from qblock.frequency.arrays import Sizes
from qblock.report import Report, read_report, rendered
from qblock.report.frameworks import FRAMEWORKS, Facts, framework_of
from qblock.report.frameworks.answers import technique, variables
from qblock.report.frameworks.hipaa import ANY, to_compare
from qblock.report.frameworks.sections import KEYS
from qblock.report.pages.chances import ESTIMATES
from qblock.report.risks import People, risks
from qblock.results.frameworks import SectionShown
from qblock.results.report import ColumnShown, Published, SizeShown
from qblock.results.risk import AttackerShown, BeforeShown
from qblock.spec import Spec
from qblock.spec.load import read_spec
from report.reports import HOSTILE, changed, internal, of, report
from report.test_read import visits
from report.test_render import Read

SPEC = """\
version: 1
release: r
source: {url: "duckdb:///w.duckdb", table: main.people}
entity: person
attributes:
  person: identifying
  age: {role: quasi_identifier, hierarchy: {ranges: [10]}}
  disease: sensitive
privacy: [{k_anonymity: {k: 2}}]
publish: {url: "duckdb:///p.duckdb", schema: published, view: people}
"""
EVERY = pytest.mark.parametrize("name", FRAMEWORKS)
CLAIMS = re.compile(
    r"compli(?:es|ant|ance)|conform|certif(?:y|ied)\b|anonymous under|is anonymous|is de-identified|lawful|"
    r"(?:meets|fulfils|satisfies) (?:the|its|all) (?:require|standard|rule|law|guid)",
    re.I,
)


def spec_of(more: str = "") -> Spec:
    return read_spec(SPEC + more)


def measured(spec: Spec, shown: Published, blocks: dict[int, int]) -> Published:
    """blocks: how many there are of each size."""
    size, number = (np.array(values) for values in zip(*sorted(blocks.items()), strict=True))
    people = People(Sizes(size, number), "each row is a person", int((size * number).sum()))
    names = {column.name: column.role for column in shown.columns}
    return changed(shown, **risks(spec, people, shown.version, shown.guarantees, shown.attacks, names))


def shown_in(name: str, spec: Spec, published: Published | None = None) -> Report:
    published = published or measured(spec, report().shown, {2: 2})
    shown = FRAMEWORKS[name].shown(Facts(name, published, None))
    return changed(report(), published=published, framework=shown)


def section(name: str, title: str, spec: Spec, published: Published | None = None) -> SectionShown:
    framework = shown_in(name, spec, published).framework
    assert framework is not None
    return next(section for section in framework.sections if section.title == title)


def said(name: str, title: str, more: str = "", published: Published | None = None) -> str:
    return " ".join(section(name, title, spec_of(more), published).sentences)


@EVERY
def test_each_section_is_answered_once(name: str) -> None:
    framework = FRAMEWORKS[name]
    assert framework.name == name
    assert framework.read
    assert len({one.title for one in framework.sections}) == len(framework.sections) > 9
    for one in framework.sections:
        assert sum(answer is not None for answer in (one.figure, one.declared, one.gap)) == 1, one.title
        assert one.source
        assert one.wants.endswith(".")
        assert one.declared is None or one.declared in KEYS


@EVERY
def test_it_is_a_file_in_each_form(name: str) -> None:
    given = shown_in(name, spec_of())
    titles = [one.title for one in FRAMEWORKS[name].sections]
    headings = re.findall(r"^## (.*)$", rendered(given, "md"), re.M)
    assert headings == [FRAMEWORKS[name].title, *titles, "Signature"]
    text = rendered(given, "html")
    read = Read(text)
    assert not re.search(r"(https?:)?//", text)
    ids = Counter(attributes["id"] for _, attributes in read.elements if "id" in attributes)
    assert set(ids.values()) == {1}
    assert {str(link["href"]).removeprefix("#") for tag, link in read.elements if tag == "a"} <= set(ids)
    labels = Counter(item["aria-label"] for tag, item in read.elements if tag == "div" and item.get("role") == "region")
    assert set(labels.values()) == {1}
    assert f"<title>20-29, version 2: {FRAMEWORKS[name].title}</title>" in text
    assert [one["title"] for one in given.to_dict()["framework"]["sections"]] == titles
    assert "framework" not in report().to_dict()


@EVERY
def test_nothing_is_claimed(name: str) -> None:
    text = rendered(shown_in(name, spec_of()), "md")
    assert CLAIMS.findall(text) == []
    assert text.count("It is no statement that the release meets it") == 1


@pytest.mark.parametrize("text", ["it complies with", "HIPAA-compliant", "is anonymous", "meets the requirements of"])
def test_a_claim_is_seen(text: str) -> None:
    assert CLAIMS.search(text)


@pytest.mark.parametrize("key", KEYS)
def test_what_the_spec_lacks_is_a_line_to_paste(key: str) -> None:
    titles = [(name, one.title) for name, of_ in FRAMEWORKS.items() for one in of_.sections if one.declared == key]
    assert titles
    line = KEYS[key].line
    text = SPEC + line + "\n"
    if key.startswith("attributes"):
        text = SPEC.replace("age: {role: quasi_identifier,", line[:-1] + ",")
    for name, title in titles:
        lacking = section(name, title, spec_of())
        assert lacking.answered == "gap"
        assert lacking.sentences == (
            f"Not answered: qblock cannot know this. Write it into {key} of the spec: `{line}`",
        )
        declared = section(name, title, read_spec(text))
        assert declared.answered == "declared"
        assert declared.sentences[0].startswith(f"Declared in {key} of the spec: ")


def test_who_declared_the_roles_stands_beside_them() -> None:
    """In each document that has the columns, in the page of the report, and a line to paste where nobody is named."""
    of_columns = {
        name: [of for of in framework.sections if of.figure is variables] for name, framework in FRAMEWORKS.items()
    }
    assert all(len(sections) == 1 for sections in of_columns.values())
    for name, (own,) in of_columns.items():
        open_ = section(name, own.title, spec_of()).sentences[-1]
        assert open_.startswith("Who declared the roles: Not answered: ")
        named = section(name, own.title, read_spec(SPEC + open_.split("`")[1] + "\n"))
        assert named.sentences[-1] == "Who declared the roles: A. Weber, data protection officer."


def test_declared_text_is_said_as_it_is() -> None:
    assert said("wp29", "Purpose and context", 'report: {context: {purpose: "research"}}').endswith(": research")
    controls = section("tehdas", "Safeguards", spec_of("report: {controls: [users register, rows are logged]}"))
    assert [sentence.split(": ")[1] for sentence in controls.sentences] == ["users register", "rows are logged"]


@pytest.mark.parametrize(
    ("threshold", "on", "verdict"),
    [
        ("1/11", "highest", "at most the declared threshold of 1/11: it is met"),
        ("0.09", "highest", "above the declared threshold of 0.09: it is NOT met"),
        ("0.05", "mean", "at most the declared threshold of 0.05: it is met"),
        ("0.0499", "mean", "above the declared threshold of 0.0499: it is NOT met"),
    ],
)
def test_the_threshold_is_compared_exactly(threshold: str, on: str, verdict: str) -> None:
    """Of 5 blocks with 100 rows, the smallest of 11: at most 1/11, and 1/20 in the mean. It is of a first version."""
    more = f'report: {{threshold: {threshold}, threshold_on: {on}, threshold_because: "EMA Policy 0070"}}'
    published = measured(spec_of(more), changed(report().shown, version=1), {11: 1, 22: 3, 23: 1})
    shown = section("ema", "Residual risk", spec_of(more), published)
    assert verdict in shown.sentences[0]
    assert shown.holds is verdict.endswith("is met")
    text = rendered(shown_in("ema", spec_of(more), published), "html")
    assert ("figures: NOT met" in text) is not shown.holds
    assert ("open; NOT met: Residual risk<" in text) is not shown.holds
    assert "Because: EMA Policy 0070" in said("ema", "Threshold", more, published)
    rows = section("ema", "Residual risk", spec_of(more), published).rows
    assert [row[1:3] for row in rows] == [("9.1 %", "5.0 %"), ("-", "5.0 %")]


def test_without_a_threshold_it_says_how_to_declare_it() -> None:
    lacking = section("ema", "Threshold", spec_of())
    assert lacking.answered == "gap"
    line = lacking.sentences[0].split("`")[1]
    assert section("ema", "Threshold", spec_of(line)).answered == "figure"
    residual = section("ema", "Residual risk", spec_of())
    assert residual.answered == "figure"
    assert residual.holds is None
    assert residual.sentences[1].startswith("To somebody who holds all versions")
    assert residual.sentences[-1] == "The spec declares no threshold to compare this with: `report: {threshold: 1/11}`"


def test_a_population_is_declared_and_estimated() -> None:
    lacking = section("hipaa", "Population", spec_of())
    assert lacking.answered == "gap"
    assert section("hipaa", "Population", spec_of(lacking.sentences[0].split("`")[1])).answered == "figure"
    more = "report: {population: {size: 400}}"
    published = measured(spec_of(more), report().shown, {1: 3, 2: 10, 17: 1})
    shown = section("hipaa", "Population", spec_of(more), published)
    assert shown.sentences == (
        "The spec declares a population of 400 people, of which the table has 10.0 %. "
        "3 published rows are alone in a block.",
        "How many people of the population are alone is estimated, by models that may be wrong.",
    )
    assert len(shown.rows) == 3
    assert [row[0] for row in shown.rows] == list(ESTIMATES.values())


@pytest.mark.parametrize(
    ("after", "hidden", "named"),
    [
        ("as it is (33 values)", 0.0, "retained"),
        ("as it is in the source", None, "retained"),
        ("as it is for 38 %, groups like 20-39 for 62 %", 0.0, "generalized"),
        ("in ranges of 5 (9 values)", 0.25, "generalized; suppressed in 25.0 % of the rows"),
        ("suppressed to *", 1.0, "suppressed"),
    ],
)
def test_a_column_has_a_technique(after: str, hidden: float | None, named: str) -> None:
    column = of(ColumnShown, "age", "quasi-identifier", "a whole number", after, "", 2, hidden)
    assert technique(column) == named


def test_columns_that_are_not_published_are_suppressed() -> None:
    rows = {row[0]: row[1:] for row in section("ema", "Identification of data variables", spec_of()).rows}
    assert rows.keys() == {"age", "disease", "person"}
    assert rows["person"] == ("direct identifier", "suppressed", "nothing", "not declared")
    assert rows["disease"][-1] == "not declared"
    assert rows["age"][:2] == ("quasi-identifier", "generalized; suppressed in 25.0 % of the rows")


def test_rows_that_are_alone_can_be_singled_out() -> None:
    assert "No row can be singled out by age: each reads the same as at least 1 other row." in said(
        "wp29", "Singling out"
    )
    sizes = (of(SizeShown, 1, 1, 2, 2), of(SizeShown, 2, 3, 1, 2))
    alone = measured(spec_of(), changed(report().shown, sizes=sizes), {1: 2, 2: 1})
    assert said("wp29", "Singling out", published=alone).startswith("2 rows can be singled out by age")
    assert "chance of at most 100.0 %" in said("wp29", "Singling out", published=alone)


def test_what_fails_is_said_first() -> None:
    published = measured(spec_of(), report(holds=False).shown, {2: 2})
    assert "does not keep what it promises" in rendered(shown_in("ema", spec_of(), published), "md")
    assert said("ema", "Methodology", published=published).startswith("1 of 2 guarantees does NOT hold.")
    assert section("ema", "Methodology", spec_of()).holds
    assert "Against this: k_anonymity" in said("ema", "Singling out")
    assert "Against this: no guarantee answers it." in said("ema", "Singling out", published=published)


@pytest.mark.parametrize(
    ("name", "before", "identifiers"),
    [
        ("ZIP_code", "text", ["(B) places smaller than a state"]),
        ("admission_date", "a date", ["(C) dates, and ages over 89"]),
        ("seen", "a date and time", ["(C) dates, and ages over 89"]),
        ("patientEmail", "text", []),
        ("diagnosis", "text", []),
    ],
)
def test_identifiers_are_matched_where_that_is_plain(name: str, before: str, identifiers: list[str]) -> None:
    assert to_compare(of(ColumnShown, name, "quasi-identifier", before, "as it is", "")) == identifiers


def test_safe_harbor_concludes_nothing() -> None:
    shown = section("hipaa", "Beside Safe Harbor", spec_of())
    assert [row[0] for row in shown.rows] == ["age", "disease"]
    assert [row[-1] for row in shown.rows] == ["(C) dates, and ages over 89", ANY]
    assert "Nothing is concluded here" in shown.sentences[0]


@EVERY
@pytest.mark.parametrize("label", HOSTILE)
def test_a_label_or_declared_text_is_a_text(name: str, label: str) -> None:
    plain = Read(rendered(shown_in(name, spec_of()), "html"))
    hostile = measured(spec_of(), report(label, label).shown, {2: 2})
    assert Read(rendered(shown_in(name, spec_of(), hostile), "html")).tags == plain.tags
    both = []
    for text in ("plain", label[:400].strip() or "x"):
        context = changed_context(text)
        both.append(Read(rendered(shown_in(name, context), "html")).tags)
    assert both[0] == both[1]


def changed_context(text: str) -> Spec:
    spec = spec_of()
    declared = replace(
        spec.report,
        context=replace(spec.report.context, purpose=text, recipients=text),
        controls=(text,),
        declared_by=text,
    )
    return replace(spec, report=declared)


@pytest.mark.parametrize("name", ["emma", "EMA", ""])
def test_another_name_is_refused_before_anything_is_opened(name: str) -> None:
    with pytest.raises(InputError, match="valid: ema, hipaa, wp29, sp800-188, iso27559, tehdas"):
        read_report(spec_of(), framework=name)
    with pytest.raises(InputError, match="did you mean ema"):
        framework_of("emma")
    with pytest.raises(InputError, match="a report for ema is about what is published"):
        read_report(spec_of(), framework="ema", candidate=True)


@EVERY
def test_it_asks_for_nothing_but_the_views(job: Job, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source may be gone, and nobody opens the ledger."""
    job.begin()
    if job.engine == "duckdb":
        (job.folder / "warehouse.duckdb").unlink()
    else:
        job.change("DROP TABLE people")

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("what is private was opened")

    for place in ("qblock.report.kept.store_of", "qblock.report.internal.store_of", "qblock.report.read.read_internal"):
        monkeypatch.setattr(place, refused)
    shown = read_report(job.spec, framework=name)
    assert shown.framework is not None
    assert shown.internal is None
    assert shown.framework.name == name


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_reader_makes_the_same(job: Job, roles: dict[str, str]) -> None:
    job.run()
    ours = [read_report(job.spec, framework=name).framework for name in FRAMEWORKS]
    own = sa.make_url(job.url)
    job.settings["source"]["url"] = own.set(username=roles["reader"], password=None).render_as_string(False)
    assert [read_report(job.spec, framework=name).framework for name in FRAMEWORKS] == ours


@pytest.mark.parametrize("engine_name", ["duckdb"])
def test_an_internal_report_is_marked(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    text = rendered(read_report(job.spec, framework="ema", internal=True), "md")
    assert "## Initial risk (internal)" in text
    assert "## What this release takes for granted (internal)" in text
    assert "Not in a report for readers" not in text
    assert "Not in a report for readers" in rendered(read_report(job.spec, framework="ema"), "md")


def test_the_risk_before_is_internal() -> None:
    chances = of(AttackerShown, "prosecutor", 1.0, 0.75, None, None, False)
    before = of(BeforeShown, "rows", 4, 3, 1, 2, (chances,))
    inside = changed(internal().inside, before=before)
    published = measured(spec_of(), report().shown, {2: 2})
    for name, framework in FRAMEWORKS.items():
        theirs, ours = (framework.shown(Facts(name, published, given)).sections for given in (None, inside))
        other = [(one, another) for one, another in zip(theirs, ours, strict=True) if one != another]
        assert [one.title for one, _ in other] == (["Initial risk"] if name == "ema" else [])
        for one, another in other:
            assert (one.answered, another.answered) == ("gap", "figure")
            assert one.sentences[0].endswith("`qblock report SPEC --for ema --internal` has it.")
            assert "3 blocks of 4 rows: the smallest of 1, and 2 alone." in another.sentences[0]
            assert another.rows == (
                ("prosecutor: knows that the person is in the table", "100.0 %", "75.0 %", "-", "-"),
            )
