"""The reference pages of the documents' site, made from the code: nothing of them is kept in the repository."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer
from messages import messages
from typer.main import get_command

import qblock
from qblock.api import answer_schema, json_schema
from qblock.cli.app import EPILOG, EXAMPLES, application
from qblock.models import REGISTRY, parameters_of
from qblock.models.base import Parameter, Range
from qblock.models.examples import example, markdown
from qblock.publish.helpers import BLOCKS_SAY, KEPT
from qblock.publish.midpoints import MIDPOINTS_SAY
from qblock.results.schemas import ANSWERS

Lines = Iterator[str]
INLINE = re.compile(r"\s+")
EXIT_STATUS = EPILOG.split("\n\n")[0].removeprefix("Exit status: ")
"""The same for every command, as `qblock --help` has it."""


def pages() -> dict[str, str]:
    """The text of each page by its path in the site."""
    made: dict[str, Callable[[], Iterable[str]]] = {
        "command-line": command_line,
        "spec": spec_keys,
        "models": models,
        "views": views,
        "json": answers,
        "python": python,
        "messages": messages,
    }
    texts = {name: _text(write()) for name, write in made.items()} | command_pages()
    return {f"reference/{name}.md": text for name, text in texts.items()}


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Lines:
    yield "| " + " | ".join(heading) + " |"
    yield "|" + "---|" * len(heading)
    for row in rows:
        yield "| " + " | ".join(cell(one) for one in row) + " |"
    yield ""


def cell(text: str) -> str:
    found = INLINE.sub(" ", text).strip().replace("|", "\\|")
    return found if found.startswith("`") else found.replace("<", "&lt;")


def command_line() -> Lines:
    yield "# Command line"
    yield "\nEach command has a page, made from its `--help`; [Commands](../commands.md) says how they play together.\n"
    rows = ((f"[`qblock {name}`](commands/{page_name(name)}.md)", summary(command)) for name, command in commands())
    yield from table(("command", "what it does"), rows)
    yield f"## Exit status\n\n{EXIT_STATUS}\n"


def commands() -> Iterator[tuple[str, Any]]:
    """Each command that does something by its whole name (`hierarchy build`)."""
    yield from _commands(get_command(application()), ())


def _commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def page_name(command: str) -> str:
    return command.replace(" ", "-")


def command_pages() -> dict[str, str]:
    """A page for each command, by its path below `reference/`."""
    return {f"commands/{page_name(name)}": _text(command_page(name, command)) for name, command in commands()}


def command_page(name: str, command: Any) -> Lines:
    yield f"# qblock {name}\n\n{description(command)}\n"
    context = typer.Context(command, info_name=f"qblock {name}")
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield f"## Usage\n\n```text\n{usage}\n```\n\n## Options\n"
    records = [record for one in command.params if (record := one.get_help_record(context)) is not None]
    yield from table(("option", "what it does"), ((f"`{option.strip()}`", says) for option, says in records))
    if EXAMPLES.get(name):
        shown = "\n".join(EXAMPLES[name])
        yield f"## Examples\n\n```text\n{shown}\n```\n"
    yield f"## Exit status\n\n{EXIT_STATUS}\n"


def description(command: Any) -> str:
    return inspect.cleandoc(command.help or "").split("\f")[0].split("Example")[0].rstrip()


def summary(command: Any) -> str:
    return description(command).split("\n\n")[0]


def spec_keys() -> Lines:
    schema = json_schema()
    yield "# Keys of a spec"
    yield "\nFrom the JSON Schema that `qblock schema` prints; [spec.md](../spec.md) says how they play together.\n"
    yield from _keys("", schema, schema["$defs"], ())


def _keys(path: str, schema: Mapping[str, Any], known: Mapping[str, Any], above: tuple[str, ...]) -> Lines:
    """A table of the keys of an object, then those of the objects within it."""
    inner: list[tuple[str, Mapping[str, Any], str]] = []
    rows = []
    for name, said in schema.get("properties", {}).items():
        shown = "; ".join(str(one) for one in said.get("examples", ()))
        rows.append((f"`{name}`", said.get("description", ""), f"`{shown}`" if shown else ""))
        inner += [(f"{path}{name}.", found, of) for of, found in _objects(said, known) if of not in above]
    if rows:
        yield f"## {path.rstrip('.') or 'A spec'}\n"
        yield from table(("key", "meaning", "example"), rows)
    for place, found, of in inner:
        if place != "privacy.":  # each model has its own on the page of the models
            yield from _keys(place, found, known, (*above, of))


def _objects(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects that a value may be, each by the name of its definition."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if "properties" in known[name]:
            yield name, known[name]
        else:
            yield from _objects(known[name], known)
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *_more(schema)):
        yield from _objects(one, known)


def _more(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield schema[key]


def models() -> Lines:
    yield "# Privacy models"
    yield "\nFrom the registry; [models.md](../models.md) defines each of them.\n"
    yield markdown()
    for model in REGISTRY:
        about = model.about
        yield f"## {model.name}\n"
        names = {p.name: p.example for p in about.parameters} | {"sensitive": "diagnosis"}
        meaning = _filled(about.meaning, names)
        yield f"{meaning[0].upper()}{cell(meaning[1:])}.\n"
        given = {p.name: p for p in about.parameters}
        rows = []
        for field in dataclasses.fields(model):
            one = given.get(field.name)
            default = "required" if field.default is dataclasses.MISSING else _default(field.default)
            rows.append((f"`{field.name}`", "" if one is None else _valid(one), default))
        yield from table(("parameter", "valid", "where it is left out"), rows)
        shown_ = {name: value for name, value in parameters_of(example(model)).items() if value is not None}
        shown = ", ".join(f"{name}: {_written(value)}" for name, value in shown_.items())
        yield f"An example: `{model.name}: {{{shown}}}`. Source: {about.citation}.\n"


def _valid(parameter: Parameter) -> str:
    valid = parameter.valid
    if isinstance(valid, Range):
        return f"`{valid.text(parameter.name)}`"
    return ", ".join(f"`{word}`" for word in valid or ())


def _default(value: Any) -> str:
    return "" if value is None else f"`{_written(value)}`"


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filled(meaning: str, names: Mapping[str, Any]) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", lambda found: str(names.get(found[1], found[1])), meaning)


def views() -> Lines:
    yield "# Helper views"
    yield "\nBeside the view of a release (here `stays`), with the same readers, always of the version that is shown;"
    yield "[cookbook.md](../cookbook.md) uses them.\n"
    for helper in KEPT:
        yield f"## stays_{helper.kind}\n\n{helper.says.format(view='stays')}\n"
        yield from table(("column", "type"), ((f"`{name}`", kind) for name, kind in helper.columns.items()))
    yield f"## stays_blocks\n\n{BLOCKS_SAY.format(view='stays')}\n"
    yield "Columns: `block`, the quasi-identifiers, `rows`.\n"
    yield f"## stays_midpoints\n\n{MIDPOINTS_SAY.format(view='stays')}\n"
    yield "Columns: those of the view, and for each column with bounds one of its middles: `age_mid`.\n"


def answers() -> Lines:
    yield "# Answers in JSON"
    yield "\nThe keys of what `--json` prints, from the schemas that `qblock schema --of NAME` prints;"
    yield "[json.md](../json.md) says what they mean.\n"
    for name, (said, _) in ANSWERS.items():
        yield f"## {name}\n\n{said}\n"
        schema = answer_schema(name)
        yield from table(("key", "type"), _fields("", schema, schema.get("$defs", {})))


def _fields(path: str, schema: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """known: the definitions that references name."""
    forms = [_resolved(form, known) for form in schema.get("anyOf", [schema])]
    properties = {name: one for form in reversed(forms) for name, one in form.get("properties", {}).items()}
    for name, one in properties.items():
        always = all(name in form.get("required", ()) for form in forms)
        yield f"`{path}{name}`", _type(one) + ("" if always else ", may be absent")
        within, many = one, ""
        if one.get("type") == "array":
            within, many = one.get("items", {}), "[]"
        for other in (within, *within.get("anyOf", ())):
            if _resolved(other, known).get("properties"):
                yield from _fields(f"{path}{name}{many}.", _resolved(other, known), known)


def _resolved(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    resolved: Mapping[str, Any] = known[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return resolved


def _type(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "anyOf" in schema:
        types = [_type(one) for one in schema["anyOf"]]
        return " or ".join(one for one in types if one != "integer" or "number" not in types)
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if "items" in schema else "list"
    kinds = schema.get("type", "object")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def python() -> Lines:
    yield "# Python"
    yield "\nEverything that `import qblock` gives; [python.md](../python.md) teaches it.\n"
    for name in sorted(qblock.__all__, key=lambda name: (inspect.isclass(getattr(qblock, name)), name)):
        found = getattr(qblock, name)
        if not callable(found):
            continue
        yield f"## {name}\n"
        yield from _signature(name, found)
        if inspect.isclass(found):
            for method, one in inspect.getmembers(found, inspect.isfunction):
                if not method.startswith("_") and method in vars(found):
                    yield f"### {name}.{method}\n"
                    yield from _signature(method, one)


def _signature(name: str, found: Any) -> Lines:
    try:
        signature = str(inspect.signature(found))
    except ValueError:
        signature = "(...)"
    yield f"```text\n{name}{signature}\n```\n"
    yield f"{inspect.cleandoc(found.__doc__ or '')}\n"
