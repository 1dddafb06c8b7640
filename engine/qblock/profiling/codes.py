"""Codes that are known by their form: diagnoses, laboratory tests, countries, addresses of computers, bank accounts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa


@dataclass(frozen=True)
class Code:
    """One kind of code.

    says: what is said of a column of them; role: what it is proposed to be; pattern: of a whole text, in what regular
    expressions of PostgreSQL and of RE2 have in common; countries: instead of a pattern, those of ISO 3166.
    """

    name: str
    says: str
    role: Literal["identifying", "sensitive", "quasi_identifier"]
    pattern: str = ""
    countries: bool = False

    def matches(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        """Whether a text is such a code."""
        if self.countries:
            return value.in_([sa.literal_column(f"'{country}'") for country in _countries()])
        return value.regexp_match(sa.literal_column(f"'^({self.pattern})$'"))


CODES = (
    Code(
        "ip",
        "the values look like IP addresses, which lead to a person; never published",
        "identifying",
        # The second form needs all eight groups, or ::, as 12:30:45 is a time.
        r"([0-9]{1,3}[.]){3}[0-9]{1,3}|([0-9A-Fa-f]{1,4}[:]){7}[0-9A-Fa-f]{1,4}|[0-9A-Fa-f:]*[:][:][0-9A-Fa-f:.]*",
    ),
    Code(
        "iban",
        "the values look like bank accounts (IBAN), which lead to a person; never published",
        "identifying",
        r"[A-Z]{2}[0-9]{2} ?([A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}",
    ),
    Code(
        "icd_10",
        "the values look like diagnoses (ICD-10): is it what nobody may learn about a person?",
        "sensitive",
        # B000123 is the number of somebody.
        r"[A-Z][0-9][0-9AB]([.][0-9A-Z]{1,4}|[0-9A-Z]{0,2})[-*+!]?",
    ),
    Code(
        "loinc",
        "the values look like laboratory tests (LOINC): is it what nobody may learn about a person?",
        "sensitive",
        r"[0-9]{3,5}-[0-9]",
    ),
    Code("country", "others may know it; country codes (ISO 3166)", "quasi_identifier", countries=True),
)
"""Patterns have no quotes, backslashes or parameters (a colon before a letter), so that they are sent as they are."""


@cache
def _countries() -> tuple[str, ...]:
    countries = json.loads(Path(__file__).with_name("countries.json").read_text("utf-8"))
    return tuple(f"{countries['alpha_2']} {countries['alpha_3']}".split())
