"""What a spec and a source must still have, once a state is kept: the columns and the node that all versions show."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk
from qblock.versions.lag.memory import Kept, Layout
from qblock.versions.recorded import UNPROTECTED, recorded
from qblock.versions.texts import rows_of, split_text
from qblock.versions.types import cannot_hold
from qblock.warehouse.protocol import Column
from qblock.warehouse.values import fits

OTHER_COLUMNS = (
    "version {first} of release {release} was made with other columns ({before}) than the spec has now ({now}), and "
    "those whom the source has no more are shown as they were; nothing is published. Write the columns as they were, "
    "or {unprotected}"
)


def check_layout(spec: Spec, kept: Kept) -> None:
    """Raise Refused where a spec has other columns than the versions, or pins another node."""
    now = Layout.of(spec)
    if kept.layout != now:
        before, names = (", ".join((*layout.quasi, *layout.valued)) for layout in (kept.layout, now))
        raise Refused(
            OTHER_COLUMNS.format(
                first=kept.first, release=spec.release, before=before, now=names, unprotected=UNPROTECTED
            )
        )
    pinned = spec.pinned
    if pinned is not None and pinned != kept.node:
        raise Refused(
            f"{spec.at('search', 'node')}: all versions must have one node, and version {kept.first} of "
            f"release {spec.release} has {list(kept.node)}; nothing is published. Pin that one, "
            f"or write {UNPROTECTED}"
        )


def check_shown(crosswalk: Crosswalk, spec: Spec, kept: Kept, columns: Mapping[str, Column]) -> None:
    """Raise Refused where a column has become too narrow for what versions show of it."""
    types = {name: column.compare_as for name, column in recorded(crosswalk, spec.release)[-1].types.columns.items()}
    types |= kept.types
    names = (*kept.layout.quasi, *kept.layout.valued)
    other = {name for name in names if columns[name].compare_as != types.get(name)}
    shown = crosswalk.tables.shown
    for column, names in ((shown.c.place, kept.layout.quasi), (shown.c.value, kept.layout.valued)):
        if not other.intersection(names):
            continue
        query = sa.select(column.label("text")).where(shown.c.release == spec.release).distinct()
        units = crosswalk.own.fetch(query)["text"].to_pylist()
        rows = [row for unit in units for row in rows_of(unit)] if spec.bundles and column is shown.c.value else units
        for row in rows:
            for name, text in zip(names, split_text(row), strict=True):
                if name in other and text is not None and not fits(text, columns[name]):
                    raise cannot_hold(columns[name])


def check_node(kept: Kept, source: SourceTable) -> None:
    """Raise Refused where the hierarchies have no longer the node of the versions."""
    if kept.node not in source.lattice:
        raise Refused(
            f"the published node {list(kept.node)} is no longer in the lattice: hierarchies have changed; nothing "
            f"is published. Change them back, or write {UNPROTECTED}"
        )
