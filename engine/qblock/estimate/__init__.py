"""Questions to a published release: what its labels make certain, and what is expected of them."""

from __future__ import annotations

from qblock.estimate.run import estimate

__all__ = ["estimate"]
