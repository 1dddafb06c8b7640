"""The helper views of a release: what a reader must know of its columns, labels, version and guarantees to query it.

Nothing in them is more than the published rows tell with the hierarchies as they are declared: levels are those of the
labels that are published, and what a guarantee satisfies is there only where the published rows give it again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from qblock.blocks import Ints
from qblock.engines.quoting import quote, quote_plain
from qblock.errors import InputError
from qblock.hierarchy import TOP, Hierarchy
from qblock.hierarchy.labels import texts
from qblock.ledger.events import Guarantee
from qblock.ledger.kept import PublishedColumn
from qblock.models import Tightest
from qblock.publish.bounds import Bound
from qblock.publish.levels import Leaves, Levels
from qblock.publish.recheck import known_to_readers
from qblock.publish.spread import spread_rows
from qblock.source.in_words import SUPPRESSED, alike_in_words, published_in_words
from qblock.spec import Requirement, Spec

Kind = Literal["columns", "levels", "blocks", "version", "guarantees", "spread", "midpoints"]
KINDS: tuple[Kind, ...] = get_args(Kind)
VERSION = re.compile(r"v\d+", re.ASCII | re.IGNORECASE)
LONGEST = 63
"""Bytes of a name, of which PostgreSQL keeps no more."""
Type = Literal["text", "bigint", "double", "boolean", "timestamp", "date"]
OF_BLOCKS = ("quasi_identifier", "bound", "exact", "mean", "people")
"""Columns that are the same in all rows of a q*-block."""
BLOCKS_SAY = (
    "The q*-blocks of {view}, rows that read the same in every quasi-identifier, with how many rows each has. Numbers "
    "are of the version that is shown, and stand for other blocks in another one."
)
PEOPLE_ROLE = "people of the block"
PEOPLE_HOW = "the same in all rows of a block: add it up over {blocks}, not over rows"
SINCE_ROLE = "version"
SINCE_HOW = "the version that first showed the row as it is: {0} = (SELECT max({0}) FROM {1}) finds the newest rows"
WEIGHT_ROLE = "weight"
WEIGHT_HOW = "not a filter: sum({}) counts who is there now, where count(*) also counts who has left"
AS_SOURCE = "All rows are of the source as it was when this version was made. Later changes are not in it."
AS_SOURCE_TOGETHER = (
    "All rows are of the source as it was when this version was made, with the quasi-identifiers that each person had "
    "when first published. Changes that cannot be shown beside earlier versions stop the job: then this version stays."
)
LAGS = "A change in the source is shown only once enough people share it, so the view may lag behind it."
OTHERS = "the others have the values with which an earlier version showed them"
Row = tuple[Any, ...]
RELEASED = "Release {release}, anonymized by qblock."
"""How the comment of a release's view begins."""
SAYS = {
    "quasi_identifier": "Quasi-identifier: a label of its hierarchy, `*` where it is suppressed; which level it has, "
    "and how to filter it: {columns}.",
    "typed": "Quasi-identifier, as it is in the source in every row: {columns}.",
    "bound": "Bound of the label of {of} ({end}); {open}.",
    "exact": "The value of {of} where it is shown as it is, in the type of the source; NULL elsewhere.",
    "mean": "The mean of {of} in the q*-block, rounded, the same in each of its rows; NULL where the label is open.",
    "people": "How many people the rows of its q*-block are about, the same in each of them: add it up over {blocks}, "
    "not over rows.",
    "weight": "The share of the people of its group who are still in the source. sum({of}) counts people who are "
    "there now; count(*) also counts people who have left.",
    "since": "The version that first showed this row as it is now.",
    "sensitive": "Sensitive attribute: {shown}; what is guaranteed of it: {guarantees}.",
    "insensitive": "Published as it is in the source.",
}
OPEN_SAYS = {
    "infinity": "infinite where the label is open or suppressed, so no filter drops its rows silently",
    None: "NULL where the label is open or suppressed, so a filter drops its rows unless it says `OR ... IS NULL`",
}
EXACT_ROLE = "values of {}"
EXACT_HOW = (
    "like a column of the source, for rows that show {} as it is; NULL in others, which may have any of its label"
)
MEAN_ROLE = "mean of {}"
MEAN_HOW = "not a filter: avg({0}) is the mean of {1}, of the rows whose label is not open; NULL in others"
AS_IN_SOURCE = "as it is in the source"
PUBLISHED = "published {}"
"""How to filter a column that is not generalized: it says what it is published as."""
NULL_IF_UNKNOWN = ", NULL where it is not known"
ENDS = {
    "low": "low <= value < high",
    "high": "low <= value < high",
    "from": "from <= value < until",
    "until": "from <= value < until",
    "range": "the value lies in it",
}


@dataclass(frozen=True)
class Helper:
    """A helper view that is kept with each version. columns: with their types; says: its comment."""

    kind: Kind
    columns: Mapping[str, Type]
    says: str


KEPT: tuple[Helper, ...] = (
    Helper(
        "columns",
        {
            "column_name": "text",
            "role": "text",
            "level": "bigint",
            "levels": "bigint",
            "level_name": "text",
            "source_type": "text",
            "values_published": "bigint",
            "share_suppressed": "double",
            "how_to_filter": "text",
        },
        "The columns of {view} in the version that is shown: what each one means, and how to filter it. `level`: that "
        "of its labels, among the `levels` of its hierarchy; NULL where labels are of several. `share_suppressed`: "
        "the share of rows in which it is `*`.",
    ),
    Helper(
        "levels",
        {
            "column_name": "text",
            "level": "bigint",
            "label": "text",
            "low": "text",
            "high": "text",
            "members": "text",
            "complete": "boolean",
            "sort": "bigint",
            "rows": "bigint",
            "share": "double",
            "since": "bigint",
        },
        "The labels of {view} in the version that is shown, with their rows and the share of all. A label of numbers "
        "or dates has low <= value < high. `members` (a JSON array) has those values of another one that are labels "
        "themselves; NULL where it may have any. `complete`: it has no others. `sort` puts labels in order. `since`: "
        "the version from which on rows that are shown now have had it; NULL where versions do not lag behind the "
        "source.",
    ),
    Helper(
        "version",
        {
            "version": "bigint",
            "published_at": "timestamp",
            "rows": "bigint",
            "previous": "bigint",
            "rows_new": "bigint",
            "in_words": "text",
        },
        "The version of {view} that is shown, since when it exists (UTC), and the one that was shown before it was "
        "made. `rows_new`: how many of its rows no earlier version showed as they are; NULL where rows do not say "
        "since when. `in_words`: how its rows follow the source.",
    ),
    Helper(
        "guarantees",
        {
            "model": "text",
            "sensitive": "text",
            "asked": "text",
            "holds": "boolean",
            "satisfied": "text",
            "in_words": "text",
        },
        "What {view} guarantees about the people in it; `satisfied` is recomputed from its rows, NULL where they do "
        "not suffice.",
    ),
    Helper(
        "spread",
        {
            "column_name": "text",
            "label": "text",
            "low": "double",
            "high": "double",
            "middle": "double",
            "share": "double",
            "from_date": "date",
            "until_date": "date",
        },
        "How the rows of each label of {view} lie within its bounds, estimated from all published labels and their "
        "rows. `share`: of them with low <= value < high. Dates are days since 1970-01-01, and dates beside them; an "
        "open end is NULL.",
    ),
)


def shortened(name: str) -> str:
    """A name of at most 63 bytes: the end of a longer one is replaced by a digest."""
    if len(name.encode()) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return name.encode()[: LONGEST - 13].decode(errors="ignore") + "_" + digest


def names(view: str, renamed: Mapping[str, str]) -> dict[Kind, str]:
    """The name of each helper view: that of the view with its kind, shortened to what PostgreSQL keeps. renamed:
    `publish.names`."""
    return {kind: renamed.get(kind) or shortened(f"{view}_{kind}") for kind in KINDS}


def check_names(spec: Spec) -> None:
    """Raise InputError where two views of the release would have one name, or one is too long."""
    of: dict[str, str] = {spec.view.casefold(): "the view itself"}
    for kind, name in names(spec.view, spec.publish.names).items():
        what, where = f"the helper view of its {kind}", spec.at("publish", "names")
        if len(name.encode()) > LONGEST:
            raise InputError(
                f"{where}: {name}, {what}, has more than {LONGEST} bytes, the most that PostgreSQL keeps of a name; "
                f"give it another one: publish: {{names: {{{kind}: ...}}}}"
            )
        if name.casefold() in of or VERSION.fullmatch(name.removeprefix(f"{spec.view}_")):
            taken = of.get(name.casefold(), "a version")
            raise InputError(
                f"{where}: {name} would be {what}, and is the name of {taken}; give one of them another name"
            )
        of[name.casefold()] = what


def reserved_schema(spec: Spec, server: str, kept: re.Pattern[str]) -> None:
    """Raise InputError for a schema whose name the engine keeps for itself."""
    schema = spec.publish.schema
    if kept.fullmatch(schema):
        raise InputError(
            f"{spec.at('publish', 'schema')}: {server} keeps the name {schema} for itself; publish in another schema: "
            "publish: {schema: published}"
        )


def block_columns(
    spec: Spec,
    columns: Sequence[PublishedColumn],
    quoted: Callable[[str], str],
    named: Callable[[str], str] = quote,
    numbered: str = "{}",
) -> tuple[str, str]:
    """What the view of the blocks selects and groups by. quoted: a column of the version's table by its name; named:
    a name as the engine quotes it; numbered: what makes a BIGINT of the number of a row, where it is none."""
    shown = [column for column in columns if column.role in OF_BLOCKS]
    number, rows, now = block_names(spec, columns)
    keys = ", ".join(quoted(column.name) for column in shown if column.role == "quasi_identifier")
    selected = {column: f"{quoted(column.name)} AS {named(column.name)}" for column in shown}
    people = [selected.pop(column) for column in shown if column.role == "people"]
    people += [
        f"CAST(round(sum({quoted(column.name)})) AS BIGINT) AS {named(now)}"
        for column in columns
        if column.role == "weight"
    ]
    first = f"{numbered.format(f'row_number() OVER (ORDER BY {keys})')} AS {named(number)}"
    return (
        ", ".join([first, *selected.values(), f"count(*) AS {named(rows)}", *people]),
        ", ".join(quoted(column.name) for column in shown),
    )


def block_names(spec: Spec, columns: Sequence[PublishedColumn]) -> tuple[str, str, str]:
    """The names of the number of a block, of its rows, and of the sum of their weights: like no column beside them."""
    taken = {column.name.casefold() for column in columns if column.role in OF_BLOCKS}
    names_ = []
    for name in ("block", "rows", "rows_now" if spec.bundles else "people_now"):
        while name in taken:
            name += "_"
        names_.append(name)
    number, rows, now = names_
    return number, rows, now


@dataclass(frozen=True)
class Shown:
    """The rows of each helper view that is kept of a version, in order; their values by the columns of KEPT."""

    version: int
    rows: Mapping[Kind, Sequence[Row]]

    def table(self, helper: Helper) -> pa.Table:
        """position, and the values as texts."""
        rows = self.rows[helper.kind]
        arrays = {"position": texts([str(i) for i in range(1, len(rows) + 1)])}
        for i, name in enumerate(helper.columns):
            arrays[name] = texts([_text(row[i]) for row in rows])
        return pa.table(arrays)


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else repr(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Version:
    """version: its number; at: when it was made, as ISO text in UTC; previous: the one that readers saw then; rows_new:
    of its rows those that it is the first to show as they are, None where rows do not say so."""

    version: int
    at: str
    previous: int | None
    rows_new: int | None = None


@dataclass(frozen=True, eq=False)
class Facts:
    """What helper views say of the columns, besides what is counted.

    hierarchies: by quasi-identifier; rests: the leaves of labels that a recoding map made, by quasi-identifier; types:
    the kinds of the source's columns, since the name of a type may list values; distinct: how many values each column
    that is published as it is has.
    """

    columns: Sequence[PublishedColumn]
    bounds: Mapping[str, Bound]
    hierarchies: Mapping[str, Hierarchy]
    types: Mapping[str, str]
    distinct: Mapping[str, int]
    rests: Mapping[str, Leaves] = field(default_factory=dict)

    def levels(self, name: str, rows: Mapping[str, int]) -> Levels:
        """The labels of a quasi-identifier that are published, with how many rows each has."""
        rests = self.rests.get(name, {})
        typed = any(column.name == name and column.kind != "text" for column in self.columns)
        return Levels(name, self.hierarchies[name], rows, self.bounds.get(name), rests, typed)


def shown_of(
    spec: Spec,
    facts: Facts,
    labels: Sequence[Mapping[str, int]],
    tightest: Sequence[Tightest],
    version: Version,
    since: Sequence[Mapping[str, int]],
) -> Shown:
    """What the helper views show. labels: of each quasi-identifier the labels that are published, with their rows;
    tightest: of each requirement, of which readers get what they could work out; since: of each quasi-identifier the
    version that first showed each label, of those that are known."""
    total = sum(labels[0].values()) if labels else 0
    views: dict[Kind, list[Row]] = {helper.kind: [] for helper in KEPT}
    published = dict(zip(spec.quasi_identifiers, labels, strict=True))
    versions = dict(zip(spec.quasi_identifiers, since, strict=False))
    named = names(spec.view, spec.publish.names)
    of = ""
    for column in facts.columns:
        name, type_ = column.name, facts.types.get(column.name)
        if column.role == "quasi_identifier":
            of = name
            own = facts.levels(name, published[name])
            views["levels"] += own.listed(versions.get(name, {}))
            views["spread"] += spread_rows(own.bound, own.rows)
            level, hierarchy = own.level, own.hierarchy
            views["columns"].append(
                (
                    name,
                    "quasi-identifier",
                    level,
                    hierarchy.height + 1,
                    None if level is None else hierarchy.level_names[level] if level < hierarchy.height else SUPPRESSED,
                    type_,
                    len(own.rows),
                    own.rows.get(TOP, 0) / total if total else None,
                    own.how_to_filter(f"{quote_plain(spec.publish.schema)}.{quote_plain(named['levels'])}"),
                )
            )
        elif column.role == "bound":
            views["columns"].append((name, f"bound of {of}", *[None] * 6, f"see {of}"))
        elif column.role == "exact":
            views["columns"].append((name, EXACT_ROLE.format(of), *[None] * 6, EXACT_HOW.format(of)))
        elif column.role == "mean":
            how = MEAN_HOW.format(quote_plain(name), of)
            views["columns"].append((name, MEAN_ROLE.format(of), *[None] * 6, how))
        elif column.role == "people":
            views["columns"].append((name, PEOPLE_ROLE, *[None] * 6, PEOPLE_HOW.format(blocks=named["blocks"])))
        elif column.role == "since":
            how = SINCE_HOW.format(quote_plain(name), f"{quote_plain(spec.publish.schema)}.{quote_plain(spec.view)}")
            views["columns"].append((name, SINCE_ROLE, *[None] * 6, how))
        elif column.role == "weight":
            views["columns"].append((name, WEIGHT_ROLE, *[None] * 6, WEIGHT_HOW.format(quote_plain(name))))
        else:
            role = {"sensitive": "sensitive attribute"}.get(column.role, column.role)
            shown = shown_as(spec, name)
            source_type = type_ if shown.startswith(AS_IN_SOURCE) else None  # that of the labels
            views["columns"].append(
                (name, role, None, None, None, source_type, facts.distinct[name], None, PUBLISHED.format(shown))
            )
    said = follows_in_words(spec, version, total)
    views["version"].append((version.version, version.at, total, version.previous, version.rows_new, said))
    for requirement, satisfied in zip(spec.privacy, tightest, strict=True):
        views["guarantees"] += _guarantees(spec, requirement, satisfied)
    return Shown(version.version, views)


def follows_in_words(spec: Spec, version: Version, rows: int) -> str:
    """How the rows of a version follow the source: told by the spec and by the published rows alone, never by who
    waits."""
    if not spec.checked_together:
        return AS_SOURCE
    if not spec.lags:
        return AS_SOURCE_TOGETHER
    return LAGS if version.rows_new is None else f"{_new_in_words(version, version.rows_new, rows)} {LAGS}"


def _new_in_words(version: Version, new: int, rows: int) -> str:
    every = f"All {rows:,} rows" if rows != 1 else "The only row"
    if new == rows and version.previous is None:
        return f"{every} {'are' if rows != 1 else 'is'} new: readers saw no version when this one was made."
    if new == rows:
        return f"{every} may be new in this version, or have new values."
    if new == 0:
        return "No row is new in this version or has new values."
    verbs = "is new in this version or has new values" if new == 1 else "are new in this version or have new values"
    return f"{new:,} of {rows:,} rows {verbs}; {OTHERS}."


def _guarantees(spec: Spec, requirement: Requirement, tightest: Tightest) -> list[Row]:
    known = known_to_readers(spec, requirement)
    about = ", ".join(requirement.sensitive) or None
    rows: list[Row] = []
    for guarantee in Guarantee.of(requirement, tightest, "recheck"):
        parameter = guarantee.parameter
        satisfied = f"{parameter} = {guarantee.satisfied}" if known and guarantee.satisfied is not None else None
        rows.append(
            (
                guarantee.model,
                about,
                f"{parameter} = {guarantee.asked}",
                guarantee.holds,
                satisfied,
                requirement.meaning,
            )
        )
    return rows


def counted_labels(texts_of: Sequence[Sequence[str]], rows: Ints, width: int) -> list[dict[str, int]]:
    """Rows by label of each quasi-identifier, from the labels [B][Q] and sizes of blocks."""
    counted: list[dict[str, int]] = [{} for _ in range(width)]
    for block, n in zip(texts_of, rows.tolist(), strict=True):
        for counts, label in zip(counted, block, strict=True):
            counts[label] = counts.get(label, 0) + n
    return counted


def labels_by_code(labels: Sequence[Mapping[str, int]], keys: Ints, rows: Ints) -> list[dict[str, int]]:
    """The same from the codes of blocks; labels: the code of each label, by quasi-identifier."""
    by_column = []
    for i, known in enumerate(labels):
        text = {code: label for label, code in known.items()}
        codes, place = np.unique(keys[:, i], return_inverse=True)
        n = np.zeros(len(codes), dtype=np.int64)
        np.add.at(n, place.reshape(-1), rows)
        by_column.append({text[code]: int(count) for code, count in zip(codes.tolist(), n.tolist(), strict=True)})
    return by_column


def view_comment(spec: Spec) -> str:
    """The comment of the view."""
    named = names(spec.view, spec.publish.names)
    return (
        f"{RELEASED.format(release=spec.release)} What each column means and how to filter it: {named['columns']}; "
        f"the labels: {named['levels']}; what is guaranteed: {named['guarantees']}; which version this is: "
        f"{named['version']}. Rows of the source may be missing, and a row need not be one individual."
    )


def column_comments(spec: Spec, columns: Sequence[PublishedColumn]) -> dict[str, str]:
    """The comment of each published column."""
    named = names(spec.view, spec.publish.names)
    defaults = {name: default for default, name in spec.publish.names.items()}
    comments, of = {}, ""
    for column in columns:
        of = of if column.role in ("bound", "exact", "mean") else column.name
        end = ENDS.get(defaults.get(column.name, column.name).rpartition("_")[2], "")
        typed = column.role == "quasi_identifier" and column.kind != "text"
        comments[column.name] = SAYS["typed" if typed else column.role].format(
            columns=named["columns"],
            blocks=named["blocks"],
            guarantees=named["guarantees"],
            of=of,
            end=end,
            open=OPEN_SAYS[spec.publish.open_ends],
            shown=shown_as(spec, column.name),
        )
    return comments


def shown_as(spec: Spec, name: str) -> str:
    """What readers see of a column that is not generalized."""
    if name not in spec.sensitives:
        return AS_IN_SOURCE
    said = (published_in_words(spec, name) or AS_IN_SOURCE) + (NULL_IF_UNKNOWN if spec.attributes[name].unknown else "")
    alike = alike_in_words(spec, name)
    return f"{said}, {alike}" if alike else said
