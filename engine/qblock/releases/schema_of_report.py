"""The JSON Schema of a report."""

from __future__ import annotations

from qblock.releases.schema_parts import FLAG, LEVELS, REAL, TEXT, TEXTS, WHOLE, keys, many, maybe

LABEL_SHOWN = keys({"label": TEXT, "rows": WHOLE})
COLUMN_SHOWN = keys(
    {
        **dict.fromkeys(("name", "role", "after", "how_to_filter"), TEXT),
        "before": maybe(TEXT),
        "values": maybe(WHOLE),
        "share_hidden": maybe(REAL),
        "bits": maybe(REAL),
        "labels": many(LABEL_SHOWN),
    }
)
ATTACK_SHOWN = {"sensitive": TEXT, "attack": TEXT, "sentence": TEXT}
AREA_SHOWN = keys(
    {
        **dict.fromkeys(("across", "down"), TEXT),
        **dict.fromkeys(("low", "high"), maybe(REAL)),
        **dict.fromkeys(("blocks", "rows"), WHOLE),
    }
)
MAP_SHOWN = keys(
    {**dict.fromkeys(("across", "down"), TEXT), "areas": many(AREA_SHOWN), **dict.fromkeys(("total", "rows"), WHOLE)}
)
PUBLISHED = keys(
    {
        **dict.fromkeys(("release", "view", "at", "whose"), TEXT),
        **dict.fromkeys(("version", "rows", "blocks"), WHOLE),
        "previous": maybe(WHOLE),
        "columns": many(COLUMN_SHOWN),
        "guarantees": many(
            keys(
                {
                    **dict.fromkeys(("model", "asked", "in_words"), TEXT),
                    **dict.fromkeys(("sensitive", "reached"), maybe(TEXT)),
                    "holds": FLAG,
                }
            )
        ),
        "attacks": many(keys({**ATTACK_SHOWN, **dict.fromkeys(("detail", "rows", "blocks"), maybe(WHOLE))})),
        "risk": many(keys({"column": maybe(TEXT), "blocks": WHOLE, "least": WHOLE, "most_sure": REAL, "mean": REAL})),
        "sizes": many(keys(dict.fromkeys(("low", "high", "blocks", "rows"), WHOLE))),
        "map": maybe(MAP_SHOWN),
        "sample": keys({"columns": TEXTS, "rows": many(many(maybe(TEXT)))}),
    }
)
NODE_SHOWN = keys(
    {
        "levels": LEVELS,
        "satisfied": FLAG,
        "suppressed": WHOLE,
        "reached": TEXTS,
        **dict.fromkeys(("measure", "room"), maybe(REAL)),
    }
)
LATTICE_SHOWN = keys(
    {
        "words": {"type": "array", "items": {"type": "array"}},
        "total": WHOLE,
        "whole": FLAG,
        "nodes": many(NODE_SHOWN),
        "minimal": many(LEVELS),
        "frontier": many(LEVELS),
        "chosen": maybe(LEVELS),
        "published": maybe(LEVELS),
        "metric": TEXT,
        "more_is_better": FLAG,
    }
)
WHAT_IF = keys({"change": TEXT, "satisfying": WHOLE, "levels": maybe(LEVELS), "measure": maybe(REAL)})
RUN_SHOWN = keys(
    {**dict.fromkeys(("at", "state", "how"), TEXT), "version": maybe(WHOLE), "rows": maybe(WHOLE), "why": TEXTS}
)
ROOM_SHOWN = keys(
    {
        **dict.fromkeys(("model", "asked", "reached"), TEXT),
        "version": WHOLE,
        "sensitive": maybe(TEXT),
        "room": maybe(REAL),
    }
)
RIGHT_SHOWN = keys({**dict.fromkeys(("whose", "what", "why"), TEXT), "held": maybe(FLAG)})
EPSILON_SHOWN = keys({"sensitive": TEXT, "adversaries": TEXTS, "levels": many(LEVELS), "values": many(TEXTS)})
CURVE_SHOWN = keys(
    {
        **dict.fromkeys(("sensitive", "adversary"), TEXT),
        "levels": LEVELS,
        "stubbornness": TEXTS,
        "values": many(maybe(REAL)),
    }
)
GRANT_SHOWN = keys(
    {
        **dict.fromkeys(("requirement", "sensitive", "adversary", "why"), TEXT),
        **dict.fromkeys(("epsilon", "reached"), maybe(TEXT)),
    }
)
BELIEF_SHOWN = keys(
    {
        **dict.fromkeys(("sensitive", "prior"), TEXT),
        "levels": LEVELS,
        **dict.fromkeys(("people", "breach", "positive", "negative", "moved"), WHOLE),
        "sentences": TEXTS,
    }
)
KEPT_SHOWN = keys({"version": WHOLE, "current": maybe(WHOLE), "same_spec": FLAG})
INTERNAL = keys(
    {
        **dict.fromkeys(("candidate", "spec", "spec_digest"), TEXT),
        **dict.fromkeys(("binding", "why_not", "head"), maybe(TEXT)),
        "lattice": LATTICE_SHOWN,
        "what_if": maybe(many(WHAT_IF)),
        "epsilon": many(EPSILON_SHOWN),
        "curves": many(CURVE_SHOWN),
        "granted": many(GRANT_SHOWN),
        "beliefs": many(BELIEF_SHOWN),
        "runs": many(RUN_SHOWN),
        "room": many(ROOM_SHOWN),
        "rights": many(RIGHT_SHOWN),
        "problems": maybe(TEXTS),
        "notes": TEXTS,
        "kept": maybe(KEPT_SHOWN),
    }
)
REPORT = keys({"program": TEXT, "made": TEXT, "release": TEXT, "published": maybe(PUBLISHED)}, {"internal": INTERNAL})
