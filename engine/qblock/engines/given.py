"""The session that a program gives to a release: what a URL of the process means, such as `spark:`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from types import FunctionType
from typing import Any, TypeVar

GIVEN: ContextVar[Any] = ContextVar("given", default=None)
"""The session of the release that is at work; None where it was given none."""
T = TypeVar("T")


def in_its_session(cls: type[T]) -> type[T]:
    """A class whose public methods work in `session` of their object."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _in_its_session(value))
    return cls


def _in_its_session(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        before = GIVEN.set(self.session)
        try:
            return method(self, *arguments, **named)
        finally:
            GIVEN.reset(before)

    return called
