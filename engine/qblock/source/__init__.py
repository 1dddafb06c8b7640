"""The source of a release, checked and coded: what its counts are made of."""

from __future__ import annotations

from qblock.source.levels import reader_of
from qblock.source.open import Admitted, SourceTable, Values, open_recoded, open_source
from qblock.source.recoded import (
    Recoding,
    ladders_of,
    leaf_codes,
    leaf_texts,
    recoded_columns,
    recoded_spec,
    stated_map,
)

__all__ = [
    "Admitted",
    "Recoding",
    "SourceTable",
    "Values",
    "ladders_of",
    "leaf_codes",
    "leaf_texts",
    "open_recoded",
    "open_source",
    "reader_of",
    "recoded_columns",
    "recoded_spec",
    "stated_map",
]
