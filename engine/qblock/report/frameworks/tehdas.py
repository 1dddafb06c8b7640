"""TEHDAS2 D7.2: data minimisation and anonymisation for access bodies of the European Health Data Space."""

from __future__ import annotations

from qblock.report.frameworks import answers
from qblock.report.frameworks.sections import UNKNOWN, Answer, Facts, Framework, Section

WHOLE = "TEHDAS2 D7.2"
DATES = ("a date", "a date and time")


def dates(facts: Facts) -> Answer:
    """The columns of dates, and what readers see of them."""
    rows = [(column.name, column.after) for column in facts.published.columns if column.before in DATES]
    if not rows:
        lacking = "No published column holds dates. The person who signs adds the period that the data are of."
        return Answer([UNKNOWN.format(what=lacking)], gap=True)
    return Answer(["Columns of dates, and what readers see of them."], ("column", "what readers see"), rows)


def pseudonyms(facts: Facts) -> Answer:
    """That no identifying column is published."""
    names = [column.name for column in facts.published.declared if column.role in ("identifying", "entity")]
    left_out = f" Left out: {', '.join(names)}." if names else ""
    return Answer([f"No identifying column is published, and no pseudonym in its place.{left_out}"])


TEHDAS = Framework(
    "tehdas",
    "TEHDAS2 D7.2 (EHDS)",
    "TEHDAS2 Joint Action: Guideline for Health Data Access Bodies on data minimisation, pseudonymisation, "
    "anonymisation and synthetic data (D7.2), 2026; Regulation (EU) 2025/327 on the European Health Data Space, "
    "Article 66.",
    "The published summary of D7.2 was read, with its five dimensions, and Article 66 and recital 72 of the "
    "regulation. The order is that of the summary. Numbers of sections of D7.2 were not verified, and it is cited as a "
    "whole.",
    (
        Section(
            "Purpose",
            "Article 66(1)",
            "What the data are for: only what this needs is given.",
            declared="report.context.purpose",
        ),
        Section("Who", f"{WHOLE}, dimensions of data minimisation", "Whose data these are.", figure=answers.dataset),
        Section(
            "What",
            f"{WHOLE}, dimensions of data minimisation",
            "Which columns are given, and in which detail.",
            figure=answers.variables,
        ),
        Section("When", f"{WHOLE}, dimensions of data minimisation", "Of which time the data are.", figure=dates),
        Section(
            "Where",
            f"{WHOLE}, dimensions of data minimisation",
            "Of which places the data are, and in which detail.",
            gap="The person who signs adds the places. What became of each column is in the section What.",
        ),
        Section(
            "How",
            f"{WHOLE}, dimensions of data minimisation",
            "In which way the data are accessed.",
            declared="report.context.release",
        ),
        Section(
            "Anonymised format",
            "Article 66(2)",
            "Whether the purpose can be reached with anonymised data: what these still tell.",
            figure=answers.utility,
        ),
        Section(
            "Pseudonymised format",
            "Article 66(3)",
            "Whether pseudonyms are given, and who can reverse them.",
            figure=pseudonyms,
        ),
        Section(
            "Techniques of anonymisation", WHOLE, "By which models the data were changed.", figure=answers.guarantees
        ),
        Section(
            "Threshold", WHOLE, "Which risk of re-identification is acceptable, and why.", figure=answers.threshold
        ),
        Section("Risk of re-identification", WHOLE, "The risk that is left.", figure=answers.residual_risk),
        Section("Singling out", WHOLE, "Whether a person can be told from others.", figure=answers.singling_out),
        Section("Linkability", WHOLE, "Whether rows can be linked to another table.", figure=answers.linkability),
        Section("Inference", WHOLE, "What is found out of a person's sensitive value.", figure=answers.inference),
        Section(
            "Synthetic data",
            WHOLE,
            "Whether synthetic data would do.",
            gap="It makes no synthetic data. The person who signs says whether they would do here.",
        ),
        Section("Safeguards", WHOLE, "Measures that are in force.", declared="report.controls"),
        Section(
            "Duties of the data user", WHOLE, "What the data user has agreed to.", declared="report.context.agreement"
        ),
    ),
)
