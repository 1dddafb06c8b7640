"""All faults, by family."""

from __future__ import annotations

from mutation.faults_adversary import ADVERSARY
from mutation.faults_counts import DIVERSITY, SHARED
from mutation.faults_declared import VALUES
from mutation.faults_distances import CLOSENESS, LIKENESS, PROXIMITY
from mutation.faults_search import DECLARED, STATEMENTS, STRUCTURE
from mutation.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    *SHARED,
    *DIVERSITY,
    *PROXIMITY,
    *CLOSENESS,
    *LIKENESS,
    *ADVERSARY,
    *DECLARED,
    *VALUES,
    *STRUCTURE,
    *STATEMENTS,
)
