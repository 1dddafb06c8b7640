"""The quantities that a version's guarantees refer to, kept with it in the private schema or file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.comparison import Kind
from qblock.errors import QblockError
from qblock.ledger.events import canonical
from qblock.ledger.schema import tables
from qblock.spec.sections import RangesShown, Role


@dataclass(frozen=True)
class PublishedColumn:
    """A column of a version. type: the engine's own name; text for every quasi-identifier at every level.

    role `bound`: a bound of the labels of the quasi-identifier before it; `exact`: the value that such a label is, NULL
    where it is none; `mean`: that of its block; `people`: how many people its block has; `weight`: the share of the
    people of the row's joint cell who are present; `since`: the version that first showed the row as it is.
    """

    name: str
    role: Role | Literal["bound", "exact", "mean", "people", "weight", "since"]
    type: str
    kind: Kind

    @property
    def derived(self) -> bool:
        """Whether it is no column of the source."""
        return self.role in ("bound", "exact", "mean", "people", "weight", "since")


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a version. references: for each requirement, one for each of its sensitive attributes; counts: of
    a requirement, by its number, those that the published rows do not give (private_counts); hierarchies: the marks
    of the leaves of those that are stated in files and tables, by attribute; map: the recoding map, where there is
    one; ranges: how bounds are published (`publish.ranges`), `text` where that was not kept; coarser: what sensitive
    attributes are published as (`publish_as`), and replaced: how columns are read (`unknown`, `same`), in the words of
    the spec."""

    columns: tuple[PublishedColumn, ...]
    references: tuple[tuple[Reference, ...], ...]
    counts: Mapping[int, Sequence[dict[str, Any]]] = field(default_factory=dict)
    hierarchies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    map: Mapping[str, Any] | None = None
    ranges: RangesShown = "text"
    coarser: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Canonical JSON; each distinct reference is written once."""
        distinct: list[str] = []
        numbers = []
        for references in self.references:
            texts = [canonical(_plain(reference)) for reference in references]
            distinct += [text for text in dict.fromkeys(texts) if text not in distinct]
            numbers.append([distinct.index(text) for text in texts])
        columns = [asdict(column) for column in self.columns]
        content: dict[str, Any] = {
            "columns": columns,
            "distinct": [json.loads(text) for text in distinct],
            "references": numbers,
        }
        if self.counts:
            content["counts"] = {str(number): list(parts) for number, parts in self.counts.items()}
        if self.hierarchies:
            content["hierarchies"] = {name: list(marks) for name, marks in self.hierarchies.items()}
        if self.map is not None:
            content["map"] = dict(self.map)
        if self.ranges != "text":
            content["ranges"] = self.ranges
        if self.coarser:
            content["coarser"] = dict(self.coarser)
        if self.replaced:
            content["replaced"] = dict(self.replaced)
        return canonical(content)

    @property
    def stated(self) -> str:
        """What of it does not depend on rows that are not published: columns, hierarchies of files and tables."""
        return replace(self, references=(), counts={}, map=None).text()

    @classmethod
    def of_text(cls, text: str) -> Kept:
        """What `text` wrote. Raises QblockError for anything else."""
        try:
            content = json.loads(text)
            distinct = [_reference(plain) for plain in content["distinct"]]
            return cls(
                tuple(PublishedColumn(**column) for column in content["columns"]),
                tuple(tuple(distinct[number] for number in numbers) for numbers in content["references"]),
                {int(number): parts for number, parts in content.get("counts", {}).items()},
                content.get("hierarchies", {}),
                content.get("map"),
                content.get("ranges", "text"),
                content.get("coarser", {}),
                content.get("replaced", {}),
            )
        except (ValueError, TypeError, KeyError, IndexError):
            raise QblockError("the quantities kept with a version cannot be read: they were altered") from None


def kept_digest(text: str) -> str:
    """sha256 of what is kept, for the ledger."""
    return hashlib.sha256(text.encode()).hexdigest()


def write_kept(connection: sa.Connection, release: str, version: int, text: str) -> None:
    """Keep the quantities of a version, in the transaction of the caller."""
    table = tables(connection).reference
    connection.execute(table.insert(), [{"release": release, "version": version, "content": text}])


def write_spec(connection: sa.Connection, digest: str, text: str) -> None:
    """Keep the canonical text of a spec by its digest, once, in the transaction of the caller. It has no URL."""
    table = tables(connection).spec
    if connection.scalar(sa.select(table.c.digest).where(table.c.digest == digest)) is None:
        connection.execute(table.insert(), [{"digest": digest, "content": text}])


def read_spec_text(connection: sa.Connection, digest: str) -> str | None:
    """The canonical text of a spec that was kept by its digest, as long as it has it."""
    table = tables(connection).spec
    text = connection.scalar(sa.select(table.c.content).where(table.c.digest == digest))
    return text if text is not None and hashlib.sha256(text.encode()).hexdigest() == digest else None


def read_kept(connection: sa.Connection, release: str, version: int) -> str | None:
    """What was kept of a version."""
    table = tables(connection).reference
    query = sa.select(table.c.content).where(table.c.release == release, table.c.version == version)
    return connection.scalar(query)


def forget_kept(connection: sa.Connection, release: str, versions: Sequence[int]) -> None:
    """Remove what was kept of versions that no longer exist."""
    table = tables(connection).reference
    connection.execute(table.delete().where(table.c.release == release, table.c.version.in_(list(versions))))


def _plain(reference: Reference) -> dict[str, Any]:
    guarded = reference.guarded
    more: dict[str, Any] = {} if guarded is None else {"guarded": [list(values) for values in guarded]}
    # What was not kept at first is left out where there is none, so that an older text stays as it is.
    more |= {} if reference.kind is None else {"kind": reference.kind}
    more |= {} if reference.people is None else {"people": reference.people}
    return {
        **more,
        "rows": reference.rows,
        "domain": list(reference.domain),
        "totals": reference.totals.tolist(),
        "ordered": reference.ordered,
        "numbers": None if reference.numbers is None else [str(number) for number in reference.numbers],
        "taxonomy": None if reference.taxonomy is None else reference.taxonomy.tolist(),
        "prior": None if reference.prior is None else [str(weight) for weight in reference.prior],
    }


def _reference(plain: dict[str, Any]) -> Reference:
    numbers, taxonomy, prior = plain["numbers"], plain["taxonomy"], plain["prior"]
    return Reference(
        rows=plain["rows"],
        domain=tuple(plain["domain"]),
        totals=np.array(plain["totals"], dtype=np.int64),
        ordered=plain["ordered"],
        numbers=None if numbers is None else tuple(Fraction(number) for number in numbers),
        taxonomy=None if taxonomy is None else np.array(taxonomy, dtype=np.int64),
        prior=None if prior is None else tuple(Fraction(weight) for weight in prior),
        guarded=tuple(map(tuple, plain["guarded"])) if "guarded" in plain else None,
        kind=plain.get("kind"),
        people=plain.get("people"),
    )
