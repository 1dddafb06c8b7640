"""What a spec takes for granted, held against the data: each finding with a figure, and a remedy as a line to paste."""

from qblock.checks.run import check, refuse_dependencies, refuse_single_rows, unanswered, unused, would_stop

__all__ = ["check", "refuse_dependencies", "refuse_single_rows", "unanswered", "unused", "would_stop"]
