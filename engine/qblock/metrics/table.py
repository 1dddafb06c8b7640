"""The table of metrics as Markdown, from the registry (docs/spec.md holds it, and a test holds the page to it)."""

from __future__ import annotations

import math

from qblock.metrics.registry import METRICS


def markdown() -> str:
    """One row for each metric."""
    lines = ["| metric | what it says | from, to | better | looks at sensitive values |", "|---|---|---|---|---|"]
    for metric in METRICS:
        most = "infinity" if math.isinf(metric.most) else f"{metric.most:g}"
        looks = "yes" if metric.sensitive else "no"
        lines.append(f"| `{metric.name}` | {metric.meaning} | {metric.least:g}, {most} | {metric.better} | {looks} |")
    return "\n".join(lines) + "\n"
