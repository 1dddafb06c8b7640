"""The guarantees of a copy, recounted from its text columns: no dimension tables, no frequency sets.

What the search counted and what the copy holds must agree to the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Blocks, Ints, Reference
from qblock.engines.session import Session
from qblock.errors import Refused
from qblock.ledger.kept import PublishedColumn
from qblock.models import Tightest
from qblock.models.anonymity import projected
from qblock.models.multi import Attribute, split
from qblock.models.multi import tightest as worst
from qblock.search.assessment import Assessment, same
from qblock.spec import Requirement, Spec
from qblock.spec.privacy import PriorTable

PRIVATE = frozenset({"population", "containing", "guards"})
"""What a model may need besides the published rows."""
WHOLE_TABLE = frozenset({"distribution", "domain"})
"""What a model may take from all rows of the source, those that readers do not see included."""


@dataclass(frozen=True, eq=False)
class Counted:
    """What a table holds. labels: [B, Q] the text of each block; rows: int64[B]; tightest: for each requirement, None
    where the published rows do not suffice; people: int64[B], as they say where they do."""

    labels: list[list[str]]
    rows: Ints
    tightest: tuple[Tightest | None, ...]
    people: Ints | None = None

    @property
    def total(self) -> int:
        return int(self.rows.sum())


def needs_more(spec: Spec, requirement: Requirement) -> bool:
    """Whether a guarantee cannot be computed from the published rows alone, which do not say who a row is about
    or whose household it is of."""
    return spec.count == "entities" or requirement.groups or bool(requirement.model.needs & PRIVATE)


def known_to_readers(spec: Spec, requirement: Requirement) -> bool:
    """Whether the published rows and the spec alone say what a guarantee satisfies; a reader may be told it then, and
    else could solve it for what the rows hide."""
    if needs_more(spec, requirement) or isinstance(requirement.prior, PriorTable):
        return False
    return spec.shows_every_row or not requirement.model.needs & WHOLE_TABLE


def count_again(
    spec: Spec,
    session: Session,
    rows: sa.FromClause,
    columns: Sequence[PublishedColumn],
    references: Sequence[Sequence[Reference]],
) -> Counted:
    """Count the published rows and evaluate every requirement on them.

    references: for each requirement one for each of its sensitive attributes, or the one for its sizes. Raises Refused
    for a quasi-identifier that is NULL, for a sensitive value outside the domain, and for numbers of people that cannot
    be those of a block.
    """
    by_name = {c.name: c for c in columns}
    quasi = [by_name[name] for name in spec.quasi_identifiers]
    people = next((column for column in columns if column.role == "people"), None)
    sizes = _grouped(session, rows, [*quasi, *([people] if people else [])])
    count = _integers(sizes, "n")
    codes, labels = _coded(sizes, quasi)
    order = np.lexsort(codes.T[::-1]) if len(count) else np.zeros(0, dtype=np.int64)
    texts = [[labels[i][code] for i, code in enumerate(key)] for key in codes[order].tolist()]
    of_blocks = None if people is None else _people(sizes, codes, count, f"c{len(quasi)}")[order]
    tightest: list[Tightest | None] = []
    for requirement, reference in zip(spec.privacy, references, strict=True):
        if needs_more(spec, requirement):
            tightest.append(None)
            continue
        tightest.append(_evaluate(session, rows, quasi, by_name, requirement, reference))
    return Counted(texts, count[order], tuple(tightest), of_blocks)


def _people(sizes: pa.Table, codes: Ints, rows: Ints, key: str) -> Ints:
    people = _integers(sizes, key)
    if len(np.unique(codes, axis=0)) != len(codes) or (people < 1).any() or (people > rows).any():
        raise Refused("the copy holds numbers of people that its blocks cannot have: nothing is published from it")
    return people


def _evaluate(
    session: Session,
    rows: sa.FromClause,
    quasi: Sequence[PublishedColumn],
    by_name: dict[str, PublishedColumn],
    requirement: Requirement,
    references: Sequence[Reference],
) -> Tightest:
    sensitive = [by_name[name] for name in requirement.sensitive]
    groups = _grouped(session, rows, [*quasi, *sensitive])
    count = _integers(groups, "n")
    codes, _ = _coded(groups, quasi)
    keys, block = np.unique(codes, axis=0, return_inverse=True)
    block = block.reshape(-1).astype(np.int64)
    if not sensitive:
        blocks = Blocks.from_pairs(block, np.zeros_like(block), count, keys)
        if "projections" in requirement.model.needs:
            blocks = projected(requirement.model, blocks, [column.name for column in quasi])
        return requirement.model.tightest(blocks, references[0])
    values = np.stack(
        [
            _values(groups, f"c{len(quasi) + i}", column.name, reference)
            for i, (column, reference) in enumerate(zip(sensitive, references, strict=True))
        ],
        axis=1,
    )
    if len(sensitive) == 1:
        return requirement.model.tightest(Blocks.from_pairs(block, values[:, 0], count), references[0])
    parts = split(block, values, count)
    return worst(
        [
            Attribute(model, blocks, reference, owner)
            for model, reference, (blocks, owner) in zip(requirement.models, references, parts, strict=True)
        ]
    )


def _grouped(session: Session, rows: sa.FromClause, columns: Sequence[PublishedColumn]) -> pa.Table:
    texts = [session.text_of(rows.c[c.name], c.kind) for c in columns]
    selected = [text.label(f"c{i}") for i, text in enumerate(texts)]
    query = sa.select(*selected, sa.func.count().label("n")).select_from(rows).group_by(*texts)
    return session.fetch(query)


def _integers(table: pa.Table, name: str) -> Ints:
    return np.asarray(table[name].to_pylist(), dtype=np.int64)


def _coded(table: pa.Table, columns: Sequence[PublishedColumn]) -> tuple[Ints, list[list[str]]]:
    """int64[R, Q] and the text of each code; codes follow the order of the texts."""
    codes = np.zeros((len(table), len(columns)), dtype=np.int64)
    labels = []
    for i, column in enumerate(columns):
        texts = table[f"c{i}"].to_pylist()
        if None in texts:
            raise Refused(f"the copy holds NULL in the quasi-identifier {column.name}: nothing is published from it")
        distinct = sorted(set(texts))
        number = {text: code for code, text in enumerate(distinct)}
        codes[:, i] = [number[text] for text in texts]
        labels.append(distinct)
    return codes, labels


def _values(table: pa.Table, key: str, name: str, reference: Reference) -> Ints:
    number = {text: code for code, text in enumerate(reference.domain)}
    texts = table[key].to_pylist()
    unknown = sum(text not in number for text in texts)
    if unknown:
        raise Refused(f"the copy holds values of {name} that are not in the domain of the source's snapshot")
    return np.array([number[text] for text in texts], dtype=np.int64)


def differences(
    spec: Spec,
    counted: Counted,
    chosen: Assessment,
    labels: Sequence[dict[str, int]],
) -> list[str]:
    """What differs between the copy and what the search counted, one sentence each, without any value."""
    problems = []
    kept = chosen.counts.rows[chosen.kept]
    if len(counted.rows) != len(kept):
        problems.append(f"the copy has {len(counted.rows)} blocks, the search counted {len(kept)}")
    if counted.total != int(kept.sum()):
        problems.append(f"the copy has {counted.total} rows, the search counted {int(kept.sum())}")
    if not problems and _blocks(counted, chosen, labels):
        problems.append("blocks of the copy have other sizes than the search counted")
    if not problems and counted.people is not None and _blocks(counted, chosen, labels, of_people=True):
        problems.append("blocks of the copy have other numbers of people than the search counted")
    for requirement, again, before in zip(spec.privacy, counted.tightest, chosen.tightest, strict=True):
        if again is not None and not same(again, before):
            problems.append(f"the copy satisfies other values of {requirement.model.name} than the search found")
        if again is not None and not again.holds:
            problems.append(f"the copy does not satisfy {requirement.model.name}")
    return problems


def _blocks(counted: Counted, chosen: Assessment, labels: Sequence[dict[str, int]], *, of_people: bool = False) -> bool:
    counts, kept = chosen.counts, chosen.kept
    sizes, recounted = (counts.people, counted.people) if of_people else (counts.rows, counted.rows)
    assert sizes is not None
    assert recounted is not None
    expected = {tuple(key): n for key, n in zip(counts.keys[kept].tolist(), sizes[kept].tolist(), strict=True)}
    for texts, n in zip(counted.labels, recounted.tolist(), strict=True):
        key = tuple(known.get(text, -1) for known, text in zip(labels, texts, strict=True))
        if expected.get(key) != n:
            return True
    return False
