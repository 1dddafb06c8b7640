"""A run of the nursery with pipes: as much of subprocess.Popen as tests ask for."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from faults.nursery import Nursery

GIVEN = "QBLOCK_TEST_STDIN"
PROLOGUE = f"import os, sys\nsys.stdin = open(os.environ.pop('{GIVEN}'))\n"


class Piped:
    """Python code in a process of its own, whose standard input and output are pipes; stderr is a file beside them."""

    def __init__(
        self,
        nursery: Nursery,
        code: str,
        folder: Path,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._nursery = nursery
        self.returncode: int | None = None
        given, said, self.errors = folder / "stdin", folder / "stdout", folder / "stderr"
        for pipe in (given, said):
            os.mkfifo(pipe)
        environment = {**(environment or {}), GIVEN: str(given)}
        self.pid = nursery.start(arguments, said, error=self.errors, code=PROLOGUE + code, environment=environment)
        # In the order in which the other end opens them.
        self.stdout = said.open()
        self.stdin = given.open("w")

    def communicate(self, text: str = "") -> tuple[str, str]:
        """Write a last text, and read to the end: standard output and error."""
        if not self.stdin.closed:
            self.stdin.write(text)
            self.stdin.close()
        with self.stdout:
            found = self.stdout.read()
        self.wait()
        return found, self.errors.read_text("utf-8")

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = self._nursery.wait(self.pid)
        return self.returncode

    def running(self) -> bool:
        """Whether it has not ended yet."""
        state = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        return self.returncode is None and state != "Z"

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def close(self) -> None:
        """End it, and close the pipes."""
        if self.returncode is None:
            self.send_signal(signal.SIGKILL)
            self.wait()
        for pipe in (self.stdin, self.stdout):
            pipe.close()
