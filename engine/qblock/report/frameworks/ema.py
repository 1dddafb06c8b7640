"""EMA Policy 0070: the anonymisation report that goes with published clinical data."""

from __future__ import annotations

from qblock.report.frameworks import answers
from qblock.report.frameworks.sections import Framework, Section

GUIDANCE = "EMA/90915/2016, chapter 3"
REPORT = "anonymisation report"

EMA = Framework(
    "ema",
    "EMA Policy 0070",
    "European Medicines Agency: External guidance on the implementation of the policy on the publication of clinical "
    "data (EMA/90915/2016), chapter 3, anonymisation of clinical reports, and its anonymisation report template.",
    "Headings are those of chapter 3 of version 1.3 (2017), in its table of contents. The order is that of the "
    "template as two published descriptions of it give it: methodology, data variables, risk, utility, deviations. "
    "Numbers of sections were not verified, and are left out. The guidance is revised: compare with the version in "
    "force.",
    (
        Section(
            "Methodology",
            f"{REPORT}: anonymisation methodology",
            "By which methods the data were changed, and what each is to prevent.",
            figure=answers.guarantees,
        ),
        Section(
            "Context of data disclosure",
            f"{GUIDANCE}: context of data disclosure",
            "Whether anybody may read the data, or only some.",
            declared="report.context.release",
        ),
        Section(
            "Purpose",
            f"{GUIDANCE}: context of data disclosure",
            "What the published data are to be of use for.",
            declared="report.context.purpose",
        ),
        Section(
            "Identification of data variables",
            f"{REPORT}: identification of data variables",
            "Direct and indirect identifiers, and the technique applied to each: generalized, suppressed or retained.",
            figure=answers.variables,
        ),
        Section(
            "Possible adversaries and plausible attacks",
            f"{GUIDANCE}: anonymisation process",
            "Who may try to find a person, and what they know.",
            figure=answers.attacker,
        ),
        Section(
            "Initial risk",
            f"{REPORT}: risk assessment",
            "The risk of re-identification before anonymisation.",
            figure=answers.initial_risk,
        ),
        Section(
            "Threshold",
            f"{REPORT}: risk assessment",
            "The risk that is acceptable, and why. EMA recommends 0.09 for public data.",
            figure=answers.threshold,
        ),
        Section(
            "Residual risk",
            f"{REPORT}: risk assessment",
            "The risk of re-identification that is left, against the threshold.",
            figure=answers.residual_risk,
        ),
        Section(
            "Singling out",
            f"{GUIDANCE}: anonymisation criteria",
            "Whether a person can be isolated in the data.",
            figure=answers.singling_out,
        ),
        Section(
            "Linkability",
            f"{GUIDANCE}: anonymisation criteria",
            "Whether records of one person can be linked.",
            figure=answers.linkability,
        ),
        Section(
            "Inference",
            f"{GUIDANCE}: anonymisation criteria",
            "Whether a value can be deduced with significant probability.",
            figure=answers.inference,
        ),
        Section(
            "Impact on data utility",
            f"{REPORT}: data utility",
            "What the data still tell after anonymisation.",
            figure=answers.utility,
        ),
        Section(
            "Controls and terms of use",
            f"{GUIDANCE}: context of data disclosure",
            "Measures that bind those who read the data.",
            declared="report.controls",
        ),
        Section(
            "Deviations from the guidance",
            f"{REPORT}: deviations",
            "Where another way was taken than the guidance recommends, and why.",
            gap="The person who signs writes down each deviation, or that there is none.",
        ),
    ),
)
