"""Reads a spec, and reports everything that is wrong with it at once."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import is_pydantic_dataclass
from pydantic.fields import FieldInfo

from qblock.errors import InputError, choices
from qblock.files import read_input
from qblock.spec import checks
from qblock.spec.document import Document, document_of, parse
from qblock.spec.document import Path as Place
from qblock.spec.model import Origin, Spec
from qblock.spec.privacy import requirements
from qblock.spec.sections import ROLES
from qblock.spec.source_file import read_source_file
from qblock.spec.sources import FORMS, Published
from qblock.spec.urls import has_password
from qblock.spec.written import flow

ADAPTER = TypeAdapter(Spec)
OPEN = "???"
"""What stands in a first spec where a person has to decide."""


def load_spec(path: str | Path, environment: Mapping[str, str] = os.environ) -> Spec:
    """Read and check a spec file. Raises InputError with one line FILE:LINE: path: problem for each problem."""
    if "://" in str(path):
        raise InputError("a spec is a YAML file, and this is the URL of a database")
    return read_spec(read_input(path), path, environment)


def read_spec(text: str, path: str | Path = "spec.yaml", environment: Mapping[str, str] = os.environ) -> Spec:
    """The same for the text of a file that stands, or would stand, at `path`."""
    return _spec_of(parse(text, str(path), environment), path)


def spec_of(values: Mapping[str, Any], path: str | Path = "spec") -> Spec:
    """The same for a spec that is a mapping with the keys of the file; nothing in a text stands for a variable.

    Numbers are taken exactly, a float as it is written (2.8 is 14/5). path: of the file that it would be: relative
    paths start there, and messages name the path of a key without a line.
    """
    return _spec_of(document_of(values, str(path)), path)


def table_as_it_stands(
    url: str,
    table: str,
    quasi_identifiers: Sequence[str],
    sensitives: Sequence[str],
    *,
    taxonomies: Mapping[str, Mapping[str, str]] | None = None,
    levels: Mapping[str, int] | None = None,
    path: str | Path = "command line",
) -> Spec:
    """A spec under which each quasi-identifier is shown or hidden, and NULL is a value of its own.

    taxonomies: `file` and `layout` by sensitive attribute; levels: of these, where the table has labels and no leaves;
    path: what messages call the spec, in whose folder relative files are. Raises InputError where one is not valid.
    """
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier", "hierarchy": "suppress", "nulls": "top"} for name in quasi_identifiers
    }
    attributes |= {name: {"role": "sensitive", "nulls": "value"} for name in sensitives}
    for name, taxonomy in (taxonomies or {}).items():
        attributes[name]["taxonomy"] = dict(taxonomy)
    for name, level in (levels or {}).items():
        attributes[name]["publish_as"] = {"level": level}
    document = {
        "version": 1,
        "release": "audit",
        "source": {"url": url, "table": table},
        "attributes": attributes,
        "privacy": [{"k_anonymity": {"k": 1}}],
    }
    return spec_of(document, path)


def _spec_of(document: Document, path: str | Path) -> Spec:
    if not isinstance(document.data, dict):
        raise InputError(*document.report(), suggestions=document.suggestions())
    _check_decided(document)
    read_source_file(document)
    columns = checks.roles(document)
    entries = requirements(document, [name for name, role in columns.items() if role == "sensitive"])
    if "origin" in document.data:
        document.wrong(("origin",), f"unknown key; {choices(keys(()))}")
    origin = Origin(Path(path), document.places if document.lines else {}, tuple(_warnings(document)))
    spec = None
    try:
        spec = ADAPTER.validate_python(_null_is_top(document.data) | {"privacy": entries, "origin": origin})
    except ValidationError as error:
        for item in error.errors(include_url=False, include_input=False):
            _record(document, item)
    checks.check(document, columns, entries)
    if spec is not None:
        checks.check_people(document, spec)
        checks.check_newcomers(document, spec)
        checks.check_projections(document, spec)
        checks.check_groups(document, spec)
        checks.check_weights(document, spec)
        checks.check_since(document, spec)
        checks.check_typical(document, spec)
        checks.check_published(document, spec)
    if document.problems or spec is None:
        raise InputError(*document.report(), suggestions=document.suggestions())
    origin = replace(origin, warnings=(*origin.warnings, *_ambiguous(spec)))
    return replace(spec, publish=replace(spec.publish, view=spec.view), origin=origin)


def _null_is_top(data: dict[str, Any]) -> dict[str, Any]:
    """A document with what the `unknown` of a quasi-identifier says of NULL."""
    attributes = data.get("attributes")
    if not isinstance(attributes, dict):
        return data
    quasi = {n: of for n, of in attributes.items() if isinstance(of, dict) and of.get("role") == "quasi_identifier"}
    return data | {"attributes": attributes | {n: {"nulls": "top"} | of for n, of in quasi.items() if "unknown" in of}}


def _check_decided(document: Document) -> None:
    """Raise InputError for what `qblock init` has left to a person, before anything that follows from it is said."""
    for path in sorted(document.raw, key=document.place):
        if document.raw[path] != OPEN:
            continue
        what, last = "write what it should be", path[-1] if path else None
        if path[:1] == ("attributes",) and (len(path) == 2 or last == "role"):
            what = f"write its role: {', '.join(ROLES[:-1])} or {ROLES[-1]}"
        elif path[:1] == ("privacy",) and "sensitive" in path:
            what = "write the sensitive attribute that it is about"
        document.wrong(path, f"`{OPEN}` stands for a decision that is yours; {what}")
    if document.problems:
        raise InputError(*document.report(), suggestions=document.suggestions())


def _warnings(document: Document) -> list[str]:
    if not document.lines:
        return []  # there is no file
    warnings = []
    for place in (("source", "url"), ("publish", "url")):
        if has_password(document.raw.get(place, "")):
            where = f"{document.file}:{document.place(place)[0]}: {'.'.join(place)}"
            warnings.append(f"{where}: the password is written in the file; take it from the environment: ${{NAME}}")
    return warnings


def _ambiguous(spec: Spec) -> Iterator[str]:
    """DuckDB calls a database like its file up to the first dot, whatever the case."""
    if spec.publish.url is not None and spec.publish.url.url.startswith("duckdb"):
        name = PurePath(spec.publish.url.url.partition("?")[0]).name.partition(".")[0]
        schema = spec.publish.schema
        if name.lower() == schema.lower() != "main":
            yield (
                f"{spec.at('publish', 'schema')}: DuckDB calls a database like its file, here {schema} too, so readers "
                f"have to write {schema}.{schema}.{spec.view}. Give the file or the schema another name"
            )


def _record(document: Document, item: Any) -> None:
    """Turn one of pydantic's errors into a problem with its place and the remedy."""
    loc: Place = tuple(part for part in item["loc"] if not str(part).startswith("form:"))
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        document.wrong(loc[:-1], f"{loc[-1]} is missing; add `{_line(item['loc'])}`")
    elif kind == "unexpected_keyword_argument":
        document.wrong(loc, f"unknown key; {choices(keys(item['loc'][:-1]), loc[-1])}")
    elif kind == "literal_error":
        given = document.raw.get(loc, document.raw.get(loc[:-1], ""))
        document.wrong(loc, "{it} is not valid; " + choices(re.findall(r"'([^']*)'", context["expected"]), given))
    elif kind in ("union_tag_not_found", "union_tag_invalid"):
        document.wrong(loc, _form(document, loc))
    elif kind in ("dataclass_type", "dict_type"):
        document.wrong(loc, f"{{it}} is not a mapping; valid keys: {', '.join(keys(item['loc'])) or 'column names'}")
    elif kind == "item":
        document.wrong((*loc, context["index"]), context["message"])
    elif kind == "value_error":
        document.wrong(loc, str(context["error"]))
    else:
        document.wrong(loc, item["msg"])


def _form(document: Document, loc: Place) -> str:
    value = document.data
    for part in loc:
        value = value[part]
    named = next(iter(value)) if isinstance(value, dict) and value else value
    forms, noun = (FORMS, "a hierarchy") if loc[-1] != "publish_as" else (get_args(Published), "what may be published")
    known = [source.form for source in forms]
    close = difflib.get_close_matches(named, known, 1, 0.6) if isinstance(named, str) else []
    what = f"{{{named}: ...}}" if isinstance(value, dict) and value else "{it}"
    valid = "; ".join(source.example for source in forms)
    return f"{what} is not {noun}; {f'did you mean {close[0]}? ' if close else ''}valid: {valid}"


def keys(loc: tuple[str | int, ...]) -> list[str]:
    """The keys that are valid at a location that pydantic reports; none where any name is."""
    return list(_fields(loc))


def _fields(loc: tuple[str | int, ...]) -> dict[str, FieldInfo]:
    """The same, with what is said of each."""
    if loc == ("attributes",):
        return {}
    owners: list[Any] = [Spec]
    for part in loc[:1] + loc[2:] if loc[:1] == ("attributes",) else loc:
        if not isinstance(part, int):  # the place in a list
            owners = [hint for owner in owners for hint in _inside(owner, part)]
    fields = [item for owner in owners for item in owner.__pydantic_fields__.items()]
    return {info.alias or name: info for name, info in fields if name != "origin"}


def _line(loc: tuple[str | int, ...]) -> str:
    """A line for a key that is missing, with an example of its value."""
    name = str(loc[-1])
    examples = _fields(loc[:-1])[name].examples or ["..."]
    return f"{name}: {flow(examples[0])}"


def _inside(owner: Any, part: str) -> list[Any]:
    if part.startswith("form:"):
        return [owner] if getattr(owner, "form", None) == part[5:] else []
    field = owner.__pydantic_fields__.get(part)
    return [] if field is None else _classes(field.annotation)


def _classes(hint: Any) -> list[Any]:
    """The dataclasses that an annotation mentions."""
    if is_pydantic_dataclass(hint):
        return [hint]
    return [owner for argument in get_args(hint) for owner in _classes(argument)]
