"""The answer of `qblock examples`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from qblock.results.base import Answer, Value


class Example(Value):
    """One of the examples. name: its folder; what: what it is, in words."""

    name: str
    what: str


class ExampleFiles(Answer):
    """Examples that were written. next: commands to try first, as lines to paste."""

    columns_shown: ClassVar[tuple[str, ...]] = ("example", "what it is")

    directory: Path
    examples: tuple[Example, ...]
    files: tuple[Path, ...]
    next: tuple[str, ...]

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(example.name, example.what) for example in self.examples]
