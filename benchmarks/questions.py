"""What is asked of the tables, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.tables import MILLIONS, TABLES, Table


@dataclass(frozen=True)
class Question:
    """privacy and more: of the spec. search: of the spec's `search`. engine: where the table is.

    process: the whole command is measured, not the search alone. standard: it is asked where none is named. runs: how
    often it is asked, if nothing else is said.
    """

    name: str
    table: str
    privacy: Sequence[Mapping[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    answer: str = "all"
    engine: str = "duckdb"
    process: bool = False
    standard: bool = True
    runs: int = 3

    @property
    def of(self) -> Table:
        return TABLES[self.table]

    def spec(self, url: str, source: str, directory: Path, keys: frozenset[str]) -> dict[str, Any]:
        """The spec over a table at a URL. keys: those of `search` that the installed qblock knows."""
        answer = {"answer": self.answer} if "answer" in keys else {}
        return {
            "version": 1,
            "release": "benchmark",
            "source": {"url": url, "table": source},
            "attributes": self.of.attributes(directory),
            "privacy": list(self.privacy),
            "search": {**self.search, **answer},
            **self.more,
        }

    def lacks(self, keys: frozenset[str]) -> str | None:
        """What the installed qblock does not know of the question; the answer with all nodes was there ever since."""
        return "search.answer" if self.answer != "all" and "answer" not in keys else None


def k(k: int) -> dict[str, Any]:
    return {"k_anonymity": {"k": k}}


def entropy(least: int, sensitive: str) -> dict[str, Any]:
    return {"entropy_l_diversity": {"l": least, "sensitive": sensitive}}


LOSSY = {"privacy": [k(5)], "more": {"suppression_limit": 0.02}, "search": {"choose_by": "loss"}}
T_CLOSE = {"t_closeness": {"t": 0.2, "sensitive": "health", "distance": "equal"}}
MAP: dict[str, Any] = {"search": {"recoding": "multidimensional", "choose_by": "loss"}, "standard": False}
SERVER: dict[str, Any] = {"engine": "postgresql", "standard": False}
ASKED = (
    Question("retail-k6", "retail", [k(6)]),
    Question("retail-entropy6", "retail", [entropy(6, "cost")]),
    Question("survey-k5", "survey", [k(5)]),
    Question("survey-t0.2", "survey", [T_CLOSE]),
    Question("survey-k5-suppress-all", "survey", **LOSSY),
    Question("survey-k5-suppress-best", "survey", **LOSSY, answer="best"),
    Question("hospital-entropy4-k10", "hospital", [k(10), entropy(4, "diagnosis")]),
    Question("census-entropy6-process", "census", [entropy(6, "occupation")], process=True),
    Question("retail-k6-map", "retail", [k(6)], **MAP),
    Question("retail-entropy6-map", "retail", [entropy(6, "cost")], **MAP),
    Question("retail-x10-k6", "retail-x10", [k(6)], standard=False),
    Question("retail-k6-postgresql", "retail", [k(6)], **SERVER),
    Question("retail-k6-postgresql-warehouse", "retail", [k(6)], **SERVER, search={"roll_up": "warehouse"}),
    Question("tiny-k2-process", "tiny", [k(2)], process=True, standard=False, runs=11),
)
NOT_WHOLE = {"survey-k5-suppress-all", "hospital-entropy4-k10", "retail-x10-k6", "retail-k6-postgresql-warehouse"}
"""What is asked of the search alone."""


def whole(question: Question) -> Question:
    """The same question of the whole command; a map is asked once, since it takes long."""
    runs = 1 if "recoding" in question.search else question.runs
    return replace(question, name=f"{question.name}-process", process=True, standard=False, runs=runs)


def growing(millions: int) -> tuple[Question, ...]:
    """What is asked, once, of each size of the table whose growth is measured."""
    table = f"retail-{millions}m"
    of_one = (
        Question(f"{table}-k6", table, [k(6)]),
        Question(f"{table}-k6-map", table, [k(6)], **MAP),
        Question(f"{table}-k6-postgresql", table, [k(6)], **SERVER),
    )
    return tuple(replace(whole(question), runs=1) for question in of_one)


QUESTIONS = {
    question.name: question
    for question in (
        *ASKED,
        *(whole(question) for question in ASKED if not question.process and question.name not in NOT_WHOLE),
        whole(Question("survey-k5-map", "survey", [k(5)], **MAP)),
        *(question for millions in MILLIONS for question in growing(millions)),
    )
}


def keys_of_search() -> frozenset[str]:
    """The keys of `search` that the installed qblock knows."""
    from qblock.spec.schema import json_schema

    def properties(schema: Any) -> Any:
        if isinstance(schema, dict):
            if "choose_by" in schema.get("properties", {}):
                yield from schema["properties"]
            schema = list(schema.values())
        for part in schema if isinstance(schema, list) else ():
            yield from properties(part)

    return frozenset(properties(json_schema()))
