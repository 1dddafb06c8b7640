"""What another question would give: models dropped, weaker and stronger, columns finer and coarser."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Report, WhatIf
from qblock.report.parts import Page, Part, Table, Text


def parts(report: Report) -> Sequence[Part]:
    of = report.inside
    if of.what_if is None:
        return (Text(f"Not worked out: {of.why_not}."),)
    base = of.what_if[0]
    better = "more" if of.lattice.more_is_better else "less"
    rows = [
        (outcome.change, f"{outcome.satisfying:,}", _node(outcome), _measure(outcome), _gain(outcome, base))
        for outcome in of.what_if
    ]
    columns = ("if", "nodes", "best node", of.lattice.metric, "change")
    return (
        Text(
            "Nodes of full-domain recoding that would satisfy the spec then, and the best of them by "
            f"{of.lattice.metric} ({better} is better). A column that is finer or coarser is so at the node that a "
            "search takes now."
        ),
        Table("What if", columns, rows, (1, 3, 4)),
    )


def _node(outcome: WhatIf) -> str:
    return "none" if outcome.levels is None else ",".join(map(str, outcome.levels))


def _measure(outcome: WhatIf) -> str:
    return "-" if outcome.measure is None else f"{outcome.measure:.4g}"


def _gain(outcome: WhatIf, base: WhatIf) -> str:
    if outcome.measure is None or not base.measure:
        return "-"
    if outcome.measure == base.measure:
        return "none"
    return f"{100 * (outcome.measure - base.measure) / base.measure:+.1f} %"


PAGE = Page("changes", "What if", parts, internal=True)
