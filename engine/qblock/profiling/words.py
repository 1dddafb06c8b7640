"""What the name of a column suggests, by words of several languages (words.json)."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Literal

About = Literal["identifying", "quasi", "code", "sensitive"]
NUMBERED = re.compile(
    r"_(person|patient(en)?|kunden?|client|customer|user|member|mitglied|employee|mitarbeiter|student|insured|resident"
    r"|paziente|paciente|pacjent)_?(no|nr|num|number|nummer|numero|nbr|code|key|id)_"
)
IDENTIFIER = re.compile(r"_(id|uuid)_")


def folded(name: str) -> str:
    """A name without case, accents and signs, its words between underscores: `Geb.datum` is _geb_datum_."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    plain = unicodedata.normalize("NFKD", words.replace("\u0142", "l").replace("\u00df", "ss"))
    letters = "".join(c for c in plain if not unicodedata.combining(c)).lower()
    return f"_{re.sub(r'[^0-9a-z]+', '_', letters).strip('_')}_"


def suggests(name: str, about: About) -> bool:
    """Whether a name has a word of that kind: as a whole word where it identifies, anywhere in it otherwise."""
    found = folded(name)
    return _pattern(about).search(found) is not None or (about == "identifying" and NUMBERED.search(found) is not None)


def numbers_rows(name: str) -> bool:
    """Whether a name says that the column is an identifier, of whatever."""
    return IDENTIFIER.search(folded(name)) is not None


@cache
def _pattern(about: About) -> re.Pattern[str]:
    listed = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))[about]
    words = "|".join(sorted({re.escape(word) for language in listed.values() for word in language}))
    return re.compile(f"_({words})_" if about == "identifying" else f"({words})")
