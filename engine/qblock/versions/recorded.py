"""The crosswalk: who is shown in which block of which version, with which sensitive value. Private, one row per entity.

Sensitive values are kept as text, since the models need them again; entities as keyed digests (Crosswalk.entity), since
nothing needs to know who they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.engines.arrow import whole_numbers
from qblock.engines.queries import Query
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.engines.values import writes_alike
from qblock.errors import InputError, QblockError, Refused
from qblock.hierarchy.labels import texts as text_array
from qblock.lattice import Node
from qblock.ledger.events import canonical
from qblock.ledger.kept import Kept
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.spec import Requirement, Spec
from qblock.versions.crosswalk import Crosswalk, as_text, fresh_name, load_texts
from qblock.versions.episodes import VersionKey, shown
from qblock.versions.texts import NAME, block_name, bundle, encoded, join_texts, leaf_name, texts_of, with_rows
from qblock.versions.types import First, Types, entity_text, named, types_of

UNPROTECTED = "`versions: {joint: none}`, with which no later version is protected together with the earlier ones"
"""What is left where versions cannot be checked together: no other name helps those who hold both."""
ONLY_UNPROTECTED = (
    f"The only way on is {UNPROTECTED}. People who hold several of them may learn more than each one guarantees"
)
DIGEST = "qblock entity"
"""The column of an admitted source that holds the digests."""
LEAF_NAME = "qblock leaf"
"""The column of an admitted source that holds the names of leaves, where newcomers are told apart by these."""
LISTS = ("quasi_identifiers", "node", "sensitive", "audience")
PLAIN = ("rows", "least", "source", "hierarchies", "content", "state")
"""What is kept of a version as a JSON list, and as it is."""
UNIT = "qblock unit"
"""The column of the state shown that holds the names of units, where somebody may have several rows."""


@dataclass(frozen=True, eq=False)
class RecordedVersion:
    """A version in the crosswalk: what is needed to check it together with others.

    rows: N of its source; least: k of its labels; sensitive: its sensitive attributes; references: of each of them;
    types: of its columns; stamp: as the ledger has it, None for a candidate; state: of a version that lags, the
    `Memory.version` that it shows.
    """

    key: VersionKey
    rows: int
    least: int
    source: str
    node: tuple[int, ...]
    hierarchies: str
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    audience: tuple[str, ...]
    content: str
    types: Types
    stamp: str | None = None
    state: int | None = None

    @property
    def references(self) -> dict[str, Reference]:
        """The quantities of the whole table, without priors, for each sensitive attribute."""
        kept = Kept.of_text(self.content).references
        return {name: references[0] for name, references in zip(self.sensitive, kept, strict=True)}

    @property
    def counted(self) -> str:
        """As `Spec.counted`."""
        counted: str = json.loads(self.content).get("counted", "rows")
        return counted


@dataclass(frozen=True, eq=False)
class Candidate:
    """A version that is about to be published. rows: its rows beside the crosswalk (columns of `candidate_rows`).

    labels, shown, sizes: of each of its blocks the labels as a JSON list, the label without the block, and the rows.
    """

    about: RecordedVersion
    rows: sa.TableClause
    labels: tuple[str, ...]
    shown: tuple[str, ...]
    sizes: tuple[int, ...]


def least_rows(requirements: Sequence[Requirement]) -> int:
    """k of the labels: a suppressed block of fewer rows would have been suppressed whatever its values are.

    The largest block size that a model implies by its parameters alone (k itself for k-anonymity, l for distinct
    l-diversity); models whose least size depends on the table do not count, since the table is what is hidden.
    """
    nothing = Reference(0, (), np.zeros(0, dtype=np.int64))
    models = [model for requirement in requirements for model in requirement.models if not model.needs]
    return max((model.least_block_size(nothing) for model in models), default=1)


def candidate(crosswalk: Crosswalk, task: Task, chosen: Assessment, version: int) -> Candidate:
    """What a node would publish as this version, its rows built by one statement beside the crosswalk.

    Raises InputError for a spec without `entity`.
    """
    spec = task.spec
    if spec.entity is None:
        raise InputError(
            f"{spec.at('release')}: versions can be checked together only where the spec says who a row is about; "
            "write `entity: COLUMN`, or `versions: {joint: none}`"
        )
    least = least_rows(spec.privacy)
    rows = crosswalk.bring(candidate_rows(crosswalk, task, chosen, least))
    crosswalk.own.analyze(rows)
    number = sa.cast(sa.func.coalesce(sa.func.sum(rows.c.n), 0), sa.BigInteger) if spec.bundles else sa.func.count()
    total = crosswalk.own.scalar(sa.select(number).select_from(rows).where(rows.c.block.is_not(None)))
    if total != task.source.rows:
        raise QblockError(
            f"the crosswalk would hold {total} rows of {task.source.rows}; this is a fault of qblock or of the "
            "database: nothing may be published from it"
        )
    kept, sizes = chosen.kept.tolist(), chosen.counts.rows.tolist()
    labels = ["P" if k else "S" if n >= least else "-" for k, n in zip(kept, sizes, strict=True)]
    about = _describe(crosswalk, task, VersionKey(spec.release, version), least, chosen.node)
    proposed = Candidate(about, rows, tuple(block_labels(task, chosen)), tuple(labels), tuple(sizes))
    return _by_rows(crosswalk, proposed) if spec.by_rows else proposed


def _by_rows(crosswalk: Crosswalk, candidate: Candidate) -> Candidate:
    """With a block of its own, labelled by its number last, for people who have as many rows."""
    own, rows = crosswalk.own, candidate.rows
    pairs = own.fetch(sa.select(rows.c.block, rows.c.n).distinct().order_by(rows.c.block, rows.c.n))
    number = whole_numbers(range(len(pairs)))
    parts = own.load(fresh_name(), pairs.append_column("number", number))
    same = sa.and_(parts.c.block == rows.c.block, parts.c.n == rows.c.n)
    columns = [column for column in rows.c if column.key != "block"]
    split = own.store(
        fresh_name(), sa.select(parts.c.number.label("block"), *columns).select_from(rows.join(parts, same))
    )
    own.drop(parts)
    blocks, counts = pairs["block"].to_pylist(), pairs["n"].to_pylist()
    labels = [with_rows(json.loads(candidate.labels[block]), n) for block, n in zip(blocks, counts, strict=True)]
    shown = tuple(candidate.shown[block] for block in blocks)
    sizes = tuple(candidate.sizes[block] for block in blocks)
    return Candidate(candidate.about, split, tuple(map(canonical, labels)), shown, sizes)


def candidate_rows(crosswalk: Crosswalk, task: Task, chosen: Assessment, least: int) -> Query:
    """The statement in the source's session: entity (digest), block (its number), shown, block_rows, value.

    One row for each row of the source. Where somebody may have several, one for each unit, with its bundle as value, n
    (its rows), place (of one row) and whole (the bundle of all that is published beside the block). Loads the node's
    blocks into the session; block b is chosen.counts.keys[b].
    """
    source, session = task.source, task.source.session
    keys = chosen.counts.keys
    arrays: dict[str, Any] = {f"q{i}": whole_numbers(keys[:, i]) for i in range(keys.shape[1])}
    arrays["block"] = whole_numbers(np.arange(len(keys)))
    arrays["block_rows"] = whole_numbers(chosen.counts.rows)
    arrays["kept"] = whole_numbers(chosen.kept)
    arrays["name"] = text_array([block_name(label) for label in block_labels(task, chosen)])
    blocks = session.load(fresh_name(), pa.table(arrays))
    session.analyze(blocks)
    joined, codes = coded(source, chosen.node)
    same = [sa.true(), *(code == blocks.c[f"q{i}"] for i, code in codes.items())]
    label = shown(blocks.c.kept == 1, blocks.c.block_rows, least)
    columns: list[sa.ColumnElement[Any]] = [
        entity_of(crosswalk, source).label("entity"),
        blocks.c.block,
        sa.cast(label, sa.Text).label("shown"),
        blocks.c.block_rows,
        encoded([session.text_of(source.expression(n), v.column.kind) for n, v in source.sensitives.items()]).label(
            "value"
        ),
    ]
    both = joined.outerjoin(blocks, sa.and_(*same))
    if not source.spec.bundles:
        return sa.select(*columns).select_from(both)
    given = not isinstance(source.relation, sa.TableClause) and UNIT in source.relation.c
    unit_of = source.relation.c[UNIT] if given else entity_of(crosswalk, source).concat(blocks.c.name)
    columns[0] = unit_of.label("entity")
    spec = source.spec
    texts = {"place": spec.quasi_identifiers, "whole": (*spec.sensitives, *spec.insensitives)}
    columns += [join_texts(texts_of(source, names)).label(name) for name, names in texts.items()]
    rows = sa.select(*columns).select_from(both).subquery("qblock_rows")
    unit = [rows.c[name] for name in ("entity", "block", "shown", "block_rows")]
    return sa.select(
        *unit,
        bundle(session, rows.c.value).label("value"),
        sa.func.count().label("n"),
        sa.func.min(rows.c.place).label("place"),
        bundle(session, rows.c.whole).label("whole"),
    ).group_by(*unit)


def coded(source: SourceTable, node: Node) -> tuple[sa.FromClause, dict[int, sa.ColumnElement[Any]]]:
    """The source joined to its dimensions, and the code of each quasi-identifier that is not at its top level."""
    joined: sa.FromClause = source.relation
    codes: dict[int, sa.ColumnElement[Any]] = {}
    for i, (name, level) in enumerate(zip(source.quasi_identifiers, node, strict=True)):
        dimension = source.dimensions[i]
        if level == dimension.height:
            continue
        table = dimension.table.alias(f"d{i}")
        joined = joined.outerjoin(table, source.expression(name) == table.c.leaf)
        codes[i] = table.c[f"c{level}"]
        default = dimension.null_code if dimension.null_code is not None else dimension.other_code
        if default is not None:
            # Only NULL and uncovered values that the spec maps are left without a leaf: the source was checked.
            codes[i] = sa.func.coalesce(codes[i], int(source.hierarchies[i].codes[level][default]))
    return joined, codes


def entity_of(crosswalk: Crosswalk, source: SourceTable) -> sa.ColumnElement[Any]:
    """The digest of the entity of a row; an Admission has computed it already."""
    if not isinstance(source.relation, sa.TableClause) and DIGEST in source.relation.c:
        return source.relation.c[DIGEST]
    assert source.spec.entity is not None
    column = source.columns[source.spec.entity]
    first = first_of(crosswalk, recorded(crosswalk), source.spec, source.columns)
    text = entity_text(source.session, source.expression(source.spec.entity), column, first)
    return crosswalk.entity(text, source.relation)


@contextmanager
def identified(crosswalk: Crosswalk, task: Task) -> Iterator[Task]:
    """A task whose rows have the digests of their entities: where they are computed in this process, and several
    statements ask for them, once."""
    source, spec, session = task.source, task.spec, task.source.session
    rows, column = source.relation, source.columns[spec.entity] if spec.entity is not None else None
    # Values that are equal and read apart have other digests.
    alike = column is not None and (source.compared or column.compare_as == column.type)
    has_digests = not isinstance(rows, sa.TableClause) and DIGEST in rows.c
    if spec.entity is None or not session.embedded or has_digests or spec.bundles or not alike:
        yield task
        return
    entity = rows.c[spec.entity]
    who = sa.select(entity.label("entity"), entity_of(crosswalk, source).label("digest")).select_from(rows)
    known = session.store(fresh_name(), who)
    both = sa.select(*rows.c, known.c.digest.label(DIGEST)).select_from(rows.join(known, known.c.entity == entity))
    of_whom = copy(task)
    of_whom.source = replace(source, relation=both.subquery("qblock_identified"))
    yield of_whom
    session.drop(known)


def person_of(
    crosswalk: Crosswalk,
    spec: Spec,
    session: Session,
    table: sa.FromClause,
    columns: Mapping[str, Column],
    first: First,
) -> sa.ColumnElement[Any]:
    """The same of a row of the source's table as it is, written in a first type."""
    text = _text_of_person(spec, session, table, columns, first)
    return crosswalk.entity(text, table, whose=("person", first.column.kind))


def _text_of_person(
    spec: Spec, session: Session, table: sa.FromClause, columns: Mapping[str, Column], first: First
) -> sa.ColumnElement[Any]:
    assert spec.entity is not None
    column = columns[spec.entity]
    return entity_text(session, session.comparable(table.c[spec.entity], column), column, first)


def leaf_of(
    crosswalk: Crosswalk,
    spec: Spec,
    session: Session,
    table: sa.FromClause,
    columns: Mapping[str, Column],
    first: First,
    leaf: Sequence[sa.ColumnElement[Any]],
) -> sa.ColumnElement[Any]:
    """What stands for a leaf in the name of the unit of a row's person there: a digest of both, under the same keys, so
    that nobody can try out which leaf it is, or tell that two people have the same one. leaf: the values as texts."""
    text = _text_of_person(spec, session, table, columns, first)
    return leaf_name(crosswalk.entity(join_texts([text, *leaf]), table, NAME - 1))


def first_of(
    crosswalk: Crosswalk, versions: Sequence[RecordedVersion], spec: Spec, columns: Mapping[str, Column]
) -> First:
    """How the entities of a release are written: as its versions have them, else as those of its audience have them
    where the types agree, else in the column's present type.

    Raises Refused where its versions have digests of another kind than the source can be given.
    """
    assert spec.entity is not None
    column = named(columns[spec.entity])
    own = [v.types for v in versions if v.key.release == spec.release]
    if own:
        if own[-1].first.hashed != crosswalk.hashes:
            raise Refused(
                f"the versions of release {spec.release} cannot be compared with this source; nothing is published. "
                "They know people by digests of another kind: a cluster makes them of hashes, since it is given no "
                f"keys. Release from the engine that made them, or under another name with {UNPROTECTED}"
            )
        return own[-1].first
    for version in reversed(versions):
        theirs = version.types
        with_it = version.key.release in spec.versions.audience or spec.release in version.audience
        if not with_it or theirs.first.hashed != crosswalk.hashes:
            continue
        if writes_alike(theirs.first.column, column):
            return theirs.first
    return First(column, crosswalk.hashes)


def block_labels(task: Task, chosen: Assessment) -> list[str]:
    """The labels of each block as a JSON list."""
    texts = [hierarchy.shown(level) for hierarchy, level in zip(task.source.hierarchies, chosen.node, strict=True)]
    keys = chosen.counts.keys.tolist()
    return [canonical([texts[i][code] for i, code in enumerate(key)]) for key in keys]


def _describe(crosswalk: Crosswalk, task: Task, key: VersionKey, least: int, node: tuple[int, ...]) -> RecordedVersion:
    source, spec = task.source, task.spec
    references = tuple((values.reference,) for values in source.sensitives.values())
    return RecordedVersion(
        key=key,
        rows=source.rows,
        least=least,
        # What distinguishes one source from another within a place: a digest, since a path may reveal too much.
        source=hashlib.sha256(".".join(spec.source.parts).encode()).hexdigest(),
        node=node,
        hierarchies=canonical({hierarchy.attribute: hierarchy.digest() for hierarchy in source.origins}),
        quasi_identifiers=source.quasi_identifiers,
        sensitive=tuple(source.sensitives),
        audience=spec.versions.audience,
        content=_content(spec, references),
        types=types_of(spec, source.columns, first_of(crosswalk, recorded(crosswalk), spec, source.columns)),
    )


def _content(spec: Spec, references: tuple[tuple[Reference, ...], ...]) -> str:
    text = Kept((), references).text()
    return text if spec.counted == "rows" else canonical({**json.loads(text), "counted": spec.counted})


def record(crosswalk: Crosswalk, candidate: Candidate, stamp: str | None = None) -> None:
    """Write a version into the crosswalk: before it is staged, so that nothing is ever shown that is not in it.

    stamp: that the ledger has written down for it. A version of the same number that was recorded before, and never
    shown, must have been discarded, in another transaction (`discard`).
    """
    t, own, about = crosswalk.tables, crosswalk.own, candidate.about
    key = about.key
    position = int(own.scalar(sa.select(sa.func.coalesce(sa.func.max(t.version.c.position), 0)))) + 1
    lists = {name: canonical(list(getattr(about, name))) for name in LISTS}
    plain = {name: getattr(about, name) for name in PLAIN} | {"types": about.types.text(), "stamp": stamp}
    values = {"release": key.release, "version": key.version, "position": position, **plain, **lists}
    crosswalk.write(sa.insert(t.version).values(values), key.release, key.version)
    crosswalk.read.clear()
    same: list[sa.ColumnElement[Any]] = [
        as_text(key.release).label("release"),
        sa.literal(key.version).label("version"),
    ]
    names = ["entity", "block", "shown", "block_rows", "value"]
    query = sa.select(*same, *(candidate.rows.c[name] for name in names))
    crosswalk.write(sa.insert(t.row).from_select(["release", "version", *names], query), key.release, key.version)
    blocks = load_texts(
        own,
        block=whole_numbers(range(len(candidate.labels))),
        shown=candidate.shown,
        rows=whole_numbers(candidate.sizes),
        label=candidate.labels,
    )
    of_blocks = sa.insert(t.block).from_select(["release", "version", *blocks.c.keys()], sa.select(*same, *blocks.c))
    crosswalk.write(of_blocks, key.release, key.version)
    own.drop(blocks)


def load_labels(crosswalk: Crosswalk, candidate: Candidate) -> sa.TableClause:
    """The label of each block of a candidate, beside the crosswalk."""
    numbers = whole_numbers(range(len(candidate.labels)))
    return load_texts(crosswalk.own, block=numbers, label=candidate.labels)


def discard(crosswalk: Crosswalk, key: VersionKey) -> None:
    """Take a version out of the crosswalk. Only for one that no reader could ever see: what was read stays known."""
    t = crosswalk.tables
    for table in t.of_versions:
        same = (table.c.release == key.release, table.c.version == key.version)
        crosswalk.write(sa.delete(table).where(*same), key.release, key.version)
    crosswalk.read.clear()


def recorded(crosswalk: Crosswalk, release: str | None = None) -> list[RecordedVersion]:
    """The versions of the crosswalk, oldest first: of one release, or of all of the place. Read once in a crosswalk."""
    if release not in crosswalk.read and None in crosswalk.read:
        crosswalk.read[release] = [version for version in crosswalk.read[None] if version.key.release == release]
    if release not in crosswalk.read:
        t = crosswalk.tables.version
        query = sa.select(t).order_by(t.c.position, t.c.release, t.c.version)
        if release is not None:
            query = query.where(t.c.release == release)
        crosswalk.read[release] = [_version(row) for row in crosswalk.own.fetch(query).to_pylist()]
    return list(crosswalk.read[release])


def _version(row: dict[str, Any]) -> RecordedVersion:
    kept: dict[str, Any] = {name: tuple(json.loads(row[name])) for name in LISTS}
    kept |= {name: row[name] for name in (*PLAIN, "stamp")}
    return RecordedVersion(key=VersionKey(row["release"], row["version"]), types=Types.of_text(row["types"]), **kept)


def published_node(crosswalk: Crosswalk, spec: Spec) -> Node | None:
    """The node of the release's newest version, where that has the same quasi-identifiers."""
    versions = recorded(crosswalk, spec.release)
    if not versions or versions[-1].quasi_identifiers != spec.quasi_identifiers:
        return None
    return versions[-1].node
