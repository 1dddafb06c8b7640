"""The digest of a spec: the same for the same meaning, whatever the layout of the file; no secret takes part."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from datetime import timedelta
from fractions import Fraction
from typing import Any

from qblock.models import Model
from qblock.spec.model import Publish, Requirement, Source, Spec

LEFT_OUT: dict[type, tuple[str, ...]] = {
    Spec: ("origin",),
    Source: ("url",),
    Publish: ("url",),
    Requirement: ("line", "index", "model"),
}
"""Secrets, places in the file, and what is said again elsewhere."""


def spec_digest(spec: Spec) -> str:
    """sha256 of the canonical form, as hexadecimal text. URLs, layout and defaults written out make no difference."""
    return hashlib.sha256(canonical(spec).encode("utf-8")).hexdigest()


def canonical(spec: Spec) -> str:
    """A spec as JSON text: keys sorted, except that columns stay in their order, which is that of a node's levels."""
    plain = _plain(dataclasses.replace(spec, publish=dataclasses.replace(spec.publish, view=spec.view)))
    plain["attributes"] = list(plain["attributes"].items())
    plain["search"]["node"] = spec.pinned
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return {"name": value.name, **{name: _plain(asked) for name, asked in value.asked().items()}}
    if dataclasses.is_dataclass(value):
        left_out = LEFT_OUT.get(type(value), ())
        names = [field.name for field in dataclasses.fields(value) if field.name not in left_out]
        kept = {name: _plain(getattr(value, name)) for name in names}
        return kept | ({"form": value.form} if hasattr(value, "form") else {})
    if isinstance(value, Fraction):
        return str(value) if value.denominator > 1 else int(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
