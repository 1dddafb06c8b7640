"""Recoding maps: the labels that they give, the splits that make them, and the part of each combination of leaves."""

from __future__ import annotations

from qblock.recoding.ladder import Label, Ladder
from qblock.recoding.parts import Keys, PartedKeys, PartedLeaves, replay
from qblock.recoding.tree import Split, Tree

__all__ = ["Keys", "Label", "Ladder", "PartedKeys", "PartedLeaves", "Split", "Tree", "replay"]
