"""Generalization hierarchies: labels by level, read from files or built from the values of a column."""

from __future__ import annotations

from qblock.hierarchy.builders import UnfitValuesError, cuts, dates, digits, edges, flat, outer_cuts, ranges, suppress
from qblock.hierarchy.core import TOP, Hierarchy, HierarchyError, Problem
from qblock.hierarchy.cuts import Grid
from qblock.hierarchy.files import LAYOUTS, Layout, from_columns, from_csv, from_rows, write_csv

__all__ = [
    "LAYOUTS",
    "TOP",
    "Grid",
    "Hierarchy",
    "HierarchyError",
    "Layout",
    "Problem",
    "UnfitValuesError",
    "cuts",
    "dates",
    "digits",
    "edges",
    "flat",
    "from_columns",
    "from_csv",
    "from_rows",
    "outer_cuts",
    "ranges",
    "suppress",
    "write_csv",
]
