"""The pages of a report, in their order."""

from __future__ import annotations

from qblock.report.pages import before, officers, readers, utility
from qblock.report.parts import Page

PAGES: tuple[Page, ...] = (
    *readers.PAGES,
    before.PAGE,
    utility.PAGE,
    *officers.PAGES,
)
