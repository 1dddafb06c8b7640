"""Run the tests against each faulty copy of the engine: `python tests/mutation/run.py [WORD ...]`.

The checkout is never touched: each fault is made in a copy in a temporary folder that comes first on the path. Prints
which test notices each fault (KILLED BY) or SURVIVED. With words, only faults whose description or file holds one.
Exit status: 0, every fault is noticed; 1, one survives; 2, a fault no longer fits the engine, or the tests fail as is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from mutation.faults import MUTATIONS  # noqa: E402
from mutation.mutation import Mutation, StaleError  # noqa: E402

FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@contextmanager
def copy_of_the_engine() -> Iterator[Path]:
    """A folder with a copy of the package as a wheel holds it, without compiled files that could outlive a fault."""
    with tempfile.TemporaryDirectory(prefix="qblock-mutation-") as folder:
        package, without = Path(folder) / "qblock", shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "engine" / "qblock", package, ignore=without)
        for data in ("sql", "migrations"):
            shutil.copytree(ROOT / data, package / data, ignore=without)
        yield Path(folder)


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder), str(ROOT / "tests")])
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def first_failure(folder: Path, tests: tuple[str, ...], select: str = "") -> str | None:
    """The test that fails first, or None when all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    command += ["-p", "mutation.unshrunk", *tests]
    command += ["-k", select] if select else []
    done = subprocess.run(command, cwd=ROOT, env=environment(folder), capture_output=True, text=True, check=False)
    if done.returncode in (0, 5):
        return None
    found = FAILED.search(done.stdout)
    return found.group(1) if found else "the import of the engine"


def uses_the_copy(folder: Path) -> bool:
    command = [sys.executable, "-c", "import qblock; print(qblock.__file__)"]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=True, cwd=folder)
    return Path(done.stdout.strip()).is_relative_to(folder)


def killer(mutation: Mutation) -> str | None:
    """The test that notices a fault, or None."""
    with copy_of_the_engine() as folder:
        path, text = mutation.apply(folder / "qblock")
        path.write_text(text, "utf-8")
        noticed = first_failure(folder, mutation.tests, mutation.select) if mutation.select else None
        return noticed or first_failure(folder, mutation.tests)


def main(words: list[str]) -> int:
    chosen = [m for m in MUTATIONS if not words or any(word in f"{m.file} {m.what}" for word in words)]
    with copy_of_the_engine() as folder:
        for mutation in chosen:
            try:
                mutation.apply(folder / "qblock")
            except StaleError as error:
                print(f"stale  {error}")
                return 2
        if not uses_the_copy(folder):
            print("the copy of the engine is not the one that is imported")
            return 2
        for tests in dict.fromkeys(mutation.tests for mutation in chosen):
            selects = {mutation.select for mutation in chosen if mutation.tests == tests}
            broken = first_failure(folder, tests, selects.pop() if len(selects) == 1 else "")
            if broken:
                print(f"{broken} fails without any fault")
                return 2
    survivors = 0
    width = max((len(m.what) for m in chosen), default=0)
    for mutation in chosen:
        start = time.monotonic()
        noticed = killer(mutation)
        survivors += noticed is None
        verdict = f"KILLED BY {noticed}" if noticed else "SURVIVED"
        print(f"{mutation.what:{width}}  {time.monotonic() - start:4.0f} s  {verdict}", flush=True)
    print(f"{len(chosen)} faults, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
