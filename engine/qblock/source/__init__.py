"""The source of a release, checked and coded: what its counts are made of."""

from __future__ import annotations

from qblock.source.table import Admitted, SourceTable, Values, open_source

__all__ = ["Admitted", "SourceTable", "Values", "open_source"]
