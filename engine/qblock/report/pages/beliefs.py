"""What somebody who knows a population comes to believe of the people in the table (l-diversity, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.report.data import BeliefShown, Report
from qblock.report.parts import Page, Part, Points, Table, Text

NONE = (
    "No population was named. `qblock report --internal --prior schema.table` (or a CSV file of weights) says what "
    "somebody who knows it comes to believe; under the source itself as the population no belief changes."
)


def parts(report: Report) -> Sequence[Part]:
    of = report.inside.beliefs
    if not of:
        return (Text(NONE),)
    found: list[Part] = [Points(_title(one), one.sentences) for one in of]
    figures = [(one.people, one.breach, one.positive, one.negative, one.moved) for one in of]
    rows = [(one.sensitive, *(f"{n:,}" for n in own)) for one, own in zip(of, figures, strict=True)]
    columns = ("about", "people", "breach", "positive disclosure", "negative disclosure", "belief moved")
    return [*found, Table("People concerned", columns, rows, (1, 2, 3, 4, 5))]


def _title(one: BeliefShown) -> str:
    node = ",".join(map(str, one.levels))
    whose = "the source itself" if one.prior == "table" else one.prior
    return f"Beliefs about {one.sensitive} at node {node}, of somebody who knows the population ({whose})"


PAGE = Page("beliefs", "Beliefs", parts, internal=True)
