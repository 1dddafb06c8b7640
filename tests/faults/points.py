"""Where a run is stopped, set up inside the process of the job: the product has no hooks for it.

A point is one of
    {"line": N}                                     before the Nth line that runs in the rooms of the job
    {"step": "Publish", "when": "before"|"after"}   around a step of the plan
    {"record": "checked", "when": W}                a state's ledger row; W: before it is written, after that, or
                                                    committed: the next line of qblock after that commit
    {"rename": "before"|"after"}                    around the renaming of a release file
    {"begun": "before"|"after"}                     around writing a version and its stamp down in the ledger
    {"crosswalk": "before"|"after"}                 around recording a version in the crosswalk, within its transaction
    {"decided": "before"|"after"|"committed"}       around keeping what a run of the steady job decided; committed: the
                                                    next line of qblock after that commit
with "signal" (SIGKILL where there is none). {"lines": FILE} stops nothing: it writes how many lines have run.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import qblock
from qblock.release import apply, job, run
from qblock.versions.policy import batched, common

PACKAGE = str(Path(qblock.__file__).parent)
JOB = tuple(str(Path(PACKAGE, room)) for room in ("release", "publish", "versions", "ledger"))
Point = dict[str, Any]


def arm(point: Point) -> Callable[[], object]:
    """Stop this process at the point; what is returned is called when it ends by itself."""
    number = point.get("signal", signal.SIGKILL)

    def stop() -> None:
        os.kill(os.getpid(), number)

    if "line" in point:
        _lines(JOB, int(point["line"]), stop)
    elif "lines" in point:
        return _count(Path(point["lines"]))
    elif "step" in point:
        step = getattr(apply, point["step"], None) or getattr(job, point["step"])
        step.perform = _around(step.perform, point["when"], stop)
    elif "rename" in point:
        replace = Path.replace

        def renamed(self: Path, target: Any) -> Any:
            # The ledger's file is renamed when it is made; only what has a version in its name is published.
            wanted = ".qblock-v" in self.name
            return (_around(replace, point["rename"], stop) if wanted else replace)(self, target)

        Path.replace = renamed  # type: ignore[method-assign]
    elif "begun" in point:
        run.begin = _around(run.begin, point["begun"], stop)
    elif "crosswalk" in point:
        common.record = _around(common.record, point["crosswalk"], stop)
    elif "decided" in point:
        batched.keep = _deciding(batched.keep, point["decided"], stop)
    elif "record" in point:
        for module in (run, job):
            module.record = _recording(module.record, point, stop)  # type: ignore[attr-defined]
    return lambda: None


def _around(function: Callable[..., Any], when: str, stop: Callable[[], None]) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            stop()
        result = function(*arguments, **options)
        if when == "after":
            stop()
        return result

    return wrapped


def _recording(record: Callable[..., str], point: Point, stop: Callable[[], None]) -> Callable[..., str]:
    armed = _around(record, point["when"], stop)

    @wraps(record)
    def wrapped(connection: sa.Connection, event: Any, *rest: Any) -> str:
        if event.state != point["record"]:
            return record(connection, event, *rest)
        if point["when"] == "committed":
            sa.event.listen(connection, "commit", lambda _: _lines((PACKAGE,), 1, stop))
        return armed(connection, event, *rest)

    return wrapped


def _deciding(keep: Callable[..., None], when: str, stop: Callable[[], None]) -> Callable[..., None]:
    armed = _around(keep, when, stop)

    @wraps(keep)
    def wrapped(crosswalk: Any, *rest: Any) -> None:
        if when == "committed":
            sa.event.listen(crosswalk.own.connection, "commit", lambda _: _lines((PACKAGE,), 1, stop))
        armed(crosswalk, *rest)

    return wrapped


def _lines(folders: tuple[str, ...], number: int, stop: Callable[[], None]) -> None:
    """Stop before the Nth line from now on that runs in a file below the folders, of this thread."""
    left = number

    def each(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                stop()
        return each

    _trace(folders, each)


def _count(file: Path) -> Callable[[], object]:
    counted = 0

    def each(frame: Any, event: str, _: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return each

    _trace(JOB, each)
    return lambda: file.write_text(str(counted))


def _trace(folders: tuple[str, ...], each: Callable[..., Any]) -> None:
    inside = tuple(folder + os.sep for folder in folders)
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(inside):
            frame.f_trace = each
        frame = frame.f_back  # type: ignore[assignment]
    sys.settrace(lambda frame, event, _: each if frame.f_code.co_filename.startswith(inside) else None)
