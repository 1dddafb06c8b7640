"""The privacy models: an explicit registry, in the order of the specification."""

from __future__ import annotations

from qblock.models.anonymity import KAnonymity
from qblock.models.base import Bound, Model, Monotone, Tightest, Value
from qblock.models.closeness import TCloseness
from qblock.models.diversity import DistinctLDiversity, EntropyLDiversity, FrequencyLDiversity, RecursiveCLDiversity
from qblock.models.epsilon import EpsilonPrivacy

REGISTRY: tuple[type[Model], ...] = (
    KAnonymity,
    DistinctLDiversity,
    FrequencyLDiversity,
    EntropyLDiversity,
    RecursiveCLDiversity,
    TCloseness,
    EpsilonPrivacy,
)
BY_NAME: dict[str, type[Model]] = {model.name: model for model in REGISTRY}

__all__ = [
    "BY_NAME",
    "REGISTRY",
    "Bound",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "EpsilonPrivacy",
    "FrequencyLDiversity",
    "KAnonymity",
    "Model",
    "Monotone",
    "RecursiveCLDiversity",
    "TCloseness",
    "Tightest",
    "Value",
]
