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
    def of(cls, attribute: Mapping[str, Any]) -> Shown:
        labels = ((label["level"], label["name"], label["form"], label["share"]) for label in attribute["labels"])
        return cls(attribute["attribute"], attribute["hidden"], tuple(labels))


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
    def of(cls, recoding: Mapping[str, Any] | None) -> OneRecoding | None:
        if recoding is None:
            return None
        return cls(
            None if recoding["levels"] is None else tuple(recoding["levels"]),
            recoding["blocks"],
            recoding["suppressed"],
            tuple(recoding["metrics"].items()),
            tuple(map(Shown.of, recoding["attributes"])),
            tuple(map(Guarantee.of, recoding["tightest"])),
            recoding["seconds"],
            recoding["statements"],
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
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        both = {name: OneRecoding.of(recoding) for name, recoding in answer["recodings"].items()}
        return {**super().values(answer), **both, "rows": answer["rows"], "why": tuple(answer["why"].items())}

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        both = [_figures(recoding) for recoding in (self.full_domain, self.multidimensional)]
        names = next((list(figures) for figures in both if figures), [])
        return [(name, *(figures.get(name) for figures in both)) for name in names]

    def raise_refused(self) -> None:
        """Raise Refused (exit status 3) where neither recoding has an answer."""
        if self.refused is not None:
            raise Refused(self.refused)


def _figures(recoding: OneRecoding | None) -> dict[str, Number]:
    if recoding is None:
        return {}
    return {
        "blocks": recoding.blocks,
        "suppressed": recoding.suppressed,
        **dict(recoding.metrics),
        **{f"hidden: {shown.attribute}": shown.hidden for shown in recoding.shown},
        "seconds": recoding.seconds,
        "statements": recoding.statements,
    }
