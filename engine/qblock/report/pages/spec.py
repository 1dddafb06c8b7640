"""The spec, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Report
from qblock.report.parts import Code, Page, Part


def parts(report: Report) -> Sequence[Part]:
    of = report.inside
    return (Code(f"The spec without secrets and defaults, sha256 {of.spec_digest}", of.spec),)


PAGE = Page("spec", "Spec", parts, internal=True)
