"""Figures that answer sections: what readers can count, what the spec declares, and of internal reports the source."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from qblock.report.frameworks.sections import UNDECLARED, UNKNOWN, Answer, Facts
from qblock.report.parts import counted, figures, share
from qblock.results.report import AttackShown, ColumnShown, GuaranteeShown, Published
from qblock.source.in_words import AS_IT_IS, SUPPRESSED
from qblock.spec.reporting import chance_text

ROLES = {
    "identifying": "direct identifier",
    "quasi-identifier": "quasi-identifier",
    "sensitive attribute": "sensitive",
    "insensitive": "no identifier",
}
"""Roles of columns, as documents on anonymisation call them."""
THRESHOLD = UNDECLARED.format(
    key="report.threshold", line='report: {threshold: 1/11, threshold_because: "EMA Policy 0070"}'
)
UNCOMPARED = "The spec declares no threshold to compare this with: `report: {threshold: 1/11}`"
INTERNAL = (
    "Not in a report for readers: this is measured in the source. `qblock report SPEC --for {name} --internal` has it."
)
NO_SENSITIVE = "No column is sensitive: nothing is to be inferred but whose a row is."


def dataset(facts: Facts) -> Answer:
    """What is published, and whose a row is."""
    shown = facts.published
    return Answer(
        [
            f"{shown.view} shows {counted(shown.rows, 'row')} in {counted(shown.blocks, 'block')} of rows that read "
            f"the same in {_known(shown)}. {shown.whose}",
            f"It is version {shown.version} of {shown.release}, made on {shown.at} (UTC).",
        ]
    )


def _known(shown: Published) -> str:
    return ", ".join(column.name for column in shown.quasi_identifiers) or "no column"


def variables(facts: Facts) -> Answer:
    """Each column with its technique: generalized, suppressed, retained; and why it has its role."""
    because = {name: column.because for name, column in facts.spec.attributes.items()}
    published = [column for column in facts.published.columns if column.role in ROLES]
    rows = [
        (column.name, ROLES[column.role], technique(column), column.after, because.get(column.name) or "not declared")
        for column in published
    ]
    named = {column.name for column in published}
    rows += [
        (name, ROLES["identifying"], "suppressed", "nothing", because[name] or "not declared")
        for name in facts.spec.attributes
        if name not in named and facts.spec.attributes[name].role == "identifying"
    ]
    more = "A column of the source that the spec does not name is suppressed."
    return Answer([more], ("column", "kind", "technique", "what readers see", "why this role"), rows)


def technique(column: ColumnShown) -> str:
    """What was done with the values of a published column."""
    if column.after == SUPPRESSED or column.share_suppressed == 1:
        return "suppressed"
    kept = column.after == AS_IT_IS or column.after.startswith((f"{AS_IT_IS} (", f"{AS_IT_IS} in the source"))
    method = "retained" if kept else "generalized"
    hidden = column.share_suppressed or 0
    return f"{method}; suppressed in {share(hidden)} of the rows" if hidden else method


def guarantees(facts: Facts) -> Answer:
    """What is promised, by which model, and what the published rows satisfy."""
    shown = facts.published
    columns = ("model", "about", "asked", "satisfied", "holds", "in words")
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
    again = sum(of.satisfied is not None for of in shown.guarantees)
    said = (
        f"{again} of {counted(len(rows), 'guarantee')} can be counted again from the published rows alone ('-': not)."
    )
    return Answer([said], columns, rows)


def attacker(facts: Facts) -> Answer:
    """Who is reckoned with: somebody who knows every quasi-identifier of a person, and what not knowing one costs."""
    shown = facts.published
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
    said = (
        f"Somebody is reckoned with who knows {_known(shown)} of a person, and that the person is in the table. "
        "Nothing is promised against somebody who knows more."
    )
    return Answer([said], ("to an attacker", "blocks", "smallest", "highest chance", "mean chance"), rows)


def initial_risk(facts: Facts) -> Answer:
    """The chance before anything was done, which only those who run the job may see."""
    if facts.internal is None:
        return Answer([INTERNAL.format(name=facts.name)], gap=True)
    return Answer([UNKNOWN.format(what="This program does not measure it.")], gap=True)


def threshold(facts: Facts) -> Answer:
    """The threshold that the spec declares, and why."""
    declared = facts.spec.report
    if declared.threshold is None:
        return Answer([THRESHOLD], gap=True)
    why = declared.threshold_because
    on = "the highest chance of any row" if declared.threshold_on == "highest" else "the mean chance over the rows"
    return Answer(
        [
            f"The spec declares {chance_text(declared.threshold)} for {on} that an outsider names the right person.",
            UNDECLARED.format(key="report.threshold_because", line='report: {threshold_because: "EMA Policy 0070"}')
            if why is None
            else f"Because: {why}",
        ]
    )


def residual_risk(facts: Facts) -> Answer:
    """The chance that is left, against the threshold."""
    shown, declared = facts.published, facts.spec.report
    whole = shown.risk[0]
    said = [
        f"The highest chance that an outsider names the right row is {share(whole.most_sure)} (1 in {whole.least:,}), "
        f"the mean over the rows {share(whole.mean)}."
    ]
    if declared.threshold is None:
        return Answer([*said, UNCOMPARED])
    highest = declared.threshold_on == "highest"
    measured = Fraction(1, whole.least) if highest else Fraction(whole.blocks, shown.rows)
    is_met = measured <= declared.threshold
    said.append(
        f"The {'highest' if highest else 'mean'} chance is {'at most' if is_met else 'above'} the declared threshold "
        f"of {chance_text(declared.threshold)}: it is {'met' if is_met else 'NOT met'}."
    )
    return Answer(said)


def singling_out(facts: Facts) -> Answer:
    """Whether somebody's row can be told from others."""
    shown = facts.published
    least = shown.risk[0].least
    alone = sum(size.rows for size in shown.sizes if size.high == 1)
    return Answer(
        [
            f"{counted(alone, 'row')} can be singled out by {_known(shown)}: no other row reads the same."
            if alone
            else f"No row can be singled out by {_known(shown)}: each reads the same as at least "
            f"{counted(least - 1, 'other row')}. {shown.whose}",
            *_promised(guarantee for guarantee in shown.guarantees if guarantee.sensitive is None),
        ]
    )


def linkability(facts: Facts) -> Answer:
    """Whether rows of one person can be put together."""
    shown = facts.published
    whole = shown.risk[0]
    return Answer(
        [
            f"Another table links by {_known(shown)} to blocks of at least {counted(whole.least, 'row')}, not to a "
            f"row. A link is right with a chance of at most {share(whole.most_sure)}. {shown.whose}",
            "What other releases of the same people tell together with this one is not looked at here.",
            *_promised(guarantee for guarantee in shown.guarantees if guarantee.sensitive is None),
        ]
    )


def inference(facts: Facts) -> Answer:
    """What is found out of a sensitive value without telling whose row it is."""
    shown = facts.published
    if not shown.sensitive:
        return Answer([NO_SENSITIVE])
    promised = _promised(guarantee for guarantee in shown.guarantees if guarantee.sensitive is not None)
    return Answer(
        [
            "What somebody finds out who knows the quasi-identifiers, and one more fact at most:",
            *(attack.sentence for attack in shown.attacks if attack.rows is not None and _is_near(attack)),
            *(promised or ["No guarantee is about a sensitive column."]),
        ]
    )


def _is_near(attack: AttackShown) -> bool:
    """Whether somebody needs no more than one fact beside the quasi-identifiers."""
    return attack.attack != "certainty" and (attack.attack != "background_knowledge" or attack.detail == 1)


def _promised(of: Iterator[GuaranteeShown]) -> list[str]:
    return [
        f"Against this: {guarantee.model} ({guarantee.asked}), which {'holds' if guarantee.holds else 'DOES NOT HOLD'}."
        for guarantee in of
    ]


def attacks(facts: Facts) -> Answer:
    """Every attack that was tried on the published rows."""
    shown = facts.published
    if not shown.sensitive:
        return Answer([NO_SENSITIVE])
    said = "Known attacks were tried on the published rows. The list cannot be complete."
    return Answer([said, *(attack.sentence for attack in shown.attacks)])


def utility(facts: Facts) -> Answer:
    """What published columns still tell."""
    rows = [
        (column.name, f"{column.values or 0:,}", share(column.share_suppressed or 0), f"{column.bits or 0:.2f}")
        for column in facts.published.quasi_identifiers
    ]
    said = "The bits are the entropy of a column's published values: what a reader learns of a row from it."
    return Answer([said], ("column", "values published", "suppressed to *", "bits"), rows)


def sizes(facts: Facts) -> Answer:
    """How large the blocks are."""
    shown = facts.published
    rows = [
        (
            f"{size.low:,}" if size.low == size.high else f"{size.low:,} to {size.high:,}",
            f"{size.blocks:,}",
            f"{size.rows:,}",
        )
        for size in shown.sizes
    ]
    return Answer(dataset(facts).sentences, ("rows in a block", "blocks", "rows"), rows)


def kinds(facts: Facts) -> Answer:
    """The kind of values of each column, before and after."""
    columns = [column for column in facts.published.columns if column.role in ROLES]
    rows = [(column.name, column.before or "not told", column.after) for column in columns]
    return Answer(["A row is structured: each column holds values of one kind."], ("column", "values", "shown"), rows)


def versions(facts: Facts) -> Answer:
    """How what is published follows the source."""
    shown = facts.published
    before = "It is the first version." if shown.previous is None else f"The version before was {shown.previous}."
    said = [f"Version {shown.version} of {shown.release} was made on {shown.at} (UTC). {before}"]
    return Answer([*said, shown.follows] if shown.follows else said)
