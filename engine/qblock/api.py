"""Everything that qblock does, for programs: releases, ledgers, and functions on tables. The command line calls nothing
else; `import qblock` has the names, and imports nothing until one is used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from qblock.files import OwnFile
    from qblock.hierarchy.files import LAYOUTS, Layout
    from qblock.release.log import Entry, Level
    from qblock.release.rekey import BACKUPS
    from qblock.release.result import waiting_words
    from qblock.release.run import NOT_PROTECTED
    from qblock.releases import Ledger, Release, audit_table, compared
    from qblock.report.render import Format, Report
    from qblock.results.audit import (
        Attacked,
        Audited,
        BeliefChange,
        Beliefs,
        Compared,
        ComparedRecodings,
        Disclosures,
    )
    from qblock.results.base import Answer, Forecast, Guarantee, Reached
    from qblock.results.release import (
        DryRun,
        Ended,
        Erased,
        Event,
        Failed,
        Grants,
        HeadroomTrend,
        History,
        Planned,
        Published,
        Rekeyed,
        Retyped,
        Sharing,
        Upgraded,
        Verified,
    )
    from qblock.results.schemas import answer_schema
    from qblock.results.search import Checked, Chosen, Hidden, HierarchyFiles, HierarchyTables, Searched
    from qblock.results.tables import Anonymized, Candidate, Entity, Profiled, ProfiledColumn, Proposed, ProposedColumn
    from qblock.search.assessment import number_json
    from qblock.search.beliefs import Attacker, BayesAdversary
    from qblock.search.compare import Comparison
    from qblock.search.compare_results import write_csv
    from qblock.search.parquet import check_parquet, nodes_table, write_parquet
    from qblock.search.progress import SearchProgress
    from qblock.spec.schema import json_schema
    from qblock.tables import anonymize, audit, profile, propose_spec

_MODULES = {
    "qblock.files": "OwnFile",
    "qblock.hierarchy.files": "LAYOUTS Layout",
    "qblock.release.log": "Entry Level",
    "qblock.release.rekey": "BACKUPS",
    "qblock.release.result": "waiting_words",
    "qblock.release.run": "NOT_PROTECTED",
    "qblock.releases": "Ledger Release audit_table compared",
    "qblock.report.render": "Format Report",
    "qblock.results.audit": ("Attacked Audited BeliefChange Beliefs Compared ComparedRecodings Disclosures"),
    "qblock.results.base": "Answer Forecast Guarantee Reached",
    "qblock.results.release": (
        "DryRun Ended Erased Event Failed Grants HeadroomTrend History Planned Published Rekeyed Retyped "
        "Sharing Upgraded Verified"
    ),
    "qblock.results.schemas": "answer_schema",
    "qblock.results.search": "Checked Chosen Hidden HierarchyFiles HierarchyTables Searched",
    "qblock.results.tables": ("Anonymized Candidate Entity Profiled ProfiledColumn Proposed ProposedColumn"),
    "qblock.search.assessment": "number_json",
    "qblock.search.beliefs": "Attacker BayesAdversary",
    "qblock.search.compare": "Comparison",
    "qblock.search.compare_results": "write_csv",
    "qblock.search.parquet": "check_parquet nodes_table write_parquet",
    "qblock.search.progress": "SearchProgress",
    "qblock.spec.schema": "json_schema",
    "qblock.tables": "anonymize audit profile propose_spec",
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
