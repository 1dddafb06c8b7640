"""ISO/IEC 27559:2022: a framework for privacy enhancing de-identification."""

from __future__ import annotations

from qblock.report.frameworks import answers
from qblock.report.frameworks.sections import Framework, Section

ISO27559 = Framework(
    "iso27559",
    "ISO/IEC 27559:2022",
    "ISO/IEC 27559:2022, Information security, cybersecurity and privacy protection: Privacy enhancing data "
    "de-identification framework.",
    "Titles and numbers of clauses 6 to 9.2.3 were read in the table of contents of AS/NZS ISO/IEC 27559:2024, which "
    "adopts the standard as it is. The text of the clauses was not read. Of what is done after data are made "
    "available, clause 9 is cited as a whole.",
    (
        Section(
            "Security and privacy practices",
            "clause 6.2.2",
            "How those who receive the data protect them.",
            declared="report.controls",
        ),
        Section(
            "Motives and capacity to re-identify",
            "clause 6.2.3",
            "Who receives the data, and who of them may want to identify people.",
            declared="report.context.recipients",
        ),
        Section(
            "Transparency of actions and stakeholder engagement",
            "clause 6.3.2",
            "Who was told of the release and heard on it.",
            gap="The person who signs adds who was told and heard.",
        ),
        Section(
            "Privacy-related harms",
            "clause 6.3.3",
            "What it would mean for a person to be identified.",
            gap="The person who signs adds the harms and how they are weighed.",
        ),
        Section("Data principals", "clause 7.2.2", "Whose data these are.", figure=answers.dataset),
        Section("Data type", "clause 7.2.3", "Of which kind the data are.", figure=answers.kinds),
        Section(
            "Attribute types",
            "clause 7.2.4",
            "Which columns identify, and which are sensitive.",
            figure=answers.variables,
        ),
        Section(
            "Dataset properties", "clause 7.2.5", "How rows fall into groups that read the same.", figure=answers.sizes
        ),
        Section(
            "Maximum or average risk",
            "clause 7.3.2",
            "Whether the highest risk of any person counts, or the mean.",
            figure=answers.attacker,
        ),
        Section(
            "Population or sample-based attack",
            "clause 7.3.3",
            "From which population the people of the table were drawn.",
            figure=answers.population,
        ),
        Section("Data privacy models", "clause 7.3.4", "Which models the data satisfy.", figure=answers.guarantees),
        Section(
            "Quantifying identifiability",
            "clause 8.2.2",
            "The risk in figures, against a threshold.",
            figure=answers.residual_risk,
        ),
        Section("Adversarial testing", "clause 8.2.3", "What attacks on the data find.", figure=answers.attacks),
        Section(
            "Reconfiguring the environment",
            "clause 8.3.2",
            "What those who receive the data have agreed to.",
            declared="report.context.agreement",
        ),
        Section(
            "Transforming the data", "clause 8.3.3", "What is left of each column's detail.", figure=answers.utility
        ),
        Section(
            "Re-evaluation", "clause 8.3.4", "The risk after that, measured once more.", figure=answers.singling_out
        ),
        Section(
            "Assigning roles and responsibilities",
            "clause 9.2.2",
            "Who is responsible for the release.",
            gap="The person who signs adds names and roles.",
        ),
        Section(
            "Establishing principles, policies and procedures",
            "clause 9.2.3",
            "By which rules data are released.",
            gap="The person who signs adds the policies in force.",
        ),
        Section(
            "After data are made available",
            "clause 9",
            "How the release is kept up to date and watched.",
            figure=answers.versions,
        ),
    ),
)
