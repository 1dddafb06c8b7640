"""How the counts of a lattice node are obtained: `sets` decides it, and nobody else."""

from __future__ import annotations

from qblock.frequency.sets import FrequencySets
from qblock.frequency.sizes import Sizes, number

__all__ = ["FrequencySets", "Sizes", "number"]
