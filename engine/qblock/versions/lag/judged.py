"""The verdict on a batch: as J1 judges joint cells, with the quantities of the first version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from qblock.blocks import Reference
from qblock.errors import Refused
from qblock.models.multi import monotone
from qblock.spec import Requirement, Spec
from qblock.versions.batching.state import Block, Histogram, Passes, Trial
from qblock.versions.gate import Cells, held_by_all, passing, references_of
from qblock.versions.recorded import RecordedVersion

OF_COUNTS = frozenset({"numbers"})
"""Needs that a value which is new to the domain does not change."""
Rows = Callable[[Sequence[Block]], Mapping[Block, Histogram]]
"""The people by sensitive values in blocks, as the version before shows them."""


def judged(spec: Spec, first: RecordedVersion, current: Sequence[Sequence[Reference]], rows: Rows) -> Passes:
    """Whether every joint cell of a trial satisfies the spec's models.

    first: the version whose quantities of the whole table are used, so that no verdict changes what another one was
    based on; current: the references of this run, which bring priors and orders. A histogram counts people by the tuple
    of their sensitive values. rows: asked for models that are not monotone, since a block of cells that pass may fail.
    Raises Refused for a value that is not in the domain of the first version, where a model depends on the domain.
    """
    known = first.references
    whole = [q for q in spec.privacy if not monotone(q.models, entities=spec.bundles).generalization]

    def satisfied(requirements: Sequence[Requirement], histograms: Sequence[Histogram]) -> bool:
        if not histograms or not requirements:
            return True
        cells = _cells(histograms, spec.bundles)
        if held_by_all(cells, len(spec.sensitives)).any():
            return False
        everything = np.ones(len(cells), dtype=bool)
        for requirement, now in zip(spec.privacy, current, strict=True):
            if requirement not in requirements:
                continue
            used = references_of(requirement, first, known, now)
            if requirement.sensitive:
                used = [
                    _with(spec, requirement, _declared(spec, name, latest, reference), name, cells)
                    for name, latest, reference in zip(requirement.sensitive, now, used, strict=True)
                ]
            if not passing(cells, everything, requirement, spec.sensitives, used).all():
                return False
        return True

    def passes(trial: Trial) -> bool:
        parts = [part for group in trial.groups for part in group.parts]
        return satisfied(spec.privacy, parts) and (not whole or satisfied(whole, _after(rows, trial)))

    return passes


def _cells(histograms: Sequence[Histogram], bundles: bool) -> Cells:
    values = list(dict.fromkeys(value for counts in histograms for value in counts))
    code = {value: i for i, value in enumerate(values)}
    triples = [(i, code[value], n) for i, counts in enumerate(histograms) for value, n in counts.items()]
    cell, value, count = (np.array(column, dtype=np.int64) for column in zip(*triples, strict=True))
    names = tuple(str(i) for i in range(len(histograms)))
    shows = np.ones((len(names), 1), dtype=bool)
    return Cells(names, cell, value, count, tuple(values), shows, bundles)  # type: ignore[arg-type]


def _declared(spec: Spec, name: str, now: Reference, first: Reference) -> Reference:
    """The first version's quantities over the values that the spec declares, which is public; else as they are."""
    return as_first(spec, name, now, first) if isinstance(spec.attributes[name].domain, tuple) else first


def _with(spec: Spec, requirement: Requirement, reference: Reference, name: str, cells: Cells) -> Reference:
    """A reference whose domain has every value of some cells."""
    index, domain = spec.sensitives.index(name), set(reference.domain)
    texts = {text for value in cells.values for text in _texts(value[index])}
    new = sorted(texts - domain, key=lambda text: (text is None, text or ""))
    if not new:
        return reference
    needs = frozenset().union(*(model.needs for model in requirement.models))
    numeric = reference.numbers is not None and None not in new
    if not needs <= OF_COUNTS or ("numbers" in needs and not numeric):
        raise Refused(
            f"{spec.at('attributes', name)}: the source has values of {name} that the first version did not have, and "
            f"{requirement.model.name} depends on all the values that there are; nothing is published. Declare all the "
            f"values of {name} (`domain`), or take those rows out of the source"
        )
    domain_now = (*reference.domain, *new)
    totals = np.concatenate([reference.totals, np.zeros(len(new), dtype=np.int64)])
    if not numeric or reference.numbers is None:
        return replace(reference, domain=domain_now, totals=totals, taxonomy=None, prior=None, numbers=None)
    numbers = (*reference.numbers, *(Fraction(text) for text in new if text is not None))
    extended = replace(reference, domain=domain_now, totals=totals, taxonomy=None, prior=None, numbers=numbers)
    return extended.ascending()


def _texts(value: str | frozenset[str | None] | None) -> Collection[str | None]:
    return value if isinstance(value, frozenset) else (value,)


def as_first(spec: Spec, name: str, now: Reference, first: Reference) -> Reference:
    """The quantities of the first version over the values of now. Raises Refused where now lacks some of them."""
    total: dict[str | None, int] = dict(zip(first.domain, first.totals.tolist(), strict=True))
    if any(n for value, n in total.items() if value not in now.domain):
        raise Refused(
            f"{spec.at('attributes', name)}: nobody whom the release shows has some of the values of {name} that the "
            "first version had, and a model compares with all of them; nothing is published. Declare all the values "
            f"of {name} (`domain`)"
        )
    totals = np.array([total.get(value, 0) for value in now.domain], dtype=np.int64)
    return replace(now, rows=first.rows, totals=totals)


def _after(rows: Rows, trial: Trial) -> list[Histogram]:
    """The blocks that a trial and the batches before it touch, as the next version would show them."""
    touched = sorted({block for block, _ in trial.change})
    blocks = {block: dict(counts) for block, counts in rows(touched).items()}
    for (block, value), n in trial.change.items():
        counts = blocks.setdefault(block, {})
        counts[value] = counts.get(value, 0) + n
    positive = [{value: n for value, n in counts.items() if n} for counts in blocks.values()]
    return [counts for counts in positive if counts]
