"""How large blocks are, what each column adds to the risk, and what it tells."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import Published, Report, RiskWithout, SizeShown
from qblock.report.parts import Page, Part, Table, Text, counted, share


def parts(report: Report) -> Sequence[Part]:
    shown = report.shown
    whole = shown.risk[0]
    return (
        Text(
            f"Somebody who knows every quasi-identifier of a person finds a block of at least "
            f"{counted(whole.least, 'row')}: picking one of them is right with a chance of at most "
            f"{share(whole.most_sure)}, and of {share(whole.mean)} for a row on average."
        ),
        _sizes(shown),
        _risk(shown),
        _utility(shown),
    )


def _sizes(shown: Published) -> Table:
    rows = [(_span(size), f"{size.blocks:,}", f"{size.rows:,}") for size in shown.sizes]
    bars = [size.rows / shown.rows for size in shown.sizes]
    return Table("Block sizes", ("rows in a block", "blocks", "rows"), rows, (1, 2), bars, "share of the rows")


def _span(size: SizeShown) -> str:
    return f"{size.low:,}" if size.low == size.high else f"{size.low:,} to {size.high:,}"


def _risk(shown: Published) -> Table:
    whole, *without = shown.risk
    rows = [("all known", *_figures(whole))]
    rows += [(f"{risk.column} not known", *_figures(risk)) for risk in without]
    columns = ("to an attacker", "blocks", "smallest", "highest chance", "mean chance")
    return Table(
        "Risk by column: what an attacker loses who does not know it",
        columns,
        rows,
        (1, 2, 3, 4),
        [risk.mean / whole.mean for risk in shown.risk],
        "mean chance, of that with all known",
    )


def _figures(risk: RiskWithout) -> tuple[str, ...]:
    return f"{risk.blocks:,}", f"{risk.least:,}", share(risk.most_sure), share(risk.mean)


def _utility(shown: Published) -> Table:
    known = shown.quasi_identifiers
    most = max((column.bits or 0 for column in known), default=0) or 1
    rows = [
        (column.name, f"{column.values or 0:,}", share(column.share_hidden or 0), f"{column.bits or 0:.2f}")
        for column in known
    ]
    columns = ("column", "values published", "hidden", "bits")
    bars = [(column.bits or 0) / most for column in known]
    caption = "Utility by column: the bits that its published values tell of a row"
    return Table(caption, columns, rows, (1, 2, 3), bars, "of the column that tells most")


PAGE = Page("risk", "Risk and utility", parts)
