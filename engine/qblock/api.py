"""Everything that qblock does, for programs: releases, ledgers, and functions on tables. The command line calls nothing
else; `import qblock` has the names, and imports nothing until one is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qblock.errors import InputError, hide_tracebacks

if TYPE_CHECKING:
    from rich.console import Console

    from qblock.files import OwnFile
    from qblock.hierarchy.files import LAYOUTS, Layout
    from qblock.joint.sharing import Sharing
    from qblock.release.log import Entry, Level
    from qblock.release.rekey import BACKUPS
    from qblock.release.result import waiting_words
    from qblock.release.run import NOT_PROTECTED
    from qblock.releases.first import Proposed, ProposedColumn, propose_spec
    from qblock.releases.granted import Grant, Grants
    from qblock.releases.ledger import Ledger, Upgraded
    from qblock.releases.recodings import ComparedRecodings, OneRecoding, Shown
    from qblock.releases.release import Release
    from qblock.releases.reported import Reported
    from qblock.releases.results import (
        Checked,
        Compared,
        DryRun,
        Ended,
        Erased,
        History,
        Planned,
        Published,
        Retyped,
        Searched,
        Verified,
    )
    from qblock.releases.schemas import answer_schema
    from qblock.report.render import Format
    from qblock.search.assessment import number_json
    from qblock.search.audit import audit_table
    from qblock.search.beliefs import Attacker, BayesAdversary
    from qblock.search.compare import FIGURES, Comparison, adversary_of
    from qblock.search.compare_results import best, direct, epsilons, granted, inclusions, violations, write_csv
    from qblock.search.compare_results import to_json as comparison_json
    from qblock.search.parquet import check_parquet, nodes_table, write_parquet
    from qblock.search.progress import SearchProgress
    from qblock.spec.schema import json_schema
    from qblock.tables.beliefs import BeliefChange, Beliefs, Disclosures, Threshold
    from qblock.tables.results import (
        Anonymized,
        Attack,
        Audited,
        Candidate,
        Entity,
        Guarantee,
        Profiled,
        ProfiledColumn,
        Reached,
    )
    from qblock.tables.specs import Names

__all__ = [
    "BACKUPS",
    "FIGURES",
    "LAYOUTS",
    "NOT_PROTECTED",
    "Anonymized",
    "Attack",
    "Attacker",
    "Audited",
    "BayesAdversary",
    "BeliefChange",
    "Beliefs",
    "Candidate",
    "Checked",
    "Compared",
    "ComparedRecodings",
    "Comparison",
    "Disclosures",
    "DryRun",
    "Ended",
    "Entity",
    "Entry",
    "Erased",
    "Format",
    "Grant",
    "Grants",
    "Guarantee",
    "History",
    "Layout",
    "Ledger",
    "Level",
    "OneRecoding",
    "OwnFile",
    "Planned",
    "Profiled",
    "ProfiledColumn",
    "Proposed",
    "ProposedColumn",
    "Published",
    "Reached",
    "Release",
    "Reported",
    "Retyped",
    "SearchProgress",
    "Searched",
    "Sharing",
    "Shown",
    "Upgraded",
    "Verified",
    "adversary_of",
    "anonymize",
    "answer_schema",
    "audit",
    "audit_table",
    "best",
    "check_parquet",
    "comparison_json",
    "direct",
    "epsilons",
    "granted",
    "inclusions",
    "json_schema",
    "nodes_table",
    "number_json",
    "profile",
    "propose_spec",
    "run_demo",
    "violations",
    "waiting_words",
    "write_csv",
    "write_parquet",
]


_HOMES = {
    "qblock.files": ("OwnFile",),
    "qblock.hierarchy.files": ("LAYOUTS", "Layout"),
    "qblock.joint.sharing": ("Sharing",),
    "qblock.release.log": (
        "Entry",
        "Level",
    ),
    "qblock.release.rekey": ("BACKUPS",),
    "qblock.release.result": ("waiting_words",),
    "qblock.release.run": ("NOT_PROTECTED",),
    "qblock.releases.first": (
        "Proposed",
        "ProposedColumn",
        "propose_spec",
    ),
    "qblock.releases.granted": (
        "Grant",
        "Grants",
    ),
    "qblock.releases.ledger": (
        "Ledger",
        "Upgraded",
    ),
    "qblock.releases.recodings": (
        "ComparedRecodings",
        "OneRecoding",
        "Shown",
    ),
    "qblock.releases.release": ("Release",),
    "qblock.releases.reported": ("Reported",),
    "qblock.releases.results": (
        "Checked",
        "Compared",
        "DryRun",
        "Ended",
        "Erased",
        "History",
        "Planned",
        "Published",
        "Retyped",
        "Searched",
        "Verified",
    ),
    "qblock.releases.schemas": ("answer_schema",),
    "qblock.report.render": ("Format",),
    "qblock.search.assessment": ("number_json",),
    "qblock.search.audit": ("audit_table",),
    "qblock.search.beliefs": (
        "Attacker",
        "BayesAdversary",
    ),
    "qblock.search.compare": (
        "Comparison",
        "FIGURES",
        "adversary_of",
    ),
    "qblock.search.compare_results": (
        "best",
        "comparison_json",
        "direct",
        "epsilons",
        "granted",
        "inclusions",
        "violations",
        "write_csv",
    ),
    "qblock.search.parquet": (
        "check_parquet",
        "nodes_table",
        "write_parquet",
    ),
    "qblock.search.progress": ("SearchProgress",),
    "qblock.spec.schema": ("json_schema",),
    "qblock.tables.beliefs": (
        "BeliefChange",
        "Beliefs",
        "Disclosures",
    ),
    "qblock.tables.results": (
        "Anonymized",
        "Attack",
        "Audited",
        "Candidate",
        "Entity",
        "Guarantee",
        "Profiled",
        "ProfiledColumn",
        "Reached",
    ),
}
"""Where each name is defined: it is imported when it is first used, so that a search does not wait for the job."""
_DEFINED_AS = {"comparison_json": "to_json"}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(module), _DEFINED_AS.get(name, name))
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@hide_tracebacks
def audit(
    data: Any,
    quasi_identifiers: Sequence[str],
    sensitive: Names = (),
    *,
    table: str | None = None,
    entity: str | None = None,
    count: str | None = None,
    types: Mapping[str, str] | None = None,
    adversary: str | None = None,
    prior: str | Path | None = None,
    rule_out: Mapping[str, Sequence[Any]] | None = None,
    near: Mapping[str, Any] | None = None,
    **thresholds: Threshold,
) -> Audited:
    """How well a table as it stands protects the people in it: every model's tightest parameter, attacks, utility.

    data: a pandas DataFrame, an Arrow table, the path of a Parquet or CSV file (or a pattern of several), or the URL of
    a database with `table`. quasi_identifiers: the columns that an attacker may know. sensitive: the columns that must
    not be found out, or each with its entry as in a spec: {"disease": {"taxonomy": {"file": "disease.csv"}}}. entity,
    count: as in a spec, where people have several rows. types: of a CSV file's columns that are not text. adversary,
    prior, thresholds, rule_out, near: as of `Release.audit`; the population's columns hold the labels of `data`.

    NaN, NA, NaT and None are NULL, which counts as a value of its own. Raises InputError for what is wrong with the
    question, Refused for an empty table.
    """
    from qblock.search.audit import audit_node
    from qblock.search.beliefs import Attacker, BayesAdversary
    from qblock.search.run import open_task
    from qblock.tables.results import Audited
    from qblock.tables.specs import TableRequest, attributes_of, named

    believing = BayesAdversary.of(adversary, prior, thresholds)
    attacker = Attacker.of(rule_out, near)
    request = TableRequest("qblock.audit()", data, table=table, types=types)
    if isinstance(quasi_identifiers, Mapping):
        raise InputError(
            f"{request.caller}: quasi_identifiers: a table is audited as it stands; write a list of columns"
        )
    known = named(request.caller, "quasi_identifiers", quasi_identifiers)
    columns = [(name, {"hierarchy": "suppress", "nulls": "top"}) for name, _ in known]
    about = [(name, {"nulls": "value", **entry}) for name, entry in named(request.caller, "sensitive", sensitive)]
    attributes = attributes_of(request.caller, {"quasi_identifier": columns, "sensitive": about})
    spec = request.spec(attributes, [{"k_anonymity": {"k": 1}}], release="audit", entity=entity, count=count)
    with open_task(spec, name_values=False, published=False, warehouse=request.warehouse(spec)) as task:
        return Audited.of(
            audit_node(task, task.lattice.bottom, requested=False, adversary=believing, attacker=attacker)
        )


@hide_tracebacks
def anonymize(
    data: Any,
    quasi_identifiers: Mapping[str, Any],
    sensitive: Names = (),
    *,
    privacy: Sequence[Mapping[str, Any]],
    insensitive: Sequence[str] = (),
    entity: str | None = None,
    count: str | None = None,
    suppression_limit: Any = None,
    search: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
) -> Anonymized:
    """A table generalized until the privacy models hold, and counted again before it is returned.

    data: a pandas DataFrame, an Arrow table, or the path of a Parquet or CSV file (or a pattern of several). The words
    are those of a spec: quasi_identifiers is a mapping of columns to hierarchies ({"age": {"ranges": [5, 10]}, "sex":
    "suppress"}) or to whole entries ({"age": {"hierarchy": "suppress", "nulls": "top"}}); sensitive a list of columns,
    or a mapping to entries; privacy the models, which must all hold; insensitive columns are published as they are, and
    a column that is not named is not published. entity, count, suppression_limit, search: as in a spec. types: of a CSV
    file's columns that are not text. Hierarchies in files start at the working directory.

    The result's `frame` has an index of its own and rows in the order of what it shows: those of `data` would link its
    rows to the source's. NaN, NA, NaT and None are NULL.

    Each call is one publication: whoever holds two of the same people may learn more than each guarantees. Do not
    anonymize a changing table again and again; make it a release, whose versions are checked together.

    Raises Refused where no generalization satisfies what is asked (or the table is empty), InputError for what is wrong
    with the question or the data.
    """
    from qblock.tables.anonymize import anonymized
    from qblock.tables.specs import TableRequest, attributes_of, named, with_hierarchies

    request = TableRequest("qblock.anonymize()", data, types=types, databases=False)
    attributes = attributes_of(
        request.caller,
        {
            "quasi_identifier": with_hierarchies(request.caller, quasi_identifiers),
            "sensitive": named(request.caller, "sensitive", sensitive),
            "insensitive": named(request.caller, "insensitive", insensitive),
        },
    )
    spec = request.spec(
        attributes, privacy, entity=entity, count=count, suppression_limit=suppression_limit, search=search
    )
    return anonymized(spec, request.warehouse(spec))


@hide_tracebacks
def profile(data: Any, *, table: str | None = None, types: Mapping[str, str] | None = None) -> Profiled:
    """A first look at a table: distinct values and NULLs of each column, and the role that is proposed for it.

    data, table, types: as for `audit`. The proposals are guesses from names and counts, to be checked by a person;
    `quasi_identifiers` and `sensitive` of the result are what `anonymize` takes. Raises Refused for an empty table.
    """
    from qblock.tables.profile import profiled
    from qblock.tables.specs import TableRequest

    return profiled(TableRequest("qblock.profile()", data, table=table, types=types))


def run_demo(directory: Path, *, rows: int, seed: int, url: str | None, console: Console) -> None:
    """`qblock.demo.run.run_demo`, which is imported by those who want a demo."""
    from qblock.demo import run

    run.run_demo(directory, rows=rows, seed=seed, url=url, console=console)
