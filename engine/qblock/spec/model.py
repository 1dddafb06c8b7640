"""What a release spec says: frozen classes, one per section of the file (docs/spec.md)."""

from __future__ import annotations

from dataclasses import dataclass as plain
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, InstanceOf, WithJsonSchema
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from qblock.metrics import METRICS
from qblock.models import Model
from qblock.spec.document import Path as Place
from qblock.spec.document import Scalar, dotted
from qblock.spec.fields import (
    TEXTS,
    Age,
    Cohort,
    Digest,
    Duration,
    Flag,
    Limit,
    Memory,
    Name,
    Names,
    Positive,
    ReleaseName,
    Seconds,
    Share,
    StorageVersion,
    TableName,
    Url,
    exact_number,
    least,
    listed,
    null_or_text,
    table_parts,
)
from qblock.spec.guards import GuardTable
from qblock.spec.prior import Prior
from qblock.spec.source_file import read_type
from qblock.spec.sources import STRICT, CsvFile, HierarchySource, SourceField
from qblock.spec.workload import WorkloadField

Role = Literal["identifying", "quasi_identifier", "sensitive", "insensitive"]
ROLES: tuple[Role, ...] = get_args(Role)
RangesShown = Literal["columns", "native", "text"]
HELPER_VIEWS = ("columns", "levels", "blocks", "version", "guarantees")
BOUND_ENDS = ("low", "high", "from", "until", "range")
NAMES = {"type": "object", "additionalProperties": {"type": "string"}}
OnRefusal = Literal["refuse", "hold_back"]
if TYPE_CHECKING:
    MetricName = str
else:
    MetricName = Literal[tuple(metric.name for metric in METRICS)]


def _shorthand(raw: Any) -> Any:
    return {"role": raw} if isinstance(raw, str | Scalar) else raw


def _order(raw: object) -> Any:
    return raw if raw == "ascending" else listed(null_or_text, "values, or `ascending`", 1)(raw)


def _domain(raw: object) -> Any:
    return raw if raw == "observed" else listed(null_or_text, "values, or `observed`", 1)(raw)


def _values(word: str, *types: str) -> WithJsonSchema:
    items = {"type": [*TEXTS["type"], *types]}
    return WithJsonSchema({"anyOf": [{"const": word}, {"type": "array", "minItems": 1, "items": items}]})


def _version(raw: object) -> int:
    value = raw.value if isinstance(raw, Scalar) else raw
    if value != 1 or isinstance(value, bool):
        raise ValueError("{it} is not a version of the spec format; write `version: 1`")
    return 1


def _weights(raw: object) -> dict[str, Fraction]:
    if not isinstance(raw, dict):
        raise ValueError("{it} is not a mapping; write the weights by quasi_identifier: {age: 3, country: 0.5}")
    found = {}
    for name, item in raw.items():
        try:
            found[name] = Fraction(exact_number(item))
            if found[name] <= 0:
                raise ValueError("{it} is out of range; valid: a number above 0")
        except ValueError as error:
            raise PydanticCustomError("item", "{message}", {"message": str(error), "index": name}) from None
    # The default written out is the same spec.
    return {name: weight for name, weight in found.items() if weight != 1}


def _names(raw: object) -> dict[str, object]:
    if not isinstance(raw, dict):
        raise ValueError("{it} is not a mapping; write another name for each: {levels: labels_of_stays}")
    return {str(name): item for name, item in raw.items()}


def _levels(raw: object) -> dict[str, int] | tuple[int, ...]:
    level = least(0)
    if isinstance(raw, dict):
        return {name: level(item) for name, item in raw.items()}
    if isinstance(raw, list | tuple):
        return tuple(level(item) for item in raw)
    raise ValueError("{it} is not a node; write a level per quasi-identifier: {age: 2, zip_code: 1} or [2, 1]")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Attribute:
    """One column. hierarchy, uncovered: of a quasi-identifier; taxonomy, order, domain: of a sensitive attribute.

    nulls: refuse, top (quasi-identifier: `*` at every level) or value (sensitive: an ordinary value). uncovered: what
    happens to a value that is missing in the hierarchy. taxonomy and domain are sets; only order orders. domain
    None: the leaves of the taxonomy, else what is observed.
    """

    role: Role
    hierarchy: SourceField | None = None
    nulls: Literal["refuse", "top", "value"] = "refuse"
    uncovered: Literal["refuse", "top", "quarantine"] = "refuse"
    taxonomy: SourceField | None = None
    order: Annotated[
        Literal["ascending"] | tuple[str | None, ...] | None, BeforeValidator(_order), _values("ascending", "null")
    ] = None
    domain: Annotated[
        Literal["observed"] | tuple[str | None, ...] | None, BeforeValidator(_domain), _values("observed", "null")
    ] = None

    @property
    def highest(self) -> int | None:
        """The highest level of a quasi-identifier that may be published (`max`); None for any."""
        return None if self.hierarchy is None else self.hierarchy.highest


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Source:
    """The table to publish from, or the files. url: a secret; table: as written (`parts`: without quotes).

    file: a path or pattern of Parquet or CSV files, relative to the spec; types: of columns of CSV that are not text.
    A loaded spec with files has a URL and a table that stand for them (source_file.py).
    """

    url: Url
    table: TableName
    file: Name | None = None
    types: dict[str, Annotated[str, BeforeValidator(read_type), WithJsonSchema({"type": "string"})]] = field(
        default_factory=dict
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return table_parts(self.table)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Search:
    """How the lattice is searched. node: a pinned node, as a mapping name -> level or as a list of levels; with
    recoding maps {version: N}, the map of a version.

    workload: the queries of the metric query_error; without it, queries are drawn as DrawnWorkload says. weights: of
    quasi-identifiers in loss, precision and non_uniform_entropy, where they are not 1 (`Spec.weights` has all). answer:
    all minimal nodes, or the one to choose alone. within: the time after which the best that was come to is taken.
    """

    recoding: Literal["full_domain", "multidimensional"] = "full_domain"
    strategy: Literal["chains", "incognito", "exhaustive"] = "chains"
    choose_from: Literal["minimal", "sizes"] = "minimal"
    choose_by: MetricName = "discernibility"
    workload: WorkloadField | None = None
    weights: Annotated[
        dict[str, Fraction],
        BeforeValidator(_weights),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}}),
    ] = field(default_factory=dict)
    node: Annotated[
        dict[str, int] | tuple[int, ...] | None,
        BeforeValidator(_levels),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
                    {"type": "array", "items": {"type": "integer", "minimum": 0}},
                ]
            }
        ),
    ] = None
    answer: Literal["all", "best"] = "all"
    within: Duration | None = None
    roll_up: Literal["auto", "warehouse", "local"] = "auto"
    memory_limit: Memory | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Publish:
    """Where the release goes. view None: named as the release (a loaded spec has it filled in).

    ranges: how the bounds of numbers and dates are published beside their labels; None: as the version that readers see
    has them, and as columns where there is none. names: other names for helper views and columns of bounds, by their
    own (`levels`, `age_low`). people: whether it is published how many people each block has.
    lock_timeout: seconds that readers of PostgreSQL may have to wait behind a publication that waits for a lock.
    storage_version: of DuckDB alone: the oldest version of the library that can read the release; None: 1.5.
    path, readers_checked: of Spark alone: where published tables are stored, and who saw to what readers can reach.
    """

    url: Url | None = None
    schema: Name = "published"
    view: Name | None = None
    readers: Names = ()
    ranges: RangesShown | None = None
    names: Annotated[dict[str, Name], BeforeValidator(_names), WithJsonSchema(NAMES)] = field(default_factory=dict)
    people: Flag = False
    lock_timeout: Seconds = 1
    storage_version: StorageVersion | None = None
    path: Name | None = None
    readers_checked: Literal["by operator"] | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Private:
    """Where private state is of a source that cannot hold it (Spark). url: of the ledger's database; path: where the
    source's cluster stores copies that nobody else may read.
    """

    url: Url
    path: Name


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Versions:
    """How versions of the release are checked together. audience: other releases the same readers may hold.

    on_refusal None: hold_back where versions are checked together (`Spec.on_refusal`). cohort: the newcomers of a block
    who are shown together; skip: how often a batch is set aside unseen, where models need it. row_counts: whether it
    may be known how many rows somebody has in a block, where people are counted. max_lag: the share of the rows that
    may wait, and max_wait how long, before a run says that it lags. confirm: the digest of a source that may be
    published although more than a fifth of the people left or came.
    """

    joint: Literal["episodes", "none"] = "episodes"
    audience: Names = ()
    on_refusal: OnRefusal | None = None
    cohort: Cohort = "auto"
    skip: Share = Fraction(1, 100)
    row_counts: Literal["unknown", "known"] = "unknown"
    max_lag: Share | None = None
    max_wait: Age | None = None
    keep: Positive = 3
    stale_after: Age | None = None
    confirm: Digest | None = None


@plain(frozen=True)
class Requirement:
    """One entry of `privacy`: a model with its parameters, for the sensitive attributes named.

    sensitive: none for a model that ignores them; several for the multi-attribute form. models: the model of each
    sensitive attribute, in that order (they differ where a parameter such as `allowed` is given per attribute); for
    a model without one, the model itself. prior: where the model's prior is `values` or `from_table`. guards: where
    its predicates are those of a table. index, line: its number in the list (from 0) and its line in the file.
    """

    model: Model
    sensitive: tuple[str, ...] = ()
    index: int = 0
    line: int = 0
    models: tuple[Model, ...] = ()
    prior: Prior | None = None
    guards: GuardTable | None = None

    def __post_init__(self) -> None:
        if not self.models:
            object.__setattr__(self, "models", (self.model,) * max(1, len(self.sensitive)))


@plain(frozen=True)
class Origin:
    """The file of a spec, the place of everything in it, and the loader's warnings."""

    path: Path = Path("spec.yaml")
    places: dict[Place, tuple[int, int]] = field(default_factory=dict, repr=False, hash=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Spec:
    """A release spec, valid as far as the file alone can tell."""

    version: Annotated[Literal[1], BeforeValidator(_version)]
    release: ReleaseName
    source: Source
    attributes: dict[str, Annotated[Attribute, BeforeValidator(_shorthand)]]
    entity: Name | None = None
    count: Literal["rows", "entities"] = "rows"
    privacy: Annotated[tuple[InstanceOf[Requirement], ...], WithJsonSchema({"type": "array"})]
    suppression_limit: Limit = 0
    search: Search = field(default_factory=Search)
    publish: Publish = field(default_factory=Publish)
    private: Private | None = None
    versions: Versions = field(default_factory=Versions)
    origin: Annotated[InstanceOf[Origin], WithJsonSchema({})] = field(default_factory=Origin, repr=False, compare=False)

    @property
    def path(self) -> Path:
        return self.origin.path

    @property
    def directory(self) -> Path:
        """The folder of the spec, which its paths are relative to."""
        return self.origin.path.parent

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.origin.warnings

    def names(self, role: Role) -> tuple[str, ...]:
        """The columns of one role, in the order of the file."""
        return tuple(name for name, attribute in self.attributes.items() if attribute.role == role)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return self.names("quasi_identifier")

    @property
    def sensitives(self) -> tuple[str, ...]:
        return self.names("sensitive")

    @property
    def insensitives(self) -> tuple[str, ...]:
        return self.names("insensitive")

    @property
    def identifying(self) -> tuple[str, ...]:
        return self.names("identifying")

    @property
    def view(self) -> str:
        return self.publish.view or self.release

    @property
    def checked_together(self) -> bool:
        """Whether versions are checked together: the spec says who a row is about, and does not waive it."""
        return self.entity is not None and self.versions.joint != "none"

    @property
    def shows_every_row(self) -> bool:
        """Whether every row of the source is published, whatever the source holds: none may be suppressed or set aside,
        and nobody can wait, leave or be erased where the spec does not say who a row is about."""
        aside = any(attribute.uncovered == "quarantine" for attribute in self.attributes.values())
        return self.entity is None and not self.suppression_limit and not aside

    @property
    def bundles(self) -> bool:
        """Whether somebody may have several rows, which are checked together as one value."""
        return self.count == "entities"

    @property
    def counted(self) -> str:
        """How people are told apart where versions are checked together: all versions of a release must agree."""
        return "entities by rows" if self.by_rows else self.count

    @property
    def by_rows(self) -> bool:
        """Whether people who have as many rows in a block are checked apart from others."""
        return self.bundles and self.versions.row_counts == "known"

    @property
    def on_refusal(self) -> OnRefusal:
        """What a run does where versions together would be refused; without a word in the spec, versions lag behind."""
        return self.versions.on_refusal or ("hold_back" if self.checked_together else "refuse")

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """The weight of each quasi-identifier, in the order of `quasi_identifiers`."""
        return tuple(self.search.weights.get(name, Fraction(1)) for name in self.quasi_identifiers)

    @property
    def pinned(self) -> tuple[int, ...] | None:
        """The pinned node as levels in the order of `quasi_identifiers`."""
        if self.map_version is not None:
            return None
        node = self.search.node
        return tuple(node[name] for name in self.quasi_identifiers) if isinstance(node, dict) else node

    @property
    def map_version(self) -> int | None:
        """The version whose recoding map is named."""
        search = self.search
        named = isinstance(search.node, dict) and search.recoding == "multidimensional"
        return search.node["version"] if named and isinstance(search.node, dict) else None

    def at(self, *place: str | int) -> str:
        """FILE:LINE of a key or value, for example at("attributes", "age", "hierarchy"), or of what holds it.

        Of a spec that is not a file, the path of the key.
        """
        if not self.origin.places:
            return f"{self.path}: {dotted(place)}"
        for end in range(len(place), 0, -1):
            if place[:end] in self.origin.places:
                return f"{self.path}:{self.origin.places[place[:end]][0]}"
        return f"{self.path}:1"

    def at_requirement(self, requirement: Requirement) -> str:
        """FILE:LINE of an entry of `privacy`."""
        if not self.origin.places:
            return self.at("privacy", requirement.index, requirement.model.name)
        return f"{self.path}:{requirement.line}"

    def file(self, source: HierarchySource) -> Path | None:
        """The CSV file of a hierarchy that has one, relative to the spec."""
        return self.directory / source.file if isinstance(source, CsvFile) else None

    def suppressed_rows_allowed(self, rows: int) -> int:
        """How many of `rows` rows may be suppressed: always fewer than all of them (models.md section 10)."""
        return suppressed_rows_allowed(self.suppression_limit, rows)


def suppressed_rows_allowed(limit: int | Fraction, rows: int) -> int:
    """A fraction below 1 of the rows, rounded down, or a number of rows; at most rows - 1, and 0 of an empty table."""
    allowed = limit if isinstance(limit, int) else int(limit * rows)
    return max(0, min(allowed, rows - 1))
