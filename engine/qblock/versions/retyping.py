"""Converts what the crosswalk keeps of a release to other column types: values, domains, frozen places and state."""

from __future__ import annotations

import json
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
from qblock.errors import Refused
from qblock.ledger.kept import Kept
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, decoded, fresh_name
from qblock.versions.lag.memory import load
from qblock.versions.texts import joined_text, parts_of
from qblock.versions.types import Types
from qblock.versions.versions import UNPROTECTED, RecordedVersion, recorded
from qblock.warehouse.protocol import Column
from qblock.warehouse.texts import canonical_text, carried
from qblock.warehouse.values import NUMERIC, is_value

NewTexts = Mapping[str, Mapping[str, str]]
"""For each column the new text of each text that is written differently now."""


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
        values = crosswalk.own.fetch(sa.select(row.c.value).where(*same).distinct())["value"].to_pylist()
        _collect(texts, version.sensitive, map(decoded, values))
    places = sa.select(frozen.c.names, frozen.c.place).where(frozen.c.release == release).distinct()
    for layout in crosswalk.own.fetch(places).to_pylist():
        _collect(texts, json.loads(layout["names"]), [parts_of(layout["place"])])
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
            values = crosswalk.own.fetch(sa.select(t.row.c.value).where(*same).distinct())["value"].to_pylist()
            after = {value: encoded_texts(_renewed(texts, version.sensitive, decoded(value))) for value in values}
            _replace(crosswalk, t.row.c.value, after, same)
        content = _content(version, texts, now)
        here = (t.version.c.release == release, t.version.c.version == version.key.version)
        crosswalk.own.run(sa.update(t.version).where(*here).values(content=content, types=now.text()))
    layouts = crosswalk.own.fetch(sa.select(t.frozen.c.names).where(t.frozen.c.release == release).distinct())
    for layout in layouts["names"].to_pylist():
        _replace_places(
            crosswalk,
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
    kept = load(crosswalk, release)
    if kept is None:
        return
    shown, waiting = crosswalk.tables.shown, crosswalk.tables.waiting
    _replace_places(crosswalk, texts, shown.c.place, kept.layout.quasi, (shown.c.release == release,))
    for column in (shown.c.value, waiting.c.seen):
        _replace_places(crosswalk, texts, column, kept.layout.valued, (column.table.c.release == release,))
    same = (shown.c.release == release, shown.c.earlier.is_not(None))
    lists = crosswalk.own.fetch(sa.select(shown.c.earlier.label("text")).where(*same).distinct())["text"].to_pylist()
    names = kept.layout.valued
    after = {
        text: canonical([joined_text(_renewed(texts, names, parts_of(value))) for value in json.loads(text)])
        for text in lists
    }
    _replace(crosswalk, shown.c.earlier, after, same)


def _roll_anew(crosswalk: Crosswalk, release: str) -> None:
    """Forget how far any check has rolled versions of the release: it rolls them again from their rows."""
    rolled = crosswalk.tables.rolled
    for row in crosswalk.own.fetch(sa.select(rolled)).to_pylist():
        if any(text.rpartition(":")[0] == release for text in json.loads(row["versions"])):
            crosswalk.own.run(sa.delete(rolled).where(rolled.c.release == row["release"]))


def _renewed(new: NewTexts, names: Sequence[str], texts: Sequence[str | None]) -> list[str | None]:
    """Texts of columns in their present types."""
    pairs = zip(names, texts, strict=True)
    return [None if text is None else new.get(name, {}).get(text, text) for name, text in pairs]


def encoded_texts(texts: Sequence[str | None]) -> str:
    """As `crosswalk.encoded` does in the database."""
    return "".join("N" if text is None else f"V{len(text)}:{text}" for text in texts)


def _replace_places(
    crosswalk: Crosswalk,
    new: NewTexts,
    column: sa.Column[Any],
    names: Sequence[str],
    same: Sequence[sa.ColumnElement[bool]],
) -> None:
    """Write the new texts in a column that has those of several columns in one; same: of which rows."""
    if any(new.get(name) for name in names):
        query = sa.select(column.label("text")).where(*same, column.is_not(None)).distinct()
        places = crosswalk.own.fetch(query)["text"].to_pylist()
        _replace(
            crosswalk, column, {place: joined_text(_renewed(new, names, parts_of(place))) for place in places}, same
        )


def _replace(
    crosswalk: Crosswalk, column: sa.Column[Any], texts: Mapping[str, str], same: Sequence[sa.ColumnElement[bool]]
) -> None:
    """Write other texts in a column of the crosswalk; same: of which rows."""
    wanted = {before: after for before, after in texts.items() if before != after}
    pairs = pa.table({"before": pa.array(list(wanted), pa.string()), "after": pa.array(wanted.values(), pa.string())})
    loaded = crosswalk.own.load(fresh_name(), pairs)
    update = sa.update(column.table).values({column.name: loaded.c.after})
    crosswalk.own.run(update.where(column == loaded.c.before, *same))
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
