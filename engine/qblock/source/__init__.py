"""The source of a release, checked and coded: what its counts are made of."""

from __future__ import annotations

from qblock.source.table import Admitted, SourceTable, Values, local_frequency_sets, open_source

__all__ = ["Admitted", "SourceTable", "Values", "local_frequency_sets", "open_source"]
