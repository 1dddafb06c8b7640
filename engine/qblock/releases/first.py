"""The first minutes: a spec to start from, and the schema of specs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qblock.profiling.columns import Proposal
from qblock.profiling.first_spec import init
from qblock.profiling.unique_sets import sentence
from qblock.tables.results import Candidate, Entity


@dataclass(frozen=True)
class ProposedColumn:
    """A column, and the role that is proposed for it. nulls: rows without a value; reason: why; approximate: whether
    the number of distinct values is, which decided nothing then; values: that number in words."""

    name: str
    role: str
    distinct: int
    nulls: int
    reason: str
    approximate: bool
    values: str


@dataclass(frozen=True)
class Proposed:
    """A first spec. files: that were written, the spec last; entity: who a row is about; regime: `steady` where later
    versions lag behind the source, `once` for one publication; open: the lines of the spec, by column, on which a
    role is left to a person: no command reads it before; nodes: of the lattice as it is proposed; apart: sets of
    columns that tell most people apart, with the share of those who are alone with their values (alone: in words);
    types: of columns of CSV files that are no texts; notes: on what of them nearly has a type."""

    columns: tuple[ProposedColumn, ...]
    files: tuple[Path, ...]
    entity: Entity
    regime: str
    open: tuple[tuple[str, int], ...] = ()
    nodes: int = 1
    apart: tuple[tuple[tuple[str, ...], float], ...] = ()
    alone: str = ""
    rows: int = 0
    types: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What `qblock init --json` prints."""
        names = ("name", "role", "distinct", "approximate", "reason")
        columns = [{name: getattr(column, name) for name in names} for column in self.columns]
        return {
            "rows": self.rows,
            "files": [str(file) for file in self.files],
            "columns": columns,
            "entity": self.entity.to_dict(),
            "regime": self.regime,
            "open": dict(self.open),
            "nodes": self.nodes,
            "apart": [{"columns": list(columns), "share": share} for columns, share in self.apart],
            "types": dict(self.types),
            "notes": list(self.notes),
        }


def propose_spec(
    url: str,
    table: str | None = None,
    directory: str | Path = ".",
    *,
    force: bool = False,
    entity: str | None = None,
    ask: Callable[[Sequence[Candidate]], str] | None = None,
    sensitive: Sequence[str] | None = None,
    ask_sensitive: Callable[[Sequence[ProposedColumn]], Sequence[str]] | None = None,
) -> Proposed:
    """Profile a table, and write a spec and hierarchy files to edit.

    url: of a database with the table, or the path of Parquet or CSV files without one. force: replace files that exist.
    entity: the column that says who a row is about, or `none`. Without it the best guess is written, where there is a
    clear one. ask: given the candidates where there are several, says which one (its name, or `none`). sensitive: the
    names of the sensitive columns (`none`: there is none); ask_sensitive: given all columns, says which ones.
    Without either their roles are left open in the spec.

    Raises InputError for a table that cannot be read, or of which no column can be a quasi-identifier.
    """
    asking = None if ask is None else lambda who: ask([Candidate(**candidate.to_json()) for candidate in who.usable])
    choosing = None if ask_sensitive is None else lambda proposals: ask_sensitive([_column(p) for p in proposals])
    proposal = init(
        url,
        table,
        Path(directory),
        force=force,
        entity=entity,
        ask=asking,
        sensitive=sensitive,
        ask_sensitive=choosing,
    )
    columns = tuple(map(_column, proposal.proposals))
    open_ = tuple(proposal.open.items())
    sets = tuple((names.columns, names.share) for names in proposal.unique_sets)
    alone = sentence(proposal.unique_sets, proposal.sampled, proposal.rows)
    types = tuple((name, str(type_)) for name, type_ in proposal.recognized.types.items())
    entity_ = Entity.of(proposal.entity)
    notes = proposal.recognized.notes
    return Proposed(
        columns,
        proposal.files,
        entity_,
        proposal.regime,
        open_,
        proposal.nodes,
        sets,
        alone,
        proposal.rows,
        types,
        notes,
    )


def _column(p: Proposal) -> ProposedColumn:
    of = p.profile
    return ProposedColumn(of.column.name, p.role, of.distinct, of.nulls, p.reason, of.approximate, of.distinct_in_words)
