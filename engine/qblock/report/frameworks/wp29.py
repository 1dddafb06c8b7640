"""Opinion 05/2014 of the Article 29 Working Party: singling out, linkability, inference."""

from __future__ import annotations

from qblock.report.frameworks import answers
from qblock.report.frameworks.sections import Framework, Section

SUMMARY = "WP216, executive summary"

WP29 = Framework(
    "wp29",
    "Opinion 05/2014 (WP216)",
    "Article 29 Data Protection Working Party: Opinion 05/2014 on Anonymisation Techniques (0829/14/EN, WP216), "
    "adopted on 10 April 2014.",
    "The executive summary was read in the text of the opinion, and the three criteria in summaries of it. Section "
    "numbers of its body were not verified, and are left out. The opinion is about Directive 95/46/EC.",
    (
        Section(
            "Purpose and context",
            SUMMARY,
            "What the data are to be used for: an anonymisation is designed case by case.",
            declared="report.context.purpose",
        ),
        Section(
            "Means likely reasonably to be used",
            SUMMARY,
            "Who may try to identify a person, and with what they may know.",
            figure=answers.attacker,
        ),
        Section(
            "Technique: randomisation",
            "WP216, on anonymisation techniques",
            "Whether values were changed at random.",
            gap="It publishes no value that was changed at random, and does not know what was done to the source "
            "before.",
        ),
        Section(
            "Technique: generalisation",
            "WP216, on anonymisation techniques",
            "Which values were made coarser, by k-anonymity, l-diversity, t-closeness or another model.",
            figure=answers.guarantees,
        ),
        Section(
            "Attributes",
            "WP216, on anonymisation techniques",
            "What became of obvious attributes and quasi-identifiers.",
            figure=answers.variables,
        ),
        Section(
            "Singling out", SUMMARY, "Whether an individual can still be singled out.", figure=answers.singling_out
        ),
        Section(
            "Linkability",
            SUMMARY,
            "Whether records relating to an individual can still be linked.",
            figure=answers.linkability,
        ),
        Section(
            "Inference",
            SUMMARY,
            "Whether information can be inferred concerning an individual.",
            figure=answers.inference,
        ),
        Section(
            "Residual risk",
            SUMMARY,
            "The risk of identification that is left, and how it is judged.",
            figure=answers.residual_risk,
        ),
        Section(
            "Regular reassessment",
            SUMMARY,
            "When the risk is looked at again: it is no one-off exercise.",
            gap="The person who signs names the day of the next review. `qblock check SPEC` and `qblock verify SPEC` "
            "look at the source and at what is published as of then.",
        ),
    ),
)
