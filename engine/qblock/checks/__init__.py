"""What a spec takes for granted, held against the data: each finding with a figure, and a remedy as a line to paste."""

from qblock.checks.run import (
    check,
    check_chosen,
    check_kept,
    refuse_dependencies,
    refuse_findings,
    refuse_single_rows,
    unanswered,
    unused,
)

__all__ = [
    "check",
    "check_chosen",
    "check_kept",
    "refuse_dependencies",
    "refuse_findings",
    "refuse_single_rows",
    "unanswered",
    "unused",
]
