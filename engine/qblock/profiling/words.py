"""What the name of a column suggests (words.toml), and codes that are known by their form."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import sqlalchemy as sa

from qblock.column_names import folded

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
About = Literal["identifying", "code", "quasi", "weight"]
NUMBERED = re.compile(
    r"_(person|patient(en)?|kunden?|client|customer|user|member|mitglied|employee|mitarbeiter|student|insured|resident"
    r"|paziente|paciente|pacjent)_?(no|nr|num|number|nummer|numero|nbr|code|key|id)_"
)
IDENTIFIER = re.compile(r"_(id|uuid)_")


def suggests(name: str, about: About) -> bool:
    """Whether a name has a word of that kind."""
    shown = folded(name)
    return _patterns()[about].search(shown) is not None or (
        about == "identifying" and NUMBERED.search(shown) is not None
    )


@dataclass(frozen=True)
class Topic:
    """A private matter. says: in words; visible: whether others may know it all the same, such as somebody's origin."""

    says: str
    visible: bool
    pattern: re.Pattern[str]


def private_topic(name: str) -> Topic | None:
    """The private matter that a name suggests; one that nobody sees before one that others may know."""
    shown = folded(name)
    return next((topic for topic in _topics() if topic.pattern.search(shown)), None)


def numbers_rows(name: str) -> bool:
    """Whether a name says that the column is an identifier, of whatever."""
    return IDENTIFIER.search(folded(name)) is not None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {about: _pattern(WORDS[about]) for about in get_args(About)}


@cache
def _topics() -> tuple[Topic, ...]:
    topics = [
        Topic(listed.get("says", key), listed.get("visible", False), _pattern(listed))
        for key, listed in WORDS["private"].items()
    ]
    return tuple(sorted(topics, key=lambda topic: topic.visible))


def _pattern(listed: Mapping[str, Any]) -> re.Pattern[str]:
    """Any of the words of all languages, as words.toml writes them."""
    words = {word for language in listed.values() if isinstance(language, list) for word in language}
    starts = ["" if word.startswith("*") else "(?<![a-z])" for word in sorted(words)]
    ends = ["" if word.endswith("*") else "(?![a-z])" for word in sorted(words)]
    cores = [re.escape(word.strip("*")) for word in sorted(words)]
    return re.compile("|".join(map("".join, zip(starts, cores, ends, strict=True))))


@dataclass(frozen=True)
class Code:
    """One kind of code.

    says: what is said of a column of them; role: what it is proposed to be; pattern: of a whole text; countries:
    instead of a pattern, those of ISO 3166.
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


CODES = tuple(Code(name, **declared) for name, declared in WORDS["codes"].items())


@cache
def _countries() -> tuple[str, ...]:
    countries = json.loads(Path(__file__).with_name("countries.json").read_text("utf-8"))
    return tuple(f"{countries['alpha_2']} {countries['alpha_3']}".split())
