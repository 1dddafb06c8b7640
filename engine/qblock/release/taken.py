"""What a version takes for granted, as its event in the ledger has it: names and counts, no sentence and no value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.results.check import Finding, named_findings

KEY = "taken_for_granted"
"""Of the detail of an event."""
THOUSANDTHS = "_thousandths"
"""The end of the name of a figure that is no whole number."""


@dataclass(frozen=True)
class Taken:
    """A finding that stood when a version was published. accepted: whether the spec answered for it; because: how,
    where the ledger still has that spec."""

    check: str
    columns: tuple[str, ...]
    accepted: bool
    figure: Mapping[str, float]
    because: str | None = None


def detail_of(findings: Iterable[Finding]) -> dict[str, Any]:
    """Findings for the detail of an event, which takes counts only."""
    detail: dict[str, Any] = {}
    for finding in findings:
        how = "warning" if finding.because is None else "accepted"
        place = detail.setdefault(how, {}).setdefault(finding.check, {})
        column, *of = finding.columns
        place.setdefault(column, {})["".join(of)] = dict(_counted(finding.figure))
    return {KEY: detail} if detail else {}


def _counted(figure: Mapping[str, float]) -> Iterator[tuple[str, int]]:
    for name, number in figure.items():
        yield (name, number) if isinstance(number, int) else (f"{name}{THOUSANDTHS}", round(1000 * number))


def taken_of(detail: Mapping[str, Any], reasons: Mapping[tuple[str, ...], str] | None = None) -> list[Taken]:
    """What the detail of an event has. reasons: of the spec, by check and columns."""
    return [
        Taken(
            check,
            (column, of) if of else (column,),
            how == "accepted",
            dict(map(_figure, figure.items())),
            (reasons or {}).get((check, column, of)),
        )
        for how, checks in detail.get(KEY, {}).items()
        for check, columns in checks.items()
        for column, others in columns.items()
        for of, figure in others.items()
    ]


def _figure(counted: tuple[str, int]) -> tuple[str, float]:
    name, number = counted
    return (name.removesuffix(THOUSANDTHS), number / 1000) if name.endswith(THOUSANDTHS) else (name, number)


def named_since(findings: Sequence[Finding], before: RecordedEvent | None) -> str:
    """The warnings by name, where some were not there in the version before; else nothing."""
    old = set() if before is None else {(taken.check, taken.columns) for taken in taken_of(before.detail)}
    return named_findings(findings) if {(f.check, f.columns) for f in findings} - old else ""


def reasons_of(store: Store, digest: str | None) -> dict[tuple[str, ...], str]:
    """What the spec of this digest answers, by check and columns, as far as the ledger has it."""
    with store.read() as reader:
        text = None if digest is None else reader.spec_text(digest)
    answers = [] if text is None else json.loads(text)["spec"].get("accept", [])
    return {(a["check"], a["column"], a.get("of") or ""): a["because"] for a in answers}
