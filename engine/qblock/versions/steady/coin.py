"""The coin by which a batch is set aside before its values are looked at.

For models that do not fail every one-valued batch, failing tells which value a batch holds. If a batch may be out
although nobody looked at it, being out excludes no value (docs/steady-job.md section 5).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from fractions import Fraction

from qblock.versions.steady.state import Block

Coin = Callable[[Block, int], bool]
"""Whether the n-th batch of newcomers of a block (n from 1) is set aside. The same again when a run is repeated."""


def no_coin(block: Block, number: int) -> bool:
    """Never."""
    return False


def private_coin(key: bytes, release: str, skip: Fraction) -> Coin:
    """A coin that falls with probability `skip`, by a digest with a key that is as private as the crosswalk's."""

    def falls(block: Block, number: int) -> bool:
        text = json.dumps(["qblock coin", release, list(block), number])
        drawn = int.from_bytes(hmac.digest(key, text.encode(), hashlib.sha256)[:8])
        return drawn * skip.denominator < skip.numerator * 2**64

    return falls
