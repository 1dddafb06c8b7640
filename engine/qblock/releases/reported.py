"""The report of a release, as a value: for programs, as a file, and in a notebook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from qblock.releases.answer import Answer

if TYPE_CHECKING:
    from qblock.report import Format, Report


@dataclass(frozen=True)
class Reported(Answer):
    """A report. version: the one that is published; holds: whether all guarantees hold in the rows that it shows; both
    None before the first version."""

    columns = ("model", "sensitive", "asked", "reached", "holds")

    version: int | None
    holds: bool | None
    report: Report = field(repr=False, compare=False)

    @classmethod
    def of_report(cls, report: Report) -> Self:
        """From a report that was read."""
        shown = report.published
        holds = None if shown is None else all(guarantee.holds for guarantee in shown.guarantees)
        version, answer = None if shown is None else shown.version, json.dumps(report.to_json())
        return cls(report.release, (), answer, version=version, holds=holds, report=report)

    def text(self, form: Format = "html") -> str:
        """The file: `html` (which needs nothing else), `md` or `json`."""
        from qblock.report import rendered

        return rendered(self.report, form)

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        shown = () if self.report.published is None else self.report.published.guarantees
        return [(g.model, g.sensitive, g.asked, g.reached, g.holds) for g in shown]
