"""Figures that answer sections: what readers can count, what the spec declares, and of internal reports the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qblock.report.frameworks.sections import UNKNOWN, Answer, Facts, undeclared
from qblock.report.pages.chances import ESTIMATES, attacker_row, over_versions
from qblock.report.pages.readers import guarantee_cells, risk_cells, size_cells, utility_cells
from qblock.report.parts import counted, share
from qblock.results.report import AttackShown, ColumnShown, Published
from qblock.results.risk import AttackerShown, PopulationShown, ThresholdShown
from qblock.source.in_words import AS_IT_IS, SUPPRESSED

ROLES = {
    "quasi-identifier": "quasi-identifier",
    "sensitive attribute": "sensitive",
    "insensitive": "no identifier",
}
"""Roles of published columns, as documents on anonymisation call them."""
UNPUBLISHED = {"identifying": "direct identifier", "entity": "direct identifier", "groups": "household or group"}
"""The same of columns that are not published."""
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
    because = {column.name: column.because or "not declared" for column in facts.published.declared}
    rows = [
        (column.name, ROLES[column.role], technique(column), column.after, because.get(column.name, "not declared"))
        for column in facts.published.columns
        if column.role in ROLES
    ]
    rows += [
        (column.name, UNPUBLISHED.get(column.role, column.role), "suppressed", "nothing", because[column.name])
        for column in facts.published.declared
        if not column.published
    ]
    more = "A column of the source that the spec does not name is suppressed."
    by = facts.published.context.declared_by
    who = "Who declared the roles: " + (f"{by}." if by else undeclared("report.declared_by"))
    return Answer([more, who], ("column", "kind", "technique", "what readers see", "why this role"), rows)


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
    number = counted(len(shown.guarantees), "guarantee")
    failed = sum(not of.holds for of in shown.guarantees)
    again = sum(of.satisfied is not None for of in shown.guarantees)
    said = [
        f"{failed} of {number} {'does' if failed == 1 else 'do'} NOT hold."
        if failed
        else f"All that is promised holds: {number}.",
        f"{again} of these can be counted again from the published rows alone ('-': not).",
    ]
    return Answer(said, *guarantee_cells(shown), holds=not failed)


def attacker(facts: Facts) -> Answer:
    """Who is reckoned with: somebody who knows every quasi-identifier of a person, and what not knowing one costs."""
    shown = facts.published
    said = (
        f"Somebody is reckoned with who knows {_known(shown)} of a person, and that the person is in the table. "
        "Nothing is promised against somebody who knows more."
    )
    return Answer([said], *risk_cells(shown))


def initial_risk(facts: Facts) -> Answer:
    """The chances before anything was done, which only those who run the job may see."""
    if facts.internal is None:
        return Answer([INTERNAL.format(name=facts.name)], gap=True)
    before = facts.internal.before
    if before is None:
        return Answer([UNKNOWN.format(what="The source was not measured in this report.")], gap=True)
    said = (
        f"As the source has them, the quasi-identifiers make {counted(before.blocks, 'block')} of "
        f"{before.rows:,} {before.counted}: the smallest of {before.least:,}, and {before.unique:,} alone."
    )
    return _attackers([said], before.attackers)


def threshold(facts: Facts) -> Answer:
    """The threshold that the spec declares, and why."""
    declared = facts.published.threshold
    if declared is None:
        return Answer([undeclared("report.threshold")], gap=True)
    on = "the highest chance of anybody" if declared.on == "highest" else "the mean chance"
    because = declared.because
    return Answer(
        [
            f"The spec declares {declared.text} for {on} that an outsider names the right person.",
            undeclared("report.threshold_because") if because is None else f"Because: {because}",
        ]
    )


def residual_risk(facts: Facts) -> Answer:
    """The chances that are left, against the threshold."""
    shown = facts.published
    of = [f"Chances are of the published rows; {shown.counted}.", *filter(None, [over_versions(shown)])]
    if shown.threshold is None:
        return _attackers([*of, UNCOMPARED], shown.attackers)
    answer = _attackers([_compared(shown.threshold), *of], shown.attackers)
    return replace(answer, holds=shown.threshold.met)


def _compared(threshold: ThresholdShown) -> str:
    return (
        f"The {threshold.on} chance, {threshold.measured_text}, is {'at most' if threshold.met else 'above'} the "
        f"declared threshold of {threshold.text}: it is {'met' if threshold.met else 'NOT met'}."
    )


def _attackers(said: Sequence[str], attackers: Sequence[AttackerShown]) -> Answer:
    columns = ("attacker", "highest chance", "mean chance", "rows above the threshold", "share above")
    return Answer(said, columns, [attacker_row(of) for of in attackers])


def population(facts: Facts) -> Answer:
    """From whom the people of the table were drawn, and estimates of how many of them are unique."""
    declared = facts.published.population
    if declared is None:
        return Answer([undeclared("report.population")], gap=True)
    if declared.size is None:
        return Answer([f"A population is declared. No chance in it is estimated: {declared.why}."])
    alone = declared.unique or 0
    return Answer(
        [
            f"The spec declares a population of {counted(declared.size, 'person', 'people')}, of which the table has "
            f"{share(declared.fraction or 0)}. {counted(alone, 'published row')} "
            f"{'is' if alone == 1 else 'are'} alone in a block.",
            "How many people of the population are alone is estimated, by models that may be wrong.",
        ],
        ("estimate", "unique people of the population", "of the rows that are alone"),
        _estimates(declared),
    )


def _estimates(declared: PopulationShown) -> list[tuple[str, str, str]]:
    return [
        (
            ESTIMATES[of.estimate],
            of.why or "-" if of.people is None else f"{of.people:,.0f}",
            "-" if of.share is None else share(of.share),
        )
        for of in declared.uniqueness
    ]


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
            f"{counted(least - 1, 'other row')}.",
            *(
                f"A person is named with a chance of at most {share(of.highest)}; {shown.counted}."
                for of in shown.attackers
                if of.attacker == "prosecutor" and of.highest is not None
            ),
            *_answered(shown, "singling out"),
        ]
    )


def linkability(facts: Facts) -> Answer:
    """Whether rows of one person can be put together."""
    shown = facts.published
    whole = shown.risk[0]
    return Answer(
        [
            f"Another table links by {_known(shown)} to blocks of at least {counted(whole.least, 'row')}. "
            f"A link to a row is right with a chance of at most {share(whole.most_sure)}. {shown.whose}",
            "What other releases of the same people tell together with this one is not looked at here.",
            *_answered(shown, "linkability"),
        ]
    )


def inference(facts: Facts) -> Answer:
    """What is found out of a sensitive value without telling whose row it is."""
    shown = facts.published
    if not shown.sensitive:
        return Answer([NO_SENSITIVE])
    near = (attack.sentence for attack in shown.attacks if attack.rows is not None and _is_near(attack))
    lead = "What somebody finds out who knows the quasi-identifiers, and one more fact at most:"
    return Answer([lead, *near, *_answered(shown, "inference")])


def _is_near(attack: AttackShown) -> bool:
    """Whether somebody needs no more than one fact beside the quasi-identifiers."""
    return attack.attack != "certainty" and (attack.attack != "background_knowledge" or attack.detail == 1)


def _answered(shown: Published, risk: str) -> list[str]:
    """By which guarantees a risk is answered that the three criteria name."""
    return [
        f"Against this: {', '.join(of.models)}: {of.in_words}." if of.models else f"Against this: {of.in_words}."
        for of in shown.answers
        if of.risk == risk
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
    said = "The bits are the entropy of a column's published values: what a reader learns of a row from it."
    return Answer([said], *utility_cells(facts.published))


def sizes(facts: Facts) -> Answer:
    """How large the blocks are."""
    return Answer(dataset(facts).sentences, *size_cells(facts.published.sizes))


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
