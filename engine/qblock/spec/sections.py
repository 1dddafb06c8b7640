"""The sections of a release spec: frozen classes, one for each (docs/spec.md)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from qblock.errors import choices
from qblock.metrics import METRICS
from qblock.models.base import more_than
from qblock.spec.condition import where_text
from qblock.spec.fields import (
    LEVEL,
    TEXTS,
    TEXTS_OR_NULL,
    Age,
    Checked,
    Delay,
    Digest,
    Duration,
    Flag,
    Memory,
    Name,
    Names,
    People,
    Positive,
    Seconds,
    Share,
    StorageVersion,
    TableName,
    Url,
    in_range,
    key,
    listed,
    null_or_text,
    table_parts,
    text_of,
)
from qblock.spec.reporting import Declared
from qblock.spec.source_file import read_type
from qblock.spec.sources import STRICT, PublishedField, SourceField
from qblock.spec.workload import WorkloadField
from qblock.spellings import PARTS, Part

Role = Literal["identifying", "quasi_identifier", "sensitive", "insensitive"]
ROLES: tuple[Role, ...] = get_args(Role)
RangesShown = Literal["columns", "native", "text"]
HELPER_VIEWS = ("columns", "levels", "blocks", "version", "guarantees", "spread", "midpoints")
WEIGHTS_NAME = "weight"
SINCE_NAME = "since"
"""The column of weights, unless the spec names it."""
BOUND_ENDS = ("low", "high", "from", "until", "range", "exact", "mean")
MIDDLE = "mid"
"""What the name of a column of middles ends in."""
NAMES = {"type": "object", "additionalProperties": {"type": "string"}}
OnRefusal = Literal["refuse", "hold_back"]
if TYPE_CHECKING:
    MetricName = str
else:
    MetricName = Literal[tuple(metric.name for metric in METRICS)]


def _word_or_values(word: str) -> Checked:
    """A word, or a list of values."""
    read = listed(null_or_text, f"a list of values, or `{word}`", 1)
    values = {"type": "array", "minItems": 1, "items": TEXTS_OR_NULL}
    return Checked(lambda raw: raw if raw == word else read(raw), {"anyOf": [{"const": word}, values]})


def _part(raw: object) -> str:
    text = text_of(raw)
    if text not in PARTS:
        raise ValueError(f"{{it}} is not what spellings differ by; {choices(PARTS, text)}")
    return text


def _same(raw: object) -> tuple[str, ...]:
    return () if raw == () else tuple(sorted(listed(_part, f"some of [{', '.join(PARTS)}]", 1)(raw)))


def _codes(raw: object) -> tuple[str, ...]:
    # A set: in whatever order it is written, it is the same spec.
    return () if raw == () else tuple(sorted(listed(text_of, "the codes for unknown: [999, -1]", 1)(raw)))


def _open_ends(raw: object) -> object:
    if raw not in ("infinity", None):
        raise ValueError("{it} is not valid; valid: infinity, null")
    return raw


def _weights(raw: object) -> dict[str, Fraction]:
    if not isinstance(raw, dict):
        raise ValueError("{it} is not a mapping; write the weights by quasi_identifier: {age: 3, country: 0.5}")
    weights = {}
    for name, item in raw.items():
        try:
            weights[name] = Fraction(WEIGHT.read(item))
        except ValueError as error:
            raise PydanticCustomError("item", "{message}", {"message": str(error), "index": name}) from None
    # The default written out is the same spec.
    return {name: weight for name, weight in weights.items() if weight != 1}


def _names(raw: object) -> dict[str, object]:
    if not isinstance(raw, dict):
        raise ValueError("{it} is not a mapping; write another name for each: {levels: labels_of_stays}")
    return {str(name): item for name, item in raw.items()}


def _levels(raw: object) -> dict[str, int] | tuple[int, ...] | None:
    if raw is None:
        return None
    if isinstance(raw, dict):
        return {name: LEVEL.read(item) for name, item in raw.items()}
    if isinstance(raw, list | tuple):
        return tuple(LEVEL.read(item) for item in raw)
    raise ValueError("{it} is not a node; write a level per quasi-identifier: {age: 2, zip_code: 1} or [2, 1]")


Where = Annotated[str, Checked(where_text, {"type": "string", "minLength": 1})]
WEIGHT = in_range(more_than(0), "a number above 0")
ByName = Annotated[dict[str, Fraction], Checked(_weights, {"type": "object", "additionalProperties": WEIGHT.schema})]
Levels = Annotated[
    dict[str, int] | tuple[int, ...] | None,
    Checked(
        _levels,
        {
            "anyOf": [
                {"type": "object", "additionalProperties": LEVEL.schema},
                {"type": "array", "items": LEVEL.schema},
            ]
        },
    ),
]
Order = Annotated[Literal["ascending"] | tuple[str | None, ...] | None, _word_or_values("ascending")]
Domain = Annotated[Literal["observed"] | tuple[str | None, ...] | None, _word_or_values("observed")]
Same = Annotated[
    tuple[Part, ...],
    Checked(_same, {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": list(PARTS)}}),
]
Codes = Annotated[tuple[str, ...], Checked(_codes, {"type": "array", "minItems": 1, "items": TEXTS})]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Attribute:
    """One column. taxonomy and domain are sets; only order orders. domain None: the leaves of the taxonomy, else what
    is observed. With `publish_as` all of these are about what is published. A loaded spec has `nulls: top` beside the
    `unknown` of a quasi-identifier."""

    role: Role = key(
        "What the column is: identifying is never published, a quasi_identifier is generalized, sensitive "
        "is what must not be found out, insensitive is published as it is.",
        "quasi_identifier",
        "sensitive",
    )
    hierarchy: SourceField | None = key(
        "How values of a quasi-identifier get coarser, level by level up to *.",
        "suppress",
        {"ranges": [5, 10, 20]},
        {"digits": 5},
        {"file": "hierarchies/age.csv"},
        default=None,
    )
    nulls: Literal["refuse", "top", "value"] = key(
        "What NULL is: refused, * at every level (quasi-identifier), or a value (sensitive).",
        "refuse",
        "top",
        default="refuse",
    )
    unknown: Codes = key(
        "Codes for a value that is not known, which are read as NULL.", [999, -1], ["1900-01-01"], default=()
    )
    same: Same = key(
        "What spellings of one value differ by: it is read in one of them.",
        ["case", "space", "unicode"],
        ["space"],
        default=(),
    )
    uncovered: Literal["refuse", "top", "quarantine"] = key(
        "What becomes of values that the hierarchy lacks: refused, published as *, or their rows wait.",
        "refuse",
        "top",
        "quarantine",
        default="refuse",
    )
    taxonomy: SourceField | None = key(
        "Groups of sensitive values, as a hierarchy.", {"file": "hierarchies/condition.csv"}, default=None
    )
    order: Order = key(
        "The order of sensitive values, for distances.", "ascending", ["low", "middle", "high"], default=None
    )
    domain: Domain = key("The sensitive values that there are.", "observed", ["low", "middle", "high"], default=None)
    publish_as: PublishedField | None = key(
        "What is published, and protected, in place of a sensitive value: its range, or a level of its taxonomy.",
        {"ranges": [10000], "from": 0, "to": 200000},
        {"edges": [0, 1, 5, 10]},
        {"level": 1},
        default=None,
    )
    because: Declared | None = key(
        "Why the column has its role; the report says it to readers.", "a neighbour knows it", default=None
    )

    @property
    def highest(self) -> int | None:
        """The highest level of a quasi-identifier that may be published (`max`); None for any."""
        return None if self.hierarchy is None else self.hierarchy.highest


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Source:
    """The table to publish from, or the files. table: as written (`parts`: without quotes).

    A loaded spec with files has a URL and a table that stand for them (source_file.py).
    """

    url: Url = key("The SQLAlchemy URL of the database; secrets come from the environment.", "${WAREHOUSE_URL}")
    table: TableName = key("The table or view.", "clinic.inpatient")
    file: Name | None = key(
        "Parquet or CSV files instead of a table: a path relative to the spec, or a pattern of several.",
        "people.parquet",
        "parts/*.csv",
        default=None,
    )
    types: dict[str, Annotated[str, Checked(read_type, {"type": "string"})]] = key(
        "The types of CSV columns that are not text.", {"age": "integer", "seen": "date"}, default_factory=dict
    )

    where: Where | None = key(
        "The rows that the release is about, as a condition in SQL; the others are not read.",
        "valid_to IS NULL AND NOT is_deleted",
        "site IN ('A', 'B') AND valid_from < DATE '2026-01-31'",
        default=None,
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return table_parts(self.table)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Box:
    """What is asked of every box of a recoding map beside the models."""

    least: Positive = key("The least rows of a box; people with `count: entities`.", 30)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Search:
    """How the lattice is searched. weights: those that are not 1 (`Spec.weights` has all)."""

    recoding: Literal["full_domain", "multidimensional"] = key(
        "One level for all rows, or labels of its own for every block.", "multidimensional", default="full_domain"
    )
    strategy: Literal["chains", "incognito", "exhaustive"] = key(
        "How the lattice is searched; all find the same minimal nodes.", "chains", "incognito", default="chains"
    )
    choose_from: Literal["minimal", "sizes"] = key(
        "Minimal nodes, or nodes chosen by block sizes alone and then checked.", "sizes", default="minimal"
    )
    choose_by: MetricName = key(
        "The metric by which one node is chosen.", "discernibility", "loss", default="discernibility"
    )
    workload: WorkloadField | None = key(
        "The queries of query_error: how many are drawn, or a list.",
        {"queries": 500, "seed": 1},
        [{"age": {"from": 20, "to": 29}, "gender": ["Female"]}],
        default=None,
    )
    weights: ByName = key(
        "What quasi-identifiers count in loss, precision and non_uniform_entropy.", {"age": 3}, default_factory=dict
    )
    node: Levels = key(
        "A node that is checked and not searched for; of a recoding map the version that has it.",
        {"age": 2, "gender": 0},
        [2, 0],
        {"version": 1},
        default=None,
    )
    box: Box | None = key(
        "With a recoding map: how large its boxes are at least, whatever the models ask.", {"least": 30}, default=None
    )
    answer: Literal["all", "best"] = key(
        "Every minimal node, or the one to choose alone, which may be faster.", "best", default="all"
    )
    within: Duration | None = key("The time after which the best that was come to is taken.", "60s", "5m", default=None)
    roll_up: Literal["auto", "warehouse", "local"] = key(
        "Where nodes are counted once the rows are coded.", "auto", "local", default="auto"
    )
    memory_limit: Memory | None = key("How much memory counting may take.", "512MB", "4GB", default=None)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Publish:
    """Where the release goes. view None: named as the release (a loaded spec has it filled in).

    ranges None: as the version that readers see has them, and as columns where there is none. weights, since
    None: as `Spec.shows_weights` and `Spec.shows_since` say. storage_version None: 1.5.
    """

    url: Url | None = key(
        "Where readers find it, needed for files and DuckDB: a release file, or a database of PostgreSQL.",
        "duckdb:///release.duckdb",
        "postgresql://user@host/releases",
        default=None,
    )
    schema: Name = key("The schema of the view.", "published", default="published")
    view: Name | None = key("The name of the view; the release's name unless given.", "inpatients", default=None)
    readers: Names = key("Roles of PostgreSQL that may read the view.", ["analyst"], default=())
    ranges: RangesShown | None = key(
        "How bounds of numbers and dates stand beside labels: two columns each, one of a range type, or none.",
        "columns",
        "native",
        "text",
        default=None,
    )
    open_ends: Annotated[Literal["infinity"] | None, Checked(_open_ends, {"enum": ["infinity", None]})] = key(
        "What bounds of a label have where it is open: an infinite value, or NULL, which a filter drops.",
        "infinity",
        None,
        default="infinity",
    )
    exact: Flag = key(
        "Whether values of numbers and dates that are shown as they are stand beside their labels, too, in their type.",
        True,
        False,
        default=False,
    )
    typical: Literal["mean", "none"] = key(
        "What stands beside a label of numbers for those of its block: their mean, rounded, or nothing.",
        "mean",
        "none",
        default="none",
    )
    names: Annotated[dict[str, Name], Checked(_names, NAMES)] = key(
        "Other names for helper views and for the columns of bounds, of people and of weights, by their own.",
        {"levels": "stays_labels", "age_low": "age_from"},
        default_factory=dict,
    )
    people: Flag = key(
        "Whether it is published how many people each block has, with `count: entities`.", True, False, default=False
    )
    weights: Flag | None = key(
        "Whether each row has a weight, by which those who left are not counted; unless given, with newcomers in "
        "cohorts.",
        True,
        False,
        default=None,
    )
    since: Flag | None = key(
        "Whether each row says which version first showed it; unless given, where versions lag behind.",
        True,
        False,
        default=None,
    )
    lock_timeout: Seconds = key("Seconds that readers may have to wait behind a publication.", 1, default=1)
    storage_version: StorageVersion | None = key(
        "Of DuckDB alone: the oldest version of DuckDB that has to read the release file.",
        "v1.5.0",
        "v1.2.0",
        default=None,
    )
    path: Name | None = key(
        "Of a release on Spark alone: where the published tables are stored.", "/data/published", default=None
    )
    readers_checked: Literal["by operator"] | None = key(
        "Of a release on Spark alone: who saw to it that readers reach publish.path and not private.path.",
        "by operator",
        default=None,
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Private:
    """Where private state is that is not with the source, nor with what is published."""

    url: Url = key("The database of the ledger: a file ledger.sqlite, or PostgreSQL.", "sqlite:///qblock/ledger.sqlite")
    path: Name | None = key(
        "Of a release on Spark alone, and needed there: where the cluster stores what nobody but the job may read.",
        "/data/private",
        default=None,
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Newcomers:
    """How newcomers are shown as cohorts: all who wait together, in boxes of a map of their own."""

    within: Delay = key("In how many runs, or what time, newcomers are shown.", 4, "4w", default=4)
    box: People = key("The least people of a box of newcomers.", "auto", 40, default="auto")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Versions:
    """How versions of the release are checked together.

    on_refusal None: hold_back where versions are checked together (`Spec.on_refusal`). confirm: of a source that may be
    published although more than a fifth of the people left or came.
    """

    joint: Literal["episodes", "none"] = key(
        "How versions are checked together; none where nobody keeps an older one.",
        "episodes",
        "none",
        default="episodes",
    )
    audience: Names = key("Other releases that the same readers may hold.", ["outpatients"], default=())
    on_refusal: OnRefusal | None = key(
        "What a run does where changes would not pass beside earlier versions.", "hold_back", "refuse", default=None
    )
    newcomers: Newcomers | None = key(
        "How newcomers are shown in boxes of their own.", {"within": 4, "box": "auto"}, default=None
    )
    cohort: People | None = key(
        "Instead of `newcomers`: how many newcomers of a block are shown together.", "auto", 20, default=None
    )
    leave: Positive | None = key(
        "How many people of a joint cell leave, or change, together at least; k unless given.", 15, default=None
    )
    stale: Share | None = key(
        "The share of absent people at which a joint cell that is small or frozen goes whole; null for never.",
        0.6,
        default=Fraction(3, 5),
    )
    skip: Share = key(
        "How often a batch of newcomers is set aside unseen, where models need it.", 0.01, default=Fraction(1, 100)
    )
    row_counts: Literal["unknown", "known"] = key(
        "Whether it may be known how many rows somebody has in a block.", "unknown", "known", default="unknown"
    )
    max_lag: Share | None = key("The share of the rows beyond which a release is lagging.", 0.05, default=None)
    max_wait: Age | None = key("The time beyond which a release is lagging.", "8w", default=None)
    keep: Positive = key("How many versions are kept for rollback.", 3, default=3)
    stale_after: Age | None = key("The age at which the release counts as stale.", "36h", "8d", default=None)
    confirm: Digest | None = key(
        "The digest of a source that may be published though very many people went or came.", "0" * 64, default=None
    )
