"""Hierarchies and taxonomies that are stated in files and dimension tables, whatever the source holds."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from typing import Any

from qblock.hierarchy import Hierarchy
from qblock.source.levels import domain_of, hierarchy_of
from qblock.spec import Spec
from qblock.spec.sources import CsvFile, DimensionTable
from qblock.warehouse import warehouse_of
from qblock.warehouse.protocol import Column

MOST = 50_000
"""Leaves that are marked one by one."""
MARK = 16
"""Hexadecimal digits of a mark: the chance that two of 50,000 leaves have the same one is 1 in 10^10."""
ANY = Column("", "", "text", "")
"""In place of a column of the source, whose type does not matter in a stated hierarchy."""


def stated_attributes(spec: Spec) -> dict[str, CsvFile | DimensionTable]:
    """The attributes whose hierarchy (or taxonomy) is a file or a table."""
    sources = {name: attribute.hierarchy or attribute.taxonomy for name, attribute in spec.attributes.items()}
    return {name: source for name, source in sources.items() if isinstance(source, CsvFile | DimensionTable)}


def leaf_marks(hierarchy: Hierarchy) -> list[str]:
    """A short digest of each leaf with all its labels, sorted: a hierarchy that has only gained leaves still has all of
    these. For more leaves than MOST the digest of the whole, which shows any change.
    """
    paths = list(zip(*hierarchy.labels, strict=True))
    if len(paths) > MOST:
        return [hierarchy.digest()]
    return sorted(hashlib.sha256(repr(path).encode()).hexdigest()[:MARK] for path in paths)


def stated_hierarchies(spec: Spec) -> dict[str, Hierarchy]:
    """The stated hierarchies, as a run would read them now. Raises InputError for one that cannot be read, QblockError
    for a fault."""
    stated = stated_attributes(spec)
    nothing: Any = None  # what a source holds does not matter to them
    hierarchies = {}
    with ExitStack() as stack:
        session = nothing
        if any(isinstance(source, DimensionTable) for source in stated.values()):
            warehouse = warehouse_of(spec)
            stack.callback(warehouse.close)
            session = stack.enter_context(warehouse.snapshot())
        for name in stated:
            attribute = spec.attributes[name]
            if attribute.role == "sensitive":
                hierarchies[name] = domain_of(spec, session, name, ANY, nothing)
                continue
            hierarchies[name] = hierarchy_of(spec, session, name, ANY, nothing)
    return hierarchies
