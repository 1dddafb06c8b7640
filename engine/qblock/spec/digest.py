"""The digest of a spec: the same for the same meaning, whatever the layout of the file; secrets are not part of it."""

from __future__ import annotations

import dataclasses
import hashlib
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from qblock.canonical import canonical as json_text
from qblock.models import Model, parameters_of
from qblock.spec.model import Publish, Requirement, Source, Spec

FORMAT = 2
"""The number that canonical forms start with. Another default, or another meaning of a key, takes the next number."""

DEFAULTS: dict[str, dict[str, Any]] = {
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
    "Digits": {"from_": "right", "max": None},
    "Ranges": {"start": 0, "from_": None, "to": None, "labels": "plain", "finest": None, "max": None},
    "Dates": {"finest": None, "max": None},
    "Cuts": {"labels": "plain", "max": None},
    "Edges": {"labels": "plain", "finest": None, "max": None},
    "Cutting": {"start": None},
    "CsvFile": {"layout": "header", "max": None},
    "DimensionTable": {"max": None},
    "Search": {
        "choose_from": "minimal",
        "choose_by": "discernibility",
        "workload": None,
        "node": None,
        "weights": {},
        "recoding": "full_domain",
        "within": None,
    },
    "DrawnWorkload": {"queries": 200, "seed": 0, "attributes": 2, "selectivity": "1/20"},
    "Between": {"least": None, "most": None},
    # A version says itself how it shows bounds: a spec that says nothing goes on as the version before.
    "Publish": {"schema": "published", "view": None, "readers": [], "ranges": None, "names": {}, "people": False},
    # Versions lag behind the source where they are checked together, and say so nowhere: on_refusal is left out.
    "Versions": {
        "joint": "episodes",
        "audience": [],
        "on_refusal": None,
        "cohort": "auto",
        "keep": 3,
        "stale_after": None,
        "leavers": "carry",
        "skip": "1/100",
        "row_counts": "unknown",
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
}
"""Class, or name of a model -> key -> the default, as it is written in the canonical form, which leaves it out."""

NO_PART: dict[str, tuple[str, ...]] = {
    "Search": ("strategy", "answer", "roll_up", "memory_limit"),
    "Publish": ("lock_timeout", "storage_version"),
    "Versions": ("confirm", "max_lag", "max_wait"),
}
"""Keys that cannot change what is published."""

LEFT_OUT: dict[type, tuple[str, ...]] = {
    Spec: ("origin", "private"),
    Source: ("url",),
    Publish: ("url", "path", "readers_checked"),
    Requirement: ("line", "index", "model"),
}
"""Secrets, places in the file, and what is written elsewhere too."""


def spec_digest(spec: Spec) -> str:
    """sha256 of the canonical form, as hexadecimal text. URLs, layout and defaults written out make no difference."""
    return hashlib.sha256(canonical(spec).encode("utf-8")).hexdigest()


def canonical(spec: Spec) -> str:
    """A spec as JSON text that starts with the format's number; without what equals the defaults.

    Keys are sorted, except that columns stay in their order, which is that of a node's levels.
    """
    publish, said = dataclasses.replace(spec.publish, view=spec.view), spec.on_refusal
    default = dataclasses.replace(spec, versions=dataclasses.replace(spec.versions, on_refusal=None)).on_refusal
    versions = dataclasses.replace(spec.versions, on_refusal=None if said == default else said)
    plain = _plain(dataclasses.replace(spec, publish=publish, versions=versions))
    plain["attributes"] = list(plain["attributes"].items())
    if spec.pinned is not None:
        plain["search"]["node"] = list(spec.pinned)  # written as a mapping or as a list, it is the same node
    return json_text({"format": FORMAT, "spec": plain})


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return {"name": value.name, **_used(value.name, parameters_of(value))}
    if dataclasses.is_dataclass(value):
        left_out = LEFT_OUT.get(type(value), ())
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.name not in left_out}
        used = _used(type(value).__name__, fields)
        return used | ({"form": value.form} if hasattr(value, "form") else {})
    if isinstance(value, Fraction):
        return str(value) if value.denominator > 1 else int(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


def _used(owner: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The keys of a class or model that may change what is published, and do not have their default."""
    defaults, no_part = DEFAULTS.get(owner, {}), NO_PART.get(owner, ())
    plain = {name: _plain(value) for name, value in fields.items() if name not in no_part}
    return {name: value for name, value in plain.items() if name not in defaults or value != defaults[name]}
