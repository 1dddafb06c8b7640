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
    rows = [(_span(one), f"{one.blocks:,}", f"{one.rows:,}") for one in shown.sizes]
    bars = [one.rows / shown.rows for one in shown.sizes]
    return Table("Block sizes", ("rows in a block", "blocks", "rows"), rows, (1, 2), bars, "share of the rows")


def _span(one: SizeShown) -> str:
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,} to {one.high:,}"


def _risk(shown: Published) -> Table:
    whole, *without = shown.risk
    rows = [("all known", *_figures(whole))]
    rows += [(f"{one.column} not known", *_figures(one)) for one in without]
    columns = ("to an attacker", "blocks", "smallest", "highest chance", "mean chance")
    return Table(
        "Risk by column: what an attacker loses who does not know it",
        columns,
        rows,
        (1, 2, 3, 4),
        [one.mean / whole.mean for one in shown.risk],
        "mean chance, of that with all known",
    )


def _figures(one: RiskWithout) -> tuple[str, ...]:
    return f"{one.blocks:,}", f"{one.least:,}", share(one.most_sure), share(one.mean)


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
