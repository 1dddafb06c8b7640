"""Who holds a lock: the name that a lock's session gives itself, and whether the process behind it still runs."""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path

MOST_BYTES = 63
"""The longest application_name."""
_NAME = re.compile(r"qblock (?P<what>.*) \(process (?P<pid>\d+), (?P<machine>[0-9a-f]{6})(?P<start>[0-9a-f]{4})\)")


def session_name(what: str) -> str:
    """What the session of a lock is called: what it is for, and a process of a machine; `what` is cut to fit."""
    pid = os.getpid()
    end = f" (process {pid}, {_machine()}{_start(pid) or ''})"
    most = MOST_BYTES - len(f"qblock {end}")
    return f"qblock {what if len(what) <= most else what[: most - 3] + '...'}{end}"


def shown(name: str | None) -> str:
    """The name of a lock's session, for a message."""
    match = _NAME.fullmatch(name or "")
    return f"qblock {match['what']} (process {match['pid']})" if match else name or "session"


def release_of(name: str | None) -> str | None:
    """The release that the session of a lock is for; None where that is not known."""
    match = re.match(r"qblock (\w+) \(process", name or "")
    return match[1] if match else None


def gone(name: str | None) -> int | None:
    """The process that a session's name gives, where it ran on this machine and has ended; None where it still runs, or
    runs on another machine, of which nothing is known."""
    match = _NAME.fullmatch(name or "")
    if match is None or match["machine"] != _machine():
        return None
    pid = int(match["pid"])
    return pid if _start(pid) != match["start"] else None


@cache
def _machine() -> str:
    """This machine since it was started, and this container on it: pids of another one mean nothing here."""
    try:
        facts = Path("/proc/sys/kernel/random/boot_id").read_text("ascii"), os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""  # not a name of ours, so that nothing is concluded from it
    return hashlib.sha256("".join(facts).encode()).hexdigest()[:6]


def _start(pid: int) -> str | None:
    """When a process began, digested; None for one that does not exist, or has ended and is not reaped yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else hashlib.sha256(fields[19].encode()).hexdigest()[:4]
