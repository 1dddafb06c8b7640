"""Whether the release keeps what it promises, and what it does not promise."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Published, Report
from qblock.report.parts import Page, Part, Points, Signature, Text, counted


def parts(report: Report) -> Sequence[Part]:
    shown = report.shown
    known = ", ".join(column.name for column in shown.quasi_identifiers) or "none"
    return (
        *_older(report),
        Text(_verdict(shown), "verdict" if all(guarantee.holds for guarantee in shown.guarantees) else "failed"),
        Text(
            f"{shown.view} shows {counted(shown.rows, 'row')} in {counted(shown.blocks, 'block')} of rows that read "
            f"the same in {known}. {shown.whose} The version was made on {shown.at} (UTC)."
        ),
        Points("What is promised", [f"{_first(guarantee.in_words)}." for guarantee in shown.guarantees]),
        Points("What is not promised", _limits(shown, known)),
        Signature(),
    )


def _older(report: Report) -> list[Part]:
    """Which version readers see, in a report of one that was asked for."""
    kept = None if report.internal is None else report.internal.kept
    if kept is None:
        return []
    if kept.current == kept.version:
        return [Text(f"Version {kept.version} is the one that readers see.")]
    seen = "no version at all" if kept.current is None else f"version {kept.current}"
    spec = "" if kept.same_spec else " The spec has changed since this version was published by it."
    said = f"Version {kept.version} is not what readers see: they see {seen}. This report is of its kept copy; the "
    return [Text(f"{said}internal pages are about the source, the spec and the release as of now.{spec}", "failed")]


def _verdict(shown: Published) -> str:
    failed = [guarantee.in_words for guarantee in shown.guarantees if not guarantee.holds]
    what = f"Version {shown.version} of {shown.release}"
    if failed:
        return f"{what} does not keep what it promises: {'; '.join(failed)}."
    again = [guarantee for guarantee in shown.guarantees if guarantee.reached is not None]
    number = len(shown.guarantees)
    kept = "its guarantee holds" if number == 1 else f"all {number} guarantees hold"
    said = f"{what} keeps what it promises: {kept} in the {counted(shown.rows, 'row')} that it shows."
    if len(again) < number:
        said += (
            f" {number - len(again)} of them cannot be counted again from these rows alone; the job checked what takes "
            "more before it published."
        )
    return said


def _limits(shown: Published, known: str) -> list[str]:
    as_they_are = [column.name for column in shown.columns if column.role == "insensitive"]
    sentences = [
        f"Nothing is promised against somebody who knows more of a person than {known}.",
        "It does not hide who is in the table, nor what a whole group has in common.",
        "What several releases of the same people tell together is not looked at here. Versions of one release are "
        "checked together by the job that makes them, as its spec says.",
    ]
    if as_they_are:
        columns = ", ".join(as_they_are)
        sentences.insert(
            1, f"Nothing is hidden in {columns}: published as in the source, and taken to be known to nobody."
        )
    return sentences


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]


PAGE = Page("verdict", "Verdict", parts)
