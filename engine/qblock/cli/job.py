"""What a run of the job reports when it has ended: the log, the result file, and a hook that is given the file.

None of it changes what was published or the exit status.
"""

from __future__ import annotations

import json
import os
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
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from qblock.cli.ending import exit_status, stopped, with_effects
from qblock.cli.output import ProgressReport, every_so_often, load_release
from qblock.cli.streams import AnswerLost, check_answer, json_text, say
from qblock.effects import current_effects
from qblock.errors import InputError, QblockError, Refused
from qblock.files import KINDS, OwnFile, written_whole
from qblock.printable import printable_json

if TYPE_CHECKING:
    from qblock.api import Answer, DryRun, Entry, Failed, Level, Published, Release

    RunResult = Published | DryRun | Failed

Result = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the result as JSON, however the run ends. An empty file, or the result of an earlier run, is "
        "replaced whole.",
    ),
]
REPLACE = "Replace the file of --result, whatever it holds. Files of the release are never replaced."
HookCommand = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Run this command afterwards, however the run ends, and without a shell. Its last argument is the path of "
        "the result file. If it fails, that is reported; what was published and the exit status stay the same.",
    ),
]
HookEnvironment = Annotated[
    list[str] | None,
    typer.Option(
        "--hook-env",
        metavar="NAME",
        help="An environment variable that the hook gets too; repeatable. The hook also gets PATH, HOME, LANG and "
        "the QBLOCK_ variables about the run.",
    ),
]
HookTimeout = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="How long the hook may run before it is stopped.")
]
LogFormat = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="Log each step on standard error: text, or json (JSON lines).")
]
Wait = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for another run of this release.")
]
HOOK_VARIABLES = ("PATH", "HOME", "LANG")
KEYS = {"status", "release", "exit_status"}
"""How a result of an earlier run is recognized."""
MOST_BYTES = 1 << 26
"""No result is larger."""
ASK = "give another name, or --result-force to replace it"
NAME_A_FILE = "name a file, or take the result from standard output (--json)"
Format = Literal["text", "json"]


class Log:
    """Writes entries, and remembers whose they are. format None: writes nothing."""

    run: str | None = None
    release: str | None = None

    def __init__(self, format: Format | None) -> None:
        self.format = format

    @classmethod
    def of(cls, format: str | None, verbose: bool) -> Log:
        """Raises InputError for an unknown format."""
        if format == "json":
            return cls("json")
        if format not in (None, "text"):
            raise InputError(f"--log-format {format}: valid: text, json")
        return cls("text" if format or verbose else None)

    def __call__(self, entry: Entry) -> None:
        self.run, self.release = entry.run, entry.release
        fields = entry.to_json()
        if self.format == "json":
            say(json_text(fields, sys.stderr))
        elif self.format == "text":
            where = " ".join(str(fields[name]) for name in ("release", "run", "step") if fields[name] is not None)
            message = " ".join(entry.message.split())
            say(f"{fields['time'][:19]}Z {entry.level:7} {where}: {message}")

    def say(self, message: str, *, step: str, level: Level = "info") -> None:
        """An entry of the command itself, about the run that wrote last."""
        from qblock.api import Entry

        self(Entry(self.run, self.release, step, message, level))

    def progress(self) -> ProgressReport:
        """Progress of the search as an entry every few seconds."""
        return every_so_often(lambda line: self.say(line, step="search"))


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
                # What follows a = is not part of the name, and may be a secret.
                raise InputError(f"--hook-env {name.partition('=')[0]}: this environment variable is not set; set it")
        given = [name for name in (*HOOK_VARIABLES, *names) if name in os.environ]
        return cls(tuple(arguments), seconds, tuple((name, os.environ[name]) for name in dict.fromkeys(given)))

    def run(self, file: Path, *, silent: bool, variables: Mapping[str, str] | None = None) -> str | None:
        """Why it failed, if it did. silent: drop what it prints, which goes to standard error otherwise.

        variables: by which the job tells it about the run.
        """
        output = subprocess.DEVNULL if silent else 2
        try:
            process = subprocess.Popen(
                [*self.arguments, str(file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**dict(self.environment), **(variables or {})},
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
    """One run. result: the file of its result, written however it ends; force: whatever is there.

    Raises InputError where none can be written.
    """

    release: str | None = None

    def __init__(self, spec: str, log: Log, hook: Hook | None, result: Path | None, *, force: bool) -> None:
        self.log = log
        self._spec, self._hook = spec, hook
        self._result = None if result is None else ResultFile(result, spec, force=force)

    def _load(self) -> Release:
        """The release. Raises InputError for a wrong spec, and where the result would replace a file that it needs."""
        release = load_release(self._spec)
        self.release = release.name
        if self._result is not None:
            try:
                self._result.protect(release)
            except InputError:
                self._result = None
                raise
        return release

    def run(self, perform: Callable[[Release], Published | DryRun], show: Callable[[RunResult], None]) -> None:
        """Load the release, perform, print with `show`, and tell.

        show: prints a result, which has a `reason` where the run failed. What is raised (by `perform`, by a signal, or
        for an answer that is lost) is marked as told where it is logged.
        """
        result: RunResult | None = None
        raised = None
        try:
            result = perform(self._load()).model_copy(update={"exit_status": 0})
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

    def _failed(self, error: BaseException, result: RunResult | None) -> RunResult:
        """The result of a run that did not end well; result: what it came to before, if it got so far."""
        from qblock.api import Failed

        if stopped(error):
            # It is heard.
            signal.setitimer(signal.ITIMER_REAL, 0)
        done = current_effects()
        ending: dict[str, Any] = {"reason": with_effects(error, done), "exit_status": exit_status(error, done)}
        confirm = getattr(error, "confirm", None)
        if confirm:
            ending["confirm"] = confirm
        if result is not None:
            return result.model_copy(update=ending)
        summary: dict[str, Any] = {"status": "refused" if isinstance(error, Refused) else "failed"}
        if done.publication is not None:
            status = done.publication.status if done.publication.done else "unknown"
            summary = {"status": status, "version": done.publication.version}
        return Failed(release=self.release, run=self.log.run, **summary, **ending)

    def _tell(self, result: RunResult) -> None:
        from qblock.api import Published

        log = self.log
        log.release = self.release
        if result.reason is not None:
            log.say(f"{result.status}: {result.reason}", step="outcome", level="error")
        else:
            # They are about what was published: a run that publishes nothing says none of it again.
            for note in result.remarks if result.status != "unchanged" else ():
                log.say(note, step="outcome", level="warning")
            what = "done"
            if isinstance(result, Published):
                what = f"version {result.version}, {result.rows} rows, {result.suppressed} suppressed"
                what += f", ledger head {result.ledger_head}"
            log.say(f"{result.status}: {what}", step="outcome")
        if isinstance(result, Published) and result.lag.beyond:
            # What lags by more than the spec allows is known by its status to file and hook.
            result = result.model_copy(update={"status": "lagging", "run_status": result.status})
        file = self._write(result)
        if self._hook is None:
            return
        values = {name: getattr(result, name) for name in ("release", "run", "status", "exit_status")}
        variables = {f"QBLOCK_{name.upper()}": str(value) for name, value in values.items() if value is not None}
        try:
            with _readable(file, result) as path:
                problem = self._hook.run(path, silent=log.format == "json", variables=variables)
        except OSError as error:
            problem = f"was not run, since its file was not written: {error.strerror}"
        if problem is not None:
            self._warn(f"the hook {problem}; the published version is not affected")

    def _write(self, result: RunResult) -> Path | None:
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


@contextmanager
def _readable(file: Path | None, result: RunResult) -> Iterator[Path]:
    """A file with the result for the hook: that of --result, or else one of its own."""
    if file is not None:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="qblock-") as folder:
        own = Path(folder) / "result.json"
        own.write_bytes(result_bytes(result))
        yield own


def keep_own_files(option: str, path: Path, release: Release) -> None:
    """Raise InputError where a file that is to be written is one that the release lives on."""
    for file in release.own_files():
        _keep(file, option, path)


def _keep(file: OwnFile, option: str, path: Path) -> None:
    """Raise InputError where a path is this file, by its real path or as another name of it (a hard link)."""
    real, own = Path(os.path.realpath(path)), Path(os.path.realpath(file.path))
    others = own.rglob("*") if file.folder and own.is_dir() else [own]
    inside = file.folder and own in real.parents
    if real == own or inside or (real.exists() and any(_same(other, real) for other in others)):
        raise InputError(f"{option} {path}: is {file.what}, which would be lost; give another name")


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


class ResultFile:
    """Where a run writes its result: a file that is new, empty or the result of an earlier run, and none that the
    release lives on. A link stays, and the file that it names is replaced.

    Raises InputError for a path that cannot take a result, before anything is done.
    """

    def __init__(self, path: Path, spec: str, *, force: bool = False) -> None:
        self.path = path
        self._force = force
        # The spec before it is read, since it may be one that cannot be read; the others when it says which they are.
        self._own = [OwnFile(Path(spec), "the spec")]
        # A spec that cannot be read does not say what must be kept, so nothing is replaced by force until then.
        self._may_replace = False
        self._check(content=False)

    def protect(self, release: Release) -> None:
        """Raise InputError where the file is one that the release lives on, or may not be replaced."""
        self._own = list(release.own_files())
        self._may_replace = self._force
        self._check(content=not self._may_replace)

    def write(self, result: Answer) -> None:
        """Write a result as JSON, for the owner alone.

        Raises OSError, and InputError where something else has taken its place meanwhile.
        """
        self._check(content=not self._may_replace)
        with written_whole(self.path, private=True) as file:
            file.write(result_bytes(result))

    def _check(self, *, content: bool) -> None:
        """content: whether what is there must be nothing, or a result."""
        if _of_shell(self.path):
            raise InputError(f"--result {self.path}: is what the shell passes on, not a file; {NAME_A_FILE}")
        try:
            status = self.path.stat()
        except FileNotFoundError:
            status = None
        except OSError as error:
            raise InputError(f"--result {self.path}: cannot be written to: {error.strerror}") from None
        for file in self._own:
            _keep(file, "--result", self.path)
        kind = None if status is None else next((name for is_kind, name in KINDS if is_kind(status.st_mode)), None)
        if kind is not None:
            raise InputError(f"--result {self.path}: is {kind}; {NAME_A_FILE}")
        real = Path(os.path.realpath(self.path))
        if not os.access(real.parent, os.W_OK | os.X_OK):
            raise InputError(f"--result {self.path}: is in a folder that cannot be written to")
        if content and status is not None and status.st_size:
            problem = _no_result(real, status.st_size)
            if problem is not None:
                raise InputError(f"--result {self.path}: {problem}; {ASK}")


def result_bytes(result: Answer) -> bytes:
    """A result as JSON; half a character, as of a path that is not UTF-8, is escaped."""
    text = printable_json(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _of_shell(path: Path) -> bool:
    """Whether a path names what the shell has opened, like /dev/stdout or /dev/fd/3, whatever that is: the file of a
    redirection would be replaced, and whoever has it open would not see it."""
    for _ in range(40):
        if os.path.realpath(path.parent).startswith(("/proc/", "/dev/fd")):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False


def _no_result(file: Path, size: int) -> str | None:
    """Why a file is not the result of an earlier run; None where it is one."""
    try:
        data = file.read_bytes() if size <= MOST_BYTES else b""
    except OSError:
        return "holds something that the job has no permission to read"
    with suppress(ValueError, RecursionError):
        value = json.loads(data)
        if isinstance(value, dict) and value.keys() >= KEYS:
            return None
    return "holds something other than the result of a run"
