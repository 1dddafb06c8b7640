"""Starts runs of the command line, each a process of its own, from one that has imported everything already.

That one is started once in a test process. Commands are JSON lines on standard input: {"start": [argument, ...],
"point": ..., "code": ..., "output": FILE, "error": FILE, "environment": ..., "folder": ...} answers the pid, {"wait":
PID} its exit status (negative: the signal). A process is waited for only when that is asked, so that its pid stands for
it until then.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
GONE = "gone"
"""In the place of a file: a pipe that nobody reads."""
THREADS = "QBLOCK_TEST_THREADS"
"""How many threads DuckDB has in every run; as many as it takes where it is not said."""
MAIN = "from qblock.cli import main\nmain()\n"


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

    def start(
        self,
        arguments: Sequence[str],
        output: Path | str,
        point: dict[str, Any] | None = None,
        *,
        error: Path | str | None = None,
        code: str = MAIN,
        environment: Mapping[str, str] | None = None,
    ) -> int:
        """Start `qblock ARGUMENTS`, stopped at a point (see points.py); what it prints goes to a file.

        error: a file for standard error alone; code: the program, which may set something up first; environment:
        variables beside those of this process.
        """
        pid = self._ask(
            {
                "start": list(arguments),
                "output": str(output),
                "error": str(error or output),
                "point": point,
                "code": code,
                "environment": {**os.environ, **(environment or {})},
                "folder": os.getcwd(),
            }
        )
        self._running.add(int(pid))
        return int(pid)

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

    # PyArrow imports it with the first array that it makes of Python's values.
    import pandas  # noqa: F401
    import psycopg  # noqa: F401

    # Commands import their work when they run, which each child would do by itself.
    import qblock.cli.app
    import qblock.release.apply
    import qblock.release.erase
    import qblock.release.retire
    import qblock.release.rollback
    import qblock.release.verify
    import qblock.releases  # noqa: F401
    from faults import points  # noqa: F401
    from qblock.engines.duckdb import dialect as duckdb_session

    if THREADS in os.environ:
        duckdb_session.SETTINGS["threads"] = os.environ[THREADS]
    gc.freeze()
    for line in sys.stdin:
        command = json.loads(line)
        if "wait" in command:
            answer = os.waitstatus_to_exitcode(os.waitpid(command["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                try:
                    _run(command)
                finally:
                    os._exit(1)
        print(answer, flush=True)


def _run(command: dict[str, Any]) -> None:
    from faults import points

    os.environ.clear()
    os.environ.update({**command["environment"], "OPENBLAS_NUM_THREADS": "1"})
    os.chdir(command["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(_opened(command["output"]), 1)
    os.dup2(1 if command["error"] == command["output"] else _opened(command["error"]), 2)
    # What Python makes of the two when it starts, which hangs on what they are.
    encoding, _, errors = command["environment"].get("PYTHONIOENCODING", "").partition(":")
    sys.stdout = open(1, "w", encoding=encoding or None, errors=errors or None, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding or None, "backslashreplace", closefd=False)  # noqa: SIM115
    # A shell may have told a background job to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["qblock", *command["start"]]
    finish = points.arm(command["point"] or {})
    status: Any = 0
    try:
        exec(command["code"], {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code
    except BaseException:
        status = 1
        with suppress(OSError):
            traceback.print_exc()
    finish()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120  # as Python has it
    # Libraries join threads at the end that were not forked with the process.
    os._exit(int(status or 0))


def _opened(file: str) -> int:
    if file == GONE:
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


if __name__ == "__main__":
    _serve()
