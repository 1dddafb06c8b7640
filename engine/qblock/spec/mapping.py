"""A spec that a program writes as a mapping, as the document that a file with the same words would be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qblock.spec.document import MOST_NODES, NULL_KEYS, Document, Path, Scalar

DEEPEST = 50


def document_of(values: Mapping[str, Any], file: str) -> Document:
    """The document of a mapping; what has no place in a spec is recorded in `problems`. file: what messages call it."""
    document = Document(file, lines=False)
    if not isinstance(values, Mapping):
        document.wrong((), f"a spec is a mapping, and not {_kind(values)}")
        return document
    document.data = _Reader(document).value(values, ())
    return document


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0

    def value(self, given: Any, path: Path) -> Any:
        self.document.places[path] = (1, 1)
        self.nodes += 1
        if len(path) > DEEPEST or self.nodes > MOST_NODES:
            self.document.wrong(path, "a value that holds itself, or too many; write it out")
            return None
        if type(given).__module__ == "numpy" and hasattr(given, "item") and not getattr(given, "shape", None):
            given = given.item()
        if isinstance(given, Mapping):
            return self.mapping(given, path)
        if isinstance(given, list | tuple):
            return [self.value(item, (*path, index)) for index, item in enumerate(given)]
        return self.scalar(given, path)

    def mapping(self, given: Mapping[Any, Any], path: Path) -> dict[Any, Any]:
        result: dict[str | None, Any] = {}
        for key, item in given.items():
            name = self.key(key, path)
            if name is None and key is not None:
                continue
            if name in result:
                self.document.wrong((*path, name), "two keys are one text; keep one")
                continue
            self.document.keys[(*path, name)] = (1, 1)
            result[name] = self.value(item, (*path, name))
        return result

    def key(self, key: Any, path: Path) -> str | None:
        """A key as text; values of a column may be keys, and are written as such. None where it is none."""
        if isinstance(key, str):
            return self.text(key, path)
        if path[-2:] == NULL_KEYS:
            if key is None:
                return None
            read = self.scalar(key, (*path, "(key)"))
            return read.text if isinstance(read, Scalar) else read
        if key is None:
            self.document.wrong(path, "a key must be a text, and not None")
            return "None"
        self.document.wrong(path, f"a key must be a text, and not {_kind(key)}")
        return None

    def scalar(self, given: Any, path: Path) -> str | Scalar | None:
        if given is None:
            return None
        if isinstance(given, str):
            self.document.raw[path] = given
            return self.text(given, path)
        if isinstance(given, bool):
            return Scalar("true" if given else "false", given)
        if isinstance(given, int):
            return Scalar(str(given), int(given))
        if isinstance(given, float | Decimal) and math.isfinite(given):
            exact = Fraction(repr(given) if isinstance(given, float) else given)
            return Scalar(str(given), int(exact) if exact.denominator == 1 else exact)
        if isinstance(given, Fraction):
            return Scalar(str(given), int(given) if given.denominator == 1 else given)
        if isinstance(given, datetime):
            return given.isoformat(" ")
        if isinstance(given, date):
            return given.isoformat()
        self.document.wrong(path, f"a text, a number, a list or a mapping is wanted, and not {_kind(given)}")
        return None

    def text(self, given: str, path: Path) -> str:
        try:
            given.encode()
        except UnicodeEncodeError:
            self.document.wrong(path, "a text that is not Unicode (a lone surrogate); correct it")
            return "?"
        return str(given)


def _kind(given: object) -> str:
    return f"a {type(given).__name__}"
