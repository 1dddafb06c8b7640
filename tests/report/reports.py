"""Reports of no release: every part is there, and a label may say anything."""

from __future__ import annotations

from typing import Any

from qblock.report import Report
from qblock.results.report import (
    AreaShown,
    AttackShown,
    BeliefShown,
    ColumnShown,
    CurveShown,
    DepthShown,
    EpsilonShown,
    GrantShown,
    GuaranteeMargin,
    GuaranteeShown,
    Internal,
    Label,
    LatticeShown,
    MapAnswerShown,
    MapBlocksShown,
    MapShown,
    MapsShown,
    NodeShown,
    Published,
    QueryShown,
    RightShown,
    RiskWithout,
    RunShown,
    SampleShown,
    SizeShown,
    TakenAtVersion,
    TakenShown,
    WhatIf,
    WorkloadShown,
)
from qblock.results.report_utility import ColumnKept, NumbersKept, PairKept, ShareKept, UtilityKept
from qblock.results.risk import (
    AnswerShown,
    AttackerShown,
    BeforeShown,
    ContextShown,
    DeclaredShown,
    ExposedShown,
    PopulationShown,
    ThresholdShown,
    UniquenessShown,
)

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202egnp.exe\u202c \u05d0\u05d1\u05d2",
    "a" * 10_000,
    "&amp; \"quoted\" 'too' {{ 7 * 7 }} {% raw %}",
    "| pipe \\ and `tick` **bold** [link](http://example.org)\n# no heading",
    "",
    "\u200b",
)


def of(model: Any, *values: Any) -> Any:
    """An answer, its values in the order of its fields."""
    return model(**dict(zip(model.model_fields, values, strict=False)))


def report(label: str = "20-29", value: str | None = "flu", name: str = "age", *, holds: bool = True) -> Report:
    column = of(
        ColumnShown, name, "quasi-identifier", "a whole number", label, label, 2, 0.25, 1.0, (of(Label, label, 3),), 0.5
    )
    secret = of(ColumnShown, "disease", "sensitive attribute", "text", "as it is in the source", "as it is", 3)
    secret = secret.model_copy(update={"share_as_is": 1.0})
    bound = of(ColumnShown, f"{name}_low", f"bound of {name}", None, "the bound, for filters", f"see {name}")
    shown = Published(
        release=label or "r",
        view="published.people",
        version=2,
        at="2026-01-02 03:04:05",
        previous=1,
        rows=4,
        blocks=2,
        whose="A row is a person.",
        columns=(column, bound, secret),
        guarantees=(
            of(
                GuaranteeShown,
                "k_anonymity",
                None,
                "k = 2",
                holds,
                "k = 2",
                "everybody is hidden among at least 2 people",
            ),
            of(GuaranteeShown, "t_closeness", "disease", "t = 0.1", True, None, label),
        ),
        attacks=(
            of(AttackShown, "disease", "homogeneity", None, f"Somebody finds {value}.", 2, 1),
            of(AttackShown, "disease", "background_knowledge", 1, "Somebody rules out a value.", 0, 0),
            of(AttackShown, "disease", "skewness", None, label, None, None),
        ),
        risk=(of(RiskWithout, None, 2, 2, 0.5, 0.5), of(RiskWithout, name, 1, 4, 0.25, 0.25)),
        sizes=(of(SizeShown, 2, 3, 2, 4),),
        sample=of(SampleShown, (name, "disease"), ((label, value), (label, None))),
        map=of(
            MapShown,
            name,
            "zip",
            (of(AreaShown, label, label, 20.0, 30.0, 1, 2), of(AreaShown, "*", label, None, None, 1, 2)),
            3,
            5,
        ),
        digest="2" * 64,
        threshold=of(ThresholdShown, 0.09, "0.09", "highest", label, 0.5, "0.5", False, 12, 4),
        exposed=(of(ExposedShown, "disease", 2, 0.5, True), of(ExposedShown, label, 0, 0.0, False)),
        declared=(
            of(DeclaredShown, name, "quasi_identifier", label, True),
            of(DeclaredShown, label, "entity", None, False),
        ),
        answers=(of(AnswerShown, "inference", ("t_closeness",), label), of(AnswerShown, "linkability", (), "none")),
        attackers=attackers(),
        counted=label,
        population=population(label),
        context=of(ContextShown, label, label, "public", None, (label,), label),
    )
    return of(Report, "0.0.0", "2026-01-02T03:04:06+00:00", label or "r", shown)


def attackers() -> tuple[AttackerShown, ...]:
    return (
        of(AttackerShown, "prosecutor", 0.5, 0.5, 4, 1.0, False),
        of(AttackerShown, "journalist", 0.25, 0.125, 0, 0.0, True),
        of(AttackerShown, "marketer", None, 0.5, None, None, False),
    )


def population(label: str) -> PopulationShown:
    shown = (of(UniquenessShown, "pitman", 12.5, 0.5, None), of(UniquenessShown, "snb", None, None, label))
    return of(PopulationShown, 40, 0.1, 2, shown)


def internal(label: str = "20-29", name: str = "age", *, problems: tuple[str, ...] = ()) -> Report:
    """With the pages for those who run the job."""
    nodes = (
        of(NodeShown, (0,), False, 0, (f"{label} fails",), 0.0),
        of(NodeShown, (1,), True, 0, ("k 2",), 0.5, 0.25),
        of(NodeShown, (2,), True, 3, ("k 4",), None),
    )
    inside = Internal(
        candidate="2 of 3 nodes satisfy the spec.",
        binding="k_anonymity (asked k 5, satisfied k 5)",
        lattice=of(
            LatticeShown,
            ((name, ("as it is", label, "hidden")),),
            3,
            True,
            nodes,
            ((1,),),
            ((1,),),
            (1,),
            (2,),
            "loss",
            False,
        ),
        what_if=(
            of(WhatIf, "as the spec asks", 2, (1,), 0.5),
            of(WhatIf, label, 3, (0,), 0.0),
            of(WhatIf, "none", 0, None, None),
        ),
        why_not=None,
        epsilon=(of(EpsilonShown, "disease", ("III uniform", label), ((1,), (2,)), (("2.5", "inf"), ("1", label))),),
        curves=(
            of(CurveShown, "disease", (1,), f"A_d {label}", ("1e2", "1e3", "inf"), (2.0, 31.5, None)),
            of(CurveShown, "disease", (1,), "A_-", ("1e3",), (1.0,)),
            of(CurveShown, "disease", (1,), "A_c", ("1e2", "inf"), (None, None)),
        ),
        granted=(
            of(GrantShown, "k_anonymity", "disease", "III uniform", None, "it looks at no sensitive value", None),
            of(GrantShown, label, "disease", "III uniform", "2.5", "why", "1.5"),
        ),
        beliefs=(of(BeliefShown, "disease", label, (1,), 4, 1, 2, 3, 4, (f"For 1 of 4 people {label}.",)),),
        workload=of(WorkloadShown, (1,), 2, False, 0.25, 12.5, (of(QueryShown, 2, f"{name} {label}", 1, 13.5, 12.5),)),
        utility=of(
            UtilityKept,
            9,
            4,
            (
                of(
                    ColumnKept,
                    name,
                    "quasi-identifier",
                    (of(ShareKept, label, 0.5, 0.25), of(ShareKept, None, 0.25, 0.5)),
                    0.25,
                    0.25,
                    0.25,
                    of(NumbersKept, 40.5, 30, 40, 51),
                    None,
                ),
            ),
            (
                of(PairKept, name, "disease", "cramers_v", 0.75, 0.5, 0.25),
                of(PairKept, name, label, "pearson", 0.5, None, None),
            ),
            3,
        ),
        runs=(of(RunShown, "2026-01-02T03:04:05", 1, "published", 4, "1; minimal", (label,)),),
        margins=(
            of(GuaranteeMargin, 1, "k_anonymity", None, "k = 2", "k = 2", 0.0),
            of(GuaranteeMargin, 1, label, "x", "a", "b", None),
        ),
        rights=(of(RightShown, f"reader {label}", "SELECT", label, True), of(RightShown, "job", "read x", label, None)),
        problems=problems,
        spec=f'{{"release": "{label}"}}',
        spec_digest="0" * 64,
        head="1" * 64,
        taken=of(
            TakenAtVersion,
            1,
            "2026-01-02T03:04:05",
            "0" * 64,
            (
                of(TakenShown, "determines", (name, "x"), f"{name} tells {label}", True, label, "k 2"),
                of(TakenShown, "skew", (name,), f"{name} of {label}", False, None, "share 0.95"),
            ),
        ),
        before=of(BeforeShown, "rows", 4, 4, 1, 4, attackers(), population(label)),
    )
    return report(label, name=name).model_copy(update={"internal": inside})


def with_map(label: str = "20-29", name: str = "age") -> Report:
    """The same where readers see a recoding map."""
    given = internal(label, name)
    shown = of(
        MapsShown,
        "loss",
        False,
        "rows",
        (
            of(MapAnswerShown, "as the spec asks", True, 2, 2, 0, 0.25, True),
            of(MapAnswerShown, label, False, None, None, None, None, None),
        ),
        (
            of(MapAnswerShown, "as the spec asks", True, 2, 2, 0, 0.25, True),
            of(MapAnswerShown, f"without {label}", False, 4, 1, 1, 0.125, None),
        ),
        (label,),
        f"the source is {label}",
        of(
            MapBlocksShown,
            "published",
            1,
            2,
            4,
            1,
            2,
            1,
            2,
            (label,),
            (of(SizeShown, 2, 2, 2, 4),),
            (of(DepthShown, name, 2, 0.25, f"groups like {label} for 100 %"),),
        ),
        f"the run is {label}",
    )
    return changed(given, internal=changed(given.inside, maps=shown))


def changed(answer: Any, **values: Any) -> Any:
    return answer.model_copy(update=values)
