"""The privacy models: an explicit registry, in the order of the specification."""

from __future__ import annotations

from qblock.models.about import About, Bound, Parameter, Range, Setting
from qblock.models.anonymity import KAnonymity
from qblock.models.base import Model, Monotone, Tightest, Value, measured, parameters_of
from qblock.models.closeness import TCloseness
from qblock.models.diversity import DistinctLDiversity, EntropyLDiversity, FrequencyLDiversity, RecursiveCLDiversity
from qblock.models.diversity_pd import NpdRecursiveCLDiversity, PdRecursiveCLDiversity
from qblock.models.epsilon import EpsilonPrivacy
from qblock.models.likeness import AlphaKAnonymity, BetaLikeness, DeltaDisclosure
from qblock.models.nt_closeness import NtCloseness
from qblock.models.population import DeltaPresence, KMap
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
]
