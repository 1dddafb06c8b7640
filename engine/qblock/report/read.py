"""Reads a report from the view and its helper views alone: whoever may read the release can make it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from qblock import attacks
from qblock.errors import InputError, Refused
from qblock.hierarchy.core import TOP
from qblock.publish.helpers import PEOPLE_ROLE, names
from qblock.report.data import (
    AttackShown,
    ColumnShown,
    GuaranteeShown,
    Label,
    Published,
    Report,
    RiskWithout,
    SampleShown,
    SizeShown,
)
from qblock.report.read_internal import read_internal
from qblock.report.read_kept import KeptVersion, kept_version
from qblock.report.read_map import read_map
from qblock.search.audit import Sentences
from qblock.search.boxes.recoded import shares_in_words
from qblock.search.progress import Progress
from qblock.search.run import open_snapshot, task_over
from qblock.search.task import Task
from qblock.source import open_source
from qblock.source.in_words import node_in_words
from qblock.spec import Spec, table_as_it_stands
from qblock.spec.sources import CsvFile
from qblock.version import __version__
from qblock.warehouse.connect import open_warehouse, parse_url
from qblock.warehouse.engines import database_file
from qblock.warehouse.protocol import Session, TableName, quote

LABELS = 3
"""How many labels of a column are shown."""
ROWS = 8
"""How many published rows are shown."""
KINDS = {
    "integer": "a whole number",
    "decimal": "a number",
    "float": "a number",
    "text": "text",
    "boolean": "true or false",
    "date": "a date",
    "timestamp": "a date and time",
    "timestamptz": "a date and time",
}
NOTHING = "no version of release {} is published, or this login may not read it"
OLDER = (
    "version {version}: a report for readers is of the version that they see; one of another version is for those who "
    "run the job: add --internal (internal=True)"
)
BEFORE = (
    "{view} has no helper view {name} that this login may read: helper views are made with the next version of a "
    "release, and have the grants of the view; publish again with `qblock release --force`, or ask for SELECT on it"
)


def read_report(
    spec: Spec,
    *,
    internal: bool = False,
    candidate: bool = False,
    version: int | None = None,
    prior: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """The report for whoever may see the release.

    Reads the view, its helper views, and the files of taxonomies that the spec names; nothing else, so that a reader's
    login suffices. internal: with what only whoever runs the job may see, which is read from the source and the ledger;
    candidate: of that alone, before anything is published; version: with `internal`, of a version that is kept, read
    from its private copy; prior: with the beliefs of whoever knows this population (as of `audit`). Raises InputError
    where a helper view is missing and for a version that is not kept, Refused where nothing is published.
    """
    if version is not None and (candidate or not internal):
        raise InputError(OLDER.format(version=version))
    now = datetime.now(UTC).replace(microsecond=0).isoformat()
    kept = None if version is None else kept_version(spec, version)
    published = None if candidate else _Reading(spec, kept, spec.publish.schema).published()
    inside = read_internal(spec, prior=prior, progress=progress) if internal or candidate else None
    if inside is not None and kept is not None:
        inside = replace(inside, kept=kept.shown)
    return Report(__version__, now, spec.release, published, inside)


@dataclass(frozen=True, eq=False)
class _Reading:
    """kept: the version that is read instead of what readers see; schema: of the view."""

    spec: Spec
    kept: KeptVersion | None
    schema: str

    @property
    def place(self) -> str:
        """The database in which the view is."""
        if self.spec.publish.url is None:
            return self.spec.source.url.url
        if self.kept is not None:
            return self.spec.publish.url.url
        file = database_file(parse_url(self.spec.publish.url.url), self.spec.directory)
        if not file.exists():
            raise Refused(NOTHING.format(self.spec.release))
        return self.spec.publish.url.url

    def published(self) -> Published:
        if self.kept is not None:
            with self.kept.opened() as (session, schema):
                return replace(self, schema=schema)._read(session)
        # Any columns will do, as long as nothing is known of those that are published.
        source = self._as_source(self.spec.quasi_identifiers, ())
        # All columns of the view are read, whatever this spec of it names.
        warehouse = open_warehouse(source.source.url.url, source.directory)
        with open_snapshot(source, name_values=False, warehouse=warehouse) as session:
            return self._read(session)

    def _read(self, session: Session) -> Published:
        columns = self._helper(session, "columns")
        view = session.relation(TableName(self.schema, self.spec.view))
        # A copy of a helper view need not keep its order.
        columns.sort(key=lambda row: list(view.c.keys()).index(row["column_name"]))
        levels = self._helper(session, "levels")
        versions = self._helper(session, "version")
        if not versions and self.kept is not None:
            raise self.kept.without_helpers()
        if not versions:
            raise Refused(NOTHING.format(self.spec.release))
        version = versions[0]
        known = [row["column_name"] for row in columns if row["role"] == "quasi-identifier"]
        secret = [row["column_name"] for row in columns if row["role"] == "sensitive attribute"]
        guarantees = [GuaranteeShown(**row) for row in self._helper(session, "guarantees")]
        sample = self._sample(
            session, [row["column_name"] for row in columns if not row["role"].startswith("bound of ")]
        )
        drawn = read_map(session, view, columns, levels)
        with self._task(session, known, secret) as task:
            bottom = task.lattice.bottom
            sizes = task.source.frequency_sets.sizes(bottom)
            return Published(
                release=self.spec.release,
                view=f"{self.spec.publish.schema}.{self.spec.view}",
                version=version["version"],
                at=version["published_at"].isoformat(sep=" ", timespec="seconds"),
                previous=version["previous"],
                rows=task.source.rows,
                blocks=int(sizes.blocks.sum()),
                whose=_whose(self.spec),
                columns=tuple(_columns(self.spec, columns, levels, words=self.kept is None or self.kept.same)),
                guarantees=tuple(guarantees),
                attacks=tuple(_attacks(task, people=_row_each(self.spec))),
                risk=tuple(_risk(task)),
                sizes=tuple(_by_size(sizes.size.tolist(), sizes.blocks.tolist())),
                sample=sample,
                map=drawn,
            )

    def _as_source(self, known: Sequence[str], secret: Sequence[str]) -> Spec:
        """The view as a table that somebody else generalized: NULL is a value of its own."""
        taxonomies = {}
        for name in secret:
            own = self.spec.attributes.get(name)
            if own is not None and isinstance(own.taxonomy, CsvFile) and (file := self.spec.file(own.taxonomy)):
                taxonomies[name] = {"file": str(file.resolve()), "layout": own.taxonomy.layout}
        view = f"{quote(self.schema)}.{quote(self.spec.view)}"
        where = self.spec.directory / "report"
        return table_as_it_stands(self.place, view, known, secret, taxonomies=taxonomies, path=where)

    @contextmanager
    def _task(self, session: Session, known: Sequence[str], secret: Sequence[str]) -> Iterator[Task]:
        source = open_source(self._as_source(known, secret), session, name_values=False, published=False)
        with task_over(source) as task:
            yield task

    def _helper(self, session: Session, kind: Any) -> list[dict[str, Any]]:
        name = names(self.spec.view, self.spec.publish.names)[kind]
        try:
            relation = session.relation(TableName(self.schema, name))
        except InputError as error:
            # Without the view there is no release; with it, an earlier program made it.
            try:
                session.relation(TableName(self.schema, self.spec.view))
            except InputError:
                raise Refused(NOTHING.format(self.spec.release)) from error
            if self.kept is not None:
                raise self.kept.without_helpers() from error
            raise InputError(BEFORE.format(view=self.spec.view, name=name)) from error
        return session.fetch(sa.select(*relation.c).select_from(relation)).to_pylist()

    def _sample(self, session: Session, shown: Sequence[str]) -> SampleShown:
        table = TableName(self.schema, self.spec.view)
        relation, columns = session.relation(table), session.columns(table)
        # As of whoever looks at the view: bounds stand beside the labels that they are of.
        texts = [session.text_of(relation.c[name], columns[name].kind).label(f"t{i}") for i, name in enumerate(shown)]
        total = session.scalar(sa.select(sa.func.count()).select_from(relation)) or 0
        query, rows = sa.select(*texts).select_from(relation), []
        for place in sorted({i * total // ROWS for i in range(ROWS)}) if total else ():
            rows += session.fetch(query.limit(1).offset(place)).to_pylist()
        return SampleShown(tuple(shown), tuple(tuple(row.values()) for row in rows))


def _row_each(spec: Spec) -> bool:
    """Whether a row is a person."""
    return spec.entity is not None and spec.count == "rows"


def _whose(spec: Spec) -> str:
    if spec.entity is None:
        return "The release does not say whose a row is: rows are counted, and a person may have several."
    return "A row is a person." if _row_each(spec) else "A person may have several rows, and rows are counted here."


def _of_others(role: str) -> str:
    """What readers see of a column that is no quasi-identifier."""
    if role == PEOPLE_ROLE:
        return "how many people the rows of its block are about"
    return f"the {role}, for filters" if role.startswith("bound of ") else "as it is in the source"


def _columns(
    spec: Spec, columns: Sequence[Mapping[str, Any]], levels: Sequence[Mapping[str, Any]], *, words: bool
) -> Iterator[ColumnShown]:
    """words: whether the spec is the one by which these levels have words."""
    for row in columns:
        name, role = row["column_name"], row["role"]
        before = KINDS.get(row["source_type"] or "", row["source_type"])
        if role != "quasi-identifier":
            yield ColumnShown(name, role, before, _of_others(role), row["how_to_filter"], row["values_published"])
            continue
        own = [entry for entry in levels if entry["column_name"] == name]
        rows = {entry["label"]: entry["rows"] for entry in own}
        total = sum(rows.values())
        order = sorted(rows, key=lambda label: (-rows[label], label))
        yield ColumnShown(
            name=name,
            role=role,
            before=before,
            after=_after(spec, name, row["level"] if words else None, own, total),
            how_to_filter=row["how_to_filter"],
            values=row["values_published"],
            share_hidden=row["share_hidden"],
            bits=sum(n / total * math.log2(total / n) for n in rows.values()),
            labels=tuple(Label(label, rows[label]) for label in order[:LABELS]),
        )


def _after(spec: Spec, name: str, level: int | None, own: Sequence[Mapping[str, Any]], total: int) -> str:
    """What readers see of a quasi-identifier, in words: at its level, or the share of the rows at each."""
    if level is not None:
        values = sum(1 for entry in own if entry["label"] != TOP)
        ((_, said),) = node_in_words(spec, {name: level}, {name: values})
        return said
    counted: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for entry in own:
        if entry["label"] != TOP:
            form = "plain" if entry["level"] is not None else "rest" if "(other " in entry["label"] else "range"
            counted.setdefault((entry["level"] or 0, form), []).append(entry)
    labels = []
    for (at, form), entries in sorted(counted.items()):
        like = min(entries, key=lambda entry: (-entry["rows"], entry["label"]))["label"]
        labels.append(
            {"level": at, "form": form, "like": like, "share": sum(entry["rows"] for entry in entries) / total}
        )
    return shares_in_words(labels, sum(entry["rows"] for entry in own if entry["label"] == TOP) / total)


def _attacks(task: Task, *, people: bool) -> Iterator[AttackShown]:
    for i, (name, values) in enumerate(task.source.sensitives.items()):
        blocks = task.source.frequency_sets.blocks(task.lattice.bottom, [i])[0]
        told = Sentences.about(name, blocks, values.reference, people=people)
        for attack, figures in told.added_to(attacks.attacks(blocks, values.reference)).items():
            for figure in figures if isinstance(figures, list) else [figures]:
                detail = figure.get("level", figure.get("eliminated"))
                yield AttackShown(name, attack, detail, figure["sentence"], figure.get("rows"), figure.get("blocks"))


def _risk(task: Task) -> Iterator[RiskWithout]:
    """The blocks as they are, and without each quasi-identifier in turn."""
    bottom = task.lattice.bottom
    yield _of_blocks(task, None, bottom)
    for i, name in enumerate(task.spec.quasi_identifiers):
        yield _of_blocks(task, name, tuple(task.lattice.heights[i] if i == j else 0 for j in range(len(bottom))))


def _of_blocks(task: Task, column: str | None, node: tuple[int, ...]) -> RiskWithout:
    sizes = task.source.frequency_sets.sizes(node)
    blocks, least = int(sizes.blocks.sum()), int(sizes.size.min())
    return RiskWithout(column, blocks, least, 1 / least, blocks / task.source.rows)


def _by_size(sizes: Sequence[int], blocks: Sequence[int]) -> Iterator[SizeShown]:
    """Blocks by size, each class up to twice as large as the one before."""
    least, most = min(sizes), max(sizes)
    high = 1
    while high < least:
        high = 2 * high + 1
    low = least
    while low <= most:
        within = [(size, n) for size, n in zip(sizes, blocks, strict=True) if low <= size <= high]
        yield SizeShown(low, min(high, most), sum(n for _, n in within), sum(size * n for size, n in within))
        low, high = high + 1, 2 * high + 1
