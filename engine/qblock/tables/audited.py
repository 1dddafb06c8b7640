"""How well a table protects the people in it, as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from qblock.engines.driver_errors import explained
from qblock.errors import InputError, hide_tracebacks
from qblock.results.audit import Audited
from qblock.search import audit as audits
from qblock.search.beliefs import Attacker, BayesAdversary
from qblock.search.run import open_task
from qblock.tables.request import Names, TableRequest, attributes_of, named

Threshold = Fraction | int | float | str
"""From where on a belief is a disclosure: a number, or its text (0.1 and "1/10" are the same)."""


@partial(hide_tracebacks, explain=explained)
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
        audited = audits.audit_node(task, task.lattice.bottom, requested=False, adversary=believing, attacker=attacker)
        return Audited.model_validate(audited)


def audit_table(
    url: str,
    table: str,
    quasi_identifiers: Sequence[str],
    sensitives: Sequence[str],
    *,
    taxonomies: Mapping[str, str],
    adversary: BayesAdversary | None,
    attacker: Attacker,
) -> Audited:
    """The same of a table of a database, as `qblock audit --url` asks for it."""
    audited = audits.audit_table(
        url, table, quasi_identifiers, sensitives, taxonomies=taxonomies, adversary=adversary, attacker=attacker
    )
    return Audited.model_validate(audited)
