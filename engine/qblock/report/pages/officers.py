"""The pages of a report that only those who run the job may see."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.lattice import Node
from qblock.report.drawings import Mark, curves, heat_map, lattice, place_text
from qblock.report.pages.maps import PAGES as MAPS
from qblock.report.pages.maps import gain, map_changes
from qblock.report.parts import Code, Figure, Page, Part, Picture, Points, Table, Text, figures, share
from qblock.results.report import BeliefShown, CurveShown, Internal, LatticeShown, NodeShown, Report, WhatIf

LISTED = 200
LEGEND = (
    ("fails", "fails the spec"),
    ("satisfied", "satisfies it"),
    ("satisfied minimal", "minimal: no node with more detail satisfies it"),
    ("satisfied minimal chosen", "what a search takes now"),
    ("satisfied frontier", "on the frontier: none has more margin and is as good, or is better and has as much"),
    ("satisfied published", "what readers see"),
)
DEPTHS = (
    ("cell light", "epsilon 1 or less"),
    ("cell deep", "epsilon 100 or more"),
    ("cell inf", "no epsilon is large enough"),
)
NO_POPULATION = (
    "No population was named. `qblock report --internal --prior schema.table` (or a CSV file of weights) says what "
    "somebody who knows one comes to believe. With the source itself as the population no belief changes."
)
NO_WORKLOAD = (
    "No count query is named, or no node satisfies the spec. Write `search: {workload: {queries: 200}}`, or a list of "
    "your own queries in place of the mapping. This page then says how wrong their answers are."
)
EPSILON = (
    "Epsilon bounds the factor by which somebody's being in the table changes what is believed of them; 1 is no "
    "change. A version is held to what the spec asks: these figures compare it with another definition."
)
ADVERSARIES = (
    "Class I knows the prior, and believes it as firmly as if it came from so many people (the stubbornness).",
    "Class II is as firm, and its prior may be anything.",
    "Class III knows the prior and is infinitely firm.",
    "Class IV is infinitely firm with any prior: nothing helps against it.",
)
COMPARED = (
    "Readers {} a recoding map, in which blocks have levels of their own. The nodes below are no part of it: they are "
    "here for comparison, as what full-domain recoding would show instead."
)
UNKNOWN_REASON = "the ledger no longer has the spec that said why"
HELD = {True: "yes", False: "NO", None: "not checked"}


def margin_page(report: Report) -> Sequence[Part]:
    """Which requirement is in the way of more detail, and what a verification of the release found."""
    of = report.inside
    content: list[Part] = []
    if of.problems is not None:
        content.append(_verified(of))
    if of.binding is not None:
        content.append(Text(f"More detail would break {of.binding}."))
    content.append(Text(of.candidate))
    if of.margins:
        columns = ("version", "model", "about", "asked", "satisfied", "margin")
        rows = [
            (
                f"{guarantee.version}",
                guarantee.model,
                guarantee.sensitive or "everybody",
                guarantee.asked,
                figures(guarantee.satisfied),
                "-" if guarantee.margin is None else share(float(guarantee.margin)),
            )
            for guarantee in of.margins
        ]
        content.append(Table("Guarantees of each version, and their margins", columns, rows, (0, 5)))
    return content


def _verified(of: Internal) -> Part:
    if of.problems:
        return Text(f"A verification found: {'; '.join(of.problems)}.", "failed")
    return Text(
        "Verified: readers see what was checked, and the ledger's chain agrees. We checked known ways to reach "
        "private tables and found none; the list cannot be complete.",
        "verdict",
    )


def taken_page(report: Report) -> Sequence[Part]:
    """What was known not to be as the spec takes it, when the version was published."""
    of = report.inside.taken
    if of is None:
        return (Text("No version is published yet; `qblock check SPEC` says what one would take for granted."),)
    when = f"when version {of.version} was published ({of.at.replace('T', ' ')} UTC)"
    accepted = [(f.in_words, f.because or UNKNOWN_REASON, f.figure) for f in of.findings if f.accepted]
    stood = [(f.in_words, f.check, f.figure) for f in of.findings if not f.accepted]
    if not accepted and not stood:
        return (Text(f"Nothing was found {when}: no check had a finding, as far as it was asked."),)
    content: list[Part] = [
        Text(
            f"The ledger recorded this {when}; nothing is counted again. Guarantees hold as they are defined. These "
            "are reasons why one may be worth less than it reads. The figures are those of `qblock check`."
        )
    ]
    if accepted:
        content.append(Text(f"The author of the spec (sha256 {of.spec_digest}) answers for what is accepted."))
        content.append(Table("Accepted", ("what", "because", "figures"), accepted))
    if stood:
        content.append(Table("Warnings that stood", ("what", "check", "figures"), stood))
    return content


def lattice_page(report: Report) -> Sequence[Part]:
    """The lattice of full-domain recoding as a picture, and its minimal nodes in words."""
    of = report.inside.lattice
    names = ", ".join(name for name, _ in of.words)
    verb = "see" if report.published else "get"
    content: list[Part] = [] if report.inside.maps is None else [Text(COMPARED.format(verb))]
    content += [
        Text(
            f"A node has a level for each of {names}. More general nodes stand higher; the number at the left is the "
            f"sum of their levels. Hover over a node for its levels, what it satisfies, and its {of.metric}. The Tab "
            "key and then the arrow keys do the same."
        )
    ]
    if not of.whole:
        content.append(
            Text(
                f"{len(of.nodes):,} of {of.total:,} nodes are shown: the chosen one, the minimal ones, and some one "
                "level coarser. Those satisfy the spec and were looked at."
            )
        )
    instead = f"{of.total:,} nodes, {len(of.minimal):,} of them minimal."
    content.append(Picture("The lattice", lattice(_marks(of), instead), LEGEND, instead))
    content.append(_listed(of))
    levels = max(len(said) for _, said in of.words)
    rows = [(name, *said, *[""] * (levels - len(said))) for name, said in of.words]
    content.append(Table("What each level shows", ("column", *(f"level {i}" for i in range(levels))), rows))
    return content


def _marks(of: LatticeShown) -> list[Mark]:
    minimal, frontier = set(of.minimal), set(of.frontier)
    return [
        Mark(sum(node.levels), _kinds(of, minimal, frontier, node), _title(of, node))
        for node in sorted(of.nodes, key=lambda n: n.levels)
    ]


def _kinds(of: LatticeShown, minimal: set[Node], frontier: set[Node], node: NodeShown) -> str:
    return " ".join(
        [
            "satisfied" if node.satisfied else "fails",
            *(["minimal"] if node.levels in minimal else []),
            *(["frontier"] if node.levels in frontier else []),
            *(["chosen"] if node.levels == of.chosen else []),
            *(["published"] if node.levels == of.published else []),
        ]
    )


def _title(of: LatticeShown, node: NodeShown) -> str:
    levels = ", ".join(f"{name} {level}" for (name, _), level in zip(of.words, node.levels, strict=True))
    measure = [] if node.measure is None else [f"{of.metric} {node.measure:.4g}"]
    suppressed = [f"{node.suppressed:,} rows suppressed"] if node.suppressed else []
    return "; ".join([levels, *node.tightest, *measure, *suppressed])


def _listed(of: LatticeShown) -> Table:
    """The minimal nodes, those of the frontier and the two that are marked, the best by the metric first."""
    kinds: dict[str, set[Node | None]] = {
        "minimal": {*of.minimal},
        "frontier": {*of.frontier},
        "a search takes it": {of.chosen},
        "published": {of.published},
    }
    shown = set[Node | None]().union(*kinds.values())
    sign = -1 if of.more_is_better else 1
    nodes = [node for node in of.nodes if node.levels in shown]
    nodes.sort(key=lambda node: (node.measure is None, sign * (node.measure or 0), node.levels))
    rows = [
        (
            ",".join(map(str, node.levels)),
            "; ".join(f"{name} {said[level]}" for (name, said), level in zip(of.words, node.levels, strict=True)),
            "-" if node.measure is None else f"{node.measure:.4g}",
            "-" if node.margin is None else share(node.margin),
            f"{node.suppressed:,}",
            ", ".join(what for what, levels in kinds.items() if node.levels in levels),
        )
        for node in nodes[:LISTED]
    ]
    more = f", {LISTED} of {len(nodes):,}" if len(nodes) > LISTED else ""
    columns = ("node", "in words", of.metric, "margin", "suppressed", "which")
    caption = f"Minimal nodes and the frontier, the best by {of.metric} first{more}"
    return Table(caption, columns, rows, (2, 3, 4), filtered=True)


def changes_page(report: Report) -> Sequence[Part]:
    """What another question would give: models dropped, weaker and stronger, columns finer and coarser."""
    of = report.inside
    if of.maps is not None:
        return map_changes(of.maps)
    if of.what_if is None:
        return (Text(f"Not worked out: {of.why_not}."),)
    base = of.what_if[0]
    better = "more" if of.lattice.more_is_better else "less"
    rows = [
        (
            outcome.change,
            f"{outcome.satisfying:,}",
            _node(outcome),
            _measure(outcome),
            gain(outcome.measure, base.measure),
        )
        for outcome in of.what_if
    ]
    columns = ("if", "nodes", "best node", of.lattice.metric, "change")
    return (
        Text(
            "Nodes of full-domain recoding that would satisfy the spec then, and the best of them by "
            f"{of.lattice.metric} ({better} is better). A column that is finer or coarser is so at the node that a "
            "search takes now."
        ),
        Table("What if", columns, rows, (1, 3, 4)),
    )


def _node(outcome: WhatIf) -> str:
    return "none" if outcome.levels is None else ",".join(map(str, outcome.levels))


def _measure(outcome: WhatIf) -> str:
    return "-" if outcome.measure is None else f"{outcome.measure:.4g}"


def epsilon_page(report: Report) -> Sequence[Part]:
    """Requirements and nodes in the terms of epsilon-privacy: what adversaries of each class may learn."""
    of = report.inside
    if not of.epsilon:
        return (Text("No column is sensitive, or no node satisfies the spec: there is nothing to weigh."),)
    content: list[Part] = [Text(EPSILON), Points("Adversaries", ADVERSARIES)]
    for shown in of.epsilon:
        rows = [(place_text(levels), *values) for levels, values in zip(shown.levels, shown.values, strict=True)]
        numbers = tuple(range(1, len(shown.adversaries) + 1))
        where = "in the blocks of the map" if shown.levels[0] is None else "at the chosen and the minimal nodes"
        caption = f"Smallest epsilon of {shown.sensitive} {where}, by adversary"
        instead = (
            "Each cell says its epsilon, and deeper ones have a larger one (up to 100); inf: none is large enough."
        )
        drawing = heat_map(shown, f"{caption}. {instead} A table follows.")
        content.append(Figure(f"{caption}: a map", drawing, instead, DEPTHS))
        content.append(Table(caption, ("at", *shown.adversaries), rows, numbers))
    for name in dict.fromkeys(curve.sensitive for curve in of.curves):
        content += _by_stubbornness(name, [curve for curve in of.curves if curve.sensitive == name])
    return [*content, *_granted(of)]


def _by_stubbornness(name: str, shown: Sequence[CurveShown]) -> list[Part]:
    """As Figure 2a of EP."""
    caption = f"Smallest epsilon of {name} by stubbornness, at {place_text(shown[0].levels, 'node ')}"
    instead = (
        "Each value is against exactly this stubbornness. Against an adversary who knows the prior, epsilon may rise "
        "or fall with it. Infinite values are signs above the plot, and no points of it."
    )
    across = sorted({text for curve in shown for text in curve.stubbornness}, key=float)
    rows = []
    for curve in shown:
        there = dict(zip(curve.stubbornness, curve.values, strict=True))
        rows.append((curve.adversary, *(_value(there[text]) if text in there else "-" for text in across)))
    return [
        Figure(caption, curves(shown, f"{caption}. {instead} A table follows."), instead),
        Table(f"{caption}, as numbers", ("adversary", *across), rows, tuple(range(1, len(across) + 1))),
    ]


def _value(value: float | None) -> str:
    return "inf" if value is None else f"{value:.4g}"


def _granted(of: Internal) -> list[Part]:
    grants = [grant for grant in of.granted if grant.epsilon is not None]
    none = {(grant.requirement, grant.sensitive): grant.why for grant in of.granted if grant.epsilon is None}
    lost = [key for key in none if not any((grant.requirement, grant.sensitive) == key for grant in grants)]
    content: list[Part] = []
    if grants:
        rows = [
            (grant.requirement, grant.sensitive, grant.adversary, grant.epsilon, grant.satisfied or "-")
            for grant in grants
        ]
        columns = ("requirement", "about", "adversary", "grants", "satisfied")
        caption = "Epsilon that each requirement grants, whatever the table, and the largest that is reached here"
        content.append(Table(caption, columns, rows, (3, 4)))
    if lost:
        points = [
            f"{requirement} grants no epsilon of {name}: {none[requirement, name]}." for requirement, name in lost
        ]
        content.append(Points("Requirements that grant none", points))
    return content


def beliefs_page(report: Report) -> Sequence[Part]:
    """What somebody who knows a population comes to believe of the people in the table (l-diversity, section 3)."""
    of = report.inside.beliefs
    if not of:
        return (Text(NO_POPULATION),)
    content: list[Part] = [Points(_belief_title(belief), belief.sentences) for belief in of]
    figures = [(belief.people, belief.breach, belief.positive, belief.negative, belief.moved) for belief in of]
    rows = [(belief.sensitive, *(f"{n:,}" for n in own)) for belief, own in zip(of, figures, strict=True)]
    columns = ("about", "people", "breach", "positive disclosure", "negative disclosure", "belief moved")
    return [*content, Table("People concerned", columns, rows, (1, 2, 3, 4, 5))]


def _belief_title(belief: BeliefShown) -> str:
    at = place_text(belief.levels, "node ")
    whose = "the source itself" if belief.prior == "table" else belief.prior
    return f"Beliefs about {belief.sensitive} at {at}, of somebody who knows the population ({whose})"


def workload_page(report: Report) -> Sequence[Part]:
    """How wrong the count queries of an analyst are."""
    of = report.inside.workload
    if of is None:
        return (Text(NO_WORKLOAD),)
    at, which = place_text(of.levels, "node "), "drawn" if of.drawn else "written in the spec"
    content: list[Part] = [
        Text(
            f"{of.queries:,} count queries ({which}) are answered from {at} as an analyst would. The rows of a "
            "block are spread evenly over the values of its labels. An error is a share of the true count, or of a "
            "thousandth of the rows if that is more."
        )
    ]
    content.append(Text(f"The error is {_percent(of.median)} in the median and {_percent(of.worst)} at worst."))
    rows = [
        (f"{query.number}", query.query, f"{query.true:,}", f"{query.expected:,.1f}", _percent(query.error))
        for query in of.worst_queries
    ]
    caption = f"The worst {len(rows)} of {of.queries:,} queries; true counts are of the source"
    return [*content, Table(caption, ("number", "query", "true", "expected", "error"), rows, (0, 2, 3, 4))]


def _percent(error: float) -> str:
    return f"{100 * error:,.1f} %"


def versions_page(report: Report) -> Sequence[Part]:
    """The runs of the job, as the ledger has them."""
    of = report.inside
    if not of.runs:
        return (Text("The job has not run yet."),)
    rows = [
        (
            run.at.replace("T", " "),
            run.state,
            "" if run.version is None else f"{run.version}",
            "" if run.rows is None else f"{run.rows:,}",
            run.how,
            "; ".join(run.why),
        )
        for run in of.runs
    ]
    head = () if of.head is None else (Text(f"Ledger head: {of.head}"),)
    return (Table("Runs, newest first", ("time (UTC)", "state", "version", "rows", "node", "why"), rows, (2, 3)), *head)


def rights_page(report: Report) -> Sequence[Part]:
    """Who has which rights, or may reach which files."""
    rows = [(right.whose, right.what, HELD[right.held], right.why) for right in report.inside.rights]
    if not rows:
        return (Text("No rights are needed of anybody."),)
    return (Table("Rights", ("whose", "what", "held", "why"), rows),)


def spec_page(report: Report) -> Sequence[Part]:
    """The spec, without secrets."""
    of = report.inside
    return (Code(f"The spec without secrets and defaults, sha256 {of.spec_digest}", of.spec),)


PAGES = (
    Page("margin", "Margin and verification", margin_page, internal=True),
    Page("taken", "What this release takes for granted", taken_page, internal=True),
    *MAPS,
    Page("changes", "What if", changes_page, internal=True),
    Page("lattice", "The lattice", lattice_page, internal=True),
    Page("beliefs", "Beliefs", beliefs_page, internal=True),
    Page("workload", "Count queries", workload_page, internal=True),
    Page("versions", "Versions", versions_page, internal=True),
    Page("rights", "Rights", rights_page, internal=True),
    Page("spec", "Spec", spec_page, internal=True),
    Page("epsilon", "Appendix: epsilon", epsilon_page, internal=True),
)
