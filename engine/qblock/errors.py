"""The errors that end a command, each with its exit status."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from qblock.printable import printable

_values_shown: ContextVar[bool] = ContextVar("values_shown", default=False)


@contextmanager
def values_shown(shown: bool) -> Iterator[None]:
    """Whether messages that are made within this context may name values and labels: only for somebody at a
    terminal."""
    before = _values_shown.get()
    _values_shown.set(shown)
    try:
        yield
    finally:
        _values_shown.set(before)


def shows_values() -> bool:
    """Whether messages may name values here."""
    return _values_shown.get()


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def quoted(value: str | None, instead: str = "(not shown)") -> str:
    """A value or a label of a hierarchy as a message may name it; `instead` where messages end in logs."""
    if value is None:
        return "NULL"
    return repr(value) if _values_shown.get() else instead


class QblockError(Exception):
    """A fault outside qblock: connection, database, disk. Exit status 1.

    Its text has a line for each argument. Names of the source are in it with their control characters escaped.

    suggestions: names that may have been meant, the nearest first.
    """

    exit_status = 1
    suggestions: tuple[str, ...] = ()

    def __init__(self, *arguments: object, suggestions: Iterable[str] = ()) -> None:
        super().__init__(*arguments)
        self.suggestions = tuple(dict.fromkeys(suggestions))

    def __str__(self) -> str:
        return "\n".join(printable(str(line)) for line in self.args)


class InputError(QblockError):
    """The spec, a hierarchy, the data or the command line is wrong. Exit status 2."""

    exit_status = 2


class ParameterError(InputError):
    """A model's parameter is out of range; the message names the valid range."""


class Refused(QblockError):
    """Nothing safe can be published, or a check failed. Exit status 3."""

    exit_status = 3


class Busy(QblockError):
    """Another run holds the release's lock, or another process holds the file. Exit status 4."""

    exit_status = 4


def choices(valid: Iterable[str], given: object = None) -> str:
    """`valid: a, b, c`, with the closest one asked about first."""
    valid = list(valid)
    close = difflib.get_close_matches(given, valid, 1, 0.6) if isinstance(given, str) else []
    return (f"did you mean {close[0]}? " if close else "") + f"valid: {', '.join(valid)}"


P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def hide_tracebacks(
    function: Callable[P, R], explain: Callable[[BaseException], QblockError | None] = lambda error: None
) -> Callable[P, R]:
    """The function, with our errors alone: what a driver says of one may quote the data, and a notebook prints it.

    A method of an object with `name_values` keeps it: its caller shows tracebacks only to those who may see the data.
    explain: the error to raise for a driver's; None for any other.
    """

    @functools.wraps(function)
    def called(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except Exception as error:
            # Whatever is asked of a data frame of Spark is a column of it.
            shown = bool(arguments) and getattr(arguments[0], "name_values", False) is True
            ours = error if isinstance(error, QblockError) else explain(error)
            if ours is None or (shown and ours is error):
                raise
            raise ours from (error if shown else None)

    return called


def hide_all_tracebacks(cls: type[T], explain: Callable[[BaseException], QblockError | None]) -> type[T]:
    """A class whose public methods raise our errors alone (see `hide_tracebacks`)."""
    return wrap_methods(cls, functools.partial(hide_tracebacks, explain=explain))


def wrap_methods(cls: type[T], wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> type[T]:
    """A class each of whose public methods is wrapped."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and not name.startswith("_"):
            setattr(cls, name, wrap(value))
    return cls
