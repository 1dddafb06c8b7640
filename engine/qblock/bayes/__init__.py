"""Bayes-optimal privacy: beliefs of each combination exactly, and counts of disclosures over whole tables."""

from qblock.bayes.beliefs import Believed, Change, Disclosed, Moved, Thresholds, believed
from qblock.bayes.exact import (
    Belief,
    Disclosure,
    InconsistentPrior,
    beliefs,
    breaches,
    largest_change,
    negative_disclosures,
    positive_disclosures,
)
from qblock.bayes.joint import Joint, whole_weights

__all__ = [
    "Belief",
    "Believed",
    "Change",
    "Disclosed",
    "Disclosure",
    "InconsistentPrior",
    "Joint",
    "Moved",
    "Thresholds",
    "beliefs",
    "believed",
    "breaches",
    "largest_change",
    "negative_disclosures",
    "positive_disclosures",
    "whole_weights",
]
