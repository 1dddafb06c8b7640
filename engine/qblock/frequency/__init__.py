"""How the counts of a lattice node are obtained: `sets` decides it, and nobody else."""

from __future__ import annotations

from qblock.frequency.coding import positions
from qblock.frequency.sets import FrequencySets, Sizes, Small

__all__ = ["FrequencySets", "Sizes", "Small", "positions"]
