"""The first version and the verdict of models, without a database: for simulations of the steady job's rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from qblock.blocks import Blocks, Reference
from qblock.errors import QblockError
from qblock.models import Model
from qblock.versions.batching.proposals import parts_of
from qblock.versions.batching.state import Block, Cell, Group, Histogram, Memory, Passes, Person, Trial, Unit
from qblock.versions.batching.step import Counted, Step, same, standing


def first_version(present: Mapping[str, Person], memory: Memory, passes: Passes, *, counted: Counted = same) -> Step:
    """The first version shows everybody who is present and not out, or nobody.

    Where it is refused, nobody of its people is ever shown: with some of them tried again, the difference tells.
    """
    run, version = memory.run + 1, memory.version + 1
    shown = {
        entity: Unit(Cell(person.block, version), (person.value,))
        for entity, person in sorted(present.items())
        if entity not in memory.out
    }
    members: dict[Cell, list[str]] = {}
    for entity, unit in shown.items():
        members.setdefault(unit.cell, []).append(entity)
    groups = tuple(Group(c, parts_of(shown, m, counted), True) for c, m in sorted(members.items()))
    change = Counter((unit.cell.block, counted(unit.values[-1])) for unit in shown.values())
    if shown and passes(Trial(None, groups, change)):
        return replace(standing(shown, present, replace(memory, run=run, version=version)), published=True)
    out = {**memory.out, **dict.fromkeys(shown, "first")}
    return standing({}, present, replace(memory, run=run, out=out))


def judge(
    models: Sequence[Model], reference: Reference, rows: Mapping[tuple[Block, Hashable], int] | None = None
) -> Passes:
    """Whether each part of each joint cell of a trial satisfies the models on one sensitive attribute.

    reference: of the first version, so that no verdict changes what another one was based on; its domain names the
    values. rows: those that the version before shows, by block and value: needed by models that are not monotone, since
    a block of cells that pass may fail then. Raises QblockError for a value outside the domain where that matters.
    """
    codes: dict[Hashable, int] = {text: i for i, text in enumerate(reference.domain)}
    closed = any(model.needs for model in models)
    whole = [model for model in models if not model.monotone.generalization]
    if whole and rows is None:
        raise QblockError("a model that is not monotone is asked of the blocks too, whose rows were not given")

    def blocks_of(histograms: Sequence[Histogram]) -> Blocks:
        for counts in histograms:
            for value in counts:
                if value not in codes:
                    if closed:
                        raise QblockError("a batch holds a value that is not in the domain of the first version")
                    codes[value] = len(codes)
        return Blocks.of([{codes[value]: n for value, n in counts.items()} for counts in histograms])

    def satisfied(required: Sequence[Model], histograms: Sequence[Histogram]) -> bool:
        if not histograms:
            return True
        blocks = blocks_of(histograms)
        return all(bool(model.passes(blocks, reference).all()) for model in required)

    def passes(trial: Trial) -> bool:
        cells = [part for group in trial.groups for part in group.parts]
        if not satisfied(models, cells):
            return False
        return not whole or rows is None or satisfied(whole, _blocks_after(rows, trial))

    return passes


def _blocks_after(rows: Mapping[tuple[Block, Hashable], int], trial: Trial) -> list[Histogram]:
    """The counts of the blocks that a trial and the batches before it touch, as the next version would show them."""
    touched = {block for block, _ in trial.change}
    blocks: dict[Block, dict[Hashable, int]] = {block: {} for block in sorted(touched)}
    for source in (rows, trial.change):
        for (block, value), n in source.items():
            if block in blocks:
                blocks[block][value] = blocks[block].get(value, 0) + n
    positive = [{value: n for value, n in counts.items() if n} for counts in blocks.values()]
    return [counts for counts in positive if counts]
