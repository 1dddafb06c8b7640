"""How likely each attacker is right, and who is unique, as parts of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qblock.report.parts import Part, Table, Text, share
from qblock.results.report import Published
from qblock.results.risk import AttackerShown, PopulationShown

ATTACKERS = {
    "prosecutor": "prosecutor: knows that the person is in the table",
    "journalist": "journalist: knows that the person is of the population (estimate)",
    "marketer": "marketer: matches every row",
}
ESTIMATES = {
    "pitman": "Pitman (Hoshino 2001)",
    "zayatz": "Zayatz (1991)",
    "snb": "SNB (Chen and Keller-McNulty 1998)",
}


def over_versions(shown: Published) -> str:
    """What the highest chance is to somebody who holds earlier versions, too."""
    if shown.version == 1:
        return ""
    if shown.together is None:
        return (
            "That is of somebody who holds this version alone. Versions are not checked together: somebody who holds "
            "several may find more."
        )
    return (
        "To somebody who holds all versions, and knows when a person came, left or changed, the chance is at most "
        f"{share(shown.together)}, by the guarantees that versions keep together."
    )


def attackers_table(attackers: Sequence[AttackerShown], counted: str) -> Iterator[Part]:
    """The chances of prosecutor, journalist and marketer."""
    if attackers:
        rows = [attacker_row(of) for of in attackers]
        columns = ("attacker", "highest chance", "mean chance", "above the threshold", "share above")
        yield Table(f"Risk by attacker ({counted})", columns, rows, (1, 2, 3, 4))


def attacker_row(of: AttackerShown) -> tuple[str, ...]:
    """An attacker, and the chances as percent; `-` for what there is not."""
    highest = "-" if of.highest is None else share(of.highest)
    above = "-" if of.rows_above is None else f"{of.rows_above:,}"
    return ATTACKERS[of.attacker], highest, share(of.mean), above, _percent(of.share_above)


def _percent(value: float | None) -> str:
    return "-" if value is None else share(value)


def population_parts(of: PopulationShown | None, columns_of: str) -> Iterator[Part]:
    """The declared population, and estimates of who is unique there. columns_of: which columns tell people apart."""
    if of is None:
        return
    if of.why is not None or of.size is None:
        yield Text(f"A population is declared, and nothing is estimated from it: {of.why}.")
        return
    yield Text(
        f"The spec declares a population of {of.size:,} people, of whom the table has {share(of.fraction or 0)}. "
        f"{of.unique or 0:,} rows are alone in their block. How many people of the population are alone is estimated, "
        "by models that may be wrong; nothing is decided by them."
    )
    rows = [
        (
            ESTIMATES[shown.estimate],
            "-" if shown.people is None else f"{shown.people:,.0f}",
            _percent(shown.share),
            shown.why or "",
        )
        for shown in of.uniqueness
    ]
    columns = ("estimate", "people who are unique", "of the rows that are alone", "without an answer, since")
    yield Table(f"Unique people of the population, by {columns_of}", columns, rows, (1, 2))
