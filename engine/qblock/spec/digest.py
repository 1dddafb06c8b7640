"""The digest of a spec: the same for the same meaning, whatever the layout of the file; secrets are not part of it."""

from __future__ import annotations

import dataclasses
import hashlib
from datetime import date, timedelta
from fractions import Fraction
from functools import cache
from typing import Any

from pydantic.dataclasses import is_pydantic_dataclass

from qblock.canonical import canonical as json_text
from qblock.models import Model, parameters_of
from qblock.spec.condition import condition_of
from qblock.spec.model import Spec
from qblock.spec.privacy import Requirement
from qblock.spec.sections import Attribute, Publish, Search, Source, Versions

FORMAT = 2
"""The number that canonical forms start with. Another default, or another meaning of a key, takes the next number
(tests/spec/formats/defaults.json has the defaults of this one)."""

LEFT_OUT: dict[type, tuple[str, ...]] = {
    Spec: ("origin", "private", "report"),
    Attribute: ("because",),
    Source: ("url",),
    Search: ("strategy", "answer", "roll_up", "memory_limit"),
    Publish: ("url", "path", "readers_checked", "lock_timeout", "storage_version"),
    Versions: ("confirm", "max_lag", "max_wait"),
    Requirement: ("line", "index", "model", "groups", "of_rows"),
}
"""Keys that cannot change what is published: secrets, places in the file, what is written elsewhere too, and
what only the report says."""


def spec_digest(spec: Spec) -> str:
    """sha256 of the canonical form, as hexadecimal text. URLs, layout and defaults written out make no difference."""
    return hashlib.sha256(canonical(spec).encode("utf-8")).hexdigest()


def canonical(spec: Spec) -> str:
    """A spec as JSON text that starts with the format's number; without what equals the defaults.

    Keys are sorted, except that columns stay in their order, which is that of a node's levels.
    """
    weighted = None if spec.publish.weights == (spec.newcomers is not None) else spec.publish.weights
    publish, said = dataclasses.replace(spec.publish, view=spec.view, weights=weighted), spec.on_refusal
    default = dataclasses.replace(spec, versions=dataclasses.replace(spec.versions, on_refusal=None)).on_refusal
    versions = dataclasses.replace(spec.versions, on_refusal=None if said == default else said)
    where = None if spec.source.where is None else str(condition_of(spec.source.where))
    source = dataclasses.replace(spec.source, where=where)
    plain = _plain(dataclasses.replace(spec, publish=publish, versions=versions, source=source))
    plain["attributes"] = list(plain["attributes"].items())
    if spec.pinned is not None:
        plain["search"]["node"] = list(spec.pinned)  # written as a mapping or as a list, it is the same node
    return json_text({"format": FORMAT, "spec": plain})


@cache
def defaults_of(owner: type) -> dict[str, Any]:
    """The defaults of a class's fields, as a canonical form has them; of a field that must be given, a marker."""
    if is_pydantic_dataclass(owner):
        fields = owner.__pydantic_fields__.items()
        return {name: _plain(info.get_default(call_default_factory=True)) for name, info in fields}
    return {field.name: _plain(field.default) for field in dataclasses.fields(owner)}


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return {"name": value.name, **_used(type(value), parameters_of(value))}
    if dataclasses.is_dataclass(value):
        owner = type(value)
        used = _used(owner, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
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


def _used(owner: type, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a class or model that may change what is published, and do not have their default."""
    defaults = defaults_of(owner)
    plain = {name: _plain(value) for name, value in fields.items() if name not in LEFT_OUT.get(owner, ())}
    return {name: value for name, value in plain.items() if value != defaults[name]}
