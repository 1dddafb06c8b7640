"""What a document asks of a report, section by section, and what answers each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qblock.results.frameworks import Answered, FrameworkShown, SectionShown
from qblock.results.report import Internal, Published

NO_CLAIM = (
    "This report puts figures into the order of {title}. It is no statement that the release meets it: that is for the "
    "person who signs to judge."
)
UNDECLARED = "Not answered: qblock cannot know this. Write it into {key} of the spec: `{line}`"
UNKNOWN = "Not answered: qblock cannot know this. {what}"
DECLARED = "Declared in {key} of the spec: {text}"


@dataclass(frozen=True)
class Facts:
    """What answers are drawn from. name: of the framework; internal: None in a report for readers."""

    name: str
    published: Published
    internal: Internal | None


@dataclass(frozen=True)
class Answer:
    """A section's answer: sentences, and a table where it has columns. gap: that there is none, and why; holds: whether
    what the first sentence is about is so."""

    sentences: Sequence[str]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    gap: bool = False
    holds: bool | None = None


@dataclass(frozen=True)
class Key:
    """A key of the spec that holds declared text. texts: what it holds; line: an example to paste."""

    texts: Callable[[Published], Sequence[str]]
    line: str


def _context(name: str) -> Callable[[Published], Sequence[str]]:
    def texts(published: Published) -> Sequence[str]:
        text = getattr(published.context, name)
        return () if text is None else (text,)

    return texts


def _because(published: Published) -> Sequence[str]:
    return [f"{column.name}: {column.because}" for column in published.declared if column.because is not None]


KEYS = {
    "report.context.purpose": Key(_context("purpose"), 'report: {context: {purpose: "research on readmissions"}}'),
    "report.context.recipients": Key(_context("recipients"), 'report: {context: {recipients: "two universities"}}'),
    "report.context.release": Key(_context("release"), "report: {context: {release: public}}"),
    "report.context.agreement": Key(_context("agreement"), 'report: {context: {agreement: "data use agreement"}}'),
    "report.controls": Key(
        lambda published: published.context.controls, 'report: {controls: ["users are registered"]}'
    ),
    "attributes.NAME.because": Key(_because, 'age: {role: quasi_identifier, because: "neighbours know it"}'),
}
"""Keys of declared text that a section can name."""
LINES = {
    "report.threshold": 'report: {threshold: 1/11, threshold_because: "EMA Policy 0070"}',
    "report.threshold_because": 'report: {threshold: 1/11, threshold_because: "EMA Policy 0070"}',
    "report.population": "report: {population: {size: 120000}}",
    "report.declared_by": 'report: {declared_by: "A. Weber, data protection officer"}',
}
"""Keys without which a figure is not there, and a line to paste."""


def undeclared(key: str) -> str:
    """What a section says that the spec leaves open."""
    return UNDECLARED.format(key=key, line=KEYS[key].line if key in KEYS else LINES[key])


@dataclass(frozen=True)
class Section:
    """title: after the document; source: the place in it; wants: what is to be said there, in our words.

    Exactly one answers it: figure (of the report), declared (a key of the spec), gap (what the person who signs adds).
    """

    title: str
    source: str
    wants: str
    figure: Callable[[Facts], Answer] | None = field(default=None, kw_only=True)
    declared: str | None = field(default=None, kw_only=True)
    gap: str | None = field(default=None, kw_only=True)

    def shown(self, facts: Facts) -> SectionShown:
        """The section of a report."""
        answer, answered = self._answer(facts)
        return SectionShown(
            title=self.title,
            source=self.source,
            wants=self.wants,
            answered="gap" if answer.gap else answered,
            sentences=tuple(answer.sentences),
            holds=answer.holds,
            columns=tuple(answer.columns),
            rows=tuple(tuple(row) for row in answer.rows),
        )

    def _answer(self, facts: Facts) -> tuple[Answer, Answered]:
        if self.figure is not None:
            return self.figure(facts), "figure"
        if self.declared is not None:
            key = KEYS[self.declared]
            texts = [DECLARED.format(key=self.declared, text=text) for text in key.texts(facts.published)]
            return Answer(texts or [undeclared(self.declared)], gap=not texts), "declared"
        return Answer([UNKNOWN.format(what=self.gap)], gap=True), "gap"


@dataclass(frozen=True)
class Framework:
    """A document whose order a report can take. name: of the option; document: what is cited; read: the texts that
    the sections and their numbers were checked against."""

    name: str
    title: str
    document: str
    read: str
    sections: Sequence[Section]

    def shown(self, facts: Facts) -> FrameworkShown:
        """The report's figures in this order."""
        return FrameworkShown(
            name=self.name,
            title=self.title,
            document=self.document,
            statement=NO_CLAIM.format(title=self.title),
            read=self.read,
            sections=tuple(section.shown(facts) for section in self.sections),
        )
