"""Which tables of the warehouse a run reads, and which columns of its source."""

from __future__ import annotations

from qblock.spec import Spec
from qblock.spec.prior import PriorTable
from qblock.spec.sources import DimensionTable
from qblock.warehouse.protocol import TableName


def tables_read(spec: Spec) -> list[TableName]:
    """Every table of the warehouse that a run reads: the source, hierarchies, priors, populations and guards."""
    names = [spec.source.table]
    for attribute in spec.attributes.values():
        names += [s.table for s in (attribute.hierarchy, attribute.taxonomy) if isinstance(s, DimensionTable)]
    for requirement in spec.privacy:
        if requirement.guards is not None:
            names.append(requirement.guards.table)
        if isinstance(requirement.prior, PriorTable):
            names.append(requirement.prior.table)
        population = getattr(requirement.model, "population", None)
        if population is not None:
            names.append(population)
    return [TableName.parse(name) for name in dict.fromkeys(names)]


def columns_read(spec: Spec) -> tuple[str, ...]:
    """The columns of the source that a run cannot do without."""
    own = [name for name, attribute in spec.attributes.items() if attribute.role != "identifying"]
    return tuple(dict.fromkeys([*own, *([spec.entity] if spec.entity is not None else [])]))


def columns_looked_at(spec: Spec) -> tuple[str, ...]:
    """Those that it does without: whether they repeat people, where the spec does not say who a row is about."""
    if spec.entity is not None:
        return ()
    return tuple(name for name, attribute in spec.attributes.items() if attribute.role == "identifying")
