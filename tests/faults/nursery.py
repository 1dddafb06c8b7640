"""Starts runs of the command line, each a process of its own, from one that has imported everything already.

That one is started once in a test process. Commands are JSON lines on standard input: {"start": [argument, ...],
"point": ..., "output": FILE, "environment": ..., "folder": ...} answers the pid, {"wait": PID} its exit status
(negative: the signal). A process is waited for only when that is asked, so that its pid stands for it until then.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]


@cache
def _server(_: int) -> subprocess.Popen[str]:
    """The process that runs are forked from; of this process alone, whose id is given."""
    paths = [str(TESTS), *(path for path in sys.path if path)]
    started = subprocess.Popen(
        [sys.executable, "-m", "faults.nursery"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )
    atexit.register(started.communicate)
    return started


class Nursery:
    """Runs that are forked; a context manager, whose end ends every run."""

    def __enter__(self) -> Nursery:
        self._process = _server(os.getpid())
        self._running: set[int] = set()
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._running):
            os.kill(pid, signal.SIGKILL)
            self.wait(pid)

    def start(self, arguments: Sequence[str], output: Path, point: dict[str, Any] | None = None) -> int:
        """Start `qblock ARGUMENTS`, stopped at a point (see points.py); what it prints goes to a file."""
        surroundings = {"environment": dict(os.environ), "folder": os.getcwd()}
        pid = int(self._ask({"start": list(arguments), "output": str(output), "point": point, **surroundings}))
        self._running.add(pid)
        return pid

    def wait(self, pid: int) -> int:
        """The exit status of a run when it has ended."""
        status = int(self._ask({"wait": pid}))
        self._running.remove(pid)
        return status

    def _ask(self, command: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _serve() -> None:
    import duckdb  # noqa: F401
    import duckdb_sqlalchemy  # noqa: F401
    import psycopg  # noqa: F401

    # Commands import their work when they run, which each child would do by itself.
    import qblock.cli.app
    import qblock.release.apply
    import qblock.release.erase
    import qblock.release.rollback
    import qblock.release.verify  # noqa: F401
    from faults import points  # noqa: F401

    gc.freeze()
    for line in sys.stdin:
        command = json.loads(line)
        if "wait" in command:
            answer = os.waitstatus_to_exitcode(os.waitpid(command["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                _run(command)
        print(answer, flush=True)


def _run(command: dict[str, Any]) -> None:
    from faults import points
    from qblock.cli import main

    os.environ.clear()
    os.environ.update({**command["environment"], "OPENBLAS_NUM_THREADS": "1"})
    os.chdir(command["folder"])
    output = os.open(command["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # A shell may have told a background job to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["qblock", *command["start"]]
    finish = points.arm(command["point"] or {})
    status: Any = 1
    try:
        main()
    except SystemExit as end:
        status = end.code
    finish()
    sys.stdout.flush()
    sys.stderr.flush()
    # Libraries join threads at the end that were not forked with the process.
    os._exit(int(status or 0))


if __name__ == "__main__":
    _serve()
