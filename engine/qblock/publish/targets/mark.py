"""What a published object says about itself: release, version, and a random stamp that its ledger knows."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

MARKED = "qblock release "
"""How the comment on whatever holds a version begins."""


@dataclass(frozen=True)
class Mark:
    """A version of a release that exists. stamp: None where its comment has none; shown: whether readers see it by
    the object alone, without asking the pointer row."""

    version: int
    stamp: str | None
    shown: bool = False


def new_stamp() -> str:
    """128 random bits as hexadecimal text. Not derived from anything: with a digest of the ledger, readers could try
    out its private counts."""
    return secrets.token_hex(16)


def mark_text(release: str, version: int, stamp: str | None) -> str:
    """The comment on the object that holds a version."""
    return f"qblock release {release} version {version}" + (f" stamp {stamp}" if stamp is not None else "")


def read_mark(comment: str | None, release: str) -> tuple[int, str | None] | None:
    """Version and stamp, where there is one, of a comment on an object of the release; None for any other."""
    pattern = rf"qblock release {re.escape(release)} version (\d+)(?: stamp ([0-9a-f]{{32}}))?"
    match = re.fullmatch(pattern, comment or "")
    return (int(match[1]), match[2]) if match else None
