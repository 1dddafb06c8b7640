"""The demo's generalization hierarchies: a row of labels per leaf, as text of CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from qblock.demo import vocabulary as v

TOP = "*"


def hierarchies() -> dict[str, str]:
    """For each column that has one, its CSV file: a header, then each leaf with its labels from fine to coarse."""
    return {
        "age": _csv("age", {str(age): [_range(int(age), width) for width in v.AGE_RANGES] for age in v.AGES}),
        "marital_status": _csv("marital_status", {leaf: [group] for leaf, group in v.MARITAL_STATUS.items()}),
        "education": _csv("education", v.EDUCATION),
        "country": _csv("country", {leaf: place[:2] for leaf, place in v.COUNTRIES.items()}),
        "work_class": _csv("work_class", {leaf: [sector] for leaf, sector in v.SECTORS.items()}),
        "occupation": _csv("occupation", v.OCCUPATIONS),
    }


def _csv(name: str, labels: Mapping[str, list[str] | tuple[str, ...]]) -> str:
    rows = [(leaf, *above, TOP) for leaf, above in labels.items()]
    header = (name, *(f"{name}_{level}" for level in range(1, len(rows[0]))))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _range(age: int, width: int) -> str:
    start = age - age % width
    return f"{start}-{start + width - 1}"
