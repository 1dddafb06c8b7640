"""The last translation of the drivers' errors, which every command passes: of those that come where no statement is
sent, as from a commit or from the end of a session, and of statements that are not translated where they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qblock.errors import QblockError


def explained(error: BaseException) -> QblockError | None:
    """The error to raise for a driver's, which is its cause; None for any other."""
    from qblock.engines.faults import original_of
    from qblock.engines.registry import ENGINES

    package = type(original_of(error)).__module__.partition(".")[0]
    engine = next((engine for engine in ENGINES.values() if package in engine.drivers), None)
    if isinstance(error, QblockError) or engine is None:
        return None
    adapter = engine.adapter()
    if adapter.is_interrupt(error):
        raise KeyboardInterrupt from error
    ours = adapter.explain(error)  # type: ignore[arg-type]
    ours.__cause__ = error
    return ours


@contextmanager
def drivers_translated() -> Iterator[None]:
    """Turn the drivers' errors into ours, without any of their text."""
    try:
        yield
    except Exception as error:
        ours = explained(error)
        if ours is None:
            raise
        raise ours from error
