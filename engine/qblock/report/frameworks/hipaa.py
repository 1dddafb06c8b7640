"""HIPAA, 45 CFR 164.514(b)(1): what an expert determination is drawn from; and what to compare with Safe Harbor."""

from __future__ import annotations

import re

from qblock.column_names import folded
from qblock.report.frameworks import answers
from qblock.report.frameworks.sections import Answer, Facts, Framework, Section
from qblock.report.frameworks.tehdas import DATES
from qblock.results.report import ColumnShown

RULE = "45 CFR 164.514"
GUIDANCE = "OCR guidance (2012)"
IDENTIFIERS = {
    "(A) names": r"name|surname|first_name|last_name",
    "(B) places smaller than a state": r"zip|zip_?code|postcode|postal_code|city|county|street|address|precinct",
    "(C) dates, and ages over 89": r"age|birth|birth_?date|date_of_birth|dob|admission_date|discharge_date|death_date",
    "(D) telephone numbers": r"phone|telephone|mobile|phone_number",
    "(E) fax numbers": r"fax|fax_number",
    "(F) e-mail addresses": r"e_?mail|e_?mail_address",
    "(G) social security numbers": r"ssn|social_security_number",
    "(H) medical record numbers": r"mrn|medical_record_number",
    "(I) health plan beneficiary numbers": r"beneficiary|beneficiary_number",
    "(J) account numbers": r"account|account_number",
    "(K) certificate and license numbers": r"license|license_number|certificate_number",
    "(L) vehicle identifiers": r"vin|license_plate|number_plate",
    "(M) device identifiers": r"device_id|serial_number",
    "(N) web addresses": r"url|website",
    "(O) IP addresses": r"ip|ip_address",
    "(P) biometric identifiers": r"fingerprint|voiceprint",
    "(Q) full-face photographs": r"photo|photograph",
}
"""The identifiers of (b)(2)(i), in our words, with names of columns that say so; (R) is any other that is unique."""
ANY = "none by its name: compare with all 18, (R) any other unique one included"


def safe_harbor(facts: Facts) -> Answer:
    """Columns as they are published, beside the identifiers that they are to be compared with."""
    columns = [column for column in facts.published.columns if column.role in answers.ROLES]
    rows = [
        (column.name, answers.technique(column), column.after, "; ".join(to_compare(column)) or ANY)
        for column in columns
    ]
    said = (
        "Nothing is concluded here. Columns are matched by their name, or as dates, where that is plain; whoever signs "
        "compares each published column with all 18 identifiers, and says that nothing else is known."
    )
    return Answer([said], ("column", "technique", "what readers see", "to compare with"), rows)


def to_compare(column: ColumnShown) -> list[str]:
    """The identifiers of Safe Harbor that a column plainly is one of."""
    name = folded(column.name).strip("_")
    dated = ["(C) dates, and ages over 89"] if column.before in DATES else []
    named = [identifier for identifier, words in IDENTIFIERS.items() if re.fullmatch(words, name)]
    return list(dict.fromkeys([*dated, *named]))


HIPAA = Framework(
    "hipaa",
    "HIPAA expert determination",
    "45 CFR 164.514(a) to (b); Office for Civil Rights: Guidance Regarding Methods for De-identification of Protected "
    "Health Information, 26 November 2012.",
    "The text of 45 CFR 164.514(a) and (b) was read, and of the guidance the introduction with its numbered questions "
    "2.1 to 2.4. Its Table 1 names the principles; numbers of later questions were not verified, and are left out.",
    (
        Section(
            "The expert",
            f"{RULE}(b)(1); {GUIDANCE}, question 2.2",
            "Who has the knowledge and experience to determine this.",
            gap="The person who signs adds their name, training and experience.",
        ),
        Section(
            "Anticipated recipients",
            f"{RULE}(b)(1)(i)",
            "Who is expected to receive the data.",
            declared="report.context.recipients",
        ),
        Section("The data", f"{RULE}(b)(1)(i)", "What is given to them.", figure=answers.dataset),
        Section(
            "Columns and techniques",
            f"{RULE}(b)(1)(i)",
            "What was done with each column.",
            figure=answers.variables,
        ),
        Section(
            "Replicability",
            f"{GUIDANCE}, Table 1",
            "Which columns say the same of a person again and again.",
            gap="The person who signs says of each column whether its value lasts.",
        ),
        Section(
            "Data source availability",
            f"{GUIDANCE}, Table 1",
            "Who else has these columns, and can look people up in them.",
            declared="attributes.NAME.because",
        ),
        Section(
            "Distinguishability",
            f"{GUIDANCE}, Table 1",
            "How far the columns tell one person from others.",
            figure=answers.attacker,
        ),
        Section(
            "Population",
            f"{GUIDANCE}, Table 1",
            "From how many people those of the table were drawn.",
            figure=answers.population,
        ),
        Section(
            "Assessing the risk",
            f"{GUIDANCE}, Table 1",
            "The risk from all of this together.",
            figure=answers.residual_risk,
        ),
        Section(
            "Very small",
            f"{RULE}(b)(1)(i); {GUIDANCE}, question 2.3",
            "Which risk is very small here, and why. The rule names no number.",
            figure=answers.threshold,
        ),
        Section(
            "Methods",
            f"{RULE}(b)(1)(ii)",
            "Which methods were applied, and with what result.",
            figure=answers.guarantees,
        ),
        Section("Results of attacks", f"{RULE}(b)(1)(ii)", "What attacks on the data find.", figure=answers.attacks),
        Section(
            "Agreements and controls",
            f"{RULE}(b)(1)(i)",
            "What keeps recipients from identifying people.",
            declared="report.controls",
        ),
        Section(
            "How long the determination holds",
            f"{GUIDANCE}, question 2.4",
            "When the data are looked at again.",
            gap="The person who signs names the day on which the determination ends.",
        ),
        Section(
            "Beside Safe Harbor",
            f"{RULE}(b)(2)(i)",
            "Which columns are to be compared with the identifiers of the other method.",
            figure=safe_harbor,
        ),
    ),
)
