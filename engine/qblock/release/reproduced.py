"""Whether what a run made of the source is what was published once: content, counts, kept quantities, guarantees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from qblock.ledger.events import Guarantee, RecordedEvent
from qblock.ledger.kept import Kept, kept_digest
from qblock.ledger.reader import ledger_reader
from qblock.release.run import Run
from qblock.warehouse.texts import canonical_text


def differences(run: Run, event: RecordedEvent) -> Iterator[str]:
    """How the version that a run has chosen differs from the one that an event published and readers see, one sentence
    each; none where it is the same."""
    chosen = run.chosen
    if not chosen.assessment.satisfied:
        yield "at its node the source does not satisfy the spec now"
    digest, kept, _ = run.as_recorded()
    counts = (chosen.copy.rows, chosen.assessment.suppressed)
    if counts != (event.rows_published, event.rows_suppressed) or digest != event.content_digest:
        yield "source and hierarchies give other content now"
    older = kept.columns != chosen.kept.columns
    # Domains are part of the digest, and an older program wrote their values in another text.
    if run.hierarchy_digest != event.hierarchy_digest and not older:
        yield "its hierarchies, domains or taxonomies were others"
    if kept_digest(kept.text()) != event.reference_digest and not (older and _same_values(run, event)):
        yield "columns have other types, or the whole table has other values, than when it was made"
    if _reached_now(run) != _reached_then(run, event):
        yield "what its models reach is not what the ledger says: priors, populations or guards were others"


def _same_values(run: Run, event: RecordedEvent) -> bool:
    """Whether the quantities that an older program has kept are those of now, whatever text it wrote values in."""
    with ledger_reader(run.place) as reader:
        text = reader.reference(run.spec.release, event.version or 0)
    if text is None or kept_digest(text) != event.reference_digest:
        return False
    return _by_value(run, Kept.of_text(text)) == _by_value(run, run.chosen.kept)


def _by_value(run: Run, kept: Kept) -> list[list[tuple[int, Counter[str | None]]]]:
    """Of each requirement and sensitive attribute N, and the rows of each value in its canonical text."""
    found = []
    for requirement, references in zip(run.spec.privacy, kept.references, strict=True):
        each = []
        for name, reference in zip(requirement.sensitive, references, strict=bool(requirement.sensitive)):
            totals: Counter[str | None] = Counter()
            for value, n in zip(reference.domain, reference.totals.tolist(), strict=True):
                column = run.task.source.columns[name]
                totals[None if value is None else canonical_text(value, column)] += n
            each.append((reference.rows, totals))
        found.append(each)
    return found


def _reached_now(run: Run) -> set[tuple[str | None, ...]]:
    found = zip(run.spec.privacy, run.chosen.assessment.tightest, strict=True)
    return {_plain(one) for asked, tightest in found for one in Guarantee.of(asked, tightest, "search")}


def _reached_then(run: Run, event: RecordedEvent) -> set[tuple[str | None, ...]]:
    with ledger_reader(run.place) as reader:
        return {_plain(one) for one in reader.guarantees(run.spec.release, event.number)}


def _plain(one: Guarantee) -> tuple[str | None, ...]:
    return (one.model, one.sensitive, one.parameters, one.parameter, one.reached)
