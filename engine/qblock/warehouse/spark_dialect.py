"""Spark SQL as a dialect that only compiles: what is compiled is sent by `SparkSession`, with its values apart."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql import compiler
from sqlalchemy.sql.compiler import AggregateOrderByStyle


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
