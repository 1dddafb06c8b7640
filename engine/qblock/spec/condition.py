"""`source.where`: a condition in SQL text, read as a small tree of comparisons that every engine answers alike.

What sqlglot reads and this page does not know is refused, whatever a later version of it makes of a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from qblock.spec.fields import text_of

if TYPE_CHECKING:
    from sqlglot import exp

Operator = Literal["=", "<>", "<", "<=", ">", ">="]
ValueForm = Literal["text", "number", "flag", "date", "timestamp"]
MIRRORED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ALLOWED = (
    "columns, values ('A', 5, TRUE, DATE '2026-01-31', TIMESTAMP '2026-01-31 12:00:00'), AND, OR, NOT, parentheses, "
    "= <> < <= > >=, BETWEEN, IN, LIKE, IS NULL, IS NOT NULL"
)
LONGEST = 20_000
"""Characters of a condition: long lists belong into a table."""
DEEPEST = 50
"""Parts within each other."""


@dataclass(frozen=True)
class Value:
    """A value as the condition writes it. text: of a number without an exponent, of a flag `true` or `false`."""

    text: str
    form: ValueForm

    def __str__(self) -> str:
        if self.form in ("number", "flag"):
            return self.text.upper()
        return ("" if self.form == "text" else f"{self.form.upper()} ") + _quoted(self.text)


@dataclass(frozen=True)
class ColumnName:
    """A column, as the source names it."""

    name: str

    def __str__(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Comparison:
    """A column beside a value, or beside another column."""

    column: ColumnName
    operator: Operator
    other: Value | ColumnName

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {self.other}"


@dataclass(frozen=True)
class OneOf:
    """`column IN (values)`."""

    column: ColumnName
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.column} IN ({', '.join(map(str, self.values))})"


@dataclass(frozen=True)
class Like:
    """`column LIKE pattern`. pattern: with `!` before each character that stands for itself, where it might not."""

    column: ColumnName
    pattern: str

    def __str__(self) -> str:
        return f"{self.column} LIKE {_quoted(self.pattern)} ESCAPE '!'"


@dataclass(frozen=True)
class IsNull:
    """`column IS NULL`."""

    column: ColumnName

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


@dataclass(frozen=True)
class Not:
    """What must not be true."""

    part: Condition

    def __str__(self) -> str:
        return f"NOT ({self.part})"


@dataclass(frozen=True)
class Joined:
    """Parts of which all, or any one, must be true."""

    word: Literal["AND", "OR"]
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return f" {self.word} ".join(f"({part})" for part in self.parts)


Condition = Comparison | OneOf | Like | IsNull | Not | Joined
"""Its text means the same, and is the same for the same tree."""


def columns_of(condition: Condition) -> tuple[str, ...]:
    """The columns that a condition names, each once."""
    return tuple(dict.fromkeys(_columns(condition)))


def _columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Joined):
        for part in condition.parts:
            yield from _columns(part)
    elif isinstance(condition, Not):
        yield from _columns(condition.part)
    else:
        yield condition.column.name
        if isinstance(condition, Comparison) and isinstance(condition.other, ColumnName):
            yield condition.other.name


def where_text(raw: object) -> str:
    """The text of a condition that can be read. Raises ValueError."""
    text = text_of(raw).strip()
    condition_of(text)
    return text


@lru_cache(maxsize=16)
def condition_of(text: str) -> Condition:
    """The condition that a text writes. Raises ValueError, whose text names the part that is wrong, and what is
    allowed."""
    if len(text) > LONGEST:
        raise ValueError(
            f"the condition has {len(text):,} characters, and at most {LONGEST:,} are read; put a long list into a "
            "table, and name a view over both"
        )
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("the condition has a character that no text of a database has (NUL, a surrogate); remove it")
    tree = _parsed(text)
    try:
        return _Reader().condition(tree)
    except RecursionError:
        raise _too_deep() from None


def _parsed(text: str) -> exp.Expr:
    # Only a spec with a condition waits for the import.
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import SqlglotError

    dialect = Dialect.get_or_raise(None)
    try:
        _check_tokens(text, dialect.tokenize(text))
        trees = dialect.parse_into(exp.Condition, text)
    except SqlglotError:
        raise ValueError(
            "this is not a condition in SQL. Write a text in '...', the name of a column that is a word of SQL in "
            f'"...", and of SQL only {ALLOWED}'
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if len(trees) != 1 or trees[0] is None:
        raise ValueError("the condition is empty; write one (valid_to IS NULL), or remove the key")
    return trees[0]


def _check_tokens(text: str, tokens: list) -> None:  # type: ignore[type-arg]
    """What the tree does not tell: comments, the end of a statement, and a cast from the date that it looks like."""
    if any(token.comments for token in tokens) or (text and not tokens):
        raise ValueError("a comment is not read in a condition; remove it, or write it behind a # of the file")
    for token, after in zip_longest(tokens, tokens[1:]):
        if token.text == ";" and token.token_type.name == "SEMICOLON":
            raise ValueError("; ends a statement, and a condition is none; remove it")
        call = after is not None and after.token_type.name == "L_PAREN" and token.text.upper().endswith("CAST")
        if token.token_type.name == "DCOLON" or call:
            raise _not_allowed("a cast")


def _not_allowed(what: str) -> ValueError:
    return ValueError(f"{what} is not allowed in a condition; write only {ALLOWED}; a view can hold anything else")


def _too_deep() -> ValueError:
    return ValueError(f"the condition has parts within each other more than {DEEPEST} deep; write it flatter")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@cache
def _kinds() -> dict[type, tuple[str, frozenset[str]]]:
    """The parts of a condition that are read: a word for each, and what it may be made of."""
    from sqlglot import exp

    two = frozenset({"this", "expression"})
    comparisons = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
    return {
        **{kind: (operator, two) for kind, operator in comparisons.items()},
        exp.And: ("AND", two),
        exp.Or: ("OR", two),
        exp.Not: ("NOT", frozenset({"this"})),
        exp.Paren: ("()", frozenset({"this"})),
        exp.Is: ("IS", two),
        exp.In: ("IN", frozenset({"this", "expressions", "negate"})),
        exp.Between: ("BETWEEN", frozenset({"this", "low", "high", "negate"})),
        exp.Like: ("LIKE", two | {"negate"}),
        exp.Escape: ("ESCAPE", two),
        exp.Column: ("column", frozenset({"this"})),
        exp.Identifier: ("name", frozenset({"this", "quoted"})),
        exp.Literal: ("value", frozenset({"this", "is_string"})),
        exp.Neg: ("-", frozenset({"this"})),
        exp.Boolean: ("flag", frozenset({"this"})),
        exp.Null: ("NULL", frozenset()),
        exp.Cast: ("date", frozenset({"this", "to"})),
        exp.DataType: ("type", frozenset({"this", "nested"})),
    }


class _Reader:
    """Turns a tree of sqlglot's into ours. depth: parts within each other so far."""

    def __init__(self) -> None:
        self.depth = 0
        self.readers: dict[str, Callable[[exp.Expr], Condition]] = {
            "AND": self.joined,
            "OR": self.joined,
            "NOT": lambda tree: Not(self.condition(tree.this)),
            "()": lambda tree: self.condition(tree.this),
            "IS": self.is_null,
            "IN": self.one_of,
            "BETWEEN": self.between,
            "LIKE": self.like,
            "ESCAPE": self.like,
            "column": lambda tree: Comparison(self.column(tree), "=", Value("true", "flag")),
            **dict.fromkeys(MIRRORED, self.comparison),
        }

    def condition(self, tree: exp.Expr) -> Condition:
        """What a tree says of a row."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise _too_deep()
        word = self.word(tree)
        if word not in self.readers:
            raise ValueError(
                f"{_shown(tree)} is a value and no condition; compare a column with it, or write only {ALLOWED}"
            )
        condition = self.readers[word](tree)
        self.depth -= 1
        return Not(condition) if tree.args.get("negate") else condition

    def word(self, tree: exp.Expr) -> str:
        """Which part this is. Raises ValueError for another one, or for one with more to it."""
        word, parts = _kinds().get(type(tree), ("", frozenset()))
        more = [name for name, value in tree.args.items() if name not in parts and value not in (None, False, [])]
        if not word or more:
            raise _not_allowed(_shown(tree))
        return word

    def joined(self, tree: exp.Expr) -> Condition:
        word = self.word(tree)
        parts = [self.condition(part) for part in tree.flatten(unnest=False)]
        flat: list[Condition] = []
        for part in parts:
            flat += part.parts if isinstance(part, Joined) and part.word == word else (part,)
        return Joined("AND" if word == "AND" else "OR", tuple(flat))

    def is_null(self, tree: exp.Expr) -> Condition:
        if self.word(tree.expression) != "NULL":
            raise _not_allowed(f"IS {_shown(tree.expression)}")
        return IsNull(self.column(tree.this))

    def one_of(self, tree: exp.Expr) -> Condition:
        values = tuple(self.value(item) for item in tree.expressions)
        if not values:
            raise ValueError("IN () has no value; write the values in the parentheses")
        return OneOf(self.column(tree.this), values)

    def between(self, tree: exp.Expr) -> Condition:
        column = self.column(tree.this)
        low, high = self.value(tree.args["low"]), self.value(tree.args["high"])
        return Joined("AND", (Comparison(column, ">=", low), Comparison(column, "<=", high)))

    def like(self, tree: exp.Expr) -> Condition:
        like, escape = tree, None
        if self.word(tree) == "ESCAPE":
            like, escape = tree.this, self.value(tree.expression)
            if self.word(like) != "LIKE" or escape.form != "text" or len(escape.text) != 1:
                raise ValueError("ESCAPE takes one character, behind LIKE: code LIKE 'A!_%' ESCAPE '!'")
        pattern = self.value(like.expression)
        if pattern.form != "text":
            raise ValueError(f"LIKE takes a pattern in '...', and {pattern} is none")
        read = Like(self.column(like.this), _pattern(pattern.text, None if escape is None else escape.text))
        return Not(read) if like is not tree and like.args.get("negate") else read

    def comparison(self, tree: exp.Expr) -> Condition:
        operator: Operator = self.word(tree)  # type: ignore[assignment]
        left, right = _bare(tree.this), _bare(tree.expression)
        if self.word(left) != "column":
            left, right, operator = right, left, MIRRORED[operator]
        if self.word(left) != "column":
            raise ValueError(f"{_shown(tree)} names no column; compare a column with a value")
        other = self.column(right) if self.word(right) == "column" else self.value(right)
        return Comparison(self.column(left), operator, other)

    def column(self, tree: exp.Expr) -> ColumnName:
        tree = _bare(tree)
        if self.word(tree) != "column":
            raise ValueError(f"{_shown(tree)} stands where a column must; write only {ALLOWED}")
        self.word(tree.this)
        if type(tree.this) not in _kinds() or not isinstance(tree.this.this, str):
            raise _not_allowed(_shown(tree))
        return ColumnName(tree.this.this)

    def value(self, tree: exp.Expr) -> Value:
        tree = _bare(tree)
        word = self.word(tree)
        if word == "NULL":
            raise ValueError("nothing equals NULL; write IS NULL, or IS NOT NULL")
        if word == "flag":
            return Value("true" if tree.this else "false", "flag")
        if word == "date":
            return self.date(tree)
        if word == "-":
            number = self.value(tree.this)
            if number.form == "number" and not number.text.startswith("-"):
                return Value(number.text if number.text == "0" else f"-{number.text}", "number")
        if word != "value":
            raise ValueError(f"{_shown(tree)} stands where a value must; write only {ALLOWED}")
        return Value(tree.this, "text") if tree.args["is_string"] else Value(_number(tree.this), "number")

    def date(self, tree: exp.Expr) -> Value:
        form = str(getattr(tree.args["to"].this, "name", "")).lower()
        self.word(tree.args["to"])
        text = self.value(tree.this)
        if text.form != "text" or form not in ("date", "timestamp", "timestamptz"):
            raise _not_allowed(_shown(tree))
        return Value(text.text, "date" if form == "date" else "timestamp")


def _bare(tree: exp.Expr) -> exp.Expr:
    """Without the parentheses around it."""
    while type(tree).__name__ == "Paren":
        tree = tree.this
    return tree


def _shown(tree: exp.Expr) -> str:
    """A part as a message names it."""
    text = tree.sql(comments=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _number(text: str) -> str:
    """Digits without an exponent. Raises ValueError for anything else that is read as a number."""
    match = re.fullmatch(r"(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3}))?", text, re.ASCII)
    if match is None or not (match[1] or match[2]):
        raise ValueError(f"{text} is not a number; write digits, such as 5 or 0.25")
    digits, point = match[1] + match[2], len(match[1]) + int(match[3] or 0)
    digits, point = ("0" * -point + digits, 0) if point < 0 else (digits.ljust(point, "0"), point)
    whole, decimals = digits[:point].lstrip("0") or "0", digits[point:].rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _pattern(pattern: str, escape: str | None) -> str:
    """A pattern with `!` as its escape, which means the same whatever an engine takes for one."""
    if escape is None and "\\" in pattern:
        raise ValueError(
            r"databases differ in what \ means behind LIKE; say which character is the escape: LIKE 'A\_%' ESCAPE '\', "
            "or LIKE 'A\\%' ESCAPE '!'"
        )
    read, rest = [], iter(pattern)
    for char in rest:
        plain = char == escape
        if plain:
            char = next(rest, "")
            if char not in ("%", "_", escape):
                raise ValueError(f"behind the escape {escape} of LIKE stands %, _ or {escape}, and nothing else")
        read.append(f"!{char}" if char == "!" or (plain and char in "%_") else char)
    return "".join(read)


def written(name: str) -> str:
    """A column as a condition writes it, in quotes where it must."""
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        try:
            if condition_of(f"{name} IS NULL") == IsNull(ColumnName(name)) and condition_of(f"NOT {name}"):
                return name
        except ValueError:
            pass
    return str(ColumnName(name))
