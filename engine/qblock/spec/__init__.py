"""The release spec: what is published, from where, under which privacy models (docs/spec.md)."""

from __future__ import annotations

from qblock.spec.digest import spec_digest
from qblock.spec.fields import SecretUrl, table_parts
from qblock.spec.load import load_spec, read_spec, spec_of, table_as_it_stands
from qblock.spec.model import Spec, suppressed_rows_allowed
from qblock.spec.privacy import GuardTable, PriorTable, PriorValues, Requirement
from qblock.spec.sections import Attribute, Publish, Search, Source, Versions
from qblock.spec.sources import CsvFile, Cuts, Dates, Digits, DimensionTable, Edges, HierarchySource, Ranges, Suppress

__all__ = [
    "Attribute",
    "CsvFile",
    "Cuts",
    "Dates",
    "Digits",
    "DimensionTable",
    "Edges",
    "GuardTable",
    "HierarchySource",
    "PriorTable",
    "PriorValues",
    "Publish",
    "Ranges",
    "Requirement",
    "Search",
    "SecretUrl",
    "Source",
    "Spec",
    "Suppress",
    "Versions",
    "load_spec",
    "read_spec",
    "spec_digest",
    "spec_of",
    "suppressed_rows_allowed",
    "table_as_it_stands",
    "table_parts",
]
