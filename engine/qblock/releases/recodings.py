"""What `Release.compare_recodings` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qblock.errors import Refused
from qblock.releases.answer import Answer
from qblock.tables.results import Guarantee, Number


@dataclass(frozen=True)
class Shown:
    """What readers see of a quasi-identifier, as shares of the published rows. hidden: of those that have `*`; labels:
    level, its name, form (plain, range or rest: one label, neighbours, or others together) and share."""

    attribute: str
    hidden: float
    labels: tuple[tuple[int, str, str, float], ...]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Shown:
        labels = ((one["level"], one["name"], one["form"], one["share"]) for one in found["labels"])
        return cls(found["attribute"], found["hidden"], tuple(labels))


@dataclass(frozen=True)
class OneRecoding:
    """What one recoding would publish. levels: of the node, None of a map; suppressed: rows; seconds, statements: of
    its search and its figures, without those that opened the source."""

    levels: tuple[int, ...] | None
    blocks: int
    suppressed: int
    metrics: tuple[tuple[str, Number], ...]
    shown: tuple[Shown, ...]
    guarantees: tuple[Guarantee, ...]
    seconds: float
    statements: int

    @classmethod
    def of(cls, found: Mapping[str, Any] | None) -> OneRecoding | None:
        if found is None:
            return None
        return cls(
            None if found["levels"] is None else tuple(found["levels"]),
            found["blocks"],
            found["suppressed"],
            tuple(found["metrics"].items()),
            tuple(map(Shown.of, found["attributes"])),
            tuple(map(Guarantee.of, found["tightest"])),
            found["seconds"],
            found["statements"],
        )


@dataclass(frozen=True)
class ComparedRecodings(Answer):
    """Both recodings of one spec, each None where it has no answer. why: of full_domain and of multidimensional, what
    was found or why nothing was; refused: why neither has an answer, if so."""

    columns = ("figure", "full_domain", "multidimensional")

    rows: int
    full_domain: OneRecoding | None
    multidimensional: OneRecoding | None
    why: tuple[tuple[str, str], ...]
    refused: str | None = None

    @classmethod
    def values(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        both = {name: OneRecoding.of(one) for name, one in found["recodings"].items()}
        return {**super().values(found), **both, "rows": found["rows"], "why": tuple(found["why"].items())}

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        both = [_figures(one) for one in (self.full_domain, self.multidimensional)]
        names = next((list(figures) for figures in both if figures), [])
        return [(name, *(figures.get(name) for figures in both)) for name in names]

    def raise_refused(self) -> None:
        """Raise Refused (exit status 3) where neither recoding has an answer."""
        if self.refused is not None:
            raise Refused(self.refused)


def _figures(one: OneRecoding | None) -> dict[str, Number]:
    if one is None:
        return {}
    return {
        "blocks": one.blocks,
        "suppressed": one.suppressed,
        **dict(one.metrics),
        **{f"hidden: {shown.attribute}": shown.hidden for shown in one.shown},
        "seconds": one.seconds,
        "statements": one.statements,
    }
