"""How the counts of a lattice node are obtained: `sets` decides it, and nobody else."""

from __future__ import annotations

from qblock.frequency.sets import FrequencySets, Small
from qblock.frequency.sizes import Sizes, number, positions

__all__ = ["FrequencySets", "Sizes", "Small", "number", "positions"]
