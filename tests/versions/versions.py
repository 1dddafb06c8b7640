"""Registers brought into the crosswalk as the versions that they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.engines.tables import Column
from qblock.ledger.kept import Kept
from qblock.spec import Spec, read_spec
from qblock.versions.crosswalk import Crosswalk, fresh_name
from qblock.versions.episodes import Mode, VersionKey, shown
from qblock.versions.gate import Verdict, check
from qblock.versions.recorded import Candidate, RecordedVersion, record
from qblock.versions.texts import encoded
from qblock.versions.types import First, Types

from .register import Register, Row

SPEC = """
version: 1
release: {release}
source: {{url: "duckdb:///w.duckdb", table: people}}
attributes:
  person: identifying
  block: {{role: quasi_identifier, hierarchy: suppress}}
  value: sensitive
entity: person
privacy:
{privacy}
versions: {{audience: [{audience}]}}
"""

_TEXT = Column("person", "text", "text", "text")
TYPES = Types({"person": _TEXT, "block": replace(_TEXT, name="block")}, "person", First(_TEXT))


def make_spec(
    privacy: Iterable[str] = ("k_anonymity: {k: 2}", "distinct_l_diversity: {l: 2}"),
    release: str = "r",
    audience: Iterable[str] = (),
) -> Spec:
    entries = "\n".join(f"  - {entry}" for entry in privacy)
    return read_spec(SPEC.format(release=release, privacy=entries, audience=", ".join(audience)))


def candidate_of(
    crosswalk: Crosswalk,
    rows: Iterable[Row],
    version: int,
    least: int,
    release: str = "r",
    audience: tuple[str, ...] = (),
) -> Candidate:
    """The rows of one version as a candidate: sizes and labels are counted in the database."""
    mine = [row for row in rows if row.version == version]
    sized_blocks = Counter(row.block for row in mine)
    blocks = sorted(sized_blocks)
    number = {block: i for i, block in enumerate(blocks)}
    loaded = crosswalk.own.load(
        fresh_name(),
        pa.table(
            {
                "entity": [row.person for row in mine],
                "block": pa.array([number[row.block] for row in mine], pa.int64()),
                "text": [row.value for row in mine],
                "kept": pa.array([int(row.published) for row in mine], pa.int64()),
            }
        ),
    )
    size = sa.func.count().over(partition_by=loaded.c.block)
    sized = sa.select(loaded, size.label("block_rows")).subquery()
    label = sa.cast(shown(sized.c.kept == 1, sized.c.block_rows, least), sa.Text)
    table = crosswalk.own.store(
        fresh_name(),
        sa.select(
            sized.c.entity,
            sized.c.block,
            label.label("shown"),
            sized.c.block_rows,
            encoded([sized.c.text]).label("value"),
        ),
    )
    published = {row.block: row.published for row in mine}
    sizes = [sized_blocks[block] for block in blocks]
    labels = ["P" if published[b] else "S" if n >= least else "-" for b, n in zip(blocks, sizes, strict=True)]
    about = RecordedVersion(
        key=VersionKey(release, version),
        rows=len(mine),
        least=least,
        source="people",
        node=(0,),
        hierarchies="{}",
        quasi_identifiers=("block",),
        sensitive=("value",),
        audience=audience,
        content=Kept((), ((reference_of(mine),),)).text(),
        types=TYPES,
    )
    return Candidate(about, table, tuple(f'["{block}"]' for block in blocks), tuple(labels), tuple(sizes))


def reference_of(rows: Iterable[Row]) -> Reference:
    values = Counter(row.value for row in rows)
    domain = tuple(sorted(values))
    return Reference(values.total(), domain, np.array([values[value] for value in domain], dtype=np.int64))


def references(spec: Spec, rows: Iterable[Row]) -> list[list[Any]]:
    """What a run would bring: for each requirement the quantities of its table."""
    one = reference_of(rows)
    nothing = Reference(one.rows, (), np.zeros(0, dtype=np.int64))
    return [[one] if requirement.sensitive else [nothing] for requirement in spec.privacy]


def publish(
    crosswalk: Crosswalk,
    register: Register,
    spec: Spec,
    audience: tuple[str, ...] = (),
    least: int | None = None,
    mode: Mode | None = None,
) -> list[Verdict]:
    """Record every version of a register as a release's, whatever the check says; the verdict of each.

    least: k of the labels, where it is not the register's; mode: one of the two rules alone.
    """
    verdicts = []
    for version in register.versions:
        found = candidate_of(crosswalk, register.rows, version, least or register.k, spec.release, audience)
        mine = [row for row in register.rows if row.version == version]
        verdicts.append(check(crosswalk, spec, references(spec, mine), found, mode))
        record(crosswalk, found)
    return verdicts


def verdict(crosswalk: Crosswalk, register: Register, spec: Spec, mode: Mode | None = None) -> Verdict:
    """What the check says of all versions of a register together, as of the last one. mode: by one rule alone."""
    return publish(crosswalk, register, spec, mode=mode)[-1]
