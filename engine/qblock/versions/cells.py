"""Joint cells with the counts of their values, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from qblock.blocks import Blocks, Ints, Mask, Reference
from qblock.versions.crosswalk import decoded
from qblock.versions.episodes import VersionKey
from qblock.versions.units import Sets, kept_sets


@dataclass(frozen=True, eq=False)
class Cells:
    """Joint cells with the count of each value. name: of each cell; cell, value, count: int64[R], one per pair of them.

    values: what the codes in `value` stand for, one text per sensitive attribute; shows: bool[C, V], the versions that
    show a cell. bundles: whether somebody may have several rows: then values have a set of texts per sensitive
    attribute, and counts are of people.
    """

    name: tuple[str, ...]
    cell: Ints
    value: Ints
    count: Ints
    values: tuple[tuple[str | None, ...], ...] | tuple[Sets, ...]
    shows: Mask
    bundles: bool = False

    def __len__(self) -> int:
        return len(self.name)


def read_cells(table: pa.Table, keys: Sequence[VersionKey], *, with_candidate: bool, sets: int | None = None) -> Cells:
    """The result of `joint_cells` as arrays. keys: the versions, with the candidate last where there is one; sets: the
    number of sensitive attributes, where values are bundles."""
    if not len(table):
        nothing = np.zeros(0, dtype=np.int64)
        return Cells((), nothing, nothing, nothing, (), np.zeros((0, len(keys)), dtype=bool), sets is not None)
    cell = table["cell"].combine_chunks().dictionary_encode()
    part = np.asarray(table["part"].to_numpy(), dtype=np.int64)
    both = np.asarray(cell.indices, dtype=np.int64) * (int(part.max()) + 1) + part
    _, first, number = np.unique(both, return_index=True, return_inverse=True)
    value = table["value"].combine_chunks().dictionary_encode()
    before = table["before"].combine_chunks().take(pa.array(first)).dictionary_encode()
    column = {key.text: i for i, key in enumerate(keys)}
    shown = np.zeros((len(before.dictionary), len(keys)), dtype=bool)
    for i, text in enumerate(before.dictionary.to_pylist()):
        shown[i, [column[key] for key in text.split()]] = True
    shows = shown[np.asarray(before.indices)]
    if with_candidate:
        shows[:, -1] = np.asarray(table["published"].to_numpy())[first] == 1
    names = table["cell"].combine_chunks().take(pa.array(first)).to_pylist()
    return Cells(
        tuple(names),
        number.reshape(-1).astype(np.int64),
        np.asarray(value.indices, dtype=np.int64),
        np.asarray(table["n"].to_numpy(), dtype=np.int64),
        tuple((decoded(t) if sets is None else kept_sets(t, sets)) for t in value.dictionary.to_pylist()),  # type: ignore[arg-type]
        shows,
        bundles=sets is not None,
    )


def held_by_all(cells: Cells, attributes: int) -> Mask:
    """bool[C]: the cells of bundles in which everybody holds some value of one of the sensitive attributes."""
    common = np.zeros(len(cells), dtype=bool)
    if not cells.bundles or not len(cells):
        return common
    everything = np.ones(len(cells.cell), dtype=bool)
    people = np.bincount(cells.cell, weights=cells.count, minlength=len(cells)).astype(np.int64)
    for index in range(attributes):
        texts = frozenset[str | None]().union(*(value[index] or () for value in cells.values))
        codes = {text: code for code, text in enumerate(sorted(texts, key=lambda t: (t is None, t or "")))}
        blocks = Blocks.from_pairs(*by_value(cells, index, codes, everything))
        common |= blocks.largest == people
    return common


def by_value(cells: Cells, index: int, codes: Mapping[str | None, int], chosen: Mask) -> tuple[Ints, Ints, Ints]:
    """The cell, the code of a value and the people who hold it, of bundles: one for each of some pairs and each value.

    index: of the sensitive attribute; codes: of its values, others get -1; chosen: bool[R].
    """
    sets = [[codes.get(text, -1) for text in value[index] or ()] for value in cells.values]
    lengths = np.array([len(held) for held in sets], dtype=np.int64)
    flat = np.array([code for held in sets for code in held], dtype=np.int64)
    start = np.cumsum(lengths) - lengths
    of = cells.value[chosen]
    n = lengths[of]
    pair = np.repeat(np.arange(len(of), dtype=np.int64), n)
    within = np.arange(int(n.sum()), dtype=np.int64) - np.repeat(np.cumsum(n) - n, n)
    return cells.cell[chosen][pair], flat[start[of[pair]] + within], cells.count[chosen][pair]


def codes_of(values: Sequence[tuple[str | None, ...]], index: int, reference: Reference) -> Ints:
    """int64[values]: the code of each value in a domain; -1 for one that is not in it."""
    codes = {text: code for code, text in enumerate(reference.domain)}
    return np.array([codes.get(value[index], -1) for value in values], dtype=np.int64)
