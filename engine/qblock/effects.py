"""What a command has done so far: every way of ending asks here, since an error may come after a publication."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from qblock.errors import InputError, Refused

Ask = Callable[[], str | None]
"""Finds out whether something was done: what is said of it, or None where it was not."""
UNPUBLISHED = "nothing was published"
HISTORY = "`qblock history` shows it"


@dataclass
class Effect:
    """Something that outlasts the command. said: that it was done, as a sentence; done: None while that is not known.

    status, version: of a publication, as its result has them.
    """

    said: str
    ask: Ask
    status: Literal["published", "rolled_back"] | None = None
    version: int | None = None
    done: bool | None = None

    def settle(self) -> None:
        """Find out what is not known yet; what cannot be asked stays unknown."""
        if self.done is not None:
            return
        try:
            sentence = self.ask()
        except (Exception, KeyboardInterrupt):
            return
        self.done, self.said = sentence is not None, sentence or self.said

    @property
    def sentence(self) -> str | None:
        """The sentence about it; None where it was not done."""
        if self.done is None:
            return f"whether {self.said} is not known, {HISTORY}"
        return self.said if self.done else None


class Effects:
    """What one command has done, oldest first."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []

    @contextmanager
    def committing(
        self,
        said: str,
        ask: Ask,
        *,
        status: Literal["published", "rolled_back"] | None = None,
        version: int | None = None,
    ) -> Iterator[None]:
        """What is done within, by one commit or rename, is done where this ends, and is asked for where it is left."""
        effect = Effect(said, ask, status, version)
        self.effects.append(effect)
        try:
            yield
        except (InputError, Refused):
            # Decided before anything is committed.
            effect.done = False
            raise
        except BaseException:
            # At once, while the lock of the release is held; an error may have come after the commit.
            effect.settle()
            raise
        effect.done = True

    @property
    def publication(self) -> Effect | None:
        """The newest publication that was made, or may have been made."""
        publications = [effect for effect in self._settled() if effect.status is not None and effect.done is not False]
        return publications[-1] if publications else None

    def said(self, nothing: str | None = None) -> str | None:
        """What was done, as sentences. nothing: what is said where nothing was, or of UNPUBLISHED no publication."""
        sentences = [effect.sentence for effect in self._settled() if effect.sentence is not None]
        if nothing is not None and not (self.publication if nothing == UNPUBLISHED else sentences):
            sentences.append(nothing)
        return "; ".join(sentences) or None

    def _settled(self) -> list[Effect]:
        for effect in self.effects:
            effect.settle()
        return self.effects


_current: ContextVar[Effects | None] = ContextVar("effects", default=None)


@contextmanager
def collect_effects() -> Iterator[Effects]:
    """The effects of what is called within."""
    token = _current.set(collected := Effects())
    try:
        yield collected
    finally:
        _current.reset(token)


def current_effects() -> Effects:
    """That of the command which calls; one that nobody asks where it is not called by one that does."""
    return _current.get() or Effects()
