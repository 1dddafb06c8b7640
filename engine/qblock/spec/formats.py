"""The released canonical forms of a spec: which keys each of them knows, and the defaults that it leaves out.

Evidence that is stored outlives upgrades (docs/evolution.md): a released format never changes. A
new optional key gets its default in the newest format, and digests of specs that do not use it stay as they are. A key
whose default or meaning changes needs a new format.
"""

from __future__ import annotations

from typing import Any

NEWEST = 2

DEFAULTS: dict[int, dict[str, dict[str, Any]]] = {
    1: {
        "Spec": {
            "entity": None,
            "count": "rows",
            "suppression_limit": 0,
            "search": {},
            "publish": {},
            "versions": {},
        },
        "Source": {"file": None, "types": {}},
        "Attribute": {
            "hierarchy": None,
            "nulls": "refuse",
            "uncovered": "refuse",
            "taxonomy": None,
            "order": None,
            "domain": None,
        },
        "Digits": {"from_": "right"},
        "Ranges": {"start": 0},
        "Search": {"choose_from": "minimal", "choose_by": "discernibility", "workload": None, "node": None},
        "DrawnWorkload": {"queries": 200, "seed": 0, "attributes": 2, "selectivity": "1/20"},
        "Between": {"least": None, "most": None},
        "Publish": {"schema": "published", "view": None, "readers": []},
        "Versions": {
            "joint": "episodes",
            "audience": [],
            "on_refusal": "refuse",
            "cohort": None,
            "keep": 3,
            "stale_after": None,
        },
        "Requirement": {"sensitive": [], "prior": None, "guards": None},
        "PriorTable": {"where": []},
        "GuardTable": {"group": None},
        "pd_recursive_cl_diversity": {"allowed": []},
        "npd_recursive_cl_diversity": {"allowed": [], "protected": []},
        "epsilon_m_anonymity": {"relative": False},
        "delta_l_diversity": {"reading": "window"},
        "t_closeness": {"distance": "equal", "bandwidth": None},
        "nt_closeness": {"distance": "equal", "bandwidth": None, "variant": "lattice"},
        "epsilon_privacy": {
            "stubbornness": None,
            "at_most": True,
            "prior": "uniform",
            "known": 0,
            "predicates": "singletons",
        },
        "alpha_k_anonymity": {"values": None},
        "beta_likeness": {"variant": "basic"},
        "delta_disclosure": {"absent": "violation"},
        "k_map": {"population": None},
        "delta_presence": {"population": None},
    },
}
DEFAULTS[2] = {
    **DEFAULTS[1],
    "Digits": {**DEFAULTS[1]["Digits"], "max": None},
    "Ranges": {**DEFAULTS[1]["Ranges"], "from_": None, "to": None, "labels": "plain", "finest": None, "max": None},
    "Dates": {"finest": None, "max": None},
    "Cuts": {"labels": "plain", "max": None},
    "Edges": {"labels": "plain", "finest": None, "max": None},
    "Cutting": {"start": None},
    "CsvFile": {"layout": "header", "max": None},
    "Search": {**DEFAULTS[1]["Search"], "weights": {}, "recoding": "full_domain", "within": None},
    "DimensionTable": {"max": None},
    # A version says itself how it shows bounds: one from before there were any goes on without them.
    "Publish": {**DEFAULTS[1]["Publish"], "ranges": None, "names": {}, "people": False},
    # Versions lag behind the source where they are checked together, and say so nowhere: on_refusal is left out.
    "Versions": {
        **DEFAULTS[1]["Versions"],
        "on_refusal": None,
        "cohort": "auto",
        "leavers": "carry",
        "skip": "1/100",
        "row_counts": "unknown",
    },
}
"""Format -> class, or name of a model -> key -> the default, as it is written in the canonical form."""

NO_PART: dict[str, tuple[str, ...]] = {
    "Search": ("strategy", "answer", "roll_up", "memory_limit"),
    "Publish": ("lock_timeout", "storage_version"),
    "Versions": ("confirm", "max_lag", "max_wait"),
}
"""Keys that cannot change what is published: not part of any format since 1."""

FORMAT_0: dict[str, str] = {
    "Spec": "version release source attributes entity count privacy suppression_limit search publish versions",
    "Attribute": "role hierarchy nulls uncovered taxonomy order domain",
    "Source": "table",
    "Suppress": "",
    "Digits": "digits from_",
    "Ranges": "ranges start",
    "Dates": "dates",
    "CsvFile": "file",
    "DimensionTable": "table levels",
    "Search": "strategy choose_from choose_by workload node roll_up memory_limit",
    "DrawnWorkload": "queries seed attributes selectivity",
    "WrittenWorkload": "queries",
    "Between": "least most",
    "Publish": "schema view readers",
    "Versions": "joint audience on_refusal cohort keep stale_after",
    "Requirement": "sensitive models prior guards",
    "PriorValues": "weights",
    "PriorTable": "table column where",
    "GuardTable": "table entity value group",
    "k_anonymity": "k",
    "distinct_l_diversity": "l",
    "frequency_l_diversity": "l",
    "entropy_l_diversity": "l",
    "recursive_cl_diversity": "c l",
    "pd_recursive_cl_diversity": "c l allowed",
    "npd_recursive_cl_diversity": "c1 c2 l allowed protected",
    "epsilon_m_anonymity": "epsilon m relative",
    "delta_l_diversity": "delta l reading",
    "t_closeness": "t distance bandwidth",
    "nt_closeness": "n t distance bandwidth variant",
    "epsilon_privacy": "epsilon adversary stubbornness at_most prior known predicates",
    "alpha_k_anonymity": "alpha k values",
    "beta_likeness": "beta variant",
    "delta_disclosure": "delta absent",
    "k_map": "k population",
    "delta_presence": "min max population",
}
"""The form before formats had numbers: every key that there was, written out whether it was given or not."""


class NotExpressible(Exception):
    """A spec uses a key that an older format does not know."""


def kept(owner: str, plain: dict[str, Any], format_: int) -> dict[str, Any]:
    """What a format writes of a class or model with these keys. Raises NotExpressible."""
    newest, defaults = DEFAULTS[NEWEST].get(owner, {}), DEFAULTS[format_ or 1].get(owner, {})
    without = {name: value for name, value in plain.items() if name not in NO_PART.get(owner, ())}
    # A key that came later is left out where it is not used.
    later = {name for name in newest if name not in defaults and name in without}
    if any(without[name] != newest[name] for name in later):
        raise NotExpressible(owner)
    changed = {
        name: value
        for name, value in without.items()
        if name not in later and (name not in defaults or value != defaults[name])
    }
    if format_:
        return changed
    known = FORMAT_0.get(owner, "").split()
    if owner not in FORMAT_0 or not changed.keys() <= set(known):
        raise NotExpressible(owner)
    return {name: plain[name] for name in known if name in plain}


def as_in(owner: str, fields: dict[str, Any], format_: int) -> dict[str, Any]:
    """The fields of a class with the words that a format has for what they mean."""
    if owner == "Versions" and format_ < 2 and fields["cohort"] == "auto":
        return fields | {"cohort": None}
    if owner == "Search" and format_ == 0 and fields["roll_up"] == "auto":
        # The default then; where nodes are counted took part.
        return fields | {"roll_up": "warehouse"}
    return fields
