"""What a published table is still worth: each utility metric with its direction, range and meaning, from counts."""

from __future__ import annotations

from qblock.metrics.registry import BY_NAME, METRICS, Leaves, Metric, Published

__all__ = ["BY_NAME", "METRICS", "Leaves", "Metric", "Published"]
