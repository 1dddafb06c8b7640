"""The map of a cohort of newcomers: made when it closes, from their quasi-identifiers alone, and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.engines.tables import TableName
from qblock.ledger.events import canonical
from qblock.models import KAnonymity
from qblock.search.boxes.division import divide, of_levels
from qblock.source import Recoding, SourceTable, ladders_of, leaf_codes, leaf_texts, stated_map
from qblock.source.columns import Scan
from qblock.spec import Spec
from qblock.spec.sections import Newcomers
from qblock.versions.batching.cohort import Together
from qblock.versions.batching.proposals import Due, every
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Block
from qblock.versions.crosswalk import Crosswalk, fresh_name, load_texts
from qblock.versions.recorded import DIGEST, first_of, leaf_of, person_of, recorded

ENTITY = "qblock of whom"
"""The column that has the entity of a row as it is in the source."""
LEAST = 25
"""People of a box at least: of 737 boxes of so many none failed, of 1,951 boxes of 10 people 37."""


def cohort_maps(crosswalk: Crosswalk, release: str) -> list[dict[str, Any]]:
    """The maps of all cohorts of a release, oldest first."""
    t = crosswalk.tables.cohort
    texts = crosswalk.own.fetch(sa.select(t.c.map, t.c.first).where(t.c.release == release).order_by(t.c.first))
    return [json.loads(text) for text in texts["map"].to_pylist()]


def keep_map(crosswalk: Crosswalk, release: str, stated: Mapping[str, Any]) -> None:
    """Keep the map of a cohort, in the caller's transaction."""
    t = crosswalk.tables.cohort
    crosswalk.write(sa.insert(t).values(release=release, first=stated["first"], map=canonical(dict(stated))), release)


def least_box(spec: Spec, newcomers: Newcomers, rules: Rules, of_whole: Callable[[], int | None]) -> int | None:
    """The people of a box of newcomers at least; None where no number is enough.

    Where failing a model tells which values a box holds, a box must seldom fail: then as many as pass nearly always
    by the distribution of the first version, too. of_whole: gives that number.
    """
    if newcomers.box != "auto":
        return newcomers.box
    k = max((m.k for q in spec.privacy for m in q.models if isinstance(m, KAnonymity)), default=1)
    least = max(3 * k, LEAST, 2 * rules.k)
    if not rules.coin:
        return least
    seldom = of_whole()
    return None if seldom is None else max(least, seldom)


WEEK = timedelta(weeks=1)


def together(newcomers: Newcomers | None, least: int | None) -> Together | None:
    """The same for a forecast of weekly runs. least: people of a box; None: no cohort ever closes."""
    if newcomers is None or least is None:
        return None
    within = newcomers.within
    return Together(math.ceil(within / WEEK) if isinstance(within, timedelta) else within, least)


def due(newcomers: Newcomers, moments: Mapping[int, str]) -> Due:
    """When a cohort closes. moments: of the runs since which somebody has waited, as ISO text."""
    if not isinstance(newcomers.within, timedelta):
        return every(newcomers.within)
    within, now = newcomers.within, datetime.now(UTC)

    def is_due(run: int, since: int) -> bool:
        return since in moments and now - datetime.fromisoformat(moments[since]) >= within

    return is_due


class Division:
    """Divides who waits into boxes. source: as the map of the first version shows it; stated: the map of the cohort,
    once it was divided."""

    def __init__(self, crosswalk: Crosswalk, source: SourceTable, least: int, first: int) -> None:
        assert source.recoding is not None
        self.recoding: Recoding = source.recoding
        self._crosswalk, self._source, self._least, self._first = crosswalk, source, least, first
        self.stated: dict[str, Any] | None = None

    def __call__(self, people: Collection[str]) -> Sequence[tuple[Block, Sequence[str]]]:
        spec, columns = self.recoding.spec, self.recoding.before
        session = self._source.session
        wanted = load_texts(session, entity=sorted(people))
        if (session.embedded or self._crosswalk.hashes) and not spec.by_leaves:
            known = self._known(wanted)
            hierarchies, who, codes = leaf_codes(spec, session, self._rows(), columns, ENTITY, known)
            session.drop(known)
        else:
            hierarchies, who, codes = leaf_codes(spec, session, self._everybody(), columns, DIGEST, wanted)
        session.drop(wanted)
        # The rows of a unit are at one leaf.
        of_unit = np.unique(np.array(who, dtype=str), return_index=True)[1].tolist()
        who, codes = [who[i] for i in of_unit], codes[of_unit]
        at_node = spec.search.recoding == "full_domain"
        ladders = ladders_of(spec, hierarchies, columns, self.recoding.stated["start"] if at_node else None)
        tree, box = divide(ladders, codes, self._least, spec.weights, cuts=not at_node)
        parts = np.unique(box).tolist()
        # Which of the boxes will be shown is not known yet: no text may depend on it, nor name what they alone show.
        read = of_levels(tree, parts) if at_node else tree.texts((), self.recoding.rests(ladders), hidden=parts)
        members: dict[int, list[str]] = {part: [] for part in parts}
        for entity, part in zip(who, box.tolist(), strict=True):
            members[part].append(entity)
        labels = {part: tuple(read[label] for label in tree.labels[part]) for part in parts}
        shown = []
        for i in range(len(ladders)):
            used = {tree.labels[part][i] for part in parts}
            pairs = {(read[label], (label.within or label) if at_node else label) for label in used}
            shown.append(sorted({(text, label.level, label.form, label.leaves) for text, label in pairs}))
        self.stated = {**stated_map(tree, read, parts), "first": self._first, "labels": shown}
        return [(labels[part], members[part]) for part in parts]

    def _known(self, wanted: sa.FromClause) -> sa.TableClause:
        """The entities of some people, whose digests the source has already, and these."""
        rows, entity = self._source.relation, self.recoding.spec.entity
        assert entity is not None
        query = sa.select(rows.c[entity].label(ENTITY), rows.c[DIGEST]).select_from(rows)
        return self._source.session.store(
            fresh_name(), query.where(rows.c[DIGEST].in_(sa.select(wanted.c.entity))).distinct()
        )

    def _rows(self) -> sa.FromClause:
        """The rows of the source as it is, with entities."""
        spec, session, columns = self.recoding.spec, self._source.session, self.recoding.before
        table = session.relation(TableName.parse(spec.source.table))
        assert spec.entity is not None
        entity = session.comparable(table.c[spec.entity], columns[spec.entity]).label(ENTITY)
        return sa.select(*(table.c[name] for name in spec.quasi_identifiers), entity).subquery("qblock_everybody")

    def _everybody(self) -> sa.FromClause:
        """The rows of the source as it is, with digests."""
        source, crosswalk, spec = self._source, self._crosswalk, self.recoding.spec
        session, columns = source.session, self.recoding.before
        table = session.relation(TableName.parse(spec.source.table))
        first = first_of(crosswalk, recorded(crosswalk), spec, columns)
        who = person_of(crosswalk, spec, session, table, columns, first)
        if spec.by_leaves:
            leaf = leaf_texts(Scan(spec, session, table, dict(columns)))
            who = who.concat(leaf_of(crosswalk, spec, session, table, columns, first, leaf))
        who = who.label(DIGEST)
        return sa.select(*(table.c[name] for name in spec.quasi_identifiers), who).subquery("qblock_everybody")
