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
from qblock.engines.engine import database_file
from qblock.engines.quoting import quote
from qblock.engines.registry import engine_of, open_warehouse, parse_url
from qblock.engines.session import Session
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused
from qblock.frequency.arrays import Sizes
from qblock.hierarchy.core import TOP
from qblock.publish.digest import relation_digest
from qblock.publish.helpers import (
    EXACT_ROLE,
    MEAN_ROLE,
    PEOPLE_ROLE,
    PUBLISHED,
    SINCE_ROLE,
    WEIGHT_ROLE,
    names,
    shown_as,
)
from qblock.report.blocks import by_size
from qblock.report.frameworks import Facts, framework_of
from qblock.report.internal import read_internal
from qblock.report.kept import KeptVersion, kept_version
from qblock.report.render import Report
from qblock.report.risks import people_of, risks
from qblock.report.utility import Released, read_released
from qblock.results.report import (
    AreaShown,
    AttackShown,
    ColumnShown,
    GuaranteeShown,
    KeptShown,
    Label,
    MapShown,
    Published,
    RiskWithout,
    SampleShown,
)
from qblock.search.audit import Sentences
from qblock.search.boxes.recoded import shares_in_words
from qblock.search.progress import Progress
from qblock.search.run import open_snapshot, task_over
from qblock.search.task import Task
from qblock.source import open_source
from qblock.source.in_words import node_in_words
from qblock.spec import Spec, table_as_it_stands
from qblock.spec.sources import CsvFile, TaxonomyLevel
from qblock.version import __version__

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
SENSITIVE_ROLE = "sensitive attribute"
OF_SOURCE = (SENSITIVE_ROLE, "insensitive")
"""Roles of columns of the source that are no quasi-identifiers."""
MOST_AREAS = 250
"""Areas of a map that are drawn: those with most rows."""
MOST_BANDS = 16
"""Labels of the column down: those with most rows."""
NOTHING = "no version of release {} is published, or this login may not read it"
OLDER = (
    "version {version}: a report for readers is always of the version that they see. For another one, for those who "
    "run the job, add --internal (internal=True)"
)
UNPUBLISHED = "a report for {name} is about what is published, and a candidate is not; give one of them"
BEFORE = (
    "{view} has no helper view {name} that this login may read. Publish again with `qblock release SPEC --force`, "
    "which makes it with the grants of the view, or ask for SELECT on it"
)


def read_report(
    spec: Spec,
    *,
    internal: bool = False,
    candidate: bool = False,
    version: int | None = None,
    prior: str | None = None,
    framework: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """The report for whoever may see the release.

    Reads the view, its helper views, and the files of taxonomies that the spec names; nothing else, so that a reader's
    login suffices. internal: with what only whoever runs the job may see, which is read from the source and the ledger;
    candidate: of that alone, of what the next run takes; version: with `internal`, of a version that is kept, read
    from its private copy; prior: with the beliefs of whoever knows this population (as of `audit`); framework: in the
    order of this document. Raises InputError where a helper view is missing, for a version that is not kept and for a
    framework that is none, Refused where nothing is published.
    """
    document = None if framework is None else framework_of(framework)
    if document is not None and candidate:
        raise InputError(UNPUBLISHED.format(name=document.name))
    if version is not None and (candidate or not internal):
        raise InputError(OLDER.format(version=version))
    now = datetime.now(UTC).replace(microsecond=0).isoformat()
    kept = None if version is None else kept_version(spec, version)
    published = None if candidate else _Reading(spec, kept, spec.publish.schema).published()
    inside = None
    if internal or candidate:
        shown_now = None if candidate else _Reading(spec, None, spec.publish.schema).released()
        inside = read_internal(
            spec, prior=prior, progress=progress, version=version, candidate=candidate, released=shown_now
        )
    if inside is not None and kept is not None:
        shown = KeptShown(version=kept.version, current=kept.current, same_spec=kept.same)
        inside = inside.model_copy(update={"kept": shown})
    report = Report(program=__version__, made=now, release=spec.release, published=published, internal=inside)
    if document is None or published is None:
        return report
    return report.model_copy(update={"framework": document.shown(Facts(document.name, published, inside))})


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
        url = parse_url(self.spec.publish.url.url)
        is_file = self.kept is None and engine_of(url).is_file
        if is_file and not database_file(url, self.spec.directory).exists():
            raise Refused(NOTHING.format(self.spec.release))
        return self.spec.publish.url.url

    def published(self) -> Published:
        if self.kept is not None:
            with self.kept.opened() as (session, schema):
                return replace(self, schema=schema)._read(session)
        with self._opened() as session:
            return self._read(session)

    @contextmanager
    def _opened(self) -> Iterator[Session]:
        # Any columns will do, as long as nothing is known of those that are published.
        source = self._as_source(self.spec.quasi_identifiers, ())
        # All columns of the view are read, whatever this spec of it names.
        warehouse = open_warehouse(source.source.url.url, source.directory)
        with open_snapshot(source, name_values=False, warehouse=warehouse) as session:
            yield session

    def released(self) -> Released | None:
        """What the source is compared with; None where nothing is published now."""
        try:
            with self._opened() as session:
                columns, levels = self._helper(session, "columns"), self._helper(session, "levels")
                named = names(self.spec.view, self.spec.publish.names)["midpoints"]
                return read_released(session, TableName(self.schema, named), columns, levels) if columns else None
        except Refused:
            return None

    def _read(self, session: Session) -> Published:
        columns = self._helper(session, "columns")
        table = TableName(self.schema, self.spec.view)
        view, levels = session.relation(table), self._helper(session, "levels")
        versions = self._helper(session, "version")
        if not versions and self.kept is not None:
            raise self.kept.without_helpers()
        if not versions:
            raise Refused(NOTHING.format(self.spec.release))
        version = versions[0]
        self._check_published_as(columns)
        known = [row["column_name"] for row in columns if row["role"] == "quasi-identifier"]
        secret = [row["column_name"] for row in columns if row["role"] == SENSITIVE_ROLE]
        guarantees = [GuaranteeShown(**row) for row in self._helper(session, "guarantees")]
        shown = [row["column_name"] for row in columns if not row["role"].startswith("bound of ")]
        drawn = read_map(session, table, columns, levels)
        with self._task(session, known, secret) as task:
            bottom = task.lattice.bottom
            sizes = task.source.frequency_sets.sizes(bottom)
            people = people_of(self.spec, session, view, columns, guarantees, sizes)
            told = tuple(_attacks(task, people=_row_each(self.spec)))
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
                attacks=told,
                risk=tuple(_risk(task, sizes)),
                sizes=tuple(by_size(sizes.size.tolist(), sizes.blocks.tolist())),
                sample=self._sample(session, shown, task.source.rows),
                map=drawn,
                now=_now(session, view, columns),
                new=version["rows_new"],
                follows=version["in_words"],
                digest=relation_digest(session, table),
                **risks(
                    self.spec,
                    people,
                    version["version"],
                    guarantees,
                    told,
                    {row["column_name"]: row["role"] for row in columns},
                ),
            )

    def _check_published_as(self, columns: Sequence[Mapping[str, Any]]) -> None:
        """Raise InputError where the spec has a taxonomy of other values than readers see."""
        for row in columns:
            own = self.spec.attributes.get(row["column_name"])
            if row["role"] != SENSITIVE_ROLE or own is None or own.taxonomy is None:
                continue
            now = PUBLISHED.format(shown_as(self.spec, row["column_name"]))
            if row["how_to_filter"] != now:
                raise InputError(
                    f"{self.spec.at('attributes', row['column_name'], 'publish_as')}: {row['column_name']} is "
                    f"{row['how_to_filter']}, and by the spec it would be {now}; run `qblock release` first, or give "
                    "the spec that it was published by"
                )

    def _as_source(self, known: Sequence[str], secret: Sequence[str]) -> Spec:
        """The view as a table that somebody else generalized: NULL is a value of its own."""
        taxonomies, levels = {}, {}
        for name in secret:
            own = self.spec.attributes.get(name)
            if own is not None and isinstance(own.taxonomy, CsvFile) and (file := self.spec.file(own.taxonomy)):
                taxonomies[name] = {"file": str(file.resolve()), "layout": own.taxonomy.layout}
                if isinstance(own.publish_as, TaxonomyLevel):
                    levels[name] = own.publish_as.level
        view = f"{quote(self.schema)}.{quote(self.spec.view)}"
        where = self.spec.directory / "report"
        return table_as_it_stands(self.place, view, known, secret, taxonomies=taxonomies, levels=levels, path=where)

    @contextmanager
    def _task(self, session: Session, known: Sequence[str], secret: Sequence[str]) -> Iterator[Task]:
        source = open_source(self._as_source(known, secret), session, name_values=False, published=False)
        with task_over(source) as task:
            yield task

    def _helper(self, session: Session, kind: Any) -> list[dict[str, Any]]:
        name = names(self.spec.view, self.spec.publish.names)[kind]
        table = TableName(self.schema, name)
        try:
            session.columns(table)
        except InputError as error:
            # Without the view there is no release; with it, somebody dropped the helper view.
            try:
                session.relation(TableName(self.schema, self.spec.view))
            except InputError:
                raise Refused(NOTHING.format(self.spec.release)) from error
            if self.kept is not None:
                raise self.kept.without_helpers() from error
            raise InputError(BEFORE.format(view=self.spec.view, name=name)) from error
        return session.read(table).to_pylist()

    def _sample(self, session: Session, shown: Sequence[str], total: int) -> SampleShown:
        table = TableName(self.schema, self.spec.view)
        relation, columns = session.relation(table), session.columns(table)
        # As of whoever looks at the view: bounds stand beside the labels that they are of.
        number = sa.func.row_number().over().label("qblock place")
        numbered = sa.select(*(relation.c[name] for name in shown), number).subquery("qblock_numbered")
        texts = [session.text_of(numbered.c[name], columns[name].kind).label(f"t{i}") for i, name in enumerate(shown)]
        place = numbered.c["qblock place"]
        query = sa.select(*texts, place.label("place")).where(place.in_({1 + i * total // ROWS for i in range(ROWS)}))
        drawn = session.fetch(query).to_pylist()
        drawn.sort(key=lambda row: row["place"])
        return SampleShown(columns=tuple(shown), rows=tuple(tuple(row[t.name] for t in texts) for row in drawn))


def _now(session: Session, view: sa.FromClause, columns: Sequence[Mapping[str, Any]]) -> int | None:
    """The sum of the weights of rows."""
    name = next((row["column_name"] for row in columns if row["role"] == WEIGHT_ROLE), None)
    return None if name is None else round(session.scalar(sa.select(sa.func.sum(view.c[name]))) or 0)


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
    if role == WEIGHT_ROLE:
        return "the share of its group who are there now: summed up, it counts them"
    if role == SINCE_ROLE:
        return "the version that first showed the row as it is"
    if role.startswith(EXACT_ROLE.format("")):
        return f"the {role}, where they are shown as they are"
    if role.startswith(MEAN_ROLE.format("")):
        return f"the {role} in each block, rounded"
    return f"the {role}, for filters" if role.startswith("bound of ") else "as it is in the source"


def _columns(
    spec: Spec, columns: Sequence[Mapping[str, Any]], levels: Sequence[Mapping[str, Any]], *, words: bool
) -> Iterator[ColumnShown]:
    """words: whether the spec is the one by which these levels have words."""
    for row in columns:
        name, role = row["column_name"], row["role"]
        before = KINDS.get(row["source_type"] or "", row["source_type"])
        if role != "quasi-identifier":
            after = row["how_to_filter"].removeprefix("published ") if role == SENSITIVE_ROLE else _of_others(role)
            yield ColumnShown(
                name=name,
                role=role,
                before=before if row["source_type"] or role != SENSITIVE_ROLE else "finer values",
                after=after,
                how_to_filter=row["how_to_filter"],
                values=row["values_published"],
                share_as_is=float(row["source_type"] is not None) if role in OF_SOURCE else None,
            )
            continue
        own = [entry for entry in levels if entry["column_name"] == name]
        rows = {entry["label"]: entry["rows"] for entry in own}
        total = sum(rows.values())
        plain = [entry for entry in own if entry["label"] != TOP and 0 in (row["level"], entry["level"])]
        most = sorted(rows, key=lambda label: (-rows[label], label))[:LABELS]
        yield ColumnShown(
            name=name,
            role=role,
            before=before,
            after=_after(spec, name, row["level"] if words else None, own, total),
            how_to_filter=row["how_to_filter"],
            values=row["values_published"],
            share_as_is=sum(entry["rows"] for entry in plain) / total,
            share_suppressed=row["share_suppressed"],
            bits=sum(n / total * math.log2(total / n) for n in rows.values()),
            labels=tuple(Label(label=label, rows=rows[label]) for label in in_order(own, most)),
        )


def in_order(levels: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[str]:
    """Labels of one column by their lower ends, where some are of numbers or dates; else as they are given. `*` is
    last."""
    ends = [entry for entry in levels if entry["label"] != TOP and (entry["low"], entry["high"]) != (None, None)]
    place = {entry["label"]: entry["sort"] for entry in levels} if ends else {}
    return sorted(labels, key=lambda label: (label == TOP, place.get(label, 0)))


def _after(spec: Spec, name: str, level: int | None, own: Sequence[Mapping[str, Any]], total: int) -> str:
    """What readers see of a quasi-identifier, in words: at its level, or the share of the rows at each."""
    if level is not None:
        values = sum(1 for entry in own if entry["label"] != TOP)
        ((_, said),) = node_in_words(spec, {name: level}, {name: values})
        return said
    counted: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for entry in own:
        if entry["label"] != TOP:
            rest = entry["low"] is entry["high"] is None or "(other " in entry["label"]
            form = "plain" if entry["level"] is not None else "rest" if rest else "range"
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
                yield AttackShown(
                    sensitive=name,
                    attack=attack,
                    detail=figure.get("level", figure.get("eliminated")),
                    sentence=figure["sentence"],
                    rows=figure.get("rows"),
                    blocks=figure.get("blocks"),
                )


def _risk(task: Task, sizes: Sizes) -> Iterator[RiskWithout]:
    """The blocks as they are, whose sizes are known, and without each quasi-identifier in turn."""
    of: list[tuple[str | None, Sizes]] = [(None, sizes)]
    for i, name in enumerate(task.spec.quasi_identifiers):
        node = tuple(height if i == j else 0 for j, height in enumerate(task.lattice.heights))
        of.append((name, task.source.frequency_sets.sizes(node)))
    for column, each in of:
        blocks, least = int(each.blocks.sum()), int(each.size.min())
        mean = blocks / task.source.rows
        yield RiskWithout(column=column, blocks=blocks, least=least, most_sure=1 / least, mean=mean)


def read_map(
    session: Session, table: TableName, columns: Sequence[Mapping[str, Any]], levels: Sequence[Mapping[str, Any]]
) -> MapShown | None:
    """None where all labels of each column are of one level, or no column's labels are of numbers. Across is the column
    of numbers that has most labels, down the other one that is split most."""
    known = [row for row in columns if row["role"] == "quasi-identifier"]
    if all(row["level"] is not None for row in known) or len(known) < 2:
        return None
    ends = {(row["column_name"], row["label"]): (_number(row["low"]), _number(row["high"])) for row in levels}
    numbers = {name for (name, _), (low, high) in ends.items() if low is not None or high is not None}
    known.sort(key=lambda row: -row["values_published"])
    across = next((row["column_name"] for row in known if row["column_name"] in numbers), None)
    if across is None:
        return None
    down = next(row["column_name"] for row in known if row["column_name"] != across)
    counted = _counted(session, table, across, down, [row["column_name"] for row in known])
    bands: dict[str, int] = {}
    for row in counted:
        bands[row["b"]] = bands.get(row["b"], 0) + row["n"]
    first = sorted(bands, key=lambda label: (-bands[label], label))[:MOST_BANDS]
    shown = [row for row in counted if row["b"] in first]
    shown.sort(key=lambda row: (-row["n"], row["a"], row["b"]))
    own = [row for row in levels if row["column_name"] == down]
    place = {label: i for i, label in enumerate(in_order(own, first))}
    areas = []
    for row in sorted(shown[:MOST_AREAS], key=lambda row: place[row["b"]]):
        low, high = ends.get((across, row["a"]), (None, None))
        areas.append(AreaShown(across=row["a"], down=row["b"], low=low, high=high, blocks=row["blocks"], rows=row["n"]))
    rows = sum(row["n"] for row in counted)
    return MapShown(across=across, down=down, areas=tuple(areas), total=len(counted), rows=rows)


def _counted(session: Session, table: TableName, across: str, down: str, known: Sequence[str]) -> list[dict[str, Any]]:
    """Rows (n) and blocks of each pair of labels (a, b), which are texts, as those of a column that every row shows as
    it is are not."""
    count, view, types = sa.func.count(), session.relation(table), session.columns(table)
    labels = [view.c[name].label(f"c{i}") for i, name in enumerate(known)]
    blocks = (
        sa.select(*labels, count.label("n")).select_from(view).group_by(*(view.c[name] for name in known)).subquery()
    )
    a, b = (session.text_of(blocks.c[f"c{known.index(name)}"], types[name].kind) for name in (across, down))
    rows = sa.cast(sa.func.sum(blocks.c.n), sa.BigInteger)
    query = sa.select(a.label("a"), b.label("b"), count.label("blocks"), rows.label("n")).group_by(a, b)
    return session.fetch(query).to_pylist()


def _number(text: str | None) -> float | None:
    """The end of a label, where it is one of numbers."""
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None
    return None if number is None or not math.isfinite(number) else number
