"""What a run of the job reports when it has ended: the log, the result file, and a hook that is given the file.

None of it changes what was published or the exit status.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qblock.cli.ending import exit_status, stopped, with_effects
from qblock.cli.log import Log
from qblock.cli.result_file import ResultFile, result_bytes
from qblock.cli.streams import AnswerLost, check_answer, say
from qblock.effects import current_effects
from qblock.errors import InputError, QblockError, Refused

if TYPE_CHECKING:
    from qblock.api import DryRun, Published, Release

HOOK_VARIABLES = ("PATH", "HOME", "LANG")


@dataclass(frozen=True)
class Hook:
    """A command that is run with the path of the result file as its last argument, without a shell."""

    arguments: tuple[str, ...]
    seconds: float
    environment: tuple[tuple[str, str], ...] = ()
    """The variables of the job's environment that it gets; the others may hold secrets."""

    @classmethod
    def of(cls, command: str | None, seconds: float, names: Sequence[str] = ()) -> Hook | None:
        """The hook that the command line names, if it names one. names: variables that it gets besides PATH, HOME and
        LANG.

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
            return f"was stopped after {self.seconds:g} seconds"
        finally:
            if process.poll() is None:
                # What it has started ends with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if status < 0:
            return f"was stopped by signal {-status}"
        return f"ended with status {status}" if status else None


class Job:
    """One run. result: where its result is written as JSON, however it ends; spec: the file of its spec."""

    release: str | None = None

    def __init__(self, log: Log, result: ResultFile | None, hook: Hook | None, spec: str) -> None:
        self.log = log
        self._result = result
        self._hook = hook
        if result is not None:
            result.protect_path(spec)

    def begin(self, release: Release) -> None:
        """To be called once the spec is read. Raises InputError where the result would replace a file that the release
        needs."""
        self.release = release.name
        if self._result is None:
            return
        try:
            self._result.protect(release)
        except InputError:
            self._result = None
            raise

    def run(self, perform: Callable[[], Published | DryRun], show: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Perform, print with `show`, and tell; returns the result as JSON.

        show: prints a result, which has a `reason` where the run failed. What is raised (by `perform`, by a signal, or
        for an answer that is lost) is marked as told where it is logged.
        """
        result, raised = {}, None
        try:
            result = {**perform().to_dict(), "exit_status": 0}
            show(result)
            check_answer()
        except BaseException as error:
            result, raised = self._failed(error, result), error
            if isinstance(error, QblockError) and not isinstance(error, AnswerLost):
                show(result)
        try:
            self._tell(result)
        except KeyboardInterrupt as late:
            result, raised = self._failed(late, result), late
            self._write(result)
        if raised is not None:
            raised.told = self.log.format is not None  # type: ignore[attr-defined]
            raise raised
        return result

    def _failed(self, error: BaseException, result: dict[str, Any]) -> dict[str, Any]:
        """The result of a run that did not end well; result: what it came to before, if it got so far."""
        if stopped(error):
            # It is heard.
            signal.setitimer(signal.ITIMER_REAL, 0)
        done = current_effects()
        publication = done.publication
        summary: dict[str, Any] = {
            "status": "refused" if isinstance(error, Refused) else "failed",
            "release": self.release,
            "run": self.log.run,
        }
        if publication is not None:
            status = publication.status if publication.done else "unknown"
            summary |= {"status": status, "version": publication.version}
        return {
            **summary,
            **result,
            "reason": with_effects(error, done),
            "exit_status": exit_status(error, done),
            **({"confirm": confirm} if (confirm := getattr(error, "confirm", None)) else {}),
        }

    def _tell(self, result: dict[str, Any]) -> None:
        log = self.log
        log.release = self.release
        if "reason" in result:
            log.say(f"{result['status']}: {result['reason']}", step="outcome", level="error")
        else:
            # They are about what was published: a run that publishes nothing says none of it again.
            for note in result.get("notes", ()) if result["status"] != "unchanged" else ():
                log.say(note, step="outcome", level="warning")
            what = "done"
            if "rows" in result:
                what = f"version {result['version']}, {result['rows']} rows, {result['suppressed']} suppressed"
                what += f", ledger head {result['ledger_head']}"
            log.say(f"{result['status']}: {what}", step="outcome")
        result = _told(result)
        file = self._write(result)
        if self._hook is None:
            return
        try:
            with _readable(file, result) as path:
                problem = self._hook.run(path, silent=log.format == "json", told=_variables(result))
        except OSError as error:
            problem = f"was not run, since its file was not written: {error.strerror}"
        if problem is not None:
            self._warn(f"the hook {problem}; what was published is not affected")

    def _write(self, result: dict[str, Any]) -> Path | None:
        """Write the result file; returns it where it is written."""
        if self._result is None:
            return None
        try:
            self._result.write(result)
            return self._result.path.absolute()
        except InputError as error:
            why = str(error).removeprefix(f"--result {self._result.path}: ")
        except OSError as error:
            why = str(error.strerror)
        self._warn(f"the result file was not written: {why}")
        return None

    def _warn(self, message: str) -> None:
        if self.log.format is None:
            say(f"qblock: {message}")
        else:
            self.log.say(message, step="hook", level="warning")


def _told(result: dict[str, Any]) -> dict[str, Any]:
    """A result as file and hook get it: one that lags by more than the spec allows is known by its status."""
    if not (result.get("lag") or {}).get("beyond"):
        return result
    return {**result, "status": "lagging", "run_status": result["status"]}


@contextmanager
def _readable(file: Path | None, result: dict[str, Any]) -> Iterator[Path]:
    """A file with the result for the hook: that of --result, or else one of its own."""
    if file is not None:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="qblock-") as folder:
        own = Path(folder) / "result.json"
        own.write_bytes(result_bytes(result))
        yield own


def _name(text: str) -> str:
    # What follows a = is not part of the name, and may be a secret.
    return text.partition("=")[0]


def _variables(result: Mapping[str, Any]) -> dict[str, str]:
    """What the hook is told about the run, besides the file."""
    told = {f"QBLOCK_{key.upper()}": result.get(key) for key in ("release", "run", "status", "exit_status")}
    return {name: str(value) for name, value in told.items() if value is not None}
