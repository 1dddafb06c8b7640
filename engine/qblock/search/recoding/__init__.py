"""Multidimensional recoding: a map that gives every block labels of levels of its own."""

from __future__ import annotations

from qblock.search.recoding.recoded import Recoded, check_same
from qblock.search.recoding.run import named, specialized

__all__ = ["Recoded", "check_same", "named", "specialized"]
