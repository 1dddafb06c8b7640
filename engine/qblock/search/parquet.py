"""Counts and node results as Arrow tables and Parquet files, for other tools."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qblock.blocks import Ints
from qblock.errors import InputError, QblockError
from qblock.files import disk_full, no_room, problem_of
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node
from qblock.search.assessment import metrics_json, number_json
from qblock.search.compare import Comparison
from qblock.search.compare_results import SHOWN
from qblock.search.task import Task

COUNTED = b"qblock:counted"
"""Of the file's own data: what is counted, rows or entities."""
LEVELS = b"qblock:levels"


def frequency_set(task: Task, node: Node) -> pa.Table:
    """How often each combination of labels and sensitive values occurs at a node: a row for each that does, with the
    label of every quasi-identifier (`*` for what is suppressed), the value of every sensitive attribute (NULL for none)
    as texts, and `count` (int64; of rows, or of entities where the spec counts these, as the metadata says).

    PRIVATE: fine nodes single out people. In the order of labels and values.
    """
    source, sensitives = task.source, list(task.source.sensitives.values())
    if sensitives:
        keys, values, counts = source.frequency_sets.joint(node, range(len(sensitives)))
    else:
        blocks = source.frequency_sets.blocks(node, ())[0]
        assert blocks.keys is not None
        keys, values, counts = blocks.keys, np.zeros((len(blocks), 0), np.int64), blocks.total
    columns: dict[str, pa.Array] = {}
    for i, (name, hierarchy) in enumerate(zip(source.quasi_identifiers, source.hierarchies, strict=True)):
        columns[name] = _texts(hierarchy, node[i], keys[:, i], "*")
    for i, attribute in enumerate(sensitives):
        columns[attribute.name] = _texts(attribute.hierarchy, 0, values[:, i], None)
    order = [(name, "ascending") for name in columns]
    columns[_free("count", columns)] = pa.array(counts, pa.int64())
    metadata = {COUNTED: task.spec.count.encode(), LEVELS: ",".join(map(str, node)).encode()}
    return pa.table(columns).sort_by(order).replace_schema_metadata(metadata)


def _texts(hierarchy: Hierarchy, level: int, codes: Ints, none: str | None) -> pa.Array:
    """The labels of codes, each the first leaf that has it. none: for the leaf of NULL."""
    distinct, place = np.unique(codes, return_inverse=True)
    labels = [hierarchy.labels[level][code] for code in distinct.tolist()]
    texts = pa.array([none if label is None else label for label in labels], pa.string())
    return texts.take(pa.array(place.reshape(-1)))


def nodes_table(comparison: Comparison) -> pa.Table:
    """What `compare` finds: a row for each node, with the columns of its CSV: levels (int64), height, rows, blocks and
    metrics, tightest values (double, infinite where no value is enough, NULL where there is none), and whether it
    satisfies each definition that asks for something (boolean)."""
    rows = comparison.rows
    columns: dict[str, pa.Array] = {}
    for i, name in enumerate(comparison.spec.quasi_identifiers):
        columns[_free(name, columns)] = pa.array([row.node[i] for row in rows], pa.int64())
    metrics = [metrics_json(row.figures) for row in rows]
    columns[_free("height", columns)] = pa.array([sum(row.node) for row in rows], pa.int64())
    columns[_free("rows", columns)] = pa.array([comparison.total] * len(rows), pa.int64())
    columns[_free("blocks", columns)] = pa.array([row.blocks for row in rows], pa.int64())
    for name in SHOWN[1:]:
        columns[_free(name, columns)] = pa.array([_double(figures[name]) for figures in metrics], pa.float64())
    for i, definition in enumerate(comparison.definitions):
        for j, name in enumerate(definition.columns):
            values = [_double(number_json(row.values[i][j].value)) for row in rows]
            columns[_free(name, columns)] = pa.array(values, pa.float64())
    for definition in comparison.requested:
        verdicts = [row.verdicts[definition.name].satisfied for row in rows]
        columns[_free(f"satisfies {definition.name}", columns)] = pa.array(verdicts, pa.bool_())
    return pa.table(columns)


def _double(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _free(name: str, taken: dict[str, pa.Array]) -> str:
    """A name like no column before it."""
    while name in taken:
        name += "_"
    return name


def check_parquet(path: str | Path, option: str = "path") -> None:
    """Raise InputError for what cannot be written to, before anything is read."""
    problem = problem_of(path)
    if problem is not None:
        raise InputError(f"{option} {path}: it {problem}; name a file")
    if not Path(path).resolve().parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {Path(path).parent}; make it, or name another file")


def write_parquet(table: pa.Table, path: str | Path) -> None:
    """Write a table as a file that nobody else may read (0600), whole or not at all: what was there stays until it is
    replaced. Raises InputError for a path that cannot be a file, QblockError where it cannot be written."""
    check_parquet(path)
    real = Path(path).resolve()
    new = real.with_name(f".{real.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, real)
    except OSError as error:
        if disk_full(error):
            raise no_room(path) from None
        raise QblockError(f"{path}: cannot be written: {error.strerror}; what was there stays") from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
