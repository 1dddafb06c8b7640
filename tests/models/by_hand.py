"""Small tables written as tuples of counts, and a model's verdict asked for in every way at once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from qblock.blocks import Blocks, Reference
from qblock.models import Model


def table(*counts: tuple[int, ...], names: str | None = None, **more: object) -> tuple[Blocks, Reference]:
    """One block per tuple of counts of the values 0, 1, 2, ...; names: one letter per value; more: of Reference."""
    blocks = Blocks.of([dict(enumerate(c)) for c in counts])
    reference = Reference.of(blocks, values=max(map(len, counts), default=0), **more)
    return blocks, replace(reference, domain=tuple(names)) if names else reference


def rows(*blocks: tuple[int | str, ...]) -> tuple[Blocks, Reference]:
    """One block per tuple of numbers, a row each; the domain is the observed numbers, ascending."""
    numbers = sorted({Fraction(x) for block in blocks for x in block})
    histograms: list[dict[int, int]] = []
    for block in blocks:
        places = [numbers.index(Fraction(x)) for x in block]
        histograms.append({place: places.count(place) for place in places})
    made = Blocks.of(histograms)
    reference = Reference.of(made, values=len(numbers), ordered=True, numbers=tuple(numbers))
    return made, replace(reference, domain=tuple(map(str, numbers)))


def values(model: Model, given: tuple[Blocks, Reference]) -> dict[str, object]:
    """The tightest value of each parameter."""
    return {v.parameter: v.value for v in model.tightest(*given).values}


def passes(model: Model, given: tuple[Blocks, Reference]) -> list[bool]:
    """The verdict of each block; asserts that all ways of asking for it agree."""
    blocks, reference = given
    mask: list[bool] = model.passes(blocks, reference).tolist()
    assert model.passes(blocks, reference).all() == model.tightest(blocks, reference).holds == all(mask)
    assert [model.passes(blocks.select([i]), reference).all() for i in range(len(blocks))] == mask
    least = model.least_block_size(reference)
    assert all(n >= least for n, passed in zip(blocks.rows.tolist(), mask, strict=True) if passed)
    return mask
