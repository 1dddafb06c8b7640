"""NIST SP 800-188: de-identifying government datasets."""

from __future__ import annotations

from qblock.report.frameworks import answers
from qblock.report.frameworks.sections import Framework, Section

WHOLE = "NIST SP 800-188 (2023)"

SP800_188 = Framework(
    "sp800-188",
    "NIST SP 800-188",
    "National Institute of Standards and Technology: De-Identifying Government Datasets: Techniques and Governance, "
    "Special Publication 800-188, 2023.",
    "The abstract of the final publication was read, and that of its draft. The order is that of the abstract. Numbers "
    "of sections were not verified: the publication is cited as a whole.",
    (
        Section(
            "Goals of de-identification",
            WHOLE,
            "What the agency wants to reach by releasing the data.",
            declared="report.context.purpose",
        ),
        Section(
            "Potential risks",
            WHOLE,
            "What a release of de-identified data may give away.",
            figure=answers.attacker,
        ),
        Section(
            "Data-sharing model",
            WHOLE,
            "How the data are shared: published, queried, or in a protected enclave.",
            declared="report.context.release",
        ),
        Section(
            "Data users",
            WHOLE,
            "Who receives the data.",
            declared="report.context.recipients",
        ),
        Section(
            "Disclosure Review Board",
            WHOLE,
            "Who oversees the process, and what they decided.",
            gap="The person who signs adds the board's decision and its date.",
        ),
        Section(
            "Standard with measurable performance levels",
            WHOLE,
            "Which levels the data are measured by, and what they reach.",
            figure=answers.guarantees,
        ),
        Section(
            "Threshold",
            WHOLE,
            "Which risk is acceptable, and why.",
            figure=answers.threshold,
        ),
        Section(
            "Removing identifiers and transforming quasi-identifiers",
            WHOLE,
            "What was done with each column.",
            figure=answers.variables,
        ),
        Section(
            "Synthetic data and formal privacy",
            WHOLE,
            "Whether synthetic data or a formal method such as differential privacy is used instead.",
            gap="It publishes the people's own rows, coarser: neither synthetic data nor noise. The person who signs "
            "says why this is the right way here.",
        ),
        Section(
            "Re-identification studies",
            WHOLE,
            "What was found by trying to identify people in the data.",
            figure=answers.attacks,
        ),
        Section(
            "Disclosure risk that is left", WHOLE, "The risk after de-identification.", figure=answers.residual_risk
        ),
        Section(
            "Statistical use that is left",
            WHOLE,
            "Whether statistics can still be made of the data.",
            figure=answers.utility,
        ),
        Section("Safeguards", WHOLE, "Measures beside de-identification.", declared="report.controls"),
    ),
)
