"""What a run of the job tells the outside when it has ended: the log, the result file, and a command that is given it.

None of it changes what was published, nor the exit status.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from qblock.cli.log import Log
from qblock.errors import InputError, QblockError, Refused
from qblock.release.result import ReleaseResult

HOOK_VARIABLES = ("PATH", "HOME", "LANG")


class Interrupted:
    """Whether Ctrl-C arrived; drivers may raise another exception in its place."""

    arrived: ClassVar[bool] = False


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; raised like Ctrl-C, so that everything on the way out is released.

    Drivers and the command line library know Ctrl-C alone, and may raise another exception in its place: `arrived` says
    what it was.
    """

    arrived: ClassVar[bool] = False

    def __init__(self, *arguments: object) -> None:
        Terminated.arrived = True
        super().__init__(*arguments)


@dataclass(frozen=True)
class Hook:
    """A command that is run with the path of the result file as its last argument, without a shell."""

    arguments: tuple[str, ...]
    seconds: float
    environment: tuple[tuple[str, str], ...] = ()
    """The variables of the job's environment that it gets; the others may hold secrets."""

    @classmethod
    def of(cls, command: str | None, seconds: float, names: Sequence[str] = ()) -> Hook | None:
        """The hook of the command line, if it has one. names: variables that it gets besides PATH, HOME and LANG.

        Raises InputError for a command that cannot be started, or a variable that is not set.
        """
        if command is None:
            if names:
                raise InputError("--hook-env names variables for a hook, and there is no --hook; give one")
            return None
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise InputError(f"--hook {command}: {str(error).lower()}; quote it as for a shell") from None
        if not arguments or shutil.which(arguments[0]) is None:
            raise InputError(f"--hook {command}: no program of that name can be run; give its whole path")
        for name in names:
            if name not in os.environ:
                raise InputError(f"--hook-env {_name(name)}: this environment variable is not set; set it")
        given = [name for name in (*HOOK_VARIABLES, *names) if name in os.environ]
        return cls(tuple(arguments), seconds, tuple((name, os.environ[name]) for name in dict.fromkeys(given)))

    def run(self, file: Path, *, silent: bool, told: Mapping[str, str] | None = None) -> str | None:
        """Why it failed, if it did. silent: drop what it prints, which goes to standard error otherwise.

        told: variables by which the job tells it about the run.
        """
        output = subprocess.DEVNULL if silent else 2
        try:
            process = subprocess.Popen(
                [*self.arguments, str(file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**dict(self.environment), **(told or {})},
            )
        except OSError as error:
            return f"could not be started: {error.strerror}"
        try:
            status = process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            return f"was ended after {self.seconds:g} seconds"
        finally:
            if process.poll() is None:
                # What it has started ends with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if status < 0:
            return f"was ended by signal {-status}"
        return f"ended with status {status}" if status else None


class Job:
    """One run. result: where its result is written as JSON, whatever it came to."""

    release: str | None = None

    def __init__(self, log: Log, result: Path | None, hook: Hook | None) -> None:
        if result is not None and (result.is_dir() or not os.access(result.absolute().parent, os.W_OK)):
            raise InputError(f"--result {result}: is a folder, or in a folder that cannot be written to")
        self.log = log
        self._result = result
        self._hook = hook

    def run(self, perform: Callable[[], ReleaseResult]) -> dict[str, Any]:
        """Perform and tell; returns the result as JSON. What `perform` raises is marked as told where it is logged."""
        try:
            found = {**perform().to_json(), "exit_status": 0}
        except BaseException as error:
            found = self._failed(error)
            self._tell(found)
            error.result = found  # type: ignore[attr-defined]
            error.told = self.log.format is not None  # type: ignore[attr-defined]
            raise
        self._tell(found)
        return found

    def _failed(self, error: BaseException) -> dict[str, Any]:
        reason = str(error) if isinstance(error, QblockError) else f"internal error ({type(error).__name__})"
        status = error.exit_status if isinstance(error, QblockError) else 1
        if isinstance(error, KeyboardInterrupt) or Terminated.arrived or Interrupted.arrived:
            reason, status = ("terminated", 143) if Terminated.arrived else ("interrupted", 130)
        return {
            "status": "refused" if isinstance(error, Refused) else "failed",
            "release": self.release,
            "run": self.log.run,
            "reason": reason,
            "exit_status": status,
            **({"confirm": confirm} if (confirm := getattr(error, "confirm", None)) else {}),
        }

    def _tell(self, found: dict[str, Any]) -> None:
        log = self.log
        log.release = self.release
        if "reason" in found:
            log.say(f"{found['status']}: {found['reason']}", step="outcome", level="error")
        else:
            for note in found["notes"]:
                log.say(note, step="outcome", level="warning")
            what = f"version {found['version']}, {found['rows']} rows, {found['suppressed']} suppressed"
            log.say(f"{found['status']}: {what}, ledger head {found['ledger_head']}", step="outcome")
        try:
            with self._file(found) as file:
                problem = None
                if self._hook is not None and file is not None:
                    problem = self._hook.run(file, silent=log.format == "json", told=_variables(found))
        except OSError as error:
            self._warn(f"the result file was not written: {error.strerror}")
            return
        if problem is not None:
            self._warn(f"the hook {problem}; this changes nothing in what was published")

    @contextmanager
    def _file(self, found: dict[str, Any]) -> Iterator[Path | None]:
        """The result file while the hook runs; one of its own where none is asked for."""
        if self._result is not None:
            write_whole(self._result, found)
            yield self._result.absolute()
        elif self._hook is not None:
            with tempfile.TemporaryDirectory(prefix="qblock-") as folder:
                file = Path(folder) / "result.json"
                write_whole(file, found)
                yield file
        else:
            yield None

    def _warn(self, message: str) -> None:
        if self.log.format is None:
            print(f"qblock: {message}", file=sys.stderr)
        else:
            self.log.say(message, step="hook", level="warning")


def _name(text: str) -> str:
    # What follows a = is no part of the name, and may be a secret.
    return text.partition("=")[0]


def _variables(found: Mapping[str, Any]) -> dict[str, str]:
    """What the hook is told of the run beside the file."""
    told = {f"QBLOCK_{key.upper()}": found.get(key) for key in ("release", "run", "status", "exit_status")}
    return {name: str(value) for name, value in told.items() if value is not None}


def write_whole(file: Path, found: dict[str, Any]) -> None:
    """Write JSON so that a reader has the file before or the file after. Raises OSError."""
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "x", encoding="utf-8") as writer:
            json.dump(found, writer, ensure_ascii=False, indent=2)
            writer.write("\n")
            writer.flush()
            os.fsync(writer.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
