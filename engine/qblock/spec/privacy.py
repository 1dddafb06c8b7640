"""The `privacy` entries of a spec, built into models through the registry of model classes."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, Union, get_args, get_origin

from qblock.errors import ParameterError
from qblock.models import BY_NAME, Model
from qblock.models.multi import check_base
from qblock.spec.document import Document, Path, Scalar
from qblock.spec.fields import choices, exact_number, flag_of, null_or_text, table_parts, text_of, whole_number
from qblock.spec.guards import KIND, read_guards
from qblock.spec.model import Requirement
from qblock.spec.prior import read_prior


def parameters(model: type[Model]) -> dict[str, tuple[Any, bool]]:
    """Name in the spec -> (type, required) for every parameter of a model, in the order in which it declares them.

    A population that a model can do without (its counts may be given) has to be named in a spec.
    """
    hints = typing.get_type_hints(model)
    return {
        field.name.rstrip("_"): (
            hints[field.name],
            field.name == "population"
            or (field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING),
        )
        for field in dataclasses.fields(model)
        if field.init
    }


def requirements(document: Document, sensitives: list[str]) -> tuple[Requirement, ...]:
    """The valid entries of `privacy`; what is wrong is recorded in the document."""
    root: Path = ("privacy",)
    entries = document.data.get("privacy")
    if entries is None:
        document.wrong(root, "there is no privacy model; write a list of models: `- k_anonymity: {k: 4}`")
        return ()
    if not isinstance(entries, list) or not entries:
        document.wrong(root, "{it} is not a list of models; write one or more: `- k_anonymity: {k: 4}`")
        return ()
    built = [_entry(document, (*root, index), entry, sensitives) for index, entry in enumerate(entries)]
    return tuple(requirement for requirement in built if requirement is not None)


def _entry(document: Document, path: Path, entry: Any, sensitives: list[str]) -> Requirement | None:
    if not isinstance(entry, dict) or len(entry) != 1:
        document.wrong(path, "{it} is not one model with its parameters; write `- k_anonymity: {k: 4}`")
        return None
    ((name, given),) = entry.items()
    place = (*path, name)
    model = BY_NAME.get(name)
    if model is None:
        document.wrong(place, f"{name} is not a model; {choices(BY_NAME, name)}")
        return None
    if given is not None and not isinstance(given, dict):
        document.wrong(place, "{it} is not a mapping of parameters; write " + example(model))
        return None
    count = len(document.problems)
    sensitive = _sensitive(document, place, model, given or {}, sensitives)
    values = _values(document, place, model, given or {}, sensitive)
    needed = {name for name, (_, required) in parameters(model).items() if required}
    if len(document.problems) > count or not needed <= set(values):
        return None
    models = tuple(
        _build(document, place, model, values, attribute, len(sensitive) > 1) for attribute in sensitive or (None,)
    )
    built = tuple(item for item in models if item is not None)
    if len(built) < len(models):
        return None
    prior = read_prior(given["prior"]) if given and "prior" in values else None
    guards = read_guards(given["predicates"]) if given and values.get("predicates") == KIND else None
    line = document.place(place)[0]
    return Requirement(
        built[0], sensitive, int(path[1] or 0), line, built, None if isinstance(prior, str) else prior, guards
    )


def _sensitive(
    document: Document, place: Path, model: type[Model], given: dict[str, Any], sensitives: list[str]
) -> tuple[str, ...]:
    path = (*place, "sensitive")
    raw = given.get("sensitive")
    if not model.about.uses_sensitive:
        if "sensitive" in given:
            document.wrong(path, f"{model.name} does not use a sensitive attribute; remove this key")
        return ()
    if raw is None:
        if not sensitives:
            document.wrong(place, "no column is sensitive; give a column that role")
        elif len(sensitives) > 1:
            document.wrong(
                place, f"there are several sensitive attributes; add `sensitive: NAME`; {choices(sensitives)}"
            )
        return tuple(sensitives[:1])
    if isinstance(raw, list) and len(raw) < 2:
        document.wrong(path, "a list asks for the multi-attribute form, of two names or more; write `sensitive: NAME`")
        return ()
    names: list[str] = []
    for index, item in enumerate(raw if isinstance(raw, list) else [raw]):
        where = (*path, index) if isinstance(raw, list) else path
        name = item.text if isinstance(item, Scalar) else item
        if not isinstance(name, str) or name not in sensitives:
            document.wrong(where, "{it} is not a sensitive attribute; " + choices(sensitives or ["(none)"], name))
        elif name in names:
            document.wrong(where, "{it} appears twice in the list; remove one")
        else:
            names.append(name)
    return tuple(names)


def _values(
    document: Document, place: Path, model: type[Model], given: dict[str, Any], sensitive: tuple[str, ...]
) -> dict[str, Any]:
    known = parameters(model)
    own = _per_attribute(model)
    valid = [*known, "sensitive"] if model.about.uses_sensitive else list(known)
    values: dict[str, Any] = {}
    for key, raw in given.items():
        if key == "sensitive":
            continue
        path = (*place, key)
        if key not in known:
            document.wrong(path, f"{key} is not a parameter of {model.name}; {choices(valid, key)}")
            continue
        try:
            if key in own and len(sensitive) > 1 and isinstance(raw, dict):
                unknown = [name for name in raw if name not in sensitive]
                if unknown:
                    raise ValueError(
                        f"{unknown[0]} is not one of the attributes named here; {choices(sensitive, unknown[0])}"
                    )
                values[key] = {name: coerce(known[key][0], raw.get(name, [])) for name in sensitive}
            elif key == "population":
                values[key] = _population(raw)
            elif key == "prior":
                prior = read_prior(raw)
                values[key] = prior if isinstance(prior, str) else prior.kind
            elif key == "predicates" and isinstance(raw, dict):
                read_guards(raw)
                values[key] = KIND
            elif key == "predicates" and raw == KIND:
                raise ValueError("{it} needs its table; write {table: TABLE, entity: COLUMN, value: COLUMN}")
            else:
                values[key] = coerce(known[key][0], raw)
        except ValueError as error:
            document.wrong(path, str(error))
    missing = [name for name, (_, required) in known.items() if required and name not in given]
    if missing:
        document.wrong(place, f"{', '.join(missing)} is missing; write {example(model)}")
    return values


def _per_attribute(model: type[Model]) -> frozenset[str]:
    return frozenset(parameter.name for parameter in model.about.parameters if parameter.per_attribute)


def _population(raw: Any) -> str:
    if isinstance(raw, dict) and list(raw) != ["table"]:
        raise ValueError("{it} does not name a table; write {table: schema.table}")
    name = text_of(raw["table"] if isinstance(raw, dict) else raw)
    table_parts(name)
    return name


def _build(
    document: Document, place: Path, model: type[Model], values: dict[str, Any], attribute: str | None, several: bool
) -> Model | None:
    names = {field.name.rstrip("_"): field.name for field in dataclasses.fields(model)}
    own = _per_attribute(model)
    mine = {
        names[key]: value[attribute] if key in own and isinstance(value, dict) else value
        for key, value in values.items()
    }
    try:
        built = model(**mine)
        if several:
            check_base(built)
        return built
    except ParameterError as error:
        message = str(error).removeprefix(f"{model.name}: ")
        named = re.match(r"(\w+)\b", message)
        path = (*place, named[1]) if named and named[1] in values else place
        document.wrong(path, message)
        return None


def example(model: type[Model]) -> str:
    """How an entry of this model is written: `name: {parameters}`."""
    required = ", ".join(f"{name}: ..." for name, (_, needed) in parameters(model).items() if needed)
    return f"`{model.name}: {{{required}}}`"


def coerce(hint: Any, raw: Any) -> Any:
    """The value of the file as the type that a model declares: exact numbers, texts, tuples. Raises ValueError."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(args, raw)
    if origin is Literal:
        return _literal(args, raw)
    if hint is int:
        return whole_number(raw)
    if hint is Fraction:
        return Fraction(exact_number(raw))
    if hint is bool:
        return flag_of(raw)
    if hint is str:
        return text_of(raw)
    if hint is type(None):
        return null_or_text(raw) if raw is None else _wrong()
    if _is_list(hint):
        return _sequence(origin or hint, args, raw)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(raw, dict):
            raise ValueError("{it} is not a mapping")
        return {key: coerce(args[1], value) for key, value in raw.items()}
    return exactly(raw)


def _wrong() -> Any:
    raise ValueError("{it} is not valid here")


def _union(args: tuple[Any, ...], raw: Any) -> Any:
    if {int, Fraction} <= set(args) and (raw is not None or type(None) not in args):
        return exact_number(raw)
    messages = []
    for member in sorted(args, key=lambda member: _is_list(member) != isinstance(raw, list)):
        try:
            return coerce(member, raw)
        except ValueError as error:
            messages.append(str(error))
    raise ValueError(messages[0])


def _is_list(hint: Any) -> bool:
    origin: Any = get_origin(hint) or hint
    return origin in (tuple, frozenset)


def _literal(valid: tuple[Any, ...], raw: Any) -> Any:
    given = raw.text if isinstance(raw, Scalar) else raw
    for choice in valid:
        if given == choice or (isinstance(choice, bool) and isinstance(raw, Scalar) and raw.value is choice):
            return choice
    raise ValueError("{it} is not valid; " + choices([str(choice) for choice in valid], given))


def _sequence(kind: Any, args: tuple[Any, ...], raw: Any) -> Any:
    if not isinstance(raw, list):
        raise ValueError("{it} is not a list; write one: [a, b]")
    if kind is tuple and args and args[-1] is not Ellipsis:
        if len(raw) != len(args):
            raise ValueError(f"the list has {len(raw)} items; it needs {len(args)}")
        return tuple(coerce(member, item) for member, item in zip(args, raw, strict=True))
    return kind(coerce(args[0] if args else Any, item) for item in raw)


def exactly(raw: Any) -> Any:
    """A value of the file as plain data: int or Fraction, text, bool, None, tuples and mappings of these."""
    if isinstance(raw, Scalar):
        return exact_number(raw) if not isinstance(raw.value, bool) else raw.value
    if isinstance(raw, list):
        return tuple(exactly(item) for item in raw)
    return {key: exactly(value) for key, value in raw.items()} if isinstance(raw, dict) else raw
