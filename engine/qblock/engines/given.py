"""The session that a program gives to a release: what a URL of the process means, such as `spark:`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

GIVEN: ContextVar[Any] = ContextVar("given", default=None)
"""The session of the release that is at work; None where it was given none."""


def in_its_session(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which works in `session` of its object."""

    @functools.wraps(method)
    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        before = GIVEN.set(self.session)
        try:
            return method(self, *arguments, **named)
        finally:
            GIVEN.reset(before)

    return called
