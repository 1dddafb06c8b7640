"""The pages of a report in the order of a document: one for each section."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qblock.report.pages.officers import taken_page
from qblock.report.pages.verdict import signed_for, verdict_text
from qblock.report.parts import Page, Part, Points, Signature, Table, Text, counted
from qblock.results.frameworks import FrameworkShown, SectionShown
from qblock.results.report import Report

MOST_TEXTS = 2
"""Sentences after the first that are paragraphs; more are a list."""
NUMBER = re.compile(r"-|((over|under) )?\d[\d,.]*( %)?")
TAKEN = Page("taken", "What this release takes for granted", taken_page, internal=True)
ANSWERED = {"figure": "figures", "declared": "declared in the spec", "gap": "NOT ANSWERED"}


def framework_pages(shown: FrameworkShown, *, internal: bool) -> Sequence[Page]:
    """What it is about, each section, and a line to sign; of an internal report also what it takes for granted."""
    sections = [_section(f"{shown.name}-{i}", section) for i, section in enumerate(shown.sections, 1)]
    return (
        Page("about", shown.title, lambda report: _about(shown, report)),
        *sections,
        *([TAKEN] if internal else []),
        Page("sign", "Signature", lambda report: _sign(shown, report)),
    )


def _about(shown: FrameworkShown, report: Report) -> Sequence[Part]:
    rows = [(section.title, _answered(section), section.source) for section in shown.sections]
    return (
        Text(shown.statement, "note"),
        Text(verdict_text(report.shown), "verdict" if report.holds else "failed"),
        Text(shown.document),
        Text(f"{shown.read} The wording is qblock's own."),
        Table(f"{shown.summary[:1].upper()}{shown.summary[1:]}", ("section", "answered by", "source"), rows),
    )


def _answered(section: SectionShown) -> str:
    return ANSWERED[section.answered] if section.holds in (None, True) else f"{ANSWERED[section.answered]}: NOT met"


def _section(id_: str, section: SectionShown) -> Page:
    def parts(_: Report) -> Sequence[Part]:
        said: list[Part] = [Text(f"{section.wants} ({section.source})")]
        first, *more = section.sentences
        said.append(Text(first, _kind(section)))
        if len(more) > MOST_TEXTS:
            said.append(Points("One by one", more))
        else:
            said += [Text(sentence) for sentence in more]
        if section.columns:
            numbers = [
                i for i, cells in enumerate(zip(*section.rows, strict=True)) if all(map(NUMBER.fullmatch, cells))
            ]
            said.append(Table(f"{section.title}, as a table", section.columns, section.rows, numbers))
        return said

    return Page(id_, section.title, parts)


def _kind(section: SectionShown) -> str:
    """How its first sentence stands out."""
    if section.holds is None:
        return "gap" if section.answered == "gap" else ""
    return "verdict" if section.holds else "failed"


def _sign(shown: FrameworkShown, report: Report) -> Sequence[Part]:
    open_ = sum(section.answered == "gap" for section in shown.sections)
    more = f" {counted(open_, 'section')} above {'is' if open_ == 1 else 'are'} still open." if open_ else ""
    return (Text(f"Whoever signs has judged what is written above.{more}"), *signed_for(report), Signature())
