"""All faults, by family."""

from __future__ import annotations

from mutation.faults_adversary import ADVERSARY
from mutation.faults_checks import CHECKS
from mutation.faults_counts import DIVERSITY, SHARED
from mutation.faults_declared import VALUES
from mutation.faults_distances import CLOSENESS, LIKENESS, PROXIMITY
from mutation.faults_frequency import FREQUENCY
from mutation.faults_hierarchy import HIERARCHY
from mutation.faults_ledger import LEDGER
from mutation.faults_local import ROLLED_UP
from mutation.faults_output import OUTPUT
from mutation.faults_publish import PUBLISH
from mutation.faults_recoding import RECODING
from mutation.faults_release import RELEASE
from mutation.faults_report import REPORT
from mutation.faults_search import DECLARED, EXPLORER, IN_MEMORY, ROLES, STATEMENTS, STRUCTURE
from mutation.faults_source import SOURCE
from mutation.faults_spec import SPEC
from mutation.faults_steady import STEADY
from mutation.faults_versions import VERSIONS
from mutation.faults_views import VIEWS
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
    *IN_MEMORY,
    *EXPLORER,
    *ROLES,
    *RELEASE,
    *VERSIONS,
    *STEADY,
    *LEDGER,
    *OUTPUT,
    *PUBLISH,
    *SOURCE,
    *SPEC,
    *HIERARCHY,
    *FREQUENCY,
    *ROLLED_UP,
    *RECODING,
    *REPORT,
    *CHECKS,
    *VIEWS,
)
