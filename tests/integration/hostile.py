"""Names, values and hierarchies that break statements which are put together carelessly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from engines import examples
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from integration.sources import (
    Column,
    Rows,
    distinct,
    from_file,
    in_digits,
    in_months,
    in_ranges,
    in_weeks,
    sensitive,
    suppressed,
    text_of,
)

few = settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""Derandomized, so that a failure in CI is the failure at home; no shrinking, since each example costs a table."""

NAMES = [
    "plain", "a b", 'say "hi"', "it's", "select", "Order", "GROUP", "Straße", "名前", "100%", "%s", "%(x)s", "%%", ":x",
    "a:b", "::int", "back\\slash", "x; --", "/* c */", "a.b", "[bold]", "[/x]", "$$", "${HOME}", "a$b", "{}", " lead",
    "tab\t", "new\nline", "null", "1", "true", "n", "e", "q0", "s0", "leaf", "c0", "t1", "value", "block", "-", "#no",
    "é", "qblock_raw", "*", "a=1", "a,b", "😀",
]  # fmt: skip
VALUES = [
    "a", "A", "a ", " a", "é", "e\u0301", "'", '"', "\\", "\\N", "%", "%s", ":x", ";--", "null", "NULL", "None", "nan",
    "0", "00", "1e1", "true", "\t", "x\ny", ",", "[/b]", "${HOME}", "$$", "名", "😀", "{}",
]  # fmt: skip

texts = st.sampled_from(VALUES) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=3
)
"""Values of a text column; the empty text can be no leaf of a file."""


def column_names(count: int) -> st.SearchStrategy[list[str]]:
    """Names that differ in more than their case, which DuckDB does not tell apart."""
    return st.lists(st.sampled_from(NAMES), min_size=count, max_size=count, unique_by=str.casefold)


@st.composite
def paths(draw: st.DrawFn, leaves: Sequence[Any]) -> dict[Any, tuple[str, ...]]:
    """A nested hierarchy of up to four levels over the leaves, with labels as hostile as values; `*` on top."""
    found = {leaf: [text_of(leaf) or ""] for leaf in leaves}
    group = {leaf: i for i, leaf in enumerate(leaves)}
    for _ in range(draw(st.integers(0, 2))):
        merged = {g: draw(st.integers(0, 2)) for g in sorted(set(group.values()))}
        labels = draw(st.lists(texts.filter(lambda t: t != "*"), min_size=3, max_size=3, unique=True))
        group = {leaf: merged[g] for leaf, g in group.items()}
        for leaf, g in group.items():
            found[leaf].append(labels[g])
    return {leaf: (*path, "*") for leaf, path in found.items()}


def with_nulls(values: st.SearchStrategy[Any], size: int, some: bool) -> st.SearchStrategy[list[Any]]:
    drawn = st.lists(values | st.none() if some else values, min_size=size, max_size=size)
    return drawn.filter(lambda found: any(value is not None for value in found))


@st.composite
def quasi_identifiers(draw: st.DrawFn, name: str, size: int, file: Path) -> Column:
    """A column of any kind of hierarchy that a test can follow by hand."""
    nulls = draw(st.booleans())
    kind = draw(st.sampled_from(["file", "file", "file", "suppress", "digits", "ranges", "dates", "flag"]))
    if kind == "file":
        leaves = draw(st.lists(texts, min_size=1, max_size=5, unique=True).filter(lambda found: "*" not in found))
        values = draw(with_nulls(st.sampled_from(leaves), size, nulls))
        return from_file(name, values, draw(paths(leaves)), file)
    if kind == "suppress":
        return suppressed(name, draw(with_nulls((texts | st.just("")).filter(lambda t: t != "*"), size, nulls)))
    if kind == "digits":
        side = draw(st.sampled_from(["left", "right"]))
        codes = st.text("012é%'", min_size=2, max_size=2)
        return in_digits(name, draw(with_nulls(codes, size, nulls)), 2, side)
    if kind == "ranges":
        widths, start = draw(st.sampled_from([([5], 0), ([2, 4], 1), ([1, 3, 9], -2)]))
        type_ = draw(st.sampled_from(["SMALLINT", "INTEGER", "BIGINT"]))
        return in_ranges(name, draw(with_nulls(st.integers(-12, 12), size, nulls)), widths, start, type_)
    if kind == "dates":
        days = draw(with_nulls(st.dates(date(2019, 12, 25), date(2021, 1, 10)), size, nulls))
        return draw(st.sampled_from([in_months, in_weeks]))(name, days)
    return suppressed(name, draw(with_nulls(st.booleans(), size, nulls)), "BOOLEAN")


@st.composite
def sensitive_attributes(draw: st.DrawFn, name: str, size: int) -> Column:
    nulls = draw(st.booleans())
    if draw(st.booleans()):
        return sensitive(name, draw(with_nulls(st.integers(-2, 3), size, nulls)), "INTEGER")
    leaves = draw(st.lists(texts | st.just(""), min_size=1, max_size=4, unique=True))
    return sensitive(name, draw(with_nulls(st.sampled_from(leaves), size, nulls)))


@st.composite
def tables(draw: st.DrawFn, folder: Path) -> Rows:
    """Up to 10 rows over up to three quasi-identifiers and two sensitive attributes."""
    size = draw(st.integers(1, 10))
    many = draw(st.integers(1, 3))
    several = draw(st.integers(0, 2))
    names = draw(column_names(many + several))
    return Rows(
        [draw(quasi_identifiers(name, size, folder / f"{i}.csv")) for i, name in enumerate(names[:many])],
        [draw(sensitive_attributes(name, size)) for name in names[many:]],
    )


__all__ = ["NAMES", "VALUES", "column_names", "distinct", "few", "paths", "tables", "texts"]
