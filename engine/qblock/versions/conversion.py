"""Converts what the crosswalk keeps: to a new key of the digests, and to other column types."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.canonical import canonical
from qblock.engines.tables import Column
from qblock.engines.values import NUMERIC, canonical_text, carried, is_value
from qblock.errors import QblockError, Refused
from qblock.hierarchy.labels import texts as text_array
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.ledger.kept import Kept
from qblock.ledger.store import Store
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, fresh_name, key_of, keyed, nobody, open_crosswalk
from qblock.versions.pending.state import read_state
from qblock.versions.recorded import UNPROTECTED, RecordedVersion, recorded
from qblock.versions.texts import (
    AT_LEAF,
    NAME,
    decoded,
    encoded_texts,
    joined_text,
    leaf_name,
    name_of,
    owner,
    split_text,
)
from qblock.versions.types import Types

NewTexts = Mapping[str, Mapping[str, str]]
"""For each column the new text of each text that is written differently now."""
WHY = "the crosswalk has a new key, taken over the digests of the one before"


def new_key(crosswalk: Crosswalk) -> tuple[int, dict[str, int]]:
    """Give the crosswalk a further key; returns its number, and how many people of each release were moved to it.

    Each digest becomes the digest of itself under the new key, so that nobody has to be in the source for it; the
    older keys are kept, for the digests of people who come later. In the transaction of the crosswalk, while nothing
    else runs in its place. Rolled signatures and joint cells are made of labels alone, so they stay as they are.
    """
    t, own = crosswalk.tables, crosswalk.own
    number = crosswalk.key_numbers()[-1] + 1
    before = people(crosswalk)
    crosswalk.write(sa.insert(t.key).values(id=number, secret=secrets.token_hex(32)), None)
    for table in t.of_entities:
        # Of a unit the block stays as it is, and a leaf, which is a digest, does not.
        key, rest = [key_of(t.key, number)], name_of(table.c.entity)
        leaf = leaf_name(keyed(own, sa.func.substr(rest, 2, type_=sa.Text), key, NAME - 1))
        named = sa.case((rest.like(f"{AT_LEAF}%"), leaf), else_=rest)
        moved = keyed(own, owner(table.c.entity), key).concat(named)
        crosswalk.write(sa.update(table).values(entity=moved), None)
    if people(crosswalk) != before:
        raise QblockError("the crosswalk knows other people under its new key: it was altered, and stays as it was")
    return number, before


def people(crosswalk: Crosswalk) -> dict[str, int]:
    """How many people the crosswalk knows of each release that it holds."""
    t = crosswalk.tables
    everybody = sa.union(*(sa.select(table.c.release, table.c.entity) for table in t.of_entities)).subquery("everybody")
    query = sa.select(everybody.c.release, sa.func.count().label("n")).group_by(everybody.c.release)
    query = query.where(everybody.c.release.not_like(f"{nobody('')}%")).order_by(everybody.c.release)
    return {row["release"]: int(row["n"]) for row in crosswalk.own.fetch(query).to_pylist()}


def owed(crosswalk: Crosswalk, release: str) -> list[dict[str, Any]]:
    """Changes of the key that the ledger of a release may not record yet (DuckDB)."""
    t = crosswalk.tables.rekeyed
    return list(crosswalk.own.fetch(sa.select(t).where(t.c.release == release).order_by(t.c.key)).to_pylist())


def settle_keys(store: Store, release: str) -> None:
    """Write into the ledger of a release what a `rekey` that was killed left out. May be called again. Under a lock."""
    with open_crosswalk(store) as crosswalk:
        rows = owed(crosswalk, release)
    if not rows:
        return
    with store.read() as reader:
        said = {event.detail.get("key") for event in reader.history(release) if event.state == "rekeyed"}
    with store.write() as connection:
        for row in rows:
            if row["key"] not in said:
                record(connection, rekeyed_event(row))
    with open_crosswalk(store) as crosswalk:
        t = crosswalk.tables.rekeyed
        crosswalk.write(sa.delete(t).where(t.c.release == release), release)


def rekeyed_event(row: Mapping[str, Any]) -> Event:
    """What the ledger says of a new key. row: release, key (its number) and people."""
    detail = {"key": row["key"], "people": row["people"]}
    return Event(release=row["release"], state="rekeyed", run=secrets.token_hex(8), detail=detail, reason=WHY)


def new_texts(
    crosswalk: Crosswalk, spec: Spec, own: Sequence[RecordedVersion], known: Types, now: Types
) -> dict[str, dict[str, str]]:
    """The texts that are written differently in the present types, by column. Raises Refused where values do not read
    the same both ways, with their number by column."""
    texts = _kept_texts(crosswalk, spec.release)
    for version in own:
        for name, reference in version.references.items():
            texts.setdefault(name, set()).update(text for text in reference.domain if text is not None)
    converted, problems = {}, []
    for name, kept in texts.items():
        if name not in now.columns:
            continue
        targets = {text: _converted(text, known.columns.get(name), now.columns[name]) for text in kept}
        bad = sum(n for target, n in Counter(targets.values()).items() if target is None or n > 1)
        if bad:
            problems.append(f"{bad} of {len(kept)} values of column {name}, of type {now.columns[name].type} now")
        converted[name] = {text: target for text, target in targets.items() if target is not None and target != text}
    if problems:
        raise Refused(
            f"{'; '.join(problems)}, do not read the same in the earlier type and in the present one: nothing was "
            f"changed. Give the column its type again, or write {UNPROTECTED}"
        )
    return converted


def _kept_texts(crosswalk: Crosswalk, release: str) -> dict[str, set[str]]:
    """Every text that the crosswalk keeps of a release's sensitive attributes and frozen quasi-identifiers."""
    texts: dict[str, set[str]] = {}
    row, frozen = crosswalk.tables.row, crosswalk.tables.frozen
    for version in recorded(crosswalk, release):
        same = (row.c.release == release, row.c.version == version.key.version)
        values = crosswalk.column(sa.select(row.c.value).where(*same).distinct())
        _collect(texts, version.sensitive, map(decoded, values))
    places = sa.select(frozen.c.names, frozen.c.place).where(frozen.c.release == release).distinct()
    for layout in crosswalk.own.fetch(places).to_pylist():
        _collect(texts, json.loads(layout["names"]), [split_text(layout["place"])])
    return texts


def _collect(collected: dict[str, set[str]], names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> None:
    for texts in rows:
        for name, text in zip(names, texts, strict=True):
            if text is not None:
                collected.setdefault(name, set()).add(text)


def _converted(text: str, before: Column | None, now: Column) -> str | None:
    """The text of a kept value in the present type; None where it does not read the same both ways.

    before: the earlier type; None where the newest version has no such column: there it is enough that no two texts
    become one.
    """
    there = canonical_text(text if before is None else carried(text, before.kind, now.kind), now)
    if there is None or before is None:
        return there
    return there if canonical_text(carried(there, now.kind, before.kind), before) == text else None


def rewrite(crosswalk: Crosswalk, release: str, own: Sequence[RecordedVersion], texts: NewTexts, now: Types) -> None:
    """Write the new texts and the present types; checks that have rolled the versions roll them again."""
    t = crosswalk.tables
    for version in own:
        same = (t.row.c.release == release, t.row.c.version == version.key.version)
        if any(texts.get(name) for name in version.sensitive):
            values = crosswalk.column(sa.select(t.row.c.value).where(*same).distinct())
            after = {value: encoded_texts(_renewed(texts, version.sensitive, decoded(value))) for value in values}
            _replace(crosswalk, release, t.row.c.value, after, same)
        content = _content(version, texts, now)
        here = (t.version.c.release == release, t.version.c.version == version.key.version)
        update = sa.update(t.version).where(*here).values(content=content, types=now.text())
        crosswalk.write(update, release, version.key.version)
    layouts = crosswalk.own.fetch(sa.select(t.frozen.c.names).where(t.frozen.c.release == release).distinct())
    for layout in layouts["names"].to_pylist():
        _replace_places(
            crosswalk,
            release,
            texts,
            t.frozen.c.place,
            json.loads(layout),
            (t.frozen.c.release == release, t.frozen.c.names == layout),
        )
    _roll_anew(crosswalk, release)
    _rewrite_state(crosswalk, release, texts)
    crosswalk.read.clear()


def _rewrite_state(crosswalk: Crosswalk, release: str, texts: NewTexts) -> None:
    """Write the new texts of the state that a release which lags shows, and of changes that wait."""
    state = read_state(crosswalk, release)
    if state is None:
        return
    shown, waiting = crosswalk.tables.shown, crosswalk.tables.waiting
    _replace_places(crosswalk, release, texts, shown.c.place, state.layout.quasi, (shown.c.release == release,))
    for column in (shown.c.value, waiting.c.seen):
        _replace_places(crosswalk, release, texts, column, state.layout.valued, (column.table.c.release == release,))
    same = (shown.c.release == release, shown.c.earlier.is_not(None))
    lists = crosswalk.column(sa.select(shown.c.earlier.label("text")).where(*same).distinct())
    names = state.layout.valued
    after = {
        text: canonical([joined_text(_renewed(texts, names, split_text(value))) for value in json.loads(text)])
        for text in lists
    }
    _replace(crosswalk, release, shown.c.earlier, after, same)


def _roll_anew(crosswalk: Crosswalk, release: str) -> None:
    """Forget how far any check has rolled versions of the release: it rolls them again from their rows."""
    rolled = crosswalk.tables.rolled
    for row in crosswalk.own.fetch(sa.select(rolled)).to_pylist():
        if any(text.rpartition(":")[0] == release for text in json.loads(row["versions"])):
            crosswalk.write(sa.delete(rolled).where(rolled.c.release == row["release"]), row["release"])


def _renewed(new: NewTexts, names: Sequence[str], texts: Sequence[str | None]) -> list[str | None]:
    """Texts of columns in their present types."""
    pairs = zip(names, texts, strict=True)
    return [None if text is None else new.get(name, {}).get(text, text) for name, text in pairs]


def _replace_places(
    crosswalk: Crosswalk,
    release: str,
    new: NewTexts,
    column: sa.Column[Any],
    names: Sequence[str],
    same: Sequence[sa.ColumnElement[bool]],
) -> None:
    """Write the new texts in a column that has those of several columns in one; same: of which rows."""
    if any(new.get(name) for name in names):
        query = sa.select(column.label("text")).where(*same, column.is_not(None)).distinct()
        places = crosswalk.column(query)
        after = {place: joined_text(_renewed(new, names, split_text(place))) for place in places}
        _replace(crosswalk, release, column, after, same)


def _replace(
    crosswalk: Crosswalk,
    release: str,
    column: sa.Column[Any],
    texts: Mapping[str, str],
    same: Sequence[sa.ColumnElement[bool]],
) -> None:
    """Write other texts in a column of the crosswalk; same: of which rows of a release."""
    wanted = {before: after for before, after in texts.items() if before != after}
    pairs = pa.table({"before": text_array(wanted), "after": text_array(wanted.values())})
    loaded = crosswalk.own.load(fresh_name(), pairs)
    update = sa.update(column.table).values({column.name: loaded.c.after})
    crosswalk.write(update.where(column == loaded.c.before, *same), release)
    crosswalk.own.drop(loaded)


def _content(version: RecordedVersion, texts: NewTexts, now: Types) -> str:
    """The quantities kept with a version, with the domains of its sensitive attributes in the present texts."""
    kept = Kept.of_text(version.content)
    references = tuple(
        tuple(_reference(r, texts.get(name, {}), now.columns.get(name)) for r in of_attribute)
        for name, of_attribute in zip(version.sensitive, kept.references, strict=True)
    )
    # What else is written there stays: how people are counted, say.
    return canonical({**json.loads(version.content), **json.loads(replace(kept, references=references).text())})


def _reference(reference: Reference, texts: Mapping[str, str], column: Column | None) -> Reference:
    domain = tuple(None if text is None else texts.get(text, text) for text in reference.domain)
    renewed = replace(reference, domain=domain)
    if column is None:
        return renewed
    known = [text for text in domain if text is not None]
    numeric = column.kind in NUMERIC and len(known) == len(domain) and all(is_value(t, "decimal") for t in known)
    numbers = tuple(map(Fraction, known)) if numeric else None
    if numbers is None or reference.numbers is not None:
        return replace(renewed, numbers=numbers)
    if reference.taxonomy is not None or reference.guarded is not None:
        return renewed
    # The column was text before: its domain was in the order of texts, and numbers have their own.
    order = np.array(sorted(range(len(numbers)), key=lambda i: numbers[i]), dtype=np.int64)
    return replace(
        renewed,
        domain=tuple(domain[i] for i in order),
        totals=reference.totals[order],
        numbers=tuple(numbers[i] for i in order),
        prior=None if reference.prior is None else tuple(reference.prior[i] for i in order),
    )
