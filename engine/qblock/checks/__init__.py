"""What a spec takes for granted, held against the data: each finding with a figure, and a remedy as a line to paste."""

from qblock.checks.run import (
    check,
    check_chosen,
    check_kept,
    check_spec,
    refuse_dependencies,
    refuse_findings,
    refuse_single_rows,
)

__all__ = [
    "check",
    "check_chosen",
    "check_kept",
    "check_spec",
    "refuse_dependencies",
    "refuse_findings",
    "refuse_single_rows",
]
