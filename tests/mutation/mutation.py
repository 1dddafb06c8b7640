"""What a mutation is, and how it is made in a copy of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LAWS = ("tests/laws", "tests/golden", "tests/models")


class StaleError(Exception):
    """The text of a mutation is not found exactly once: the engine has changed, and the mutation must follow."""


@dataclass(frozen=True)
class Mutation:
    """One fault: the text `old` becomes `new` in the engine's `file`, a pattern such as models/epsilon*.py.

    The text occurs exactly once in the files of the pattern, counted from the text `after` on. select: pytest's -k of
    the tests that are tried first; when they all pass, every test of `tests` is.
    """

    what: str
    file: str
    old: str
    new: str
    select: str = ""
    tests: tuple[str, ...] = LAWS
    after: str = ""

    def apply(self, engine: Path) -> tuple[Path, str]:
        """The file to be changed, in the engine's package folder, and its text with the fault."""
        found = []
        for path in sorted(engine.glob(self.file)):
            text = path.read_text("utf-8")
            start = text.find(self.after)
            if start >= 0 and text.count(self.old, start):
                found += [path] * (1 if self.after else text.count(self.old))
        if len(found) != 1 or self.old == self.new:
            raise StaleError(f"{self.what}: found {len(found)} times in {self.file}: {self.old.strip()}")
        text = found[0].read_text("utf-8")
        start = text.find(self.after)
        return found[0], text[:start] + text[start:].replace(self.old, self.new, 1)
