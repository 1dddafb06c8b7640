"""Everything that qblock does, for programs: releases, ledgers, and functions on tables. The command line calls nothing
else; `import qblock` has the names, and imports nothing until one is used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from qblock.demo.examples import write_examples as write_examples
    from qblock.engines.driver_errors import explained as explained
    from qblock.files import OwnFile as OwnFile
    from qblock.hierarchy.files import LAYOUTS as LAYOUTS
    from qblock.hierarchy.files import Layout as Layout
    from qblock.ledgers import Ledger as Ledger
    from qblock.release.log import Entry as Entry
    from qblock.release.log import Level as Level
    from qblock.release.rekey import BACKUPS as BACKUPS
    from qblock.release.result import waiting_words as waiting_words
    from qblock.release.run import NOT_PROTECTED as NOT_PROTECTED
    from qblock.releases import Release as Release
    from qblock.report.render import Format as Format
    from qblock.report.render import Report as Report
    from qblock.results.audit import Attacked as Attacked
    from qblock.results.audit import Audited as Audited
    from qblock.results.audit import BeliefChange as BeliefChange
    from qblock.results.audit import Beliefs as Beliefs
    from qblock.results.audit import Compared as Compared
    from qblock.results.audit import ComparedRecodings as ComparedRecodings
    from qblock.results.audit import Disclosures as Disclosures
    from qblock.results.base import Answer as Answer
    from qblock.results.base import Forecast as Forecast
    from qblock.results.base import Frontier as Frontier
    from qblock.results.base import Guarantee as Guarantee
    from qblock.results.base import Reached as Reached
    from qblock.results.check import Finding as Finding
    from qblock.results.check import SpecChecked as SpecChecked
    from qblock.results.check import named_findings as named_findings
    from qblock.results.check import unsafe as unsafe
    from qblock.results.estimate import Estimate as Estimate
    from qblock.results.estimate import EstimatedGroup as EstimatedGroup
    from qblock.results.examples import Example as Example
    from qblock.results.examples import ExampleFiles as ExampleFiles
    from qblock.results.release import DryRun as DryRun
    from qblock.results.release import Ended as Ended
    from qblock.results.release import Erased as Erased
    from qblock.results.release import Event as Event
    from qblock.results.release import Failed as Failed
    from qblock.results.release import Grants as Grants
    from qblock.results.release import History as History
    from qblock.results.release import MarginTrend as MarginTrend
    from qblock.results.release import Planned as Planned
    from qblock.results.release import Published as Published
    from qblock.results.release import Rekeyed as Rekeyed
    from qblock.results.release import Retyped as Retyped
    from qblock.results.release import Sharing as Sharing
    from qblock.results.release import Upgraded as Upgraded
    from qblock.results.release import Verified as Verified
    from qblock.results.schemas import answer_schema as answer_schema
    from qblock.results.search import Checked as Checked
    from qblock.results.search import Chosen as Chosen
    from qblock.results.search import HierarchyFiles as HierarchyFiles
    from qblock.results.search import HierarchyTables as HierarchyTables
    from qblock.results.search import Searched as Searched
    from qblock.results.search import SuppressedAttribute as SuppressedAttribute
    from qblock.results.tables import Anonymized as Anonymized
    from qblock.results.tables import Candidate as Candidate
    from qblock.results.tables import Entity as Entity
    from qblock.results.tables import Profiled as Profiled
    from qblock.results.tables import ProfiledColumn as ProfiledColumn
    from qblock.results.tables import Proposed as Proposed
    from qblock.results.tables import ProposedColumn as ProposedColumn
    from qblock.search.assessment import number_json as number_json
    from qblock.search.beliefs import Attacker as Attacker
    from qblock.search.beliefs import BayesAdversary as BayesAdversary
    from qblock.search.compare import Comparison as Comparison
    from qblock.search.compare_results import compared as compared
    from qblock.search.compare_results import nodes_table as nodes_table
    from qblock.search.compare_results import write_csv as write_csv
    from qblock.search.compare_results import write_parquet as write_parquet
    from qblock.search.progress import SearchProgress as SearchProgress
    from qblock.spec.schema import json_schema as json_schema
    from qblock.tables.anonymized import anonymize as anonymize
    from qblock.tables.audited import audit as audit
    from qblock.tables.audited import audit_table as audit_table
    from qblock.tables.profiled import profile as profile
    from qblock.tables.profiled import propose_spec as propose_spec

_MODULES = {
    "qblock.demo.examples": "write_examples",
    "qblock.files": "OwnFile",
    "qblock.hierarchy.files": "LAYOUTS Layout",
    "qblock.ledgers": "Ledger",
    "qblock.release.log": "Entry Level",
    "qblock.release.rekey": "BACKUPS",
    "qblock.release.result": "waiting_words",
    "qblock.release.run": "NOT_PROTECTED",
    "qblock.releases": "Release",
    "qblock.report.render": "Format Report",
    "qblock.results.audit": ("Attacked Audited BeliefChange Beliefs Compared ComparedRecodings Disclosures"),
    "qblock.results.check": "Finding SpecChecked named_findings unsafe",
    "qblock.results.base": "Answer Forecast Frontier Guarantee Reached",
    "qblock.results.estimate": "Estimate EstimatedGroup",
    "qblock.results.examples": "Example ExampleFiles",
    "qblock.results.release": (
        "DryRun Ended Erased Event Failed Grants MarginTrend History Planned Published Rekeyed Retyped "
        "Sharing Upgraded Verified"
    ),
    "qblock.results.schemas": "answer_schema",
    "qblock.results.search": "Checked Chosen HierarchyFiles HierarchyTables Searched SuppressedAttribute",
    "qblock.results.tables": ("Anonymized Candidate Entity Profiled ProfiledColumn Proposed ProposedColumn"),
    "qblock.search.assessment": "number_json",
    "qblock.search.beliefs": "Attacker BayesAdversary",
    "qblock.search.compare": "Comparison",
    "qblock.search.compare_results": "compared nodes_table write_csv write_parquet",
    "qblock.search.progress": "SearchProgress",
    "qblock.spec.schema": "json_schema",
    "qblock.tables.anonymized": "anonymize",
    "qblock.tables.audited": "audit audit_table",
    "qblock.tables.profiled": "profile propose_spec",
    "qblock.engines.driver_errors": "explained",
}
"""Where each name is defined: it is imported when it is first used, so that a search does not wait for the job."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_demo(directory: Path, *, rows: int, seed: int, url: str | None, console: Console) -> None:
    """`qblock.demo.run.run_demo`, which is imported by those who want a demo."""
    from qblock.demo import run

    run.run_demo(directory, rows=rows, seed=seed, url=url, console=console)
