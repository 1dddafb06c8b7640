"""The answer of `qblock check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from qblock.errors import Refused, counted
from qblock.results.base import Answer, Real, Value


class Finding(Value):
    """What a spec takes for granted and the data do not bear out. columns: whom it is about, with `determines` the
    column and the quasi-identifier that it tells; because: what the spec answers for it, where it accepts it."""

    check: str
    columns: tuple[str, ...]
    severity: Literal["unsafe", "warning"]
    figure: Mapping[str, Real]
    sentence: str
    remedy: str
    because: str | None = None


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
        """Raise Refused (exit status 3) where something is unsafe and nobody answers for it."""
        unsafe = sum(f.severity == "unsafe" and f.because is None for f in self.checks)
        if unsafe:
            raise Refused(f"{counted(unsafe, 'finding')} would stop a release: correct the spec, or accept them in it")
