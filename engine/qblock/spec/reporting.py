"""What a spec declares for the report of its release: nothing of it is published, and nothing is decided by it."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from qblock.models import Range
from qblock.spec.fields import TEXTS, Checked, Positive, Share, exact_number, key, listed, text_of
from qblock.spec.sources import STRICT

On = Literal["highest", "mean"]
Access = Literal["public", "registered", "controlled"]
LONGEST = 500
"""Characters of a declared text."""
RATIO = re.compile(r"([1-9][0-9]{0,17}) */ *([1-9][0-9]{0,17})")
CHANCES = Range(0, 1, open_least=True)


def declared_text(raw: object) -> str:
    """A text of 1 to 500 characters in one line. Raises ValueError."""
    text = " ".join(text_of(raw).split())
    if not 1 <= len(text) <= LONGEST:
        raise ValueError(f"this text has {len(text)} characters; write 1 to {LONGEST}")
    return text


def _chance(raw: object) -> Fraction:
    match = RATIO.fullmatch(raw) if isinstance(raw, str) else None
    try:
        value = Fraction(int(match[1]), int(match[2])) if match else Fraction(exact_number(raw))
    except ValueError:
        raise ValueError("{it} is not a chance; write `threshold: 0.09`, or `threshold: 1/11`") from None
    if value not in CHANCES:
        raise ValueError("{it} is out of range; valid: a chance above 0, at most 1: `threshold: 0.09`")
    return value


Declared = Annotated[str, Checked(declared_text, TEXTS | {"minLength": 1})]
Chance = Annotated[
    Fraction,
    Checked(
        _chance,
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                {"type": "string", "pattern": r"^[1-9][0-9]{0,17} */ *[1-9][0-9]{0,17}$"},
            ]
        },
    ),
]
CONTROLS = listed(declared_text, 'the measures in force: controls: ["users are registered"]')
Controls = Annotated[tuple[str, ...], Checked(CONTROLS, {"type": "array", "items": TEXTS})]


def chance_text(chance: Fraction) -> str:
    """0.09 of 9/100, and 1/11 of what has no end as a decimal number."""
    decimal = Decimal(chance.numerator) / Decimal(chance.denominator)
    return f"{decimal:f}" if Fraction(decimal) == chance else str(chance)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Population:
    """The people from whom those of the table were drawn: how many, or which share of them the table has."""

    size: Positive | None = key("How many people they are.", 120000, default=None)
    fraction: Share | None = key("The share of them that the table has.", 0.05, default=None)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Context:
    """Of whom and for what the release is, in words of whoever answers for it."""

    purpose: Declared | None = key("What the data are for.", "research on readmissions", default=None)
    recipients: Declared | None = key("Who gets them.", "two universities", default=None)
    release: Access | None = key("How they are given out.", "public", "registered", "controlled", default=None)
    agreement: Declared | None = key("What recipients have agreed to.", "data use agreement of 2026", default=None)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Reporting:
    """What the report measures the release by, and what it says of its surroundings."""

    threshold: Chance | None = key(
        "The largest chance that is acceptable that an outsider names the right person.", 0.09, "1/11", default=None
    )
    threshold_because: Declared | None = key("Where this threshold is from.", "EMA Policy 0070", default=None)
    threshold_on: On = key(
        "Whether it is for the highest chance of any row, or for the mean over rows.",
        "highest",
        "mean",
        default="highest",
    )
    population: Population | None = key(
        "The people from whom those of the table were drawn.", {"size": 120000}, {"fraction": 0.05}, default=None
    )
    declared_by: Declared | None = key(
        "Who has declared the roles of the columns.", "A. Weber, data protection officer", default=None
    )
    context: Context = key(
        "Purpose, recipients, and how the data are given out.", {"release": "public"}, default_factory=Context
    )
    controls: Controls = key("Measures in force, one sentence each.", ["users are registered"], default=())
