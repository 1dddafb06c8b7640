"""The ledger in DuckDB and in SQLite: `python -m benchmarks.ledgers [--kills N] [--openings N]`.

Prints for each store what it takes to open the file and read from it, and to append an event, as a ratio to DuckDB in
the same run; whether another process can read or write meanwhile; what is lost where a process that appends events is
killed at a random moment; and the size of the files. Whatever opens a database does so in a process of its own, forked
from one that has the libraries loaded and has opened nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.ledger_files import STORES, add, append, create, length, read_newest

SEED, RENEW = 20_261, 25
"""RENEW: kills after which a new file is begun."""
LOST = ("a file that could not be read", "an acknowledged event lost", "an event too many")


def in_child(perform: Callable[[], Any]) -> Any:
    """What a function returns in a process of its own. Raises RuntimeError for its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writing, "w") as pipe:
            try:
                json.dump([perform(), None], pipe)
            except Exception as error:
                json.dump([None, f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"], pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer, fault = json.load(pipe)
    os.waitpid(child, 0)
    if fault is not None:
        raise RuntimeError(fault)
    return answer


def start(perform: Callable[[int], None]) -> tuple[int, int]:
    """A process that has said that it is ready: its number, and the pipe into which it writes."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        perform(writing)
        os._exit(0)
    os.close(writing)
    if os.read(reading, 1) != b"|":
        raise RuntimeError("the process has ended before it was ready")
    return child, reading


def openings(store: str, file: Path, times: int) -> dict[str, list[float]]:
    """Seconds of opening a ledger and reading its newest event, first and again, and of opening it to append one."""
    seconds: dict[str, list[float]] = {"open and read, first": [], "open and read, again": [], "open and append": []}
    started = time.perf_counter()
    reader = STORES[store](file, True)
    for number in range(times + 1):
        read_newest(reader)
        seconds[f"open and read, {'again' if number else 'first'}"].append(time.perf_counter() - started)
        started = time.perf_counter()
    writer = STORES[store](file, False)
    for _ in range(times):
        started = time.perf_counter()
        with writer.begin() as connection:
            append(connection)
        seconds["open and append"].append(time.perf_counter() - started)
    return seconds


def hold(store: str, file: Path, state: str, ready: int) -> None:
    """Have a ledger open until killed."""
    with STORES[store](file, state == "reads").connect() as connection:
        if state == "writes":
            append(connection)
        elif state == "reads":
            connection.exec_driver_sql("SELECT number FROM event").first()
        os.write(ready, b"|")
        signal.pause()


def meanwhile(store: str, file: Path) -> None:
    """Print what another process can do while a ledger is open."""
    for state in ("reads", "is open for writing", "writes"):
        child, pipe = start(partial(hold, store, file, state))
        for what, perform in (("read", length), ("write", add)):
            try:
                in_child(partial(perform, store, file))
                answer = "yes"
            except RuntimeError as error:
                answer = f"no, {error}"
            print(f"{store}: while a process {state}, can another {what}? {answer}")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(pipe)


def append_forever(store: str, file: Path, again: bool, marks: int) -> None:
    """Append events until killed. marks: is told before each commit and after it; again: open the file for each."""
    engine = STORES[store](file, False)
    read_newest(engine)
    os.write(marks, b"|")
    while True:
        with engine.connect() as connection:
            repeat = True
            while repeat:
                transaction = connection.begin()
                append(connection)
                os.write(marks, b"(")
                transaction.commit()
                os.write(marks, b")")
                repeat = not again


def kill_once(store: str, file: Path, again: bool, seconds: float) -> bytes:
    """What a process that appends events said until it was killed after so many seconds."""
    child, pipe = start(partial(append_forever, store, file, again))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(pipe, "rb") as marks:
        return marks.read()


def kills(store: str, folder: Path, number: int, span: float) -> Counter[str]:
    """What became of the events of so many processes, each killed at a random moment within a span of seconds."""
    drawn, counted, before = random.Random(SEED), Counter(dict.fromkeys(("kills", *LOST), 0)), 0
    for kill in range(number):
        file = folder / f"killed{kill // RENEW}"
        if kill % RENEW == 0:
            in_child(partial(create, store, file))
            before = 0
        said = kill_once(store, file, bool(kill % 2), drawn.uniform(0, span))
        acknowledged = before + said.count(b")")
        counted["kills"] += 1
        counted["events acknowledged"] += said.count(b")")
        counted["kills during a commit"] += said.endswith(b"(")
        try:
            after = in_child(partial(length, store, file))
        except RuntimeError as error:
            counted[LOST[0]] += 1
            print(f"{store}: {error}", file=sys.stderr)
            continue
        counted[LOST[1]] += after < acknowledged
        counted[LOST[2]] += after > before + said.count(b"(")
        counted["commits that had ended and were not acknowledged"] += after > acknowledged
        before = after
    return counted


def main(arguments: list[str] | None = None) -> int:
    """The command line. Exit status 1 where an event was lost, or half of it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledgers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000, help="of each store")
    parser.add_argument("--openings", type=int, default=30, help="of each store in each process")
    parser.add_argument("--processes", type=int, default=10, help="that open each store")
    parser.add_argument("--events", type=int, default=1000, help="of the ledger that is opened")
    given = parser.parse_args(arguments)
    lost = False
    with tempfile.TemporaryDirectory() as temporary:
        files = {store: Path(temporary) / store / "ledger" for store in STORES}
        taken: dict[str, dict[str, list[float]]] = {store: {} for store in STORES}
        for store, file in files.items():
            file.parent.mkdir()
            opened, closed = in_child(partial(create, store, file, given.events))
            print(f"{store}: {given.events:,} events are {opened:,} bytes while the file is open, {closed:,} after it")
            meanwhile(store, file)
        for _ in range(given.processes):
            for store, file in files.items():
                for what, seconds in in_child(partial(openings, store, file, given.openings)).items():
                    taken[store].setdefault(what, []).extend(seconds)
        for what, base in taken["DuckDB"].items():
            for store, times in taken.items():
                median = statistics.median(times[what])
                print(f"{store}: {what} {median * 1000:.2f} ms, {median / statistics.median(base):.3f} of DuckDB")
        for store, file in files.items():
            span = 4 * statistics.median(taken[store]["open and append"])
            counted = kills(store, file.parent, given.kills, span)
            print(f"{store}: {', '.join(f'{what}: {times:,}' for what, times in counted.items())}", flush=True)
            lost = lost or any(counted[what] for what in LOST)
    return int(lost)


if __name__ == "__main__":
    sys.exit(main())
