"""Functions on tables that a program holds or names (data frames, Arrow, files, a database): audited, anonymized,
profiled. The words are those of a spec, and so are the checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from qblock.blocks import Reference
from qblock.checks import refuse_dependencies, refuse_single_rows
from qblock.errors import InputError, Refused, hide_tracebacks
from qblock.profiling.columns import FILE, Proposal, propose
from qblock.profiling.first_spec import init
from qblock.profiling.people import Entity as ProfiledEntity
from qblock.profiling.people import Who, find
from qblock.profiling.profiles import Table
from qblock.profiling.profiles import profile as profiles_of
from qblock.profiling.unique_sets import sentence
from qblock.publish.copy import PublishedColumn, copy_of, label_codes
from qblock.publish.digest import content_digest
from qblock.publish.recheck import Counted, count_again, differences
from qblock.release.prechecks import source_digest
from qblock.release.run import NOT_PROTECTED
from qblock.results.audit import Audited
from qblock.results.tables import Anonymized, Candidate, Profiled, Proposed, ProposedColumn
from qblock.search.assessment import Assessment, metrics_json, requirements_json
from qblock.search.audit import audit_node
from qblock.search.beliefs import Attacker, BayesAdversary
from qblock.search.result import refusal
from qblock.search.run import open_task, recoded, run_search
from qblock.spec import Spec, spec_of
from qblock.spec.sections import ROLES
from qblock.spec.source_file import ColumnType, ending
from qblock.warehouse.arrow import taken, taken_schema
from qblock.warehouse.copied import CopiedWarehouse, SourceFacts, check_names
from qblock.warehouse.driver_errors import explained
from qblock.warehouse.duckdb import DuckdbWarehouse
from qblock.warehouse.engines import copied, files_warehouse, open_warehouse, warehouse_of
from qblock.warehouse.protocol import TableName, Warehouse

Threshold = Fraction | int | float | str
"""From where on a belief is a disclosure: a number, or its text (0.1 and "1/10" are the same)."""
Names = Sequence[str] | Mapping[str, Any]
"""Columns by name, or each with its entry as in a spec."""
FRAME = "data frame"
ROWS = 1 << 16
"""Of a batch."""
UNOPENED = {"url": f"duckdb:///{FRAME}", "table": f'"{FRAME}"'}
"""In place of a source that is in memory."""
ONE_PUBLICATION = (
    "this is one publication: it is checked by itself and with no other one, so whoever holds two of the same people "
    "may learn more than each guarantees; to publish a changing table again, make it a release with `entity`"
)


@partial(hide_tracebacks, explain=explained)
def audit(
    data: Any,
    quasi_identifiers: Sequence[str],
    sensitive: Names = (),
    *,
    table: str | None = None,
    entity: str | None = None,
    count: str | None = None,
    types: Mapping[str, str] | None = None,
    adversary: str | None = None,
    prior: str | Path | None = None,
    rule_out: Mapping[str, Sequence[Any]] | None = None,
    near: Mapping[str, Any] | None = None,
    **thresholds: Threshold,
) -> Audited:
    """How well a table as it stands protects the people in it: every model's tightest parameter, attacks, utility.

    data: a pandas DataFrame, an Arrow table, the path of a Parquet or CSV file (or a pattern of several), or the URL of
    a database with `table`. quasi_identifiers: the columns that an attacker may know. sensitive: the columns that must
    not be found out, or each with its entry as in a spec: {"disease": {"taxonomy": {"file": "disease.csv"}}}. entity,
    count: as in a spec, where people have several rows. types: of a CSV file's columns that are not text. adversary,
    prior, thresholds, rule_out, near: as of `Release.audit`; the population's columns hold the labels of `data`.

    NaN, NA, NaT and None are NULL, which counts as a value of its own. Raises InputError for what is wrong with the
    question, Refused for an empty table.
    """

    believing = BayesAdversary.of(adversary, prior, thresholds)
    attacker = Attacker.of(rule_out, near)
    request = TableRequest("qblock.audit()", data, table=table, types=types)
    if isinstance(quasi_identifiers, Mapping):
        raise InputError(
            f"{request.caller}: quasi_identifiers: a table is audited as it stands; write a list of columns"
        )
    known = named(request.caller, "quasi_identifiers", quasi_identifiers)
    columns = [(name, {"hierarchy": "suppress", "nulls": "top"}) for name, _ in known]
    about = [(name, {"nulls": "value", **entry}) for name, entry in named(request.caller, "sensitive", sensitive)]
    attributes = attributes_of(request.caller, {"quasi_identifier": columns, "sensitive": about})
    spec = request.spec(attributes, [{"k_anonymity": {"k": 1}}], release="audit", entity=entity, count=count)
    with open_task(spec, name_values=False, published=False, warehouse=request.warehouse(spec)) as task:
        audited = audit_node(task, task.lattice.bottom, requested=False, adversary=believing, attacker=attacker)
        return Audited.model_validate(audited)


@partial(hide_tracebacks, explain=explained)
def anonymize(
    data: Any,
    quasi_identifiers: Mapping[str, Any],
    sensitive: Names = (),
    *,
    privacy: Sequence[Mapping[str, Any]],
    insensitive: Sequence[str] = (),
    entity: str | None = None,
    count: str | None = None,
    suppression_limit: Any = None,
    search: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
) -> Anonymized:
    """A table generalized until the privacy models hold, and counted again before it is returned.

    data: a pandas DataFrame, an Arrow table, or the path of a Parquet or CSV file (or a pattern of several). The words
    are those of a spec: quasi_identifiers is a mapping of columns to hierarchies ({"age": {"ranges": [5, 10]}, "sex":
    "suppress"}) or to whole entries ({"age": {"hierarchy": "suppress", "nulls": "top"}}); sensitive a list of columns,
    or a mapping to entries; privacy the models, which must all hold; insensitive columns are published as they are, and
    a column that is not named is not published. entity, count, suppression_limit, search: as in a spec. types: of a CSV
    file's columns that are not text. Hierarchies in files start at the working directory.

    The result's `frame` has an index of its own and rows in the order of what it shows: those of `data` would link its
    rows to the source's. NaN, NA, NaT and None are NULL.

    Each call is one publication: whoever holds two of the same people may learn more than each guarantees. Do not
    anonymize a changing table again and again; make it a release, whose versions are checked together.

    Raises Refused where no generalization satisfies what is asked (or the table is empty), InputError for what is wrong
    with the question or the data.
    """

    request = TableRequest("qblock.anonymize()", data, types=types, databases=False)
    attributes = attributes_of(
        request.caller,
        {
            "quasi_identifier": with_hierarchies(request.caller, quasi_identifiers),
            "sensitive": named(request.caller, "sensitive", sensitive),
            "insensitive": named(request.caller, "insensitive", insensitive),
        },
    )
    spec = request.spec(
        attributes, privacy, entity=entity, count=count, suppression_limit=suppression_limit, search=search
    )
    return _anonymized(spec, request.warehouse(spec))


def _anonymized(spec: Spec, warehouse: Warehouse) -> Anonymized:
    """The table of a spec as it may be published once. Closes the warehouse.

    Raises Refused where no node satisfies the spec, or what was made fails its own check, and InputError.
    """
    with ExitStack() as stack:
        if spec.map_version is not None:
            stack.callback(warehouse.close)
            raise InputError("search.node: a table has no versions; leave it out, and a map is searched for")
        spec = replace(spec, versions=replace(spec.versions, joint="none"))
        task = stack.enter_context(open_task(spec, name_values=False, warehouse=warehouse))
        refuse_single_rows(task)
        result = run_search(task)
        chosen = result.chosen
        if chosen is None:
            raise refusal(result)
        refuse_dependencies(task, result)
        warnings = list(task.warnings)
        source = source_digest(task.source)
        if result.recoded is not None:
            task = stack.enter_context(recoded(task, result.recoded))
            chosen = task.assess(task.lattice.bottom)
        labels, copy = label_codes(task, chosen.node), copy_of(task, chosen)
        session = task.source.session
        digest = content_digest(session, copy.query.subquery("qblock_copy"), copy.columns)
        references = [[part.reference for part in parts] for parts in chosen.counts.parts]
        # By what is published: the order of the source would link its rows.
        table = session.fetch(copy.ordered)
        protected = task.protected or (not chosen.suppressed and result.choice != "minimal")
        warnings = list(dict.fromkeys([*warnings, *task.warnings]))
    counted = _counted_again(spec, table, copy.columns, references, chosen, labels, digest)
    tightest = [again or first for again, first in zip(counted.tightest, chosen.tightest, strict=True)]
    alone = [q.model.name for q, t in zip(spec.privacy, counted.tightest, strict=True) if t is None]
    notes = [ONE_PUBLICATION, *warnings, *([] if protected else [NOT_PROTECTED])]
    if alone:
        notes.append(f"not computed from the anonymized rows, which do not suffice: {', '.join(dict.fromkeys(alone))}")
    return Anonymized.model_validate(
        {
            "table": table,
            "rows": table.num_rows,
            "suppressed": chosen.suppressed,
            "node": {} if result.recoded is not None else dict(zip(spec.quasi_identifiers, chosen.node, strict=True)),
            "boxes": None if result.recoded is None else len(result.recoded.boxes),
            "tightest": requirements_json(spec.privacy, tightest),
            "metrics": metrics_json(result.metrics),
            "minimal": result.minimal,
            "choice": result.choice,
            "why": result.why,
            "protected": protected,
            "digest": digest,
            "source_digest": source,
            "notes": list(dict.fromkeys(notes)),
        }
    )


def _counted_again(
    spec: Spec,
    table: pa.Table,
    columns: Sequence[PublishedColumn],
    references: Sequence[Sequence[Reference]],
    chosen: Assessment,
    labels: Sequence[dict[str, int]],
    digest: str,
) -> Counted:
    """The guarantees of the very rows that are returned, in a session that has nothing else."""
    warehouse = DuckdbWarehouse(None, spec.search.memory_limit)
    try:
        with warehouse.snapshot() as session:
            rows = session.load("qblock_anonymized", table)
            counted = count_again(spec, session, rows, columns, references)
            problems = differences(spec, counted, chosen, labels)
            if content_digest(session, rows, columns) != digest:
                problems.append("its content is not what was read from the source")
    finally:
        warehouse.close()
    if problems:
        raise Refused("the anonymized table failed its check, nothing is returned: " + "; ".join(problems))
    return counted


@partial(hide_tracebacks, explain=explained)
def profile(data: Any, *, table: str | None = None, types: Mapping[str, str] | None = None) -> Profiled:
    """A first look at a table: distinct values and NULLs of each column, and the role that is proposed for it.

    data, table, types: as for `audit`. The proposals are guesses from names and counts, to be checked by a person;
    `quasi_identifiers` and `sensitive` of the result are what `anonymize` takes. Raises Refused for an empty table.
    """

    return _profiled(TableRequest("qblock.profile()", data, table=table, types=types))


def _profiled(request: TableRequest) -> Profiled:
    """The profile of a table. Raises Refused where it is empty."""
    warehouse, name = _opened(request)
    try:
        with warehouse.snapshot() as session:
            table = Table(session, name)
            rows, profiles = profiles_of(table)
            if rows == 0:
                raise Refused(f"{request.caller}: the table is empty: there is nothing to profile")
            proposals = propose(profiles, rows)
            who = find(proposals, rows, table)
    finally:
        warehouse.close()
    entity = ProfiledEntity.settled(who, None, None, None).to_json()
    return Profiled.model_validate({"rows": rows, "columns": list(map(_profiled_column, proposals)), "entity": entity})


def _opened(request: TableRequest) -> tuple[Warehouse, TableName]:
    source, frame = request.source, request.frame
    if frame is not None:
        needed = dict.fromkeys(frame.names(), request.caller)
        return CopiedWarehouse(frame, needed), TableName(None, frame.name)
    if "file" in source:
        return files_warehouse(source["file"], Path(), request.caller, source.get("types"))
    return open_warehouse(source["url"], Path.cwd()), TableName.parse(source["table"])


def _profiled_column(proposal: Proposal) -> dict[str, Any]:
    of = proposal.profile
    return {
        "name": of.column.name,
        "type": of.column.type,
        "role": proposal.role,
        "distinct": of.distinct,
        "nulls": of.nulls,
        "reason": proposal.reason,
        "entry": _entry(proposal),
        "approximate": of.approximate,
    }


def _entry(proposal: Proposal) -> dict[str, Any]:
    """What a spec says of the column besides its role: `suppress` where a person has to write the hierarchy."""
    if not isinstance(proposal.entry, dict):
        return {}
    entry = {key: value for key, value in proposal.entry.items() if key != "role"}
    return entry | {"hierarchy": "suppress"} if entry.get("hierarchy") == FILE else entry


def propose_spec(
    url: str,
    table: str | None = None,
    directory: str | Path = ".",
    *,
    force: bool = False,
    entity: str | None = None,
    ask: Callable[[Sequence[Candidate]], str] | None = None,
    sensitive: Sequence[str] | None = None,
    ask_sensitive: Callable[[Sequence[ProposedColumn]], Sequence[str]] | None = None,
) -> Proposed:
    """Profile a table, and write a spec and hierarchy files to edit.

    url: of a database with the table, or the path of Parquet or CSV files without one. force: replace files that exist.
    entity: the column that says who a row is about, or `none`. Without it the best guess is written, where there is a
    clear one. ask: given the candidates where there are several, says which one (its name, or `none`). sensitive: the
    names of the sensitive columns (`none`: there is none); ask_sensitive: given all columns, says which ones.
    Without either their roles are left open in the spec.

    Raises InputError for a table that cannot be read, or of which no column can be a quasi-identifier.
    """

    def candidates(who: Who) -> list[Candidate]:
        return [Candidate.model_validate(candidate.to_json()) for candidate in who.usable]

    proposal = init(
        url,
        table,
        Path(directory),
        force=force,
        entity=entity,
        ask=None if ask is None else lambda who: ask(candidates(who)),
        sensitive=sensitive,
        ask_sensitive=None if ask_sensitive is None else lambda columns: ask_sensitive(list(map(_proposed, columns))),
    )
    return Proposed.model_validate(
        {
            "rows": proposal.rows,
            "files": proposal.files,
            "columns": list(map(_proposed, proposal.proposals)),
            "entity": proposal.entity.to_json(),
            "regime": proposal.regime,
            "open": proposal.open,
            "nodes": proposal.nodes,
            "apart": [{"columns": names.columns, "share": names.share} for names in proposal.unique_sets],
            "types": {name: str(type_) for name, type_ in proposal.recognized.types.items()},
            "notes": proposal.recognized.notes,
            "history": None if proposal.history is None else proposal.history.to_json(),
            "alone": sentence(proposal.unique_sets, proposal.sampled, proposal.rows),
        }
    )


def _proposed(proposal: Proposal) -> ProposedColumn:
    of = proposal.profile
    return ProposedColumn.model_validate(
        {
            "name": of.column.name,
            "role": proposal.role,
            "distinct": of.distinct,
            "approximate": of.approximate,
            "reason": proposal.reason,
            "nulls": of.nulls,
            "values": of.distinct_in_words,
        }
    )


class TableRequest:
    """A table with what is asked of it. caller: what messages begin with; table: of a database.

    Raises InputError for what is not a table, path or URL.
    """

    def __init__(
        self,
        caller: str,
        data: Any,
        *,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
        databases: bool = True,
    ) -> None:
        self.caller = caller
        self.frame: FrameTable | None = None
        path = os.fspath(data) if isinstance(data, str | os.PathLike) else None
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        is_url = path is not None and "://" in path
        if table is not None and not is_url:
            raise InputError(f"{caller}: table: it names a table of a database, whose URL comes first; remove it")
        if path is None:
            self.frame = FrameTable(data)
            self.source: dict[str, Any] = dict(UNOPENED)
        elif is_url and ending(path or "") is not None:
            raise InputError(f"{caller}: files of a network are not read; copy them to this machine, and name the path")
        elif is_url:
            if not databases:
                raise InputError(
                    f"{caller}: a table of a database is published by a release: write a spec, then `qblock release`"
                )
            if table is None:
                raise InputError(f"{caller}: which table of the database? Name it: table='schema.table'")
            self.source = {"url": path, "table": table}
        else:
            self.source = {"file": path}
        if types:
            if "file" not in self.source:
                raise InputError(f"{caller}: types: they are those of the columns of a CSV file; remove them")
            self.source["types"] = types

    def spec(self, attributes: Mapping[str, Any], privacy: Any, **more: Any) -> Spec:
        """The spec. Raises InputError that names the key."""
        given = {key: value for key, value in more.items() if value is not None}
        document = {
            "version": 1,
            "release": "table",
            "source": self.source,
            "attributes": dict(attributes),
            "privacy": privacy,
            **given,
        }
        return spec_of(document, self.caller)

    def warehouse(self, spec: Spec) -> Warehouse:
        """Where the table is, with the columns of the spec alone where it is copied."""
        return warehouse_of(spec, asks_rights=True) if self.frame is None else copied(self.frame, spec)


def attributes_of(caller: str, roles: Mapping[str, Iterable[tuple[str, Any]]]) -> dict[str, Any]:
    """The attributes of a spec: for each role its columns with their entries. A column has one role."""
    attributes: dict[str, Any] = {}
    for role, columns in roles.items():
        for name, entry in columns:
            if not isinstance(name, str):
                raise InputError(
                    f"{caller}: {name!r} is not the name of a column: names are texts; rename the columns: "
                    "frame.columns = frame.columns.map(str)"
                )
            if name in attributes:
                before = attributes[name]["role"]
                raise InputError(f"{caller}: column {name} is {before} and {role}; a column has one role: name it once")
            attributes[name] = {"role": role, **entry}
    assert roles.keys() <= set(ROLES)
    return attributes


def named(caller: str, key: str, columns: Names) -> list[tuple[str, dict[str, Any]]]:
    """Columns that are listed, or given with their entries."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | Mapping):
        raise InputError(f"{caller}: {key}: write a list of columns: [{columns!r}]")
    if not isinstance(columns, Mapping):
        return [(name, {}) for name in columns]
    for name, entry in columns.items():
        if not isinstance(entry, Mapping):
            raise InputError(f"{caller}: {key}.{name}: write its entry as in a spec: {{'nulls': 'value'}}")
    return [(name, dict(entry)) for name, entry in columns.items()]


def with_hierarchies(caller: str, columns: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Quasi-identifiers with a hierarchy each, or with a whole entry, which has the key `hierarchy`."""
    if not isinstance(columns, Mapping):
        raise InputError(
            f"{caller}: quasi_identifiers: write a mapping of columns to hierarchies: "
            "{'age': {'ranges': [5, 10]}, 'sex': 'suppress'}"
        )
    return [
        (name, dict(given) if isinstance(given, Mapping) and "hierarchy" in given else {"hierarchy": given})
        for name, given in columns.items()
    ]


class FrameTable:
    """The Tabular protocol for a data frame or Arrow table. Only the columns that are asked for are converted."""

    name = FRAME
    home = TableName(None, FRAME)
    facts: SourceFacts | None = None
    nan_is_missing = True
    types: Mapping[str, ColumnType] = {}

    def __init__(self, data: Any) -> None:
        self._columns = _pandas_columns(data) if _is_pandas(data) else _arrow_columns(data)
        self._read: dict[str, pa.ChunkedArray] = {}

    def names(self) -> list[str]:
        """The names of the columns, in order; those that are no text are left out."""
        return [name for name, _ in self._columns if isinstance(name, str)]

    def check(self, needed: Mapping[str, str]) -> None:
        unnamed = {str(name) for name, _ in self._columns if not isinstance(name, str)}
        for name, place in needed.items():
            if name in unnamed and name not in self.names():
                raise InputError(
                    f"{place}: the name of column {name} of the {FRAME} is no text; rename the columns: "
                    "frame.columns = frame.columns.map(str)"
                )
        check_names(f"the {FRAME}", self.names(), needed)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        return taken_schema([pa.field(name, self._column(name).type) for name in columns], f"the {FRAME}")

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        whole = pa.table({name: self._column(name) for name in columns})
        yield f"the {FRAME}", taken(whole.to_batches(ROWS), schema, f"the {FRAME}")

    def _column(self, name: str) -> pa.ChunkedArray:
        if name not in self._read:
            column = next(column for label, column in self._columns if label == name)
            self._read[name] = column if isinstance(column, pa.ChunkedArray) else _converted(name, column)
        return self._read[name]


def _is_pandas(data: Any) -> bool:
    # Whoever has such a frame has imported pandas; nobody else need do it.
    return type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns")


def _pandas_columns(frame: Any) -> list[tuple[Any, Any]]:
    """Label and values of each column. The index takes no part: it tells rows apart, and would link them."""
    return [(label, frame.iloc[:, position]) for position, label in enumerate(frame.columns)]


def _arrow_columns(data: Any) -> list[tuple[Any, Any]]:
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if not isinstance(data, pa.Table):
        data = _arrow_table(data)
    return list(zip(data.schema.names, data.columns, strict=True))


def _arrow_table(data: Any) -> pa.Table:
    """Whatever another library offers as Arrow."""
    try:
        if hasattr(data, "__arrow_c_stream__") and not isinstance(data, type):
            return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError):
        pass  # a stream of something else than rows
    raise InputError(
        f"a {type(data).__name__} is not a table; give a pandas DataFrame, an Arrow table, or the path of a "
        "Parquet or CSV file"
    )


def _converted(name: str, values: Any) -> pa.ChunkedArray:
    """A pandas column in Arrow. The library's own errors quote a value."""
    try:
        converted = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        kind = getattr(values, "dtype", "object")
        raise InputError(
            f"the {FRAME}: column {name} ({kind}) holds values that have no one type; make them one: "
            f"frame[{name!r}] = frame[{name!r}].astype('string'), or numbers, or dates"
        ) from error
    return converted if isinstance(converted, pa.ChunkedArray) else pa.chunked_array([converted])
