"""Four people: a search of them takes what a command takes before it reads rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.draws import numbers, text

ROWS = 4
ROWS_SEED = 20_267
AGES, GENDERS, ILLNESSES = range(20, 80), ["f", "m"], ["angina", "asthma", "flu"]
QUASI: dict[str, dict[str, Any]] = {
    "age": {"hierarchy": {"ranges": [10, 20]}},
    "gender": {"hierarchy": "suppress"},
}
SENSITIVE = "illness"


def generate(rows: int, part: int = 0) -> pa.Table:
    """The people of one part."""
    random = np.random.default_rng((ROWS_SEED, part))
    return pa.table(
        {
            "age": numbers(random.integers(0, len(AGES), rows), AGES, pa.int32()),
            "gender": text(random.integers(0, len(GENDERS), rows), GENDERS),
            "illness": text(random.integers(0, len(ILLNESSES), rows), ILLNESSES),
        }
    )
