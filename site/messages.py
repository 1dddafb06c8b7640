"""The page of all messages that end a command with exit status 1 to 4, made from the code that raises them.

A part of a message that depends on the run stands as `<name>`. What cannot be read from where it is raised, such as the
problems of a spec, is read from where they are noted (`document.wrong`).
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import qblock
from qblock import errors

PACKAGE = Path(qblock.__file__).parent
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "__main__.py"
}
"""The files of the package by the names of their modules."""
STATUS = {
    name: of.exit_status
    for name, of in vars(errors).items()
    if isinstance(of, type) and issubclass(of, errors.QblockError)
}
"""The exit status of each class of errors; those of other modules are added when these are read."""
MEANINGS = {
    1: "a fault outside: a connection, the database, a disk",
    2: "the spec, a hierarchy, the data or the command line is wrong",
    3: "refused: nothing safe to publish, or a check failed",
    4: "another run or process is in the way",
}
NOTED = ("wrong", "Problem")
"""What notes a problem of a file, which is raised later with the others."""
HOLE = re.compile(r"<[^<>]*>")
LEAST = 6
"""Characters outside of holes that say something."""
DEEPEST = 4
"""How many names are followed from where a message is raised to its text."""


@dataclass(frozen=True)
class Message:
    """status: the exit status; topic: the part of the program; text: with holes."""

    status: int
    topic: str
    text: str


class Module(ast.NodeVisitor):
    """The messages of one file. package: all files by name; unread: the lines of errors whose text was not read."""

    def __init__(self, name: str, path: Path, package: dict[str, Module]) -> None:
        self.name, self.topic = name, name.split(".")[1].replace("_", " ")
        self.tree, self.package = ast.parse(path.read_text("utf-8")), package
        self.known = {of.name: of for of in ast.walk(self.tree) if isinstance(of, ast.FunctionDef)}
        self.imports: dict[str, str] = {}
        for part in (part for part in ast.walk(self.tree) if isinstance(part, ast.ImportFrom)):
            for of in part.names:
                whole = f"{part.module}.{of.name}"
                self.imports[of.asname or of.name] = whole if whole in FILES else str(part.module)
        self.functions: list[ast.FunctionDef] = []
        self.messages: list[Message] = []
        self.unread: list[int] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(node)
        self.generic_visit(node)
        self.functions.pop()

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
        if name in STATUS:
            texts = [text for argument in node.args for text in self.texts(argument)]
            self.messages += [Message(STATUS[name], self.topic, text) for text in texts]
            if not texts:
                self.unread.append(node.lineno)
        elif name in NOTED and node.args:
            self.messages += [
                Message(2, self.topic, text.replace("{it}", "<key>")) for text in self.texts(node.args[-1])
            ]
        self.generic_visit(node)

    def texts(self, node: ast.expr, depth: int = 0) -> list[str]:
        """The texts that an expression may have; none where they are not here."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            lefts, rights = self.texts(node.left, depth), self.texts(node.right, depth)
            return [left + right for left in lefts for right in rights or [f"<{hole(node.right)}>"]]
        parts = inner(node)
        if parts:
            return [text for part in parts for text in self.texts(part, depth)]
        if depth >= DEEPEST:
            return []
        if isinstance(node, ast.Name):
            constant = getattr(importlib.import_module(self.name), node.id, None)
            within = self.functions[-1] if self.functions else self.tree
            values = [] if isinstance(constant, str) else set_to(within, node.id)
            return [filled(constant)] if isinstance(constant, str) else self._of(values, depth)
        return self._returned(node, depth) if isinstance(node, ast.Call) else []

    def _joined(self, node: ast.JoinedStr, depth: int) -> list[str]:
        """The text with holes; where hardly more than holes would be left, the first that has texts is filled."""
        parts = [self._part(part) for part in node.values]
        if bare("".join(parts)):
            for i, part in enumerate(node.values):
                known = self.texts(part.value, depth + 1) if isinstance(part, ast.FormattedValue) else []
                if known:
                    return ["".join([*parts[:i], text, *parts[i + 1 :]]) for text in known]
        return ["".join(parts)]

    def _of(self, values: Iterable[ast.expr], depth: int) -> list[str]:
        return [text for value in values for text in self.texts(value, depth + 1)]

    def _returned(self, node: ast.Call, depth: int) -> list[str]:
        """The texts of a format, or of what a function of the package returns or yields."""
        if getattr(node.func, "attr", "") == "format":
            return self.texts(node.func.value, depth)  # type: ignore[attr-defined]
        if getattr(node.func, "attr", "") in ("join", "fromkeys"):
            return self._of(node.args, depth)
        called = str(getattr(node.func, "id", None) or getattr(node.func, "attr", ""))
        home = self._home(node.func, called)
        if home is None or called in STATUS:
            return []
        function = home.known[called]
        home.functions.append(function)
        kinds = (ast.Return, ast.Yield, ast.YieldFrom)
        values = [part.value for part in ast.walk(function) if isinstance(part, kinds) and part.value is not None]
        texts = home._of(values, depth)
        home.functions.pop()
        return texts

    def _home(self, function: ast.expr, called: str) -> Module | None:
        """The module that has a function: this one, the only one, or the one that is imported."""
        if isinstance(function, ast.Name) and called in self.known:
            return self
        homes = {name: of for name, of in self.package.items() if called in of.known}
        near = ast.unparse(function).split(".")[0]
        if len(homes) > 1:
            homes = {name: of for name, of in homes.items() if name == self.imports.get(near)}
        return next(iter(homes.values())) if len(homes) == 1 else None

    def _part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        return f"<{hole(node.value)}>" if isinstance(node, ast.FormattedValue) else ""


def bare(text: str) -> bool:
    """Whether a text says nothing without what stands in its holes."""
    return len(HOLE.sub("", text).strip(" :;.,")) < LEAST


def inner(node: ast.expr) -> list[ast.expr]:
    """The expressions, one of which an expression is, or which it lists."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return [node.elt]
    return [node.value] if isinstance(node, ast.Starred) else []


def set_to(within: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a variable is set to, or gets added."""
    for part in ast.walk(within):
        if isinstance(part, ast.Assign | ast.AugAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            if any(getattr(of, "id", None) == name for target in targets for of in ast.walk(target)):
                yield part.value
        elif isinstance(part, ast.Call) and ast.unparse(part.func) == f"{name}.append":
            yield part.args[0]


def hole(node: ast.expr) -> str:
    """The last name of an expression, which says what stands there."""
    names = re.findall(r"[A-Za-z_]+", ast.unparse(node))
    words = [
        name for name in names if name not in ("self", "spec", "at", "str", "len", "join", "sorted", "for", "in", "if")
    ]
    return (words or names or ["value"])[-1].strip("_").replace("_", " ").lower()


def filled(text: str) -> str:
    """The text of a format with its fields as holes."""
    return re.sub(r"{([^{}!:]*)[^{}]*}", lambda field: f"<{field[1].replace('_', ' ') or 'value'}>", text)


@cache
def modules() -> list[Module]:
    """All files of the package, read."""
    package: dict[str, Module] = {}
    package.update({name: Module(name, path, package) for name, path in FILES.items()})
    nodes = (node for module in package.values() for node in ast.walk(module.tree))
    for of in (node for node in nodes if isinstance(node, ast.ClassDef)):
        for base in map(ast.unparse, of.bases):
            if base in STATUS:
                STATUS.setdefault(of.name, STATUS[base])
    for module in package.values():
        module.visit(module.tree)
    return list(package.values())


def messages() -> Iterator[str]:
    """The lines of the page."""
    yield "# Messages\n"
    yield "All messages that end a command with exit status 1 to 4: what is wrong, then what to do. `<...>` depends on"
    yield "your run, so search for the other words. What happens most is in [Troubleshooting](../troubleshooting.md)."
    every = {message for module in modules() for message in module.messages if not bare(message.text)}
    for status, meaning in MEANINGS.items():
        yield f"\n## Exit status {status}: {meaning}"
        of_status = [message for message in every if message.status == status]
        for topic in sorted({message.topic for message in of_status}):
            title = topic.replace("cli", "command line")
            yield f"\n### {title[0].upper()}{title[1:]}\n"
            for text in sorted(message.text for message in of_status if message.topic == topic):
                yield f"- {shown(text)}"
    yield ""


def shown(text: str) -> str:
    """A message as an item of a list: markup of its own characters only."""
    parts = " ".join(text.split()).split("`")
    # Between backticks nothing is markup.
    parts[::2] = [re.sub(r"([\\*_\[\]#])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def unread() -> dict[str, list[int]]:
    """Where a text was not read, by module."""
    return {module.name: module.unread for module in modules() if module.unread}
