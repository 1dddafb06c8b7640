"""Counts of a version that its published rows do not give, kept with it in the private schema or file.

Models that need a population, entities with several rows, personalized predicates or coarser nodes are verified against
them later: what readers see is not enough.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from qblock.blocks import Blocks, Containing, Guards, Ints, Mask, Reference
from qblock.models import Tightest
from qblock.search.assessment import Part, combine
from qblock.spec import Requirement

LIMIT = 4_000_000
"""The most numbers kept for one requirement: a model over many coarser nodes may need more, and is then not
verified."""
_ARRAYS = ("start", "value", "count", "rows", "population", "population_only")

Plain = dict[str, Any]


def plain_parts(parts: Sequence[Part], kept: Mask) -> list[Plain] | None:
    """The blocks of a requirement that are published, for JSON: one entry for each of its sensitive attributes."""
    chosen = [part.blocks.select(kept if part.owner is None else kept[part.owner]) for part in parts]
    if sum(map(_numbers, chosen)) > LIMIT:
        return None
    return [_plain(blocks) for blocks in chosen]


def verdict(requirement: Requirement, parts: Sequence[Plain], references: Sequence[Reference]) -> Tightest:
    """What a requirement reaches on counts that were kept."""
    blocks = [_blocks(plain) for plain in parts]
    models = requirement.models
    reached = [m.tightest(b, r) for m, b, r in zip(models, blocks, references, strict=True)]
    return combine(reached, models[0])


def sizes(parts: Sequence[Plain]) -> Ints:
    """int64[B], ascending: the sizes of the blocks, in rows (or in entities, where these are counted)."""
    return np.sort(_array(parts[0]["rows"]))


def _numbers(blocks: Blocks) -> int:
    own = sum(array.size for name in _ARRAYS if (array := getattr(blocks, name)) is not None)
    return own + sum(_numbers(c.blocks) + c.index.size for c in blocks.containing)


def _plain(blocks: Blocks) -> Plain:
    plain: Plain = {name: _text(array) for name in _ARRAYS if (array := getattr(blocks, name)) is not None}
    if blocks.containing:
        plain["containing"] = [{"blocks": _plain(c.blocks), "index": _text(c.index)} for c in blocks.containing]
    if blocks.guards is not None:
        plain["guards"] = {"start": _text(blocks.guards.start), "predicate": _text(blocks.guards.predicate)}
    return plain


def _blocks(plain: Plain) -> Blocks:
    guards = plain.get("guards")
    return Blocks(
        **{name: _array(plain[name]) for name in _ARRAYS if name in plain},
        containing=tuple(Containing(_blocks(c["blocks"]), _array(c["index"])) for c in plain.get("containing", ())),
        guards=None if guards is None else Guards(_array(guards["start"]), _array(guards["predicate"])),
    )


def _text(array: Ints) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array, dtype="<i8").tobytes())).decode("ascii")


def _array(text: str) -> Ints:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").astype(np.int64)
