"""Bayes-optimal privacy: counts of what is disclosed to somebody who knows a population, over whole tables."""

from qblock.bayes.beliefs import (
    Believed,
    Change,
    Disclosed,
    InconsistentPrior,
    Joint,
    Moved,
    Thresholds,
    believed,
    whole_weights,
)

__all__ = [
    "Believed",
    "Change",
    "Disclosed",
    "InconsistentPrior",
    "Joint",
    "Moved",
    "Thresholds",
    "believed",
    "whole_weights",
]
