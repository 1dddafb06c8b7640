"""The pages of a report for readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qblock.publish.helpers import WEIGHT_ROLE
from qblock.report.drawings import areas
from qblock.report.pages import verdict
from qblock.report.pages.chances import attackers_table, population_parts
from qblock.report.parts import Bar, Figure, Page, Part, Points, Table, Text, counted, figures, share
from qblock.results.report import AttackShown, ColumnShown, Published, Report, SizeShown

NAMES = {
    "homogeneity": "homogeneity: all of a block have the same value",
    "background_knowledge": "background knowledge, {} ruled out",
    "certainty": "background knowledge, the least for certainty: {} ruled out",
    "similarity": "similarity: the same label at level {} of the taxonomy",
    "proximity": "proximity: numbers of a block are close to each other",
}

SEEN = {"plain": "as it is in the source", "coarse": "in ranges or coarser labels", "hidden": "hidden (*)"}
"""The pieces of a bar, by their marks."""
Cells = tuple[Sequence[str], Sequence[Sequence[str]]]
"""The columns and the rows of a table, which a page and the sections of a document show alike."""


def columns_page(report: Report) -> Sequence[Part]:
    """What a reader sees of each column, before and after, and some published rows."""
    shown = report.shown
    rows = [
        (column.name, _seen(column), _labels(column), column.role, column.before or "")
        for column in shown.columns
        if not column.role.startswith("bound of ")
    ]
    bounds = [column.name for column in shown.columns if column.role.startswith("bound of ")]
    columns = ("column", "what readers see", "most frequent", "role", "in the source")
    content: list[Part] = [Table("Columns of the view", columns, rows, legend=list(SEEN.items()))]
    if bounds:
        content.append(Text(f"More columns have the bounds of the labels, for filters: {', '.join(bounds)}."))
    sample = shown.sample
    weights = {column.name for column in shown.columns if column.role == WEIGHT_ROLE}
    written = [
        [figures(text) if text and name in weights else text for name, text in zip(sample.columns, row, strict=True)]
        for row in sample.rows
    ]
    content.append(Table("Published rows, spread over the view", sample.columns, written, first=False))
    return content


def _seen(column: ColumnShown) -> str | Bar:
    """What readers see, as a bar of shares; in words of a column that is none of the source."""
    if column.share_as_is is None:
        return column.after
    hidden = column.share_suppressed or 0
    shares = {"plain": column.share_as_is, "coarse": 1 - column.share_as_is - hidden, "hidden": hidden}
    return Bar([(mark, SEEN[mark], value) for mark, value in shares.items()], column.after)


def _labels(column: ColumnShown) -> str:
    return "; ".join(label.label for label in column.labels)


def guarantees_page(report: Report) -> Sequence[Part]:
    """What was asked for, and what the published rows reach."""
    return (
        Table("Guarantees", *guarantee_cells(report.shown)),
        Text("Satisfied: recomputed from the published rows ('-': not possible from them alone)."),
    )


def guarantee_cells(shown: Published) -> Cells:
    """Each guarantee: what was asked for, and what the published rows satisfy."""
    rows = [
        (
            of.model,
            of.sensitive or "everybody",
            of.asked,
            figures(of.satisfied or "-"),
            "yes" if of.holds else "NO",
            of.in_words,
        )
        for of in shown.guarantees
    ]
    return ("model", "about", "asked", "satisfied", "holds", "in words"), rows


def attacks_page(report: Report) -> Sequence[Part]:
    """What known attacks find in the published rows, one sentence each."""
    shown = report.shown
    content: list[Part] = []
    for name in shown.sensitive:
        own = [attack for attack in shown.attacks if attack.sensitive == name]
        content.append(Points(f"Attacks on {name}", [attack.sentence for attack in own]))
    rows = [
        (attack.sensitive, _named(attack), f"{attack.rows:,}", f"{attack.blocks:,}")
        for attack in shown.attacks
        if attack.rows is not None
    ]
    if not content:
        return (Text("No column is sensitive: an attacker can only find out whose a row is."),)
    exposed = [attack.rows or 0 for attack in shown.attacks if attack.rows is not None]
    bars = [rows_of / shown.rows for rows_of in exposed]
    columns = ("about", "attack", "rows exposed", "blocks")
    content.append(Table("Rows of which the value is certain", columns, rows, (2, 3), bars, "share of the rows"))
    return content


def _named(attack: AttackShown) -> str:
    number = attack.detail or 0
    of_values = attack.attack in ("background_knowledge", "certainty")
    return NAMES[attack.attack].format(counted(number, "value") if of_values else number)


def risk_page(report: Report) -> Sequence[Part]:
    """How large blocks are, what each column adds to the risk, and what it tells."""
    shown = report.shown
    whole = shown.risk[0]
    bars = [size.rows / shown.rows for size in shown.sizes]
    return (
        Text(
            "Somebody who knows every quasi-identifier of a person finds a block of at least "
            f"{counted(whole.least, 'row')}. They pick the right row with a chance of at most "
            f"{share(whole.most_sure)}, and of {share(whole.mean)} for a row on average."
        ),
        *attackers_table(shown.attackers, shown.counted),
        *population_parts(shown.population, "published labels"),
        Table("Block sizes", *size_cells(shown.sizes), (1, 2), bars, "share of the rows"),
        _risk(shown),
        _utility(shown),
    )


def size_cells(sizes: Iterable[SizeShown]) -> Cells:
    """How many blocks are of which size, and the rows in them."""
    rows = [
        (
            f"{size.low:,}" if size.low == size.high else f"{size.low:,} to {size.high:,}",
            f"{size.blocks:,}",
            f"{size.rows:,}",
        )
        for size in sizes
    ]
    return ("rows in a block", "blocks", "rows"), rows


def _risk(shown: Published) -> Table:
    return Table(
        "Risk by column: what an attacker loses who does not know it",
        *risk_cells(shown),
        (1, 2, 3, 4),
        [risk.mean / shown.risk[0].mean for risk in shown.risk],
        "mean chance, of that with all known",
    )


def risk_cells(shown: Published) -> Cells:
    """The blocks to somebody who knows every quasi-identifier, and to somebody who does not know one of them."""
    rows = [
        (
            "all known" if risk.column is None else f"{risk.column} not known",
            f"{risk.blocks:,}",
            f"{risk.least:,}",
            share(risk.most_sure),
            share(risk.mean),
        )
        for risk in shown.risk
    ]
    return ("to an attacker", "blocks", "smallest", "highest chance", "mean chance"), rows


def _utility(shown: Published) -> Table:
    known = shown.quasi_identifiers
    most = max((column.bits or 0 for column in known), default=0) or 1
    bars = [(column.bits or 0) / most for column in known]
    caption = "Utility by column: the bits that its published values tell of a row"
    return Table(caption, *utility_cells(shown), (1, 2, 3), bars, "of the column that tells most")


def utility_cells(shown: Published) -> Cells:
    """What the published values of each quasi-identifier still tell."""
    rows = [
        (column.name, f"{column.values or 0:,}", share(column.share_suppressed or 0), f"{column.bits or 0:.2f}")
        for column in shown.quasi_identifiers
    ]
    return ("column", "values published", "suppressed to *", "bits"), rows


def blocks_page(report: Report) -> Sequence[Part]:
    """The blocks of a recoding map over two quasi-identifiers, as a reader sees them."""
    of = report.shown.map
    if of is None:
        return (Text("There is no map: each column has labels of one level, or none has labels of numbers."),)
    drawn = sum(area.rows for area in of.areas)
    instead = (
        f"The blocks of the recoding map over {of.across} and {of.down}: each bar stands for the blocks with the same "
        f"two labels. Deeper bars have more rows for each unit of {of.across}; wide labels lie behind narrow ones. "
        f"{len(of.areas):,} of {of.total:,} pairs of labels, with {share(drawn / of.rows)} of the rows."
    )
    caption = f"Blocks over {of.across} and {of.down}"
    drawing = areas(of, f"{caption}. {len(of.areas):,} of {of.total:,} pairs of labels.")
    legend = (("area light", f"few rows for each unit of {of.across}"), ("area", "most rows for each unit of it"))
    return (Figure(caption, drawing, instead, legend),)


PAGES = (
    Page("verdict", "Verdict", verdict.verdict_page),
    Page("columns", "What readers see", columns_page),
    Page("guarantees", "Asked and satisfied", guarantees_page),
    Page("attacks", "Attacks", attacks_page),
    Page("risk", "Risk and utility", risk_page),
    Page("blocks", "Map of the blocks", blocks_page),
)
