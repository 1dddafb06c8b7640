"""The JSON Schemas of what commands print with --json, and of the file of --result (docs/json.md has the meanings).

Keys are only added: so more keys than these are valid, and none of the required ones goes away.
"""

from __future__ import annotations

from collections.abc import Mapping

from qblock.errors import InputError, choices
from qblock.releases.schema_of_comparison import COMPARE, RECODINGS
from qblock.releases.schema_of_report import REPORT
from qblock.releases.schema_parts import (
    FIGURE,
    FLAG,
    LEVELS,
    METRICS,
    NODE,
    NOT_COMPUTED,
    REAL,
    SHARES,
    TEXT,
    TEXTS,
    TIGHTEST,
    WHOLE,
    Schema,
    keys,
    many,
    maybe,
    named,
)

EXPECTED = dict.fromkeys(("mean_wait", "lag", "worst_lag", "never"), REAL)
FORECAST = keys(
    {
        "churn": keys({"coming": REAL, "leaving": REAL, "changing": REAL}),
        "nodes": many(keys({"node": LEVELS, "blocks": WHOLE, "worst_wait": WHOLE, **EXPECTED})),
        "recommended": LEVELS,
        "why": TEXT,
    }
)
FULL_DOMAIN = keys({"levels": LEVELS, "suppressed": WHOLE, "metrics": METRICS})
CHOSEN = keys(
    {"levels": maybe(LEVELS), "node": NODE, "suppressed": WHOLE, "metrics": METRICS, "tightest": TIGHTEST},
    {
        "boxes": WHOLE,
        "suppressed_boxes": WHOLE,
        "rounds": WHOLE,
        "start": maybe(TEXT),
        "begun": maybe(LEVELS),
        "attributes": SHARES,
    },
)
HIDDEN = keys({"attribute": TEXT, "level": WHOLE, "shown_at": maybe(LEVELS), "rows_to_suppress": maybe(WHOLE)})
COUNTED = {"nodes_total": WHOLE, "nodes_evaluated": WHOLE, "queries": WHOLE, "strategy": TEXT, "seconds": REAL}
SEARCH = keys(
    {
        "release": TEXT,
        "rows": WHOLE,
        "quasi_identifiers": TEXTS,
        "heights": LEVELS,
        **COUNTED,
        "optimality": TEXT,
        "why": TEXT,
        "complete": FLAG,
        "choice": {"enum": ["minimal", "sizes", "pinned"]},
        "satisfying": maybe(WHOLE),
        "minimal": many(LEVELS),
        "weights": maybe(named(REAL)),
        "chosen": maybe(CHOSEN),
        "warnings": TEXTS,
        "hidden": many(HIDDEN),
    },
    {
        "recoding": {"const": "multidimensional"},
        "looked_at_sensitive": maybe(FLAG),
        "full_domain": maybe(FULL_DOMAIN),
        "nodes": many(
            keys({"levels": LEVELS, "satisfied": FLAG, "suppressed": WHOLE, "tightest": TIGHTEST, "metrics": METRICS})
        ),
        "forecast": FORECAST,
    },
)
DISCLOSED = keys({"disclosures": WHOLE, "combinations": WHOLE, "people": WHOLE, "sentence": TEXT})
CHANGED = keys(
    {
        "value": maybe(TEXT),
        "prior": REAL,
        "posterior": REAL,
        "exact": keys({"prior": TEXT, "posterior": TEXT}),
        "sentence": TEXT,
    }
)
BELIEFS = keys(
    {
        "sensitive": TEXT,
        "adversary": {"const": "bayes"},
        "prior": TEXT,
        **dict.fromkeys(("rho1", "rho2", "delta", "epsilon", "factor"), REAL),
        **dict.fromkeys(("combinations", "people", "impossible"), WHOLE),
        **dict.fromkeys(("breach", "positive", "negative"), DISCLOSED),
        "rise": maybe(CHANGED),
        "fall": maybe(CHANGED),
        "moved": keys({"people": WHOLE, "share": REAL, "own": WHOLE, "own_share": REAL, "sentence": TEXT}),
    }
)
WHERE = {"blocks": WHOLE, "rows": WHOLE, "sentence": TEXT}
WORST = {"posterior": maybe(REAL), **WHERE}
NAMES = many(maybe(TEXT))
ATTACKED = keys(
    {
        "sensitive": TEXT,
        "homogeneity": keys({"mean_size": maybe(REAL), "vulnerable": FLAG, **WHERE}),
        "background_knowledge": many(keys({"eliminated": WHOLE, **WORST})),
        "certainty": keys({"eliminated": maybe(WHOLE), "values": NAMES, **WHERE}),
        "skewness": keys({"gain": FIGURE, "value": maybe(TEXT), "sentence": TEXT}),
    },
    {
        "eliminated": keys({"values": NAMES, **WORST}),
        "similarity": many(keys({"level": WHOLE, "share": maybe(REAL), **WHERE})),
        "proximity": keys({"epsilon": REAL, "share": maybe(REAL), **WHERE}),
    },
)
AUDIT = keys(
    {
        "release": TEXT,
        "rows": WHOLE,
        "node": NODE,
        "levels": maybe(LEVELS),
        "satisfied": maybe(FLAG),
        "suppressed": WHOLE,
        "tightest": TIGHTEST,
        "not_computed": NOT_COMPUTED,
        "attacks": many(ATTACKED),
        "metrics": METRICS,
        "weights": maybe(named(REAL)),
        "warnings": TEXTS,
    },
    {"boxes": WHOLE, "beliefs": many(BELIEFS)},
)
SIZES = (
    *("newcomers", "blocks", "closing", "closing_blocks", "never", "looked_at"),
    *("leavers", "changed", "whole_cells", "leaver_cells", "changed_cells"),
)
CHANGES = keys({**dict.fromkeys(SIZES, WHOLE), "cohorts": maybe(LEVELS), "tried": FLAG, "why": TEXT})
SHARING = keys({"leaving": WHOLE, "companions": WHOLE, "cells": WHOLE, "staying": WHOLE})
PLAN = keys(
    {
        "release": TEXT,
        "view": TEXT,
        "current_version": maybe(WHOLE),
        "notes": TEXTS,
        "steps": many(keys({"step": TEXT, "description": TEXT})),
    },
    {
        "missing_rights": many(keys({"statement": TEXT, "why": TEXT})),
        "levels": keys({"version": WHOLE, "current": NODE, "next": maybe(NODE)}),
        "changes": CHANGES,
        "forecast": FORECAST,
        "missing": WHOLE,
        "sharing": SHARING,
    },
)
LAG = keys({}, {"rows": WHOLE, "share": REAL, "blocks": WHOLE, "oldest_seconds": maybe(REAL), "beyond": TEXTS})
DONE = {
    "version": maybe(WHOLE),
    "node": NODE,
    "rows": WHOLE,
    "suppressed": WHOLE,
    "view": TEXT,
    "digest": maybe(TEXT),
    "ledger_head": maybe(TEXT),
    "tightest": TIGHTEST,
    "choice": TEXT,
    "protected": FLAG,
    "optimality": TEXT,
    "joint": TEXT,
    "seconds": REAL,
    "notes": TEXTS,
    "search": {"type": "object"},
    "waiting": named(WHOLE),
    "lag": LAG,
    "boxes": maybe(WHOLE),
}
STATUS = {"enum": ["published", "rolled_back", "unchanged", "dry_run", "refused", "failed", "unknown"]}
LAGGING = {"enum": [*STATUS["enum"], "lagging"]}
PUBLISHED = keys({"status": STATUS, "release": TEXT, "run": TEXT, **DONE})
RUN = {"release": maybe(TEXT), "run": maybe(TEXT), "exit_status": WHOLE}
WHY = {"reason": TEXT, "confirm": TEXT}


def _ended(status: Schema, more: Mapping[str, Schema]) -> Schema:
    """How a run ended: with all figures, or with a reason, or as a dry run, which has neither."""
    schema = keys({"status": status, **RUN}, {**DONE, **WHY, **more})
    told = [{"required": list(DONE)}, {"required": ["reason"]}, {"properties": {"status": {"const": "dry_run"}}}]
    return {**schema, "anyOf": told}


VERIFY = keys(
    {
        "status": {"enum": ["verified", "failed"]},
        "release": TEXT,
        "version": maybe(WHOLE),
        "view": TEXT,
        "rows": WHOLE,
        "digest": maybe(TEXT),
        "ledger_head": maybe(TEXT),
        "tightest": TIGHTEST,
        **dict.fromkeys(("not_recomputed", "problems", "recomputed_privately", "notes"), TEXTS),
    }
)
EVENT = keys(
    {
        "number": WHOLE,
        "recorded_at": TEXT,
        "state": TEXT,
        "run": maybe(TEXT),
        "version": maybe(WHOLE),
        "quasi_identifiers": maybe(TEXTS),
        "node": maybe(LEVELS),
        "choice": maybe(TEXT),
        "protected": maybe(FLAG),
        "rows_source": maybe(WHOLE),
        "rows_published": maybe(WHOLE),
        "rows_suppressed": maybe(WHOLE),
        "reason": maybe(TEXT),
        "detail": {"type": "object"},
        "digest": TEXT,
    }
)
REACHED = {"version": WHOLE, "model": TEXT, "sensitive": maybe(TEXT), "parameter": TEXT, "asked": TEXT}
REACHED |= {"reached": maybe(TEXT), "headroom": maybe(REAL)}
HISTORY = keys(
    {
        "release": TEXT,
        "current": maybe(WHOLE),
        "age_seconds": maybe(REAL),
        "stale": maybe(FLAG),
        "retired_at": maybe(TEXT),
        "ledger_head": maybe(TEXT),
        "events": many(EVENT),
        "guarantees": many(keys({**REACHED, "state": TEXT, "holds": maybe(FLAG)})),
        "headroom_trend": many(keys({**REACHED, "headroom_change": maybe(REAL)})),
    }
)
ERASE = keys(
    {
        "status": {"enum": ["queued", "erased", "unchanged"]},
        "release": TEXT,
        "asked": WHOLE,
        "shown": WHOLE,
        "companions": WHOLE,
        "retired": LEVELS,
        "published": maybe(PUBLISHED),
        "sharing": maybe(SHARING),
        "notes": TEXTS,
    }
)
PROPOSED = keys({"name": TEXT, "role": TEXT, "distinct": WHOLE, "approximate": FLAG, "reason": TEXT})
CANDIDATE = keys(
    {
        **dict.fromkeys(("column", "count", "meaning"), TEXT),
        **dict.fromkeys(("distinct", "nulls", "rows_most"), WHOLE),
        "rows_mean": REAL,
    }
)
FIRST = keys(
    {
        "rows": WHOLE,
        "files": TEXTS,
        "columns": many(PROPOSED),
        "entity": keys(
            {
                "column": maybe(TEXT),
                "count": maybe(TEXT),
                "how": {"enum": ["found", "asked", "given", "open", "nobody"]},
                "why": TEXT,
                "candidates": many(CANDIDATE),
            }
        ),
        "regime": {"enum": ["steady", "once"]},
        "open": named(WHOLE),
        "nodes": WHOLE,
        "apart": many(keys({"columns": TEXTS, "share": REAL})),
        "types": named(TEXT),
        "notes": TEXTS,
    }
)
TYPE = keys({**dict.fromkeys(("column", "before", "now"), TEXT), "values": WHOLE})
CHECKED = keys({"attribute": TEXT, "levels": TEXTS, "height": WHOLE, "leaves": WHOLE, "labels": LEVELS})
PLACED = {"release": TEXT, "view": TEXT, "ledger_head": maybe(TEXT), "notes": TEXTS}
GRANT = keys({"for": TEXT, "role": TEXT, "statement": TEXT, "why": TEXT, "held": FLAG})
GRANTS = keys(
    {
        **dict.fromkeys(("release", "engine", "where", "view", "sql"), TEXT),
        "job": maybe(TEXT),
        "grants": many(GRANT),
        "files": many(keys({"for": TEXT, "access": TEXT, "path": TEXT, "why": TEXT})),
        "notes": TEXTS,
    }
)

ANSWERS: dict[str, tuple[str, Schema]] = {
    "init": ("What `qblock init --json` prints.", FIRST),
    "search": ("What `qblock search --json` prints.", SEARCH),
    "audit": ("What `qblock audit --json` prints.", AUDIT),
    "compare": ("What `qblock compare --json` prints.", COMPARE),
    "recodings": ("What `qblock compare --recoding both --json` prints.", RECODINGS),
    "plan": ("What `qblock plan --json` prints, and other commands with --plan.", PLAN),
    "release": ("What `qblock release --json` and `qblock rollback --json` print.", _ended(STATUS, {})),
    "result": ("The file of --result, which a hook gets too.", _ended(LAGGING, {"run_status": STATUS})),
    "verify": ("What `qblock verify --json` prints.", VERIFY),
    "history": ("What `qblock history --json` prints.", HISTORY),
    "report": ("What `qblock report --json` prints, and the file of `--format json`.", REPORT),
    "erase": ("What `qblock erase --json` prints.", ERASE),
    "grants": ("What `qblock grants --json` prints.", GRANTS),
    "retire": (
        "What `qblock retire --json` and `qblock ledger move --json` print.",
        keys({"status": {"enum": ["retired", "moved", "unchanged"]}, "version": maybe(WHOLE), **PLACED}),
    ),
    "hierarchy-check": (
        "What `qblock hierarchy check --json` prints.",
        keys({"rows": WHOLE, "hierarchies": many(CHECKED)}),
    ),
    "hierarchy-build": ("What `qblock hierarchy build --json` prints.", keys({"files": TEXTS})),
    "hierarchy-load": ("What `qblock hierarchy load --json` prints.", keys({"tables": TEXTS})),
    "ledger-upgrade": (
        "What `qblock ledger upgrade --json` prints.",
        keys({"before": maybe(TEXT), "after": TEXT}),
    ),
    "ledger-rekey": (
        "What `qblock ledger rekey --json` prints.",
        keys({"status": {"const": "rekeyed"}, "keys": WHOLE, "releases": named(WHOLE), "notes": TEXTS}),
    ),
    "ledger-retype": (
        "What `qblock ledger retype --json` prints.",
        keys({"status": {"enum": ["retyped", "unchanged"]}, "release": TEXT, "columns": many(TYPE), "versions": WHOLE}),
    ),
}
"""The answers that have a schema."""


def answer_schema(of: str) -> Schema:
    """The JSON Schema (draft 2020-12) of an answer. Raises InputError for one that has none."""
    if of not in ANSWERS:
        raise InputError(f"there is no JSON Schema of {of}; {choices(ANSWERS, of)}")
    said, schema = ANSWERS[of]
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": f"qblock {of}", "description": said, **schema}
