"""What the reports on versions together are made of: counts from the crosswalk, and whole label vectors.

The vectors are rebuilt from the crosswalk's rows, independently of the rolled signatures that the gate uses.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Ints
from qblock.engines.arrow import whole_numbers
from qblock.hierarchy import Hierarchy
from qblock.search.task import Task
from qblock.spec import Spec
from qblock.versions.bounds import (
    LIMIT,
    Change,
    Component,
    Evidence,
    Label,
    bounds,
    delta_check,
    equal_signatures,
    fewest,
    supports,
)
from qblock.versions.crosswalk import Crosswalk, fresh_name, load_texts
from qblock.versions.episodes import FAILED, NOTHING, PUBLISHED, VersionKey
from qblock.versions.gate import Verdict, members
from qblock.versions.people import leavers_way_on
from qblock.versions.recorded import UNPROTECTED, Candidate, RecordedVersion, least_rows, load_labels, recorded
from qblock.versions.texts import decoded

COMPARED = 10
"""Earlier versions that the newest one is compared with, block by block."""


@dataclass(frozen=True)
class Left:
    """What a report says of a sensitive attribute: the fewest values that remain possible for anybody who was shown,
    and for how many episodes only one does."""

    attribute: str
    supports: int
    supports_certain: int
    bounds: int
    bounds_certain: int


@dataclass(frozen=True)
class Explanation:
    """Reports on versions together. changes: with the earlier version; compared: how many versions were.

    left and components are empty where a history has too many joint cells (`explained` is False).
    """

    versions: tuple[VersionKey, ...]
    explained: bool
    left: tuple[Left, ...]
    changes: tuple[tuple[VersionKey, Change], ...]
    compared: int
    components: tuple[Component, ...]

    def lines(self) -> list[str]:
        """Sentences for the person who must act: only counts, since they end in logs and in the ledger."""
        said = []
        for key in dict.fromkeys(key for key, _ in self.changes):
            counts = Counter(change.what for other, change in self.changes if other == key)
            parts = [f"{what} {plural(n, 'block')}" for what, n in counts.items()]
            said.append(f"since version {key.version} of {key.release} too few people {', '.join(parts)}")
        for left in self.left:
            said.append(
                f"{left.attribute}: knowing only one person's blocks leaves an attacker at least "
                f"{plural(left.supports, 'value')}, and makes them certain about "
                f"{plural(left.supports_certain, 'person')}; counting over all blocks leaves at least "
                f"{plural(left.bounds, 'value')}, and certainty about {plural(left.bounds_certain, 'person')}"
            )
        harmless = sum(c.rows for c in self.components if c.values is not None and c.values > 1)
        if harmless:
            said.append(
                f"{plural(harmless, 'person')} in components whose blocks all hold the same values equally often"
            )
        if not self.explained:
            said.append(f"there are more than {LIMIT} joint cells: too many to say which values remain in each")
        return said


def plural(n: int, word: str) -> str:
    """A number of things: 1 block, 2 blocks, 3 people."""
    plural_form = "people" if word == "person" else f"{word}s"
    return f"{n:,} {word if n == 1 else plural_form}"


def explanation(
    crosswalk: Crosswalk, spec: Spec, hierarchies: Sequence[Hierarchy], k: int, candidate: Candidate | None = None
) -> Explanation:
    """The reports on all versions that the audience may hold, with a candidate as the newest or without.

    hierarchies: of this run, in the order of the quasi-identifiers; k: below which a change is reported.
    """
    versions = [v for v in members(spec, recorded(crosswalk)) if candidate is None or v.key != candidate.about.key]
    if candidate is not None:
        versions.append(candidate.about)
    rows = _rows(crosswalk, versions, candidate)
    vectors = _vectors(crosswalk, rows, len(versions))
    left: list[Left] = []
    components: list[Component] = []
    if vectors is not None:
        margins = _margins(crosswalk, rows)
        for i, name in enumerate(spec.sensitives):
            evidence, failed = evidence_of(*vectors, margins, i)
            left.append(_left(name, evidence))
            if len(spec.sensitives) == 1:
                components = equal_signatures(evidence, failed)
    changes, compared = _changes(crosswalk, rows, versions, hierarchies, candidate, k)
    keys = tuple(version.key for version in versions)
    return Explanation(keys, vectors is not None, tuple(left), tuple(changes), compared, tuple(components))


def _left(name: str, evidence: Evidence) -> Left:
    values = []
    for possible in (supports(evidence), bounds(evidence).upper > 0):
        certain = (possible.sum(axis=1) < 2) & evidence.shown
        values += [fewest(possible, evidence) or 0, int(evidence.rows[certain].sum())]
    return Left(name, *values)


def _rows(crosswalk: Crosswalk, versions: Sequence[RecordedVersion], candidate: Candidate | None) -> sa.TableClause:
    """entity, at (the number of the version), shown, block, value, of all versions."""
    t = crosswalk.tables.row
    recorded_ones = versions[: len(versions) - (candidate is not None)]
    wanted = load_texts(
        crosswalk.own,
        release=[v.key.release for v in recorded_ones],
        version=whole_numbers([v.key.version for v in recorded_ones]),
        at=whole_numbers(range(len(recorded_ones))),
    )
    same = sa.and_(t.c.release == wanted.c.release, t.c.version == wanted.c.version)
    query = sa.select(t.c.entity, wanted.c.at, t.c.shown, t.c.block, t.c.value).select_from(t.join(wanted, same))
    if candidate is None:
        return crosswalk.own.store(fresh_name(), query)
    new = candidate.rows
    at = sa.cast(sa.literal(len(recorded_ones)), sa.BigInteger).label("at")
    both = sa.union_all(query, sa.select(new.c.entity, at, new.c.shown, new.c.block, new.c.value)).subquery()
    return crosswalk.own.store(fresh_name(), sa.select(*both.c))


def _vectors(crosswalk: Crosswalk, rows: sa.TableClause, versions: int) -> tuple[list[tuple[Label, ...]], Ints] | None:
    """The label vector of each joint cell and its episodes; None where there are more than LIMIT."""
    before = sa.func.lag(rows.c.value).over(partition_by=rows.c.entity, order_by=rows.c.at)
    changed = sa.select(rows, sa.case((before != rows.c.value, 1), else_=0).label("changed")).subquery()
    run = sa.func.sum(changed.c.changed).over(partition_by=changed.c.entity, order_by=changed.c.at).label("run")
    numbered = sa.select(changed, run).subquery()
    label = sa.cast(numbered.c.at, sa.Text).concat(numbered.c.shown).concat(sa.cast(numbered.c.block, sa.Text))
    vector = sa.func.string_agg(label, sa.literal_column("' '")).aggregate_order_by(numbered.c.at)
    vectors = (
        sa.select(vector.label("vector"))
        .where(numbered.c.shown != NOTHING)
        .group_by(numbered.c.entity, numbered.c.run)
        .subquery()
    )
    query = sa.select(vectors.c.vector, sa.func.count().label("n")).group_by(vectors.c.vector).limit(LIMIT + 1)
    table = crosswalk.own.fetch(query)
    if len(table) > LIMIT:
        return None
    return [_labels(text, versions) for text in table["vector"].to_pylist()], np.array(table["n"].to_pylist(), np.int64)


def _labels(text: str, versions: int) -> tuple[Label, ...]:
    labels: list[Label] = [None] * versions
    for item in text.split():
        kind = PUBLISHED if PUBLISHED in item else FAILED
        at, block = item.split(kind)
        labels[int(at)] = (kind, int(block))
    return tuple(labels)


def _margins(crosswalk: Crosswalk, rows: sa.TableClause) -> list[dict[str, Any]]:
    columns = (rows.c.at, rows.c.shown, rows.c.block, rows.c.value)
    query = sa.select(*columns, sa.func.count().label("n")).where(rows.c.shown != NOTHING).group_by(*columns)
    return list(crosswalk.own.fetch(query).to_pylist())


def evidence_of(
    vectors: Sequence[tuple[Label, ...]], rows: Ints, margins: Sequence[dict[str, Any]], attribute: int
) -> tuple[Evidence, dict[tuple[int, int], Ints]]:
    """The evidence on one of the sensitive attributes, and the counts of failed blocks."""
    texts = [decoded(row["value"])[attribute] for row in margins]
    values = sorted(set(texts), key=lambda text: (text is not None, text))
    number = {text: i for i, text in enumerate(values)}
    by_kind: dict[str, dict[tuple[int, int], Ints]] = {PUBLISHED: {}, FAILED: {}}
    for row, text in zip(margins, texts, strict=True):
        counts = by_kind[row["shown"]].setdefault((row["at"], row["block"]), np.zeros(len(values), dtype=np.int64))
        counts[number[text]] += row["n"]
    names = tuple("" if text is None else text for text in values)
    return Evidence(tuple(vectors), rows, names, by_kind[PUBLISHED]), by_kind[FAILED]


def _changes(
    crosswalk: Crosswalk,
    rows: sa.TableClause,
    versions: Sequence[RecordedVersion],
    hierarchies: Sequence[Hierarchy],
    candidate: Candidate | None,
    k: int,
) -> tuple[list[tuple[VersionKey, Change]], int]:
    """The delta check of the newest version with the ones before, newest first, and how many could be compared."""
    if not versions:
        return [], 0
    newest, at = versions[-1], len(versions) - 1
    names = tuple(hierarchy.attribute for hierarchy in hierarchies)
    changes: list[tuple[VersionKey, Change]] = []
    compared = 0
    for other in reversed(range(max(0, at - COMPARED), at)):
        earlier = versions[other]
        if (earlier.quasi_identifiers, newest.quasi_identifiers) != (names, names):
            continue
        join = tuple(map(max, earlier.node, newest.node))
        before = joined_labels(_labels_of(crosswalk, earlier, None), hierarchies, earlier.node, join)
        after = joined_labels(_labels_of(crosswalk, newest, candidate), hierarchies, newest.node, join)
        if before is None or after is None:
            continue
        compared += 1
        pairs = [
            (
                None if row["before"] is None else before[row["before"]],
                None if row["after"] is None else after[row["after"]],
                row["n"],
            )
            for row in crosswalk.own.fetch(_pairs(rows, other, at)).to_pylist()
        ]
        changes += [(earlier.key, change) for change in delta_check(pairs, k)]
    return changes, compared


def _pairs(rows: sa.TableClause, earlier: int, later: int) -> Any:
    before, after = (
        sa.select(rows.c.entity, rows.c.block).where(rows.c.at == at, rows.c.shown == PUBLISHED).subquery()
        for at in (earlier, later)
    )
    both = before.outerjoin(after, before.c.entity == after.c.entity, full=True)
    columns = before.c.block.label("before"), after.c.block.label("after")
    return sa.select(*columns, sa.func.count().label("n")).select_from(both).group_by(before.c.block, after.c.block)


def _labels_of(crosswalk: Crosswalk, version: RecordedVersion, candidate: Candidate | None) -> dict[int, list[str]]:
    if candidate is not None:
        return {block: json.loads(label) for block, label in enumerate(candidate.labels)}
    t = crosswalk.tables.block
    same = (t.c.release == version.key.release, t.c.version == version.key.version)
    table = crosswalk.own.fetch(sa.select(t.c.block, t.c.label).where(*same))
    return dict(
        zip(table["block"].to_pylist(), (json.loads(label) for label in table["label"].to_pylist()), strict=True)
    )


def joined_labels(
    labels: dict[int, list[str]], hierarchies: Sequence[Hierarchy], node: Sequence[int], join: Sequence[int]
) -> dict[int, str] | None:
    """The label of each block of a node in a coarser one; None where a label is no longer in its hierarchy."""
    maps = [
        dict(zip(hierarchy.shown(fine), hierarchy.shown(coarse), strict=True))
        for hierarchy, fine, coarse in zip(hierarchies, node, join, strict=True)
    ]
    joined = {}
    for block, texts in labels.items():
        coarser = [known.get(text) for known, text in zip(maps, texts, strict=True)]
        if any(text is None for text in coarser):
            return None
        joined[block] = ", ".join(str(text) for text in coarser)
    return joined


@dataclass(frozen=True)
class Changed:
    """How many of those whom a version shows are in the candidate as well, and of them, how many with another value."""

    key: VersionKey
    stayed: int
    changed: int

    def __str__(self) -> str:
        return (
            f"of {self.stayed} people whom version {self.key.version} of {self.key.release} shows and who stay, "
            f"{self.changed} have another sensitive value (a column that is recoded changes everybody)"
        )


def changed_values(crosswalk: Crosswalk, spec: Spec, candidate: Candidate) -> Changed | None:
    """What changed since the newest version of the first release that the audience may hold, its own before others, of
    which anything has."""
    newest = {v.key.release: v.key for v in members(spec, recorded(crosswalk)) if v.key != candidate.about.key}
    keys = sorted(newest.values(), key=lambda key: key.release != spec.release)
    return next((since for key in keys if (since := _since(crosswalk, candidate, key)).changed), None)


def _since(crosswalk: Crosswalk, candidate: Candidate, key: VersionKey) -> Changed:
    t = crosswalk.tables.row
    before = (
        sa.select(t.c.entity, t.c.value)
        .where(t.c.release == key.release, t.c.version == key.version, t.c.shown == PUBLISHED)
        .subquery("before")
    )
    both = before.join(candidate.rows, candidate.rows.c.entity == before.c.entity)
    differs = sa.func.coalesce(sa.func.sum(sa.case((before.c.value != candidate.rows.c.value, 1), else_=0)), 0)
    query = sa.select(sa.func.count().label("stayed"), sa.cast(differs, sa.BigInteger).label("changed"))
    (row,) = crosswalk.own.fetch(query.select_from(both)).to_pylist()
    return Changed(key, int(row["stayed"]), int(row["changed"]))


def refusal(crosswalk: Crosswalk, task: Task, candidate: Candidate, verdict: Verdict) -> str:
    """What is said of a candidate that fails together with the versions before, for the person who must act."""
    spec, linked, of_map = task.spec, verdict.mode == "linked", task.source.recoding is not None
    why: list[str] = []
    if not spec.bundles:  # of which bounds are not known
        why = explanation(crosswalk, spec, task.source.hierarchies, least_rows(spec.privacy), candidate).lines()
    leavers = leavers_way_on(crosswalk, spec, candidate)
    changed = changed_values(crosswalk, spec, candidate) if linked else None
    coarser = "ask for larger boxes (a larger k)" if of_map else "pin a coarser node (search.node)"
    same = "keep the published map (search.node: {version: N})" if of_map else "keep the published node (search.node)"
    by_block = "" if of_map else ", cohort: auto"  # at a node newcomers are shown as those of the first version
    models = ", ".join(f"{name} in {n} cells" for name, n in verdict.models)
    if verdict.versions == 1 and spec.by_rows:
        return (
            f"{verdict.failing} of {verdict.cells} groups of people who have equally many rows in a block fail, with "
            f"{verdict.rows} people in them ({models}). Others may know how many rows somebody has "
            "(versions.row_counts: known). Nothing is published; keep few rows of each person in a view of the "
            f"source, or {coarser}"
        )
    if verdict.versions == 1:  # of people with several rows, whom no model covers in this
        return (
            f"in {verdict.failing} of {verdict.cells} blocks, with {verdict.rows} people in them, everybody shares a "
            f"value, so belonging to the block reveals it. Nothing is published; {coarser}"
        )
    how = "to people who know whose value changed" if linked else "by people whose value did not change"
    same_cell = ", and whose value changed in the same ones" if linked else ""
    groups = "newcomers, leavers and changed values" if linked else "newcomers and leavers"
    because = f"{changed}. " if changed else ""
    more = f"To explain: {'; '.join(why)}. " if why else ""
    return (
        f"{verdict.versions} versions together tell more than each one alone ({how}): {verdict.failing} of "
        f"{verdict.cells} joint cells fail, with {verdict.rows} people in them ({models}). Joint cells are people who "
        f"look the same in every version ever published{same_cell}. {because}{more}{leavers}Nothing is published; "
        f"{same}, wait until {groups} come in larger groups, or write `versions: {{on_refusal: hold_back{by_block}}}`: "
        f"versions then lag behind the source until they pass. The only other way on is {UNPROTECTED}"
    )


def moved_by_edits(crosswalk: Crosswalk, spec: Spec, candidate: Candidate) -> tuple[list[str], int]:
    """The attributes whose hierarchies differ from those of the release's newest version, and how many people are shown
    under another label because of it: of those whom both versions show, where both have the same node."""
    earlier = [v for v in recorded(crosswalk, spec.release) if v.key != candidate.about.key]
    if not earlier:
        return [], 0
    before, now = json.loads(earlier[-1].hierarchies), json.loads(candidate.about.hierarchies)
    changed = [name for name in now if name in before and now[name] != before[name]]
    if not changed or (earlier[-1].node, earlier[-1].quasi_identifiers) != (
        candidate.about.node,
        spec.quasi_identifiers,
    ):
        return changed, 0
    t, key = crosswalk.tables, earlier[-1].key
    labels = load_labels(crosswalk, candidate)
    both = t.row_in_block.join(candidate.rows, candidate.rows.c.entity == t.row.c.entity).join(
        labels, labels.c.block == candidate.rows.c.block
    )
    query = (
        sa.select(sa.func.count())
        .select_from(both)
        .where(
            t.row.c.release == key.release,
            t.row.c.version == key.version,
            t.row.c.shown == PUBLISHED,
            candidate.rows.c.shown == PUBLISHED,
            t.block.c.label != labels.c.label,
        )
    )
    return changed, int(crosswalk.own.scalar(query))
