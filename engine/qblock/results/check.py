"""The answer of `qblock check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from qblock.errors import Refused, counted
from qblock.results.base import Answer, Real, Value

IN_WORDS = {
    "determines": "{0} is published as it is and tells {1}",
    "single_rows": "{0} is published as it is and nearly singles out rows",
    "spellings": "values of {0} differ by case, spaces or composed letters alone, and count as several",
    "unknown_codes": "{0} has values that look like codes for unknown, and count as values",
    "unique_sensitive": "many values of {0} are of one row alone",
    "skew": "in some group nearly everybody has one value of {0}",
    "skew of": "some values of {0} never occur with some of {1}, which is hidden: l is less for who knows {1}",
    "groups": "some groups are one {0} each: k counts its people as if they were strangers",
    "uncovered": "the hierarchy of {0} lacks the values of many rows, which are hidden",
    "volatile": "{0} is a view that gives another answer each time it is read",
    "history": "{0} has dates or ages that cannot be, or tells of rows that are over, or of when a row was stored",
}
"""What a check finds, without a value and a figure."""


FIGURES = {
    "determines": "{without:.1f} values remain for who reads the label, {left:.1f} for who reads {0}, too; the "
    "smallest group is {k:,} then",
    "spellings": "{values:,} values are {without:,}",
    "unknown_codes": "{rows:,} rows",
    "unique_sensitive": "{rows:,} of {values:,} values",
    "skew": "{share:.1%} of the group",
    "skew of": "l is {left:,} and not {l:,} for who knows {1}, in {rows:,} rows",
    "groups": "{blocks:,} groups, {rows:,} rows",
    "uncovered": "{rows:,} rows",
    "history": "{rows:,} rows",
}
"""The figures of a check in words."""


def figures_in_words(check: str, columns: Sequence[str], figure: Mapping[str, float]) -> str:
    """What a check has counted; as names and numbers where this program does not know them."""
    try:
        words = FIGURES["skew of" if check == "skew" and "left" in figure else check] if figure else ""
        return words.format(*columns, **figure)
    except (KeyError, IndexError, ValueError):
        return ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in figure.items())


def in_words(check: str, columns: Sequence[str]) -> str:
    """What a check has found of columns; the name of one that this program does not know."""
    words = IN_WORDS.get("skew of" if check == "skew" and len(columns) > 1 else check)
    return f"{check} of {', '.join(columns)}" if words is None else words.format(*columns)


class Finding(Value):
    """What a spec takes for granted and the data do not bear out. columns: whom it is about, with `determines` the
    column and the quasi-identifier that it tells, with `skew` at times the one that excludes values, too; because: what
    the spec answers for it, where it accepts it."""

    check: str
    columns: tuple[str, ...]
    severity: Literal["unsafe", "warning"]
    figure: Mapping[str, Real]
    sentence: str
    remedy: str
    because: str | None = None


def unsafe(checks: Sequence[Finding]) -> Sequence[Finding]:
    """Those that stop a release: nobody answers for them."""
    return [finding for finding in checks if finding.severity == "unsafe" and finding.because is None]


def named_findings(checks: Sequence[Finding]) -> str:
    """The warnings by name alone; empty where there are none."""
    named = [f"{f.check} of {', '.join(f.columns)}" for f in checks if f.severity == "warning" and f.because is None]
    return f"{counted(len(named), 'warning')} (qblock check): {'; '.join(named)}" if named else ""


def refuse_unsafe(checks: Sequence[Finding]) -> None:
    """Raise Refused (exit status 3) where something is unsafe and nobody answers for it."""
    stopping = len(unsafe(checks))
    if stopping:
        raise Refused(f"{counted(stopping, 'finding')} would stop a release: correct the spec, or accept them in it")


class SpecChecked(Answer):
    """The findings, worst first, and what the spec accepts though nothing is found of it (`notes`)."""

    columns_shown = ("check", "columns", "severity", "sentence")

    release: str
    rows: int
    checks: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(f.check, ", ".join(f.columns), f.severity, f.sentence) for f in self.checks]

    def raise_refused(self) -> None:
        """As of `refuse_unsafe`."""
        refuse_unsafe(self.checks)
