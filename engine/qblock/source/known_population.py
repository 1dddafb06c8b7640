"""The population that `audit --prior` names, by combinations of values: the source, a CSV file or a table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from qblock import comparison
from qblock.blocks import Ints
from qblock.comparison import Matcher
from qblock.engines import queries
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.files import read_input
from qblock.lattice import Node
from qblock.source.levels import require_columns
from qblock.source.open import SourceTable, Values

OF_SOURCE = "table"
"""The prior whose population is the source itself."""
WEIGHT = "weight"
"""The column of a file that says how frequent a combination is."""
DIGITS = 18
"""Of a weight, before and after the point."""


@dataclass(frozen=True)
class Depth:
    """How deep blocks show a quasi-identifier. each: every value by itself; whole: all as one; where: in words."""

    each: bool
    whole: bool
    where: str


def depths_of(source: SourceTable, node: Node) -> list[Depth]:
    """Those of a node."""
    return [
        Depth(level == 0, level == hierarchy.height, f"at level {level}")
        for hierarchy, level in zip(source.hierarchies, node, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Combinations:
    """A population by combinations: keys int64[R, Q], leaf codes of the quasi-identifiers, -1 for a value that no
    hierarchy covers; values: int64[R], codes of the domain, then those of `beyond`, which the domain lacks; weight:
    [R], whole numbers."""

    keys: Ints
    values: Ints
    weight: Any
    beyond: tuple[str | None, ...] = ()

    def placed(self, source: SourceTable, depths: Sequence[Depth], prior: str) -> Combinations:
        """Those that a block may hold: an uncovered value is a block of its own where each value is, which nobody in
        the source is in, and in the one block at `*`. depths: of each quasi-identifier in the blocks. Raises InputError
        for one between."""
        kept = np.ones(len(self.keys), dtype=bool)
        keys = self.keys.copy()
        for i, (name, hierarchy, depth) in enumerate(
            zip(source.quasi_identifiers, source.hierarchies, depths, strict=True)
        ):
            lost = self.keys[:, i] < 0
            if not lost.any():
                continue
            if depth.each:
                kept &= ~lost
            elif depth.whole:
                keys[lost, i] = len(hierarchy.leaves)  # a leaf of its own, which is nobody's in the source
            else:
                rows = int(np.count_nonzero(lost))
                raise InputError(
                    f"--prior {prior}: {rows:,} of its {len(lost):,} combinations have a value of {name} that its "
                    f"hierarchy does not cover, so their block {depth.where} is unknown. Add the values to the "
                    "hierarchy (`qblock hierarchy build` writes it as a file), or remove them"
                )
        return Combinations(keys[kept], self.values[kept], self.weight[kept], self.beyond)


def of_source(source: SourceTable, sensitive: int) -> Combinations:
    """The source itself, as counts."""
    keys, values, n = source.frequency_sets.leaf_counts([sensitive])
    return Combinations(keys, values[:, 0], n)


class KnownPopulation:
    """The population that a prior names; it is read when a sensitive attribute is asked about.

    prior: `table`, the path of a CSV file with the columns of the quasi-identifiers, of sensitive attributes and
    `weight`, or the name of a table of the source's warehouse with these columns but `weight`. Raises InputError.
    """

    def __init__(self, source: SourceTable, prior: str) -> None:
        self.source, self.prior = source, prior
        self._file: dict[str, list[Any]] | None = None
        self._table: TableName | None = None
        if prior == OF_SOURCE:
            return
        if prior.lower().endswith(".csv"):
            self._file = _weights_of_file(Path(prior), prior)
            columns: Sequence[str] = list(self._file)
        else:
            self._table = TableName.parse(prior)
            columns = list(source.session.columns(self._table))
        hint = f"it needs every quasi-identifier, and the sensitive attribute; its columns are {', '.join(columns)}"
        require_columns(f"--prior {prior}: it", columns, source.quasi_identifiers, hint)
        self._columns = columns
        if not any(name in columns for name in source.sensitives):
            raise InputError(
                f"--prior {prior}: it has no column of a sensitive attribute ({', '.join(source.sensitives)}); "
                f"its columns are {', '.join(columns)}"
            )

    @property
    def sensitives(self) -> list[str]:
        """The sensitive attributes that it says something about."""
        if self.prior == OF_SOURCE:
            return list(self.source.sensitives)
        return [name for name in self.source.sensitives if name in self._columns]

    def combinations(self, sensitive: str) -> Combinations:
        """The population by leaf combinations and values of one sensitive attribute."""
        if self.prior == OF_SOURCE:
            return of_source(self.source, list(self.source.sensitives).index(sensitive))
        names = [*self.source.quasi_identifiers, sensitive]
        if self._file is not None:
            from qblock.bayes.beliefs import whole_weights  # the beliefs of an audit alone

            texts: Mapping[str, pa.Array] = {name: pa.array(self._file[name], pa.string()) for name in names}
            return self._coded(texts, whole_weights(self._file[WEIGHT]), sensitive)
        table = self._counted(names)
        n = table["n"].to_numpy().astype(np.int64)
        return self._coded({name: table[f"v{i}"] for i, name in enumerate(names)}, n, sensitive)

    def _counted(self, names: Sequence[str]) -> pa.Table:
        session = self.source.session
        assert self._table is not None
        relation, columns = session.relation(self._table), session.columns(self._table)
        values = [session.comparable(relation.c[name], columns[name]).label(f"v{i}") for i, name in enumerate(names)]
        by = [value.element for value in values]
        grouped = sa.select(*values, sa.func.count().label("n")).group_by(*by).subquery("grouped")
        texts = [session.text_of(grouped.c[f"v{i}"], columns[name].kind).label(f"v{i}") for i, name in enumerate(names)]
        return session.fetch(sa.select(*texts, queries.whole(grouped.c.n).label("n")))

    def _coded(self, texts: Mapping[str, Any], weight: Any, sensitive: str) -> Combinations:
        source = self.source
        keys = np.empty((len(weight), len(source.quasi_identifiers)), dtype=np.int64)
        for i, (name, hierarchy) in enumerate(zip(source.quasi_identifiers, source.hierarchies, strict=True)):
            covered, leaf = hierarchy.values
            matcher = Matcher(covered, source.columns[name].kind)
            code_of_others = matcher.find(None) if source.spec.attributes[name].uncovered == "top" else None
            distinct, index = _distinct(texts[name])
            codes_of_texts = [code_of_others if (code := matcher.find(text)) is None else code for text in distinct]
            codes = np.array([-1 if code is None else leaf[code] for code in codes_of_texts], dtype=np.int64)
            keys[:, i] = codes[index]
        values: Values = source.sensitives[sensitive]
        distinct, index = _distinct(texts[sensitive])
        beyond: dict[Any, tuple[int, str | None]] = {}
        codes = np.empty(len(distinct), dtype=np.int64)
        for place, text in enumerate(distinct):
            code = values.reference.code_of(text)
            if code is None:
                same_value = None if text is None else comparison.key(text, values.column.kind)
                code, _ = beyond.setdefault(same_value, (values.reference.values + len(beyond), text))
            codes[place] = code
        return Combinations(keys, codes[index], weight, tuple(text for _, text in beyond.values()))


def _distinct(texts: Any) -> tuple[list[str | None], Ints]:
    """The distinct texts of a column, NULL among them, and int64[R], which of them each row has."""
    column = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _weights_of_file(path: Path, prior: str) -> dict[str, list[Any]]:
    """A file's columns as texts (an empty field is NULL), `weight` as whole numbers without a common divisor. Raises
    InputError with the line."""
    reader = csv.reader(io.StringIO(read_input(path, "the prior", newline=""), newline=""), strict=True)
    columns: list[str] = []
    weight = 0
    rows: list[list[str | None]] = []
    weights: list[int] = []
    try:
        for row in reader:
            if not columns:
                columns = row
                _check_header(columns, prior)
                weight = columns.index(WEIGHT)
            elif row:
                if len(row) != len(columns):
                    raise InputError(
                        f"{prior}:{reader.line_num}: {len(row)} fields, and the header has {len(columns)}; correct it"
                    )
                weights.append(_weight(row[weight], prior, reader.line_num))
                rows.append([field or None for field in row])
    except csv.Error as error:
        raise InputError(f"{prior}:{reader.line_num}: not CSV: {error}") from None
    if not any(weights):
        raise InputError(f"{prior}: no weight above 0; write one line for each combination that occurs")
    texts: dict[str, list[Any]] = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
    common = math.gcd(*weights)
    return texts | {WEIGHT: [weight // common for weight in weights]}


def _check_header(columns: Sequence[str], prior: str) -> None:
    # First: without a header the names are values.
    if WEIGHT not in columns:
        raise InputError(
            f"{prior}: it has no column {WEIGHT!r}; write a header with the quasi-identifiers, the sensitive attribute "
            f"and {WEIGHT}"
        )
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise InputError(f"{prior}: two columns are called {twice[0]!r}; rename one")


def _weight(text: str, prior: str, line: int) -> int:
    whole, _, decimals = text.strip().partition(".")
    digits = whole + decimals
    if not (digits.isascii() and digits.isdigit()) or max(len(whole), len(decimals)) > DIGITS:
        raise InputError(
            f"{prior}:{line}: column {WEIGHT}: not a number from 0 on, of at most {DIGITS} digits before and after the "
            "point; write 12 or 0.25"
        )
    return int(digits) * 10 ** (DIGITS - len(decimals))
