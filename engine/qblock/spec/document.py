"""A YAML file as plain values: numbers are exact, and every key and value has its line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import yaml

from qblock.errors import quoted

Path = tuple[str | int | None, ...]
"""The keys and indexes that lead to a value; None is a key that is null (see NULL_KEYS)."""

INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
NULL_KEYS = ("prior", "values")
"""The end of the path of the mapping whose keys are values of a column: there an unquoted null is NULL, not a text."""
NULLS = {"", "~", "null", "Null", "NULL"}
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
VARIABLE = re.compile(r"\$(\$|\{([^{}]*)\})")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SUGGESTED = re.compile(r"did you mean (.*?)\? valid: ", re.DOTALL)
"""As `choices` writes it."""
LONGEST_NUMBER = 200
MOST_NODES = 200_000
"""Of a file, or of what its aliases repeat."""
DEEPEST = 50
MOST_KEPT = 20_000
"""Characters of a text whose nodes are kept."""
VALUES = frozenset({"domain", "order", "allowed", "protected", "values", "predicates", "where"})
"""Keys under which values of the source are written down."""


@dataclass(frozen=True)
class Scalar:
    """An unquoted number or boolean: its exact value, and its text for where a text is meant (a code, a label)."""

    text: str
    value: int | Fraction | bool


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong, at a place of the file."""

    line: int
    column: int
    path: str
    message: str


@dataclass
class Document:
    """The values of a file with the place (line, column), counted from 1, of each path in it.

    data: mappings with text keys (None only under NULL_KEYS), lists, text, Scalar or None; places: of what has a key,
    that of the key; raw: the text of each scalar as written; secrets: the values of the variables that the file names;
    unread: paths that could not be expanded, about which nothing more is reported; lines: whether it is a file, so that
    places have lines.
    """

    file: str
    data: Any = None
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    raw: dict[Path, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    problems: list[Problem] = field(default_factory=list)
    unread: set[Path] = field(default_factory=set)
    lines: bool = True

    def place(self, path: Path) -> tuple[int, int]:
        """Line and column of a key or value; where the path is not in the file, of the closest one above it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return (1, 1)

    def shown(self, path: Path) -> str:
        """What is written in the file at a path, for an error message: variables stay unexpanded."""
        while path and path not in self.places:
            path = path[:-1]
        value = self.data
        for part in path:
            value = value[part]
        if isinstance(value, dict | list):
            return "a list" if isinstance(value, list) else "a mapping"
        if "://" in self.raw.get(path, ""):
            return "this URL"
        if VALUES.intersection(path):
            return quoted(self.raw.get(path, ""), "a value of this list")
        if isinstance(value, Scalar):
            return value.text
        return repr(self.raw[path]) if self.raw.get(path) else "nothing"

    def wrong(self, path: Path, message: str) -> None:
        """Record a problem; `{it}` in the message becomes what is written in the file."""
        if path in self.unread:
            return
        line, column = self.place(path)
        message = message.replace("{it}", self.shown(path)) if "{it}" in message else message
        self.problems.append(Problem(line, column, dotted(path), message))

    def report(self) -> list[str]:
        """All problems, one line each, in the order of the file. No value of a variable is in it."""
        lines = []
        for problem in sorted(set(self.problems)):
            where = f"{problem.path}: " if problem.path else ""
            said = self._redacted(where + problem.message)
            lines.append(f"{self.file}:{problem.line}: {said}" if self.lines else f"{self.file}: {said}")
        return lines

    def suggestions(self) -> list[str]:
        """The names that its problems ask about, in their order."""
        matches = [SUGGESTED.search(problem.message) for problem in sorted(set(self.problems))]
        return [match[1] for match in matches if match is not None]

    def _redacted(self, message: str) -> str:
        for name, value in sorted(self.secrets.items(), key=lambda item: -len(item[1])):
            if len(value) > 3:
                message = message.replace(value, "${" + name + "}")
            elif value:
                pattern = rf"(?<!\w){re.escape(value)}(?!\w)"
                message = re.sub(pattern, lambda _, name=name: "${" + name + "}", message)  # type: ignore[misc]
        return message


def dotted(path: Path) -> str:
    """A path as it is printed: privacy[0].k_anonymity.k"""
    text, hidden = "", False
    for part in path:
        name = "null" if part is None else part
        if isinstance(name, str) and ("://" in name or (hidden and quoted("", "") == "")):
            name = "(not shown)"
        hidden = name in VALUES
        text += f"[{name}]" if isinstance(name, int) else (f".{name}" if text else name)
    return text


def parse(text: str, file: str, environment: Mapping[str, str], *, spec: bool = True) -> Document:
    """Compose a YAML text. Syntax errors and duplicate keys are recorded in `problems`; the first of two keys stays.
    spec: whether it is a mapping, as a spec is."""
    document = Document(file)
    try:
        root = _composed(text) if len(text) <= MOST_KEPT else _compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        what = ", ".join(part for part in (error.context, error.problem) if part)
        if mark and "://" in text.splitlines()[min(mark.line, text.count("\n") - 1)]:
            what = "put the URL in quotes"
        if mark and "${" in text.splitlines()[min(mark.line, text.count("\n") - 1)]:
            what += '; inside { } and [ ] a variable needs quotes: "${NAME}"'
        document.problems.append(Problem(*place, "", what if isinstance(error, _TooLarge) else f"not YAML: {what}"))
        return document
    except yaml.YAMLError as error:
        document.problems.append(Problem(1, 1, "", f"not YAML: {str(error).splitlines()[0]}"))
        return document
    if root is None:
        document.problems.append(
            Problem(1, 1, "", "the file is empty" + ("; a spec starts with `version: 1`" if spec else ""))
        )
        return document
    reader = _YamlReader(document, environment)
    document.data = reader.value(root, ())
    if spec and not document.problems and not isinstance(document.data, dict):
        document.wrong((), "a spec is a mapping that starts with `version: 1`")
    return document


class _TooLarge(yaml.MarkedYAMLError):
    """A file that is YAML, and more than is read of one."""


class _Loader(yaml.SafeLoader):
    """Composes a file that is neither too large nor too deep, which the parser finds out by itself too late."""

    depth = nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth, self.nodes = self.depth + 1, self.nodes + 1
        problem = None
        if self.depth > DEEPEST:
            problem = f"lists and mappings lie within each other more than {DEEPEST} deep; close the brackets"
        elif self.nodes > MOST_NODES:
            problem = f"the file has more than {MOST_NODES:,} values; write long lists to files, and name these"
        if problem is not None:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise _TooLarge(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(text: str) -> Any:
    return yaml.compose(text, Loader=_Loader)


# One spec is read again and again, by the jobs of a process and by releases that share a ledger.
_composed = lru_cache(maxsize=4)(_compose)


def _place(node: yaml.Node) -> tuple[int, int]:
    return (node.start_mark.line + 1, node.start_mark.column + 1)


class _YamlReader:
    def __init__(self, document: Document, environment: Mapping[str, str]) -> None:
        self.document = document
        self.environment = environment
        self.open: list[int] = []
        self.nodes = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.document.places.setdefault(path, _place(node))
        self.nodes += 1
        if id(node) in self.open:
            self.document.wrong(path, "an alias that refers to itself; write the value out")
            return None
        if self.nodes > MOST_NODES:
            if self.nodes == MOST_NODES + 1:
                self.document.wrong(path, f"aliases repeat more than {MOST_NODES:,} values; write the values out")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        self.open.append(id(node))
        result: Any
        if isinstance(node, yaml.SequenceNode):
            result = [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        else:
            result = self.mapping(node, path)
        self.open.pop()
        return result

    def mapping(self, node: yaml.Node, path: Path) -> dict[Any, Any]:
        result: dict[str | None, Any] = {}
        first: dict[str | None, yaml.Node] = {}
        for key, child in node.value:
            place = _place(key)
            if not isinstance(key, yaml.ScalarNode):
                self.document.problems.append(Problem(*place, dotted(path), "a key must be a plain text"))
                continue
            null = path[-2:] == NULL_KEYS and key.style is None and key.value in NULLS
            name = None if null else key.value
            if name in first:
                message = duplicate(key.value, first[name], child, path)
                self.document.problems.append(Problem(*place, dotted((*path, name)), message))
            else:
                first[name] = child
                self.document.places[(*path, name)] = place
                result[name] = self.value(child, (*path, name))
        return result

    def scalar(self, node: yaml.ScalarNode, path: Path) -> str | Scalar | None:
        text: str = node.value
        self.document.raw[path] = text
        if node.tag.startswith("!") or "python" in node.tag or node.tag.endswith(":binary"):
            self.document.wrong(path, f"the tag {node.tag} is not supported; write plain YAML")
            return None
        if node.style is not None:
            return self.expanded(text, path)
        if text in NULLS:
            return None
        if text in BOOLEANS:
            return Scalar(text, BOOLEANS[text])
        if LEADING_ZERO.fullmatch(text):
            return text  # 01234 is a code; neither octal (YAML 1.1) nor 1234 is what its writer means
        if NUMBER.fullmatch(text) and len(text) <= LONGEST_NUMBER:
            return Scalar(text, int(text) if INTEGER.fullmatch(text) else Fraction(text))
        return self.expanded(text, path)

    def expanded(self, text: str, path: Path) -> str:
        def replace(match: re.Match[str]) -> str:
            if match[1] == "$":
                return "$"
            name = match[2]
            message = None
            if not NAME.fullmatch(name):
                message = f"${{{name}}} does not name a variable; write ${{NAME}}"
            elif name not in self.environment:
                message = f"the environment variable {name} is not set; set it"
            if message:
                self.document.wrong(path, message + ", or write $$ for a dollar sign")
                self.document.unread.add(path)
                return ""
            self.document.secrets[name] = self.environment[name]
            return self.environment[name]

        return VARIABLE.sub(replace, text)


def duplicate(key: str, first: yaml.Node, second: yaml.Node, path: Path) -> str:
    """The message for a key that appears twice in a mapping."""
    line = first.start_mark.line + 1
    if path == ("attributes",):
        roles = [_role(node) for node in (first, second)]
        named = f" ({roles[0]} on line {line}, {roles[1]} here)" if all(roles) else f" (the first on line {line})"
        return f"column {key} has two roles{named}; remove one"
    return f"the key {key} appears twice (first on line {line}); remove one"


def _role(node: yaml.Node) -> str | None:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == "role" and isinstance(value, yaml.ScalarNode):
                return str(value.value)
    return None


def document_of(values: Mapping[str, Any], file: str) -> Document:
    """The document of a mapping; what has no place in a spec is recorded in `problems`. file: what messages call it."""
    document = Document(file, lines=False)
    if not isinstance(values, Mapping):
        document.wrong((), f"a spec is a mapping, and not {_type_name(values)}")
        return document
    document.data = _MappingReader(document).value(values, ())
    return document


class _MappingReader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0

    def value(self, given: Any, path: Path) -> Any:
        self.document.places[path] = (1, 1)
        self.nodes += 1
        if len(path) > DEEPEST:
            self.document.wrong(path, f"values lie within each other more than {DEEPEST} deep, or one holds itself")
            return None
        if self.nodes > MOST_NODES:
            if self.nodes == MOST_NODES + 1:
                self.document.wrong(path, f"there are more than {MOST_NODES:,} values; write long lists to files")
            return None
        if type(given).__module__ == "numpy" and hasattr(given, "item") and not getattr(given, "shape", None):
            given = given.item()
        if isinstance(given, Mapping):
            return self.mapping(given, path)
        if isinstance(given, list | tuple):
            return [self.value(item, (*path, index)) for index, item in enumerate(given)]
        return self.scalar(given, path)

    def mapping(self, given: Mapping[Any, Any], path: Path) -> dict[Any, Any]:
        result: dict[str | None, Any] = {}
        for key, item in given.items():
            name = self.key(key, path)
            if name is None and key is not None:
                continue
            if name in result:
                self.document.wrong((*path, name), "two keys are one text; keep one")
                continue
            result[name] = self.value(item, (*path, name))
        return result

    def key(self, key: Any, path: Path) -> str | None:
        """A key as text; values of a column may be keys, and are written as such. None where it is none."""
        if isinstance(key, str):
            return self.text(key, path)
        if path[-2:] == NULL_KEYS:
            if key is None:
                return None
            read = self.scalar(key, (*path, "(key)"))
            return read.text if isinstance(read, Scalar) else read
        if key is None:
            self.document.wrong(path, "a key must be a text, and not None")
            return "None"
        self.document.wrong(path, f"a key must be a text, and not {_type_name(key)}")
        return None

    def scalar(self, given: Any, path: Path) -> str | Scalar | None:
        if given is None:
            return None
        if isinstance(given, str):
            self.document.raw[path] = given
            return self.text(given, path)
        if isinstance(given, bool):
            return Scalar("true" if given else "false", given)
        if isinstance(given, int):
            return Scalar(str(given), int(given))
        if isinstance(given, float | Decimal) and math.isfinite(given):
            exact = Fraction(repr(given) if isinstance(given, float) else given)
            return Scalar(str(given), int(exact) if exact.denominator == 1 else exact)
        if isinstance(given, Fraction):
            return Scalar(str(given), int(given) if given.denominator == 1 else given)
        if isinstance(given, datetime):
            return given.isoformat(" ")
        if isinstance(given, date):
            return given.isoformat()
        self.document.wrong(path, f"a text, a number, a list or a mapping is wanted, and not {_type_name(given)}")
        return None

    def text(self, given: str, path: Path) -> str:
        try:
            given.encode()
        except UnicodeEncodeError:
            self.document.wrong(path, "a text that is not Unicode (a lone surrogate); correct it")
            return "?"
        return str(given)


def _type_name(given: object) -> str:
    return f"a {type(given).__name__}"
