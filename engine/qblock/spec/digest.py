"""The digest of a spec: the same for the same meaning, whatever the layout of the file; secrets are not part of it."""

from __future__ import annotations

import dataclasses
import hashlib
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from qblock.canonical import canonical as json_text
from qblock.models import Model, asked
from qblock.spec.formats import NEWEST, NotExpressible, as_in, kept
from qblock.spec.model import Publish, Requirement, Source, Spec

LEFT_OUT: dict[type, tuple[str, ...]] = {
    Spec: ("origin", "private"),
    Source: ("url",),
    Publish: ("url", "path", "readers_checked"),
    Requirement: ("line", "index", "model"),
}
"""Secrets, places in the file, and what is written elsewhere too."""


def spec_digest(spec: Spec, format_: int = NEWEST) -> str:
    """sha256 of the canonical form, as hexadecimal text. URLs, layout and defaults written out make no difference.

    Raises NotExpressible for an older format that does not know a key which the spec uses.
    """
    return hashlib.sha256(canonical(spec, format_).encode("utf-8")).hexdigest()


def same_spec(spec: Spec, recorded: str | None) -> bool:
    """Whether a recorded digest, in whatever format was the newest then, is that of this spec."""
    return recorded is not None and any(recorded == _digest(spec, format_) for format_ in range(NEWEST, -1, -1))


def _digest(spec: Spec, format_: int) -> str | None:
    try:
        return spec_digest(spec, format_)
    except NotExpressible:
        return None


def canonical(spec: Spec, format_: int = NEWEST) -> str:
    """A spec as JSON text that starts with the format's number; without what equals that format's defaults.

    Keys are sorted, except that columns stay in their order, which is that of a node's levels. Format 0, from before
    formats had numbers, has none and writes every key.
    """
    publish, said = dataclasses.replace(spec.publish, view=spec.view), spec.on_refusal
    default = dataclasses.replace(spec, versions=dataclasses.replace(spec.versions, on_refusal=None)).on_refusal
    versions = dataclasses.replace(spec.versions, on_refusal=None if format_ > 1 and said == default else said)
    plain = _plain(dataclasses.replace(spec, publish=publish, versions=versions), format_)
    plain["attributes"] = list(plain["attributes"].items())
    if spec.pinned is not None:
        plain["search"]["node"] = list(spec.pinned)  # written as a mapping or as a list, it is the same node
    content = {"format": format_, "spec": plain} if format_ else plain
    return json_text(content)


def _plain(value: Any, format_: int) -> Any:
    if isinstance(value, Model):
        return {"name": value.name, **kept(value.name, _items(asked(value), format_), format_)}
    if dataclasses.is_dataclass(value):
        left_out = LEFT_OUT.get(type(value), ())
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.name not in left_out}
        fields = as_in(type(value).__name__, fields, format_)
        found = kept(type(value).__name__, _items(fields, format_), format_)
        return found | ({"form": value.form} if hasattr(value, "form") else {})
    if isinstance(value, Fraction):
        return str(value) if value.denominator > 1 else int(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_plain(item, format_) for item in value]
    if isinstance(value, dict):
        return _items(value, format_)
    return value


def _items(values: dict[str, Any], format_: int) -> dict[str, Any]:
    return {str(key): _plain(item, format_) for key, item in values.items()}
