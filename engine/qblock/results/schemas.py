"""The JSON Schemas of what commands print with --json, and of the file of --result (docs/json.md has the meanings)."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from qblock.errors import InputError, choices
from qblock.results import audit, check, examples, release, report, search, tables

RUN = release.Published | release.DryRun | release.Failed
ANSWERS: dict[str, tuple[str, Any]] = {
    "examples": ("What `qblock examples --json` prints.", examples.ExampleFiles),
    "init": ("What `qblock init --json` prints.", tables.Proposed),
    "search": ("What `qblock search --json` prints.", search.Searched),
    "check": ("What `qblock check --json` prints.", check.SpecChecked),
    "audit": ("What `qblock audit --json` prints.", audit.Audited),
    "compare": ("What `qblock compare --json` prints.", audit.Compared),
    "recodings": ("What `qblock compare --recoding both --json` prints.", audit.ComparedRecodings),
    "plan": ("What `qblock plan --json` prints, and other commands with --plan.", release.Planned),
    "release": ("What `qblock release --json` and `qblock rollback --json` print.", RUN),
    "result": ("The file of --result, which a hook gets too.", RUN),
    "verify": ("What `qblock verify --json` prints.", release.Verified),
    "history": ("What `qblock history --json` prints.", release.History),
    "report": ("What `qblock report --json` prints, and the file of `--format json`.", report.Report),
    "erase": ("What `qblock erase --json` prints.", release.Erased),
    "grants": ("What `qblock grants --json` prints.", release.Grants),
    "retire": ("What `qblock retire --json` and `qblock ledger move --json` print.", release.Ended),
    "hierarchy-check": ("What `qblock hierarchy check --json` prints.", search.Checked),
    "hierarchy-build": ("What `qblock hierarchy build --json` prints.", search.HierarchyFiles),
    "hierarchy-load": ("What `qblock hierarchy load --json` prints.", search.HierarchyTables),
    "ledger-upgrade": ("What `qblock ledger upgrade --json` prints.", release.Upgraded),
    "ledger-rekey": ("What `qblock ledger rekey --json` prints.", release.Rekeyed),
    "ledger-retype": ("What `qblock ledger retype --json` prints.", release.Retyped),
}
"""The answers that have a schema."""


def answer_schema(of: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of an answer. Raises InputError for one that has none."""
    if of not in ANSWERS:
        raise InputError(f"there is no JSON Schema of {of}; {choices(ANSWERS, of)}")
    said, answer = ANSWERS[of]
    schema = TypeAdapter(answer).json_schema(mode="serialization")
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {**schema, "$schema": draft, "title": f"qblock {of}", "description": said}
