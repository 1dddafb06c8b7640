"""The SQL of Spark: types, the canonical text of values, a dialect that only compiles (what is compiled is
sent by `SparkSession`, with its values apart), and errors, of whose text only the name of the condition is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql import compiler, quoted_name
from sqlalchemy.sql.compiler import AggregateOrderByStyle

from qblock.comparison import Kind
from qblock.engines.adapter import Adapter
from qblock.engines.faults import Unreachable, while_reading
from qblock.engines.tables import Column
from qblock.errors import InputError, QblockError


def quote_name(name: str) -> str:
    """A name as a quoted identifier, in which a backslash is no escape."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A text as a literal: Spark reads backslashes as escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class SparkPreparer(compiler.IdentifierPreparer):
    """Identifiers in backticks, whatever they are: the reserved words depend on a setting."""

    def __init__(self, dialect: sa.Dialect, **_: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`")

    def _requires_quotes(self, value: str) -> bool:
        return True


class SparkTypes(compiler.GenericTypeCompiler):
    """Names of types."""

    def visit_TEXT(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return "STRING"

    visit_VARCHAR = visit_NVARCHAR = visit_CHAR = visit_CLOB = visit_TEXT  # noqa: N815

    def visit_FLOAT(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **_: Any) -> str:  # noqa: N802
        if type_.precision is None:
            return "DECIMAL(38, 18)"
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"


class SparkCompiler(compiler.SQLCompiler):
    """Statements with named markers."""

    def _truncate_bindparam(self, bindparam: sa.BindParameter[Any]) -> str:
        # A marker is an identifier of Spark's: a name that comes from a column's may be none.
        if bindparam not in self.bind_names:
            self.bind_names[bindparam] = f"p{len(self.bind_names)}"
        return self.bind_names[bindparam]

    def visit_try_cast_int_func(self, function: Any, **given: Any) -> str:
        return f"TRY_CAST({self.process(function.clauses.clauses[0], **given)} AS INT)"

    def visit_try_cast_bigint_func(self, function: Any, **given: Any) -> str:
        return f"TRY_CAST({self.process(function.clauses.clauses[0], **given)} AS BIGINT)"

    def visit_row_hash_func(self, function: Any, **given: Any) -> str:
        """Spark's hash passes over NULL, so that its place must be hashed, too; sums of 64 bits overflow."""
        values = [self.process(value, **given) for value in function.clauses.clauses]
        return f"CAST(xxhash64({', '.join(f'{value}, {value} IS NULL' for value in values)}) AS DECIMAL(19, 0))"

    def visit_over(self, over: Any, **given: Any) -> str:
        # Where it does not matter in which order rows are numbered, Spark wants one all the same.
        text = str(super().visit_over(over, **given))
        return "row_number() OVER (ORDER BY NULL)" if text == "row_number() OVER ()" else text

    def visit_aggregate_strings_func(self, function: Any, **given: Any) -> str:  # type: ignore[override]
        return f"listagg{self.function_argspec(function, **given)}"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **given: Any) -> str:
        return f"{self.process(binary.left, **given)} RLIKE {self.process(binary.right, **given)}"

    def render_literal_value(self, value: Any, type_: Any) -> str:
        """For statements that are shown, and whole numbers."""
        if isinstance(value, str):
            return quote_text(value)
        return str(super().render_literal_value(value, type_))


class SparkDialect(DefaultDialect):
    """Compiles only: it has no driver."""

    name = "spark"
    default_paramstyle = "named"
    supports_native_boolean = True
    supports_statement_cache = False
    aggregate_order_by_style = AggregateOrderByStyle.WITHIN_GROUP
    preparer: Any = SparkPreparer
    statement_compiler = SparkCompiler
    type_compiler_cls = SparkTypes

    def __init__(self) -> None:
        super().__init__(paramstyle="named")


KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), "integer"),
    **dict.fromkeys(("float", "double"), "float"),
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "date": "date",
    "boolean": "boolean",
}  # type: ignore[assignment]
TEXTS = ("string", "char(", "varchar(", "binary")
"""Types that compare as text, as their names begin."""


COPIED = {
    "VARCHAR": "STRING",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), "DECIMAL(38,0)"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), "TIMESTAMP_NTZ"),
    "INTEGER": "INT",
}
"""Types of the embedded database, where Spark has other names."""
ENDLESS = {"infinity": "+5881580-07-11", "-infinity": "-5877641-06-24"}
"""Spark's dates have no infinity: the last day that there is, and the first but one, as DuckDB stores them."""


def column_of(name: str, type_: str) -> Column:
    """A column of a type by Spark's short name."""
    type_ = "integer" if type_ == "int" else type_
    kind: Kind = "decimal" if type_.startswith("decimal") else KINDS.get(type_, "text")
    return Column(name, type_, kind, "string" if kind == "text" else type_)


def is_read(column: Column) -> bool:
    """Whether values of the type have a canonical text."""
    return column.kind != "text" or column.type.startswith(TEXTS)


def _text(text: str) -> sa.ColumnElement[str]:
    return sa.literal(text, sa.Text)


def _number(number: int) -> sa.ColumnElement[int]:
    return sa.literal_column(str(number), sa.Integer)


class SparkAdapter(Adapter):
    """What Spark is like, and its SQL. What is sent and fetched is SparkSession's."""

    name = "spark"
    error = QblockError
    text_type = "STRING"
    whole_type = "BIGINT"
    double_type = "DOUBLE"
    date_type = "DATE"
    statements_are_jobs = True
    keeps_secrets = False
    row_hash = ("row_hash", "xxhash64")
    approximate_distinct = "approx_count_distinct"
    copied_words = "by one statement for each table"
    snapshot_words = "private copies of what is read, made first"

    @staticmethod
    def dialect() -> sa.Dialect:
        return SparkDialect()

    @staticmethod
    def type_of_copy(type_: str) -> str:
        return COPIED.get(type_, type_)

    def prefix(self, schema: str | None) -> quoted_name | None:
        return None if schema is None else quoted_name(quote_name(schema), quote=False)

    def plain_number(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return _let("qblock_number", value, _plain_number)

    def plain_decimal(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        text = sa.cast(value, sa.Text)
        without = sa.func.regexp_replace(text, _text(r"\.?0+$"), _text(""))
        return sa.case((sa.func.contains(text, _text(".")), without), else_=text)

    def calendar_text(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        zone = "+00" if kind == "timestamptz" else ""
        text, year = sa.cast(value, sa.Text), sa.func.year(value)
        rest = sa.func.regexp_extract(text, _text(r"(-\d\d-\d\d.*)$"), _number(1))
        before = sa.func.lpad(sa.cast(_number(1) - year, sa.Text), _number(4), _text("0"))
        after = sa.func.regexp_replace(text, _text(r"^\+"), _text(""))
        endless = [(text == _text(day), _text(name)) for name, day in ENDLESS.items()] if kind == "date" else []
        return sa.case(
            *endless,
            (year <= _number(0), before.concat(rest).concat(_text(f"{zone} BC"))),
            else_=after.concat(_text(zone)),
        )

    def calendar_value(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        parts = [sa.func.regexp_extract(text, _text(r"^0*(\d+)(-.*) BC$"), _number(i)) for i in (1, 2)]
        year = sa.func.lpad(sa.cast(sa.func.try_cast_int(parts[0]) - _number(1), sa.Text), _number(4), _text("0"))
        far = sa.func.regexp_like(text, _text(r"^\d{5}"))
        return sa.case(
            (sa.func.endswith(text, _text(" BC")), _text("-").concat(year).concat(parts[1])),
            (far, _text("+").concat(text)),
            else_=text,
        )

    def endless(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        days = [(text == _text(name), _text(day)) for name, day in ENDLESS.items()]
        return sa.case(*days, else_=text)

    def plain_text(self, value: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        if of.type == "binary":
            return _text("\\x").concat(sa.func.lower(sa.func.hex(value)))
        if of.type.startswith("string collate"):
            return sa.func.collate(value, _text("UTF8_BINARY"))
        return sa.cast(value, sa.Text)

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.sha2(text, _number(256), type_=sa.Text)

    def hex_number(self, digits: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.cast(sa.func.conv(digits, _number(16), _number(10)), sa.BigInteger)

    def explain(self, error: Exception, reading: Sequence[str] = ()) -> QblockError:
        return explain_spark(error, reading)


def _let(
    name: str, value: sa.ColumnElement[Any], text: Callable[[sa.ColumnElement[Any]], sa.ColumnElement[Any]]
) -> sa.ColumnElement[Any]:
    """A text of a value that has a name in it. Written out wherever it stands, a digest has 200,000 characters."""
    variable: sa.ColumnElement[Any] = sa.literal_column(name, value.type)
    texts = sa.func.transform(sa.func.array(value), variable.op("->")(text(variable)))
    return sa.func.element_at(texts, _number(1), type_=sa.Text)


def _plain_number(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    single = sa.func.typeof(value) == _text("float")
    # Java before 19 may write more digits than it takes to tell a number apart: the fewest that read back are it.
    formats = sa.case((single, sa.func.array(*_formats(5, 8))), else_=sa.func.array(*_formats(14, 17)))
    format_, shown = (sa.literal_column(name, sa.Text) for name in ("qblock_format", "qblock_shown"))
    read_back = sa.case((single, sa.func.float(shown) == value), else_=sa.func.double(shown) == value)
    texts = sa.func.transform(formats, format_.op("->")(sa.func.format_string(format_, value)))
    fewest = sa.func.get(sa.func.filter(texts, shown.op("->")(read_back)), _number(0))
    text = sa.func.coalesce(fewest, sa.cast(value, sa.Text), type_=sa.Text)
    infinite = sa.func.abs(value) == sa.func.double(_text("Infinity"))
    # Most numbers, of which the digits are all that it takes: what follows is a hundred times the work.
    most = sa.case((single, sa.literal_column("1e6")), else_=sa.literal_column("1e15"))
    whole_number = sa.and_(sa.func.abs(value) < most, value % _number(1) == _number(0))
    return sa.case(
        (value == _number(0), _text("0")),
        (whole_number, sa.cast(sa.func.try_cast_bigint(value), sa.Text)),
        (sa.func.isnan(value), _text("NaN")),
        (sa.and_(infinite, value > _number(0)), _text("Infinity")),
        (infinite, _text("-Infinity")),
        (value.is_not(None), _let("qblock_text", text, _without_exponent)),
    )


def _formats(least: int, most: int) -> list[sa.ColumnElement[str]]:
    return [_text(f"%.{digits}e") for digits in range(least, most)]


def _without_exponent(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """A number as Java or C writes it, in digits alone."""
    pattern = _text(r"^(-?)(\d+)\.?(\d*?)0*([eE]([+-]?\d+))?$")
    sign, whole, rest, power = (sa.func.regexp_extract(text, pattern, _number(i)) for i in (1, 2, 3, 5))
    point = sa.func.char_length(whole) + sa.func.coalesce(sa.func.try_cast_int(power), _number(0))
    return _let(
        "qblock_point",
        point,
        lambda at: sign.concat(_let("qblock_digits", whole.concat(rest), lambda digits: _with_point(digits, at))),
    )


def _with_point(digits: sa.ColumnElement[Any], point: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Digits with a point after so many of them."""
    small = _text("0.").concat(sa.func.repeat(_text("0"), -point)).concat(digits)
    large = sa.func.rpad(digits, point, _text("0"))
    before = sa.func.substring(digits, _number(1), point)
    between = before.concat(_text(".")).concat(sa.func.substring(digits, point + _number(1)))
    return sa.case((point <= _number(0), small), (sa.func.char_length(digits) <= point, large), else_=between)


CONDITION = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)*")
_DENIED = ("UNAUTHENTICATED", "PERMISSION_DENIED")
# The client closes its session when the server says that it is another one, and asks it once more: NO_ACTIVE_SESSION.
_GONE = ("UNAVAILABLE", "INVALID_HANDLE", "NO_ACTIVE_SESSION", "DEADLINE_EXCEEDED", "INVALID_CONNECT_URL")
# Without a catalog of that name a name of three parts is a schema of two.
_ABSENT = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def conditions(error: BaseException) -> list[str]:
    """The names of what happened, by Spark and by gRPC, of an error and of those that led to it."""
    names = []
    for cause in _chain(error):
        condition = getattr(cause, "getCondition", lambda: None)()
        code = getattr(cause, "code", None)
        status = getattr(code() if callable(code) else None, "name", None)
        names += [text for text in (condition, status) if isinstance(text, str) and CONDITION.fullmatch(text)]
    return list(dict.fromkeys(names))


def is_absent(error: BaseException) -> bool:
    """Whether a table or its schema does not exist."""
    return any(text.startswith(_ABSENT) for text in conditions(error))


def is_lost(error: BaseException) -> bool:
    """Whether there is no session any more."""
    return any(text.startswith(_GONE) for text in conditions(error))


def explain_spark(error: Exception, reading: Sequence[str] = ()) -> QblockError:
    """The error to show for one of the client's. reading: the tables that the statement reads."""
    if isinstance(error, QblockError):
        return error
    names, where = conditions(error), while_reading(reading)
    if any(text.startswith(_DENIED) for text in names):
        return Unreachable(f"the Spark server refused the login{where}: the token is wrong, or it may not do this")
    if any(text.startswith(_ABSENT) for text in names):
        return InputError(f"a table does not exist, or the login may not read it{where}; check the names in the spec")
    if is_lost(error):
        return Unreachable(f"the connection to the Spark server was lost{where}; run again when the server is there")
    return QblockError(f"Spark did not carry out a statement{where} ({', '.join(names) or type(error).__name__})")
