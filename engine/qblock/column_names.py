"""Names of columns without case and signs, and what they say of a table that keeps what was (column_names.toml)."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Literal

Part = Literal["valid_from", "valid_until", "start", "end", "current", "deleted", "snapshot"]
"""What a column of a history is for. start and end are what stays and contracts have, too."""
SURE: tuple[Part, ...] = ("valid_from", "valid_until", "current", "deleted")
"""Parts whose names mean nothing else."""
FAR = 2200
"""From this year on a day stands for no end."""


def folded(name: str) -> str:
    """A name without case, accents and signs, its words between underscores: `Geb.datum` is _geb_datum_."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    plain = unicodedata.normalize("NFKD", words.replace("\u0142", "l").replace("\u00df", "ss"))
    letters = "".join(c for c in plain if not unicodedata.combining(c)).lower()
    return f"_{re.sub(r'[^0-9a-z]+', '_', letters).strip('_')}_"


def is_named(name: str, part: Part) -> bool:
    """Whether the name of a column says that it is for this."""
    return _pattern(part).fullmatch(folded(name).strip("_")) is not None


def sure_part(name: str) -> Part | None:
    """What a column of this name is for, where it may only mean a history."""
    return next((part for part in SURE if is_named(name, part)), None)


def words(answer: Literal["yes", "no"]) -> list[str]:
    """How a flag that is text says yes, or no."""
    return _words()[answer]


@cache
def _words() -> dict[str, list[str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@cache
def _pattern(part: Part) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(word).replace(r"\*", ".*") for word in _words()[part]))
