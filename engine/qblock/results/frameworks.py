"""A report in the order of a document on anonymisation."""

from __future__ import annotations

from typing import Literal

from qblock.results.base import Shown

Answered = Literal["figure", "declared", "gap"]


class SectionShown(Shown):
    """A section of a document, answered. title: after the document; source: the place in it; wants: what is to be said
    there, in our words; answered: by figures, by text that the spec declares, or not (gap: the sentences say what is to
    be done); holds: whether what is promised or declared there is so, None of a section that has no such thing;
    columns, rows: a table, where there is one."""

    title: str
    source: str
    wants: str
    answered: Answered
    sentences: tuple[str, ...]
    holds: bool | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class FrameworkShown(Shown):
    """The figures in the order of a document. name: as it is asked for; statement: what this is not; read: the texts
    that the sections were checked against."""

    name: str
    title: str
    document: str
    statement: str
    read: str
    sections: tuple[SectionShown, ...]

    @property
    def summary(self) -> str:
        """How many sections are answered, and what is not met."""
        total, gaps = len(self.sections), sum(section.answered == "gap" for section in self.sections)
        said = f"{total - gaps} of {total} sections answered, {gaps} open" if gaps else f"all {total} sections answered"
        failed = [section.title for section in self.sections if section.holds is False]
        return f"{said}; NOT met: {', '.join(failed)}" if failed else said
