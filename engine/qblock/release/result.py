"""What a result says in words: who waits, and what readers see of each quasi-identifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qblock.hierarchy import TOP
from qblock.search.boxes.recoded import percent
from qblock.source.in_words import SUPPRESSED, node_in_words
from qblock.spec import Spec

if TYPE_CHECKING:
    from qblock.publish.recheck import Counted

WORDS = {
    "newcomers": ("newcomer", "newcomers"),
    "leavers": ("leaver", "leavers"),
    "changes": ("change", "changes"),
    "moves": ("move", "moves"),
    "withdrawals": ("withdrawal", "withdrawals"),
    "uncovered": ("row with values that no hierarchy covers", "rows with values that no hierarchy covers"),
}
AGES = (("week", 7 * 86_400), ("day", 86_400), ("hour", 3600), ("minute", 60))


def waiting_words(waiting: Mapping[str, int], lag: Mapping[str, Any] | None = None) -> str:
    """Who waits, as the end of a sentence. lag: as of `results.release.Published`, as JSON."""
    lag, out = lag or {}, waiting.get("out", 0)
    named = [f"{n:,} {WORDS[why][n != 1]}" for why, n in waiting.items() if why != "out"]
    if lag.get("blocks") and waiting.get("newcomers"):
        named[0] += f" in {_count(lag['blocks'], 'block')}"
    who = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    said = f"{who} {'waits' if sum(waiting.values()) - out == 1 else 'wait'}" if named else ""
    if out:
        said += f"{', ' if said else ''}{out:,} {'person is' if out == 1 else 'people are'} out for good"
    if "share" not in lag:
        return said
    oldest = f", oldest {_age(lag['oldest_seconds'])}" if lag["oldest_seconds"] is not None else ""
    return f"{said} (lag {100 * lag['share']:.2g} % of the rows{oldest})"


def weighed_words(detail: Mapping[str, Any]) -> str:
    """Why a version was made that no batch changed: for its weights alone. detail: of its event."""
    cells = detail.get("cells_weighed", 0)
    if not cells or detail.get("batches_closed"):
        return ""
    return f"the weights of {_count(cells, 'joint cell')} changed, since people left or came back"


def seen_in_words(
    spec: Spec, node: Mapping[str, int], counted: Counted | None, stated: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """What readers see of each quasi-identifier: at the levels of a node, or, where it has none, in the boxes of a
    recoding map: `7 labels such as 40-59 for 65 %, suppressed to * for 2 %`. counted: the published rows, where they
    were counted again. stated: the map as it is kept; one that splits nothing is read as its node."""
    of_labels: dict[str, Counter[str]] = {} if counted is None else _rows_of_labels(spec, counted)
    coarser: dict[str, Counter[str]] = {}
    if not node and stated is not None and not stated["splits"]:
        node = dict(zip(spec.quasi_identifiers, stated["start"], strict=True))
        for i, (name, rows) in enumerate(of_labels.items()):
            above = _above(stated, i)
            coarser[name] = Counter({label: rows.pop(label) for label in rows.keys() & above})
    if not node:
        return {name: _boxes_in_words(rows) for name, rows in of_labels.items()}
    values = {name: len(rows.keys() - {TOP}) for name, rows in of_labels.items()}
    words = dict(node_in_words(spec, node, values))
    return {name: said + _coarser_in_words(coarser.get(name), of_labels.get(name)) for name, said in words.items()}


def _above(stated: Mapping[str, Any], i: int) -> set[str]:
    """The labels of an attribute that boxes of newcomers have above the level of a node."""
    of_cohorts = (cohort["labels"][i] for cohort in stated.get("cohorts", ()))
    return {label for labels in of_cohorts for label, level, *_ in labels if level > stated["start"][i]}


def _coarser_in_words(coarser: Counter[str] | None, rows: Counter[str] | None) -> str:
    """The rows whose labels are above those of a node, after what is said of it; empty where there are none."""
    if not coarser or rows is None:
        return ""
    total = coarser.total() + rows.total()
    suppressed = coarser.pop(TOP, 0)
    parts = [f"{SUPPRESSED} for {percent(suppressed / total)}"] if suppressed else []
    if coarser:
        like = min(coarser, key=lambda label: (-coarser[label], label))
        parts.insert(0, f"coarser such as {like} for {percent(coarser.total() / total)}")
    return "".join(f", {part}" for part in parts)


def _rows_of_labels(spec: Spec, counted: Counted) -> dict[str, Counter[str]]:
    shown = {}
    for i, name in enumerate(spec.quasi_identifiers):
        rows: Counter[str] = Counter()
        for labels, n in zip(counted.labels, counted.rows.tolist(), strict=True):
            rows[labels[i]] += n
        shown[name] = rows
    return shown


def _boxes_in_words(rows: Counter[str]) -> str:
    total, suppressed = max(1, rows.total()), rows.pop(TOP, 0)
    like = min(rows, key=lambda label: (-rows[label], label), default=None)
    if like is None:
        return SUPPRESSED
    said = f"{_count(len(rows), 'label')} such as {like} for {percent(rows[like] / total)}"
    return said + (f", {SUPPRESSED} for {percent(suppressed / total)}" if suppressed else "")


def _age(seconds: float) -> str:
    for word, length in AGES:
        if seconds >= length:
            return _count(int(seconds // length), word)
    return "less than a minute"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
