"""The privacy models: an explicit registry, in the order of the specification."""

from __future__ import annotations

from qblock.models.anonymity import DeltaPresence, KAnonymity, KMap
from qblock.models.base import (
    About,
    Bound,
    Model,
    Monotone,
    Parameter,
    Range,
    Setting,
    Tightest,
    Value,
    measured,
    parameters_of,
    tightest_of_runs,
)
from qblock.models.closeness import NtCloseness, TCloseness
from qblock.models.diversity import (
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    NpdRecursiveCLDiversity,
    PdRecursiveCLDiversity,
    RecursiveCLDiversity,
)
from qblock.models.epsilon import EpsilonPrivacy
from qblock.models.likeness import AlphaKAnonymity, BetaLikeness, DeltaDisclosure
from qblock.models.proximity import DeltaLDiversity, EpsilonMAnonymity

REGISTRY: tuple[type[Model], ...] = (
    KAnonymity,
    DistinctLDiversity,
    FrequencyLDiversity,
    EntropyLDiversity,
    RecursiveCLDiversity,
    PdRecursiveCLDiversity,
    NpdRecursiveCLDiversity,
    EpsilonMAnonymity,
    DeltaLDiversity,
    TCloseness,
    NtCloseness,
    EpsilonPrivacy,
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    KMap,
    DeltaPresence,
)
BY_NAME: dict[str, type[Model]] = {model.name: model for model in REGISTRY}

__all__ = [
    "BY_NAME",
    "REGISTRY",
    "About",
    "AlphaKAnonymity",
    "BetaLikeness",
    "Bound",
    "DeltaDisclosure",
    "DeltaLDiversity",
    "DeltaPresence",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "EpsilonMAnonymity",
    "EpsilonPrivacy",
    "FrequencyLDiversity",
    "KAnonymity",
    "KMap",
    "Model",
    "Monotone",
    "NpdRecursiveCLDiversity",
    "NtCloseness",
    "Parameter",
    "PdRecursiveCLDiversity",
    "Range",
    "RecursiveCLDiversity",
    "Setting",
    "TCloseness",
    "Tightest",
    "Value",
    "measured",
    "parameters_of",
    "tightest_of_runs",
]
