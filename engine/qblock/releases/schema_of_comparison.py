"""The JSON Schemas of what `qblock compare` prints: of definitions at every node, and of two recodings."""

from __future__ import annotations

from qblock.releases.schema_parts import (
    FIGURE,
    FLAG,
    LEVELS,
    METRICS,
    NOT_COMPUTED,
    REAL,
    SHARES,
    TEXT,
    TEXTS,
    TIGHTEST,
    WHOLE,
    keys,
    many,
    maybe,
    named,
)

OF_SOURCE = {"release": TEXT, "rows": WHOLE, "quasi_identifiers": TEXTS, "suppressed_rows_allowed": WHOLE}
COUNTED = {"queries": WHOLE, "seconds": REAL, "warnings": TEXTS}
DEFINITION = keys(
    {
        **dict.fromkeys(("name", "model"), TEXT),
        "from": {"enum": ["battery", "spec", "definitions"]},
        "sensitive": TEXTS,
        "asked": maybe({"type": "object"}),
        "columns": TEXTS,
    }
)
BEST = named(keys({"value": FIGURE, "levels": LEVELS}))
ASKED = keys({"definition": TEXT, "satisfying": WHOLE, "minimal": many(LEVELS), "best": BEST})
EPSILON = keys(
    {
        "sensitive": TEXT,
        "adversaries": TEXTS,
        "nodes": many(keys({"levels": LEVELS, "epsilon": many(FIGURE)})),
    }
)
GRANTED = keys(
    {
        **dict.fromkeys(("definition", "sensitive", "adversary", "why"), TEXT),
        "epsilon": FIGURE,
        "reached": FIGURE,
        "levels": maybe(LEVELS),
    }
)
NODE = keys(
    {
        "levels": LEVELS,
        "blocks": WHOLE,
        "metrics": METRICS,
        "tightest": named(FIGURE),
        "satisfied": named(FLAG),
    }
)
COMPARE = keys(
    {
        **OF_SOURCE,
        **COUNTED,
        "heights": LEVELS,
        "nodes_total": WHOLE,
        "sensitive": TEXTS,
        "definitions": many(DEFINITION),
        "not_computed": NOT_COMPUTED,
        "asked": many(ASKED),
        "epsilon": many(EPSILON),
        "granted": many(GRANTED),
        "more_useful": many(keys({"more": TEXT, "less": TEXT, "nodes_of_more_only": WHOLE})),
        "same_nodes": many(TEXTS),
        "monotonicity": keys(
            {
                "checked": TEXTS,
                "violations": many(keys({"column": TEXT, "finer": LEVELS, "coarser": LEVELS})),
            }
        ),
        "nodes": many(NODE),
    }
)
SIDE = keys(
    {
        "levels": maybe(LEVELS),
        "blocks": WHOLE,
        "suppressed": WHOLE,
        "metrics": METRICS,
        "attributes": SHARES,
        "tightest": TIGHTEST,
        "seconds": REAL,
        "statements": WHOLE,
    }
)
BOTH = ("full_domain", "multidimensional")
RECODINGS = keys(
    {
        **OF_SOURCE,
        **COUNTED,
        "choice": TEXT,
        "choose_by": TEXT,
        "weights": maybe(named(REAL)),
        "workload": keys({"queries": WHOLE, "drawn": FLAG}),
        "recodings": keys(dict.fromkeys(BOTH, maybe(SIDE))),
        "why": keys(dict.fromkeys(BOTH, TEXT)),
    }
)
