"""Standard output and standard error of a command: neither fails in the middle of a run, whatever becomes of it.

What cannot be written is dropped from then on, so that a run goes on to its end and to its own exit status. A character
that the encoding of a stream does not have is written escaped, and so is one that a terminal obeys or does not show.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from qblock.errors import QblockError
from qblock.printable import printable, printable_json

OWN = "\n\t"
"""Control characters that commands write themselves; in what they write of the source, `say` and `console` escape these
too."""


class AnswerLost(QblockError):
    """The answer could not be written to standard output; what the command has done stays done."""


class Stream:
    """A text stream whose writing never raises. problem: the first fault; what is written after it is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.problem: OSError | None = None
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError("a text stream takes text")
        return self.write_styled(printable(text, keep=OWN))

    def write_styled(self, text: str) -> int:
        """What has styles of its own, and whose texts were made printable before."""
        if self.problem is None:
            try:
                self._stream.write(text)
            except (OSError, ValueError) as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        if self.problem is None:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._lose(error)

    def _lose(self, error: OSError | ValueError) -> None:
        # A stream that was closed is a ValueError.
        self.problem = error if isinstance(error, OSError) else OSError(errno.EBADF, os.strerror(errno.EBADF))
        with suppress(OSError, ValueError):
            # What is left in its buffer goes where it harms nobody; Python writes that at the end of the process.
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Styled:
    """A terminal's `Stream`, to which styles and movements of the cursor go as they are."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write_styled(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def styled(stream: TextIO) -> TextIO:
    """The stream for something that styles its output; styles reach a terminal alone."""
    return cast(TextIO, Styled(stream)) if isinstance(stream, Stream) and stream.isatty() else stream


def say(text: str, *, end: str = "\n") -> None:
    """One line on standard error."""
    print(printable(text), file=sys.stderr, flush=True, end=end)


@contextmanager
def guarded() -> Iterator[None]:
    """Standard output and standard error as `Stream`s."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, Stream(stream)) for stream in before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def check_answer() -> None:
    """Raise AnswerLost where what was printed as the answer has not all been written.

    Not where its reader has had enough (`qblock history SPEC | head`).
    """
    sys.stdout.flush()
    problem = getattr(sys.stdout, "problem", None)
    if problem is not None and not isinstance(problem, BrokenPipeError):
        why = "it is closed" if problem.errno == errno.EBADF else problem.strerror
        raise AnswerLost(f"the answer could not be written to standard output: {why}")


def json_text(value: Any, stream: TextIO, *, indent: int | None = None) -> str:
    """JSON for a stream: its characters as they are in UTF-8, and escaped in any other encoding; escaped in any, what
    is not shown."""
    encoding = (getattr(stream, "encoding", None) or "").lower().replace("_", "-")
    return printable_json(json.dumps(value, ensure_ascii=encoding not in ("utf-8", "utf8"), indent=indent))


def reserve() -> None:
    """Have something open as each standard stream that the process was started without.

    Otherwise a database file might get the number of standard error, and what a library prints there. Writing to a
    standard output that was closed fails as before, so that it is said that the answer is lost.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
