"""The demo's people, with how long they work as a seventh quasi-identifier: 50,000 rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.draws import text
from qblock.demo import people

ROWS = people.ROWS
HOURS, BOUNDS = ["little", "half", "most", "full", "long"], [15, 25, 35, 45]
FILES = ("age", "marital_status", "education", "country")
QUASI: dict[str, dict[str, Any]] = {
    "age": {"hierarchy": {"file": "age.csv"}},
    "gender": {"hierarchy": "suppress"},
    "marital_status": {"hierarchy": {"file": "marital_status.csv"}},
    "education": {"hierarchy": {"file": "education.csv"}},
    "country": {"hierarchy": {"file": "country.csv"}},
    "work_class": {"hierarchy": "suppress"},
    "hours": {"hierarchy": "suppress"},
}
SENSITIVE = "occupation"


def hierarchies() -> dict[str, str]:
    """The CSV file of each attribute that has one."""
    files = people.hierarchies()
    return {name: files[name] for name in FILES}


def generate(rows: int, part: int = 0) -> pa.Table:
    """The people of one part."""
    drawn = people.generate(rows, people.SEED + part).drop_columns(["person_id", "salary_class"])
    hours = np.searchsorted(BOUNDS, drawn["hours"].to_numpy(), side="right")
    drawn = drawn.set_column(drawn.column_names.index("hours"), "hours", text(hours, HOURS))
    return drawn.cast(
        pa.schema([(c.name, pa.string() if pa.types.is_dictionary(c.type) else c.type) for c in drawn.schema])
    )
