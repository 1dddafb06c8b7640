"""The first page, for whoever signs; and the risk of the source, which readers are not told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from release.jobs import PEOPLE, Job, MakeJob

from qblock.report import Report, read_report, rendered
from qblock.report.pages.before import before_page
from qblock.report.pages.verdict import verdict_page
from qblock.report.parts import Part, Points, Signature, Table, Text
from qblock.results.risk import ContextShown, ThresholdShown
from report.reports import changed, internal, report
from report.test_read import NONE, VISITS, visits


def texts(parts: Sequence[Part], kind: str | None = None) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text) and kind in (None, part.kind)]


def table(parts: Sequence[Part], caption: str) -> Table:
    (part,) = [part for part in parts if isinstance(part, Table) and part.caption.startswith(caption)]
    return part


def points(parts: Sequence[Part], title: str) -> Sequence[str]:
    return next((part.points for part in parts if isinstance(part, Points) and part.title.startswith(title)), ())


def with_published(of: Report, **values: Any) -> Report:
    return changed(of, published=changed(of.published, **values))


@pytest.mark.parametrize(("met", "kind"), [(True, "verdict"), (False, "failed")])
def test_a_threshold_that_is_not_met_stands_out(met: bool, kind: str) -> None:
    threshold = ThresholdShown(
        value=0.09,
        text="0.09",
        on="highest",
        because="a policy",
        measured=1 / 11,
        measured_text="1/11",
        met=met,
        least=12,
        rows_above=0 if met else 4,
    )
    said = texts(verdict_page(with_published(report(), threshold=threshold)), kind)[-1]
    assert "the highest chance of any row is 1/11, and 0.09 is declared acceptable (a policy)" in said
    assert said.startswith("The threshold is met" if met else "The threshold is not met")
    assert ("above it for 100.0 % of the rows. It takes k = 12 or more." in said) != met


@pytest.mark.parametrize(
    ("version", "together", "words"),
    [
        (1, None, ""),
        (
            2,
            0.25,
            "To somebody who holds all versions, and knows when a person came, left or changed, the chance is at",
        ),
        (2, None, "Versions are not checked together: somebody who holds several may find more."),
    ],
)
def test_what_several_versions_tell_is_said_beside_the_chance(version: int, together: Any, words: str) -> None:
    shown = with_published(report(), version=version, together=together)
    (said,) = [text for text in texts(verdict_page(shown), "") if text.startswith("An outsider")]
    assert words in said
    assert ("ersions" in said) == (version > 1)


def test_without_a_threshold_it_is_said_how_one_is_declared() -> None:
    parts = verdict_page(with_published(report(), threshold=None))
    assert any("`report: {threshold: 0.09}`" in text for text in texts(parts, ""))


def test_one_more_fact_that_exposes_many_is_amber() -> None:
    parts = verdict_page(report())
    (many,) = texts(parts, "warned")
    assert "2 of 4 rows (50.0 %)" in many
    assert "more than a tenth" in many
    assert any("in no row" in text for text in texts(parts, ""))
    assert 'class="warned"' in rendered(report(), "html")


def test_each_risk_has_a_line() -> None:
    said = points(verdict_page(report(label="l-diversity of it")), "Singling out")
    assert said == ["inference: t_closeness - l-diversity of it", "linkability: none"]


def test_roles_have_their_reasons_and_what_is_left_out_is_said() -> None:
    rows = table(verdict_page(report(label="why not")), "Roles").rows
    assert rows == [
        ("age", "quasi-identifier", "why not", "yes"),
        ("why not", "says who a row is about", "no reason is declared", "left out"),
    ]


def test_what_is_signed_for_stands_beside_the_signature() -> None:
    *_, said, last = verdict_page(report())
    assert isinstance(last, Signature)
    assert isinstance(said, Text)
    assert f"version 2, content digest {'2' * 64}" in said.text
    assert "spec digest" not in said.text
    *_, said, _ = verdict_page(internal())
    assert isinstance(said, Text)
    assert f"spec digest {'0' * 64}" in said.text


def test_what_is_taken_for_granted_is_for_whoever_runs_the_job() -> None:
    assert points(verdict_page(report()), "What the release takes") == ()
    taken = points(verdict_page(internal()), "What the release takes")
    assert taken == [
        "age tells 20-29; accepted, because: 20-29",
        "age of 20-29; a warning that nobody answered for",
    ]


def test_what_is_declared_of_the_surroundings_is_said_as_that() -> None:
    context = ContextShown(purpose="research", release="public", controls=("nobody links rows",))
    parts = verdict_page(with_published(report(), context=context))
    said = points(parts, "Declared of the surroundings, and checked by nobody here")
    assert said == ["purpose: research", "release: public", "measure: nobody links rows"]
    assert points(verdict_page(with_published(report(), context=ContextShown())), "Declared") == ()


def test_an_older_reports_figures_leave_their_parts_out() -> None:
    plain = {"threshold": None, "exposed": (), "declared": (), "answers": (), "attackers": (), "digest": None}
    parts = verdict_page(with_published(report(), **plain))
    assert not [part for part in parts if isinstance(part, Table)]
    assert isinstance(parts[-1], Signature)


def test_the_source_is_counted_as_it_is(job: Job) -> None:
    """Each row by its raw quasi-identifiers, which the report for readers tells nothing of."""
    job.begin()
    job.settings["report"] = {"threshold": "1/2", "population": {"size": 40}}
    inside, readers = read_report(job.spec, internal=True), read_report(job.spec)
    rows = list(zip(PEOPLE["zip"], PEOPLE["age"], strict=True))
    blocks = Counter(rows)
    before = inside.inside.before
    assert before is not None
    assert (before.counted, before.rows, before.blocks) == ("rows", len(rows), len(blocks))
    assert (before.least, before.unique) == (min(blocks.values()), sum(n == 1 for n in blocks.values()))
    prosecutor = before.attackers[0]
    assert prosecutor.highest == 1 / min(blocks.values())
    assert prosecutor.mean == pytest.approx(len(blocks) / len(rows))
    assert prosecutor.rows_above == sum(n for n in blocks.values() if n < 2)
    assert before.population is not None
    assert before.population.unique == before.unique
    assert inside.published == readers.published
    assert "before" not in json.loads(readers.text("json"))
    assert "Risk before and after" not in readers.text("html")
    shown = table(before_page(inside), "Chances before and after").rows
    assert [row[0] for row in shown] == ["before"] * 3 + ["after"] * 3


def test_people_of_the_source_are_counted_where_they_have_several_rows(make_job: MakeJob) -> None:
    people = {"person": [f"p{i // 3}" for i in range(36)], **VISITS, "age": [20 + i // 3 for i in range(36)]}
    attributes = {
        "person": "identifying",
        "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [50]}},
        "disease": {"role": "sensitive", "nulls": "value"},
    }
    job = make_job(
        people,
        {"age": "INTEGER", "cost": "INTEGER"},
        attributes=attributes,
        accept=[],
        privacy=[{"k_anonymity": {"k": 2}}],
        entity="person",
        count="entities",
        versions=NONE,
    )
    job.run()
    before = read_report(job.spec, internal=True).inside.before
    assert before is not None
    assert (before.counted, before.rows, before.unique) == ("people", 12, 12)


def test_a_candidate_has_the_risk_of_the_source_alone(make_job: MakeJob) -> None:
    job = visits(make_job)
    told = read_report(job.spec, candidate=True)
    assert told.published is None
    shown = table(before_page(told), "Chances before and after").rows
    assert [row[0] for row in shown] == ["before"] * 2
