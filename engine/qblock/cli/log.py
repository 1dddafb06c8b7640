"""The log of the job on standard error: lines for people, or JSON lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from qblock.cli.progress import Report, every_so_often
from qblock.cli.streams import json_text, say
from qblock.errors import InputError

if TYPE_CHECKING:
    from qblock.api import Entry, Level

Format = Literal["text", "json"]


class Log:
    """Writes entries, and remembers whose they are. format None: writes nothing."""

    run: str | None = None
    release: str | None = None
    step: str | None = None

    def __init__(self, format: Format | None) -> None:
        self.format = format

    @classmethod
    def of(cls, format: str | None, verbose: bool) -> Log:
        """Raises InputError for an unknown format."""
        if format == "json":
            return cls("json")
        if format not in (None, "text"):
            raise InputError(f"--log-format {format}: valid: text, json")
        return cls("text" if format or verbose else None)

    def __call__(self, entry: Entry) -> None:
        self.run, self.release, self.step = entry.run, entry.release, entry.step
        if self.format == "json":
            line = json_text(entry.to_json(), sys.stderr)
        elif self.format == "text":
            fields = entry.to_json()
            where = " ".join(str(fields[name]) for name in ("release", "run", "step") if fields[name] is not None)
            message = " ".join(entry.message.split())
            line = f"{fields['time'][:19]}Z {entry.level:7} {where}: {message}"
        else:
            return
        say(line)

    def say(self, message: str, *, step: str, level: Level = "info") -> None:
        """An entry of the command itself, about the run that wrote last."""
        from qblock.api import Entry

        self(Entry(self.run, self.release, step, message, level))

    def progress(self) -> Report:
        """Progress of the search as an entry every few seconds."""
        return every_so_often(lambda line: self.say(line, step="search"))
