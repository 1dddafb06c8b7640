"""Texts that people read as one: they differ by case, by spaces, or by how letters are composed alone."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from typing import Literal, get_args

Part = Literal["case", "space", "unicode"]
PARTS: tuple[Part, ...] = get_args(Part)


def plain(text: str, parts: Collection[Part] = PARTS) -> str:
    """A text without what spellings differ by. parts: `unicode`, composed (NFC); `case`, case folded; `space`, single
    spaces between words and none around. Of letters that Unicode has, it is the same for good."""
    if "unicode" in parts:
        text = unicodedata.normalize("NFC", text)
    if "case" in parts:
        text = text.casefold()
        # The folded letters of a composed one may compose anew.
        text = unicodedata.normalize("NFC", text) if "unicode" in parts else text
    return " ".join(text.split()) if "space" in parts else text


def commonest(rows: Iterable[tuple[str, int]]) -> str:
    """Of texts with the rows of each the one with the most; of several the smallest by code points."""
    return min(rows, key=lambda of: (-of[1], of[0]))[0]
