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
    content: list[Part] = [Points(_title(belief), belief.sentences) for belief in of]
    figures = [(belief.people, belief.breach, belief.positive, belief.negative, belief.moved) for belief in of]
    rows = [(belief.sensitive, *(f"{n:,}" for n in own)) for belief, own in zip(of, figures, strict=True)]
    columns = ("about", "people", "breach", "positive disclosure", "negative disclosure", "belief moved")
    return [*content, Table("People concerned", columns, rows, (1, 2, 3, 4, 5))]


def _title(belief: BeliefShown) -> str:
    node = ",".join(map(str, belief.levels))
    whose = "the source itself" if belief.prior == "table" else belief.prior
    return f"Beliefs about {belief.sensitive} at node {node}, of somebody who knows the population ({whose})"


PAGE = Page("beliefs", "Beliefs", parts, internal=True)
