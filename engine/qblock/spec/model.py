"""What a release spec says: frozen classes, one per section of the file (docs/spec.md)."""

from __future__ import annotations

from dataclasses import dataclass as plain
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, InstanceOf, WithJsonSchema
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from qblock.metrics import METRICS
from qblock.spec.document import Path as Place
from qblock.spec.document import Scalar, dotted
from qblock.spec.fields import (
    TEXTS_OR_NULL,
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
from qblock.spec.privacy import Requirement
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


def _word_or_values(word: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"const": word}, {"type": "array", "minItems": 1, "items": TEXTS_OR_NULL}]})


def _version(raw: object) -> int:
    value = raw.value if isinstance(raw, Scalar) else raw
    if value != 1 or isinstance(value, bool):
        raise ValueError("{it} is not a version of the spec format; write `version: 1`")
    return 1


def _weights(raw: object) -> dict[str, Fraction]:
    if not isinstance(raw, dict):
        raise ValueError("{it} is not a mapping; write the weights by quasi_identifier: {age: 3, country: 0.5}")
    weights = {}
    for name, item in raw.items():
        try:
            weights[name] = Fraction(exact_number(item))
            if weights[name] <= 0:
                raise ValueError("{it} is out of range; valid: a number above 0")
        except ValueError as error:
            raise PydanticCustomError("item", "{message}", {"message": str(error), "index": name}) from None
    # The default written out is the same spec.
    return {name: weight for name, weight in weights.items() if weight != 1}


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
    """One column. taxonomy and domain are sets; only order orders. domain None: the leaves of the taxonomy, else what
    is observed."""

    role: Role = Field(
        description="What the column is: identifying is never published, a quasi_identifier is generalized, sensitive "
        "is what must not be found out, insensitive is published as it is.",
        examples=["quasi_identifier", "sensitive"],
    )
    hierarchy: SourceField | None = Field(
        default=None,
        description="How values of a quasi-identifier get coarser, level by level up to *.",
        examples=["suppress", {"ranges": [5, 10, 20]}, {"digits": 5}, {"file": "hierarchies/age.csv"}],
    )
    nulls: Literal["refuse", "top", "value"] = Field(
        default="refuse",
        description="What NULL is: refused, * at every level (quasi-identifier), or a value (sensitive).",
        examples=["refuse", "top"],
    )
    uncovered: Literal["refuse", "top", "quarantine"] = Field(
        default="refuse",
        description="What becomes of values that the hierarchy lacks: refused, published as *, or their rows wait.",
        examples=["refuse", "top", "quarantine"],
    )
    taxonomy: SourceField | None = Field(
        default=None,
        description="Groups of sensitive values, as a hierarchy.",
        examples=[{"file": "hierarchies/condition.csv"}],
    )
    order: Annotated[
        Literal["ascending"] | tuple[str | None, ...] | None, BeforeValidator(_order), _word_or_values("ascending")
    ] = Field(
        default=None,
        description="The order of sensitive values, for distances.",
        examples=["ascending", ["low", "middle", "high"]],
    )
    domain: Annotated[
        Literal["observed"] | tuple[str | None, ...] | None, BeforeValidator(_domain), _word_or_values("observed")
    ] = Field(
        default=None,
        description="The sensitive values that there are.",
        examples=["observed", ["low", "middle", "high"]],
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

    url: Url = Field(
        description="The SQLAlchemy URL of the database; secrets come from the environment.",
        examples=["${WAREHOUSE_URL}"],
    )
    table: TableName = Field(description="The table or view.", examples=["clinic.inpatient"])
    file: Name | None = Field(
        default=None,
        description="Parquet or CSV files instead of a table: a path relative to the spec, or a pattern of several.",
        examples=["people.parquet", "parts/*.csv"],
    )
    types: dict[str, Annotated[str, BeforeValidator(read_type), WithJsonSchema({"type": "string"})]] = Field(
        default_factory=dict,
        description="The types of CSV columns that are not text.",
        examples=[{"age": "integer", "seen": "date"}],
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return table_parts(self.table)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Search:
    """How the lattice is searched. weights: those that are not 1 (`Spec.weights` has all)."""

    recoding: Literal["full_domain", "multidimensional"] = Field(
        default="full_domain",
        description="One level for all rows, or labels of its own for every block.",
        examples=["multidimensional"],
    )
    strategy: Literal["chains", "incognito", "exhaustive"] = Field(
        default="chains",
        description="How the lattice is searched; all find the same minimal nodes.",
        examples=["chains", "incognito"],
    )
    choose_from: Literal["minimal", "sizes"] = Field(
        default="minimal",
        description="Minimal nodes, or nodes chosen by block sizes alone and then checked.",
        examples=["sizes"],
    )
    choose_by: MetricName = Field(
        default="discernibility",
        description="The metric by which one node is chosen.",
        examples=["discernibility", "loss"],
    )
    workload: WorkloadField | None = Field(
        default=None,
        description="The queries of query_error: how many are drawn, or a list.",
        examples=[{"queries": 500, "seed": 1}, [{"age": {"from": 20, "to": 29}, "gender": ["Female"]}]],
    )
    weights: Annotated[
        dict[str, Fraction],
        BeforeValidator(_weights),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}}),
    ] = Field(
        default_factory=dict,
        description="What quasi-identifiers count in loss, precision and non_uniform_entropy.",
        examples=[{"age": 3}],
    )
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
    ] = Field(
        default=None,
        description="A node that is checked and not searched for; of a recoding map the version that has it.",
        examples=[{"age": 2, "gender": 0}, [2, 0], {"version": 1}],
    )
    answer: Literal["all", "best"] = Field(
        default="all",
        description="Every minimal node, or the one to choose alone, which may be faster.",
        examples=["best"],
    )
    within: Duration | None = Field(
        default=None, description="The time after which the best that was come to is taken.", examples=["60s", "5m"]
    )
    roll_up: Literal["auto", "warehouse", "local"] = Field(
        default="auto", description="Where nodes are counted once the rows are coded.", examples=["auto", "local"]
    )
    memory_limit: Memory | None = Field(
        default=None, description="How much memory counting may take.", examples=["512MB", "4GB"]
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Publish:
    """Where the release goes. view None: named as the release (a loaded spec has it filled in).

    ranges None: as the version that readers see has them, and as columns where there is none. storage_version None:
    1.5.
    """

    url: Url | None = Field(
        default=None,
        description="Of DuckDB alone, and needed there: the release file.",
        examples=["duckdb:///published.duckdb"],
    )
    schema: Name = Field(default="published", description="The schema of the view.", examples=["published"])
    view: Name | None = Field(
        default=None, description="The name of the view; the release's name unless given.", examples=["inpatients"]
    )
    readers: Names = Field(
        default=(), description="Roles of PostgreSQL that may read the view.", examples=[["analyst"]]
    )
    ranges: RangesShown | None = Field(
        default=None,
        description="How bounds of numbers and dates stand beside labels: two columns each, one of a range type, or "
        "none.",
        examples=["columns", "native", "text"],
    )
    names: Annotated[dict[str, Name], BeforeValidator(_names), WithJsonSchema(NAMES)] = Field(
        default_factory=dict,
        description="Other names for helper views and for the columns of bounds and of people, by their own.",
        examples=[{"levels": "stays_labels", "age_low": "age_from"}],
    )
    people: Flag = Field(
        default=False,
        description="Whether it is published how many people each block has, with `count: entities`.",
        examples=[True, False],
    )
    lock_timeout: Seconds = Field(
        default=1, description="Seconds that readers may have to wait behind a publication.", examples=[1]
    )
    storage_version: StorageVersion | None = Field(
        default=None,
        description="Of DuckDB alone: the oldest version of DuckDB that has to read the release file.",
        examples=["v1.5.0", "v1.2.0"],
    )
    path: Name | None = Field(
        default=None, description="Of Spark alone: where the published tables are stored.", examples=["/data/published"]
    )
    readers_checked: Literal["by operator"] | None = Field(
        default=None,
        description="Of Spark alone: who saw to it that readers reach publish.path and not private.path.",
        examples=["by operator"],
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Private:
    """Where private state is of a source that cannot hold it (Spark)."""

    url: Url = Field(
        description="The database of the ledger: a file ledger.sqlite, or PostgreSQL.",
        examples=["sqlite:///qblock/ledger.sqlite"],
    )
    path: Name = Field(
        description="Where the cluster stores what nobody but the job may read.", examples=["/data/private"]
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Versions:
    """How versions of the release are checked together.

    on_refusal None: hold_back where versions are checked together (`Spec.on_refusal`). confirm: of a source that may be
    published although more than a fifth of the people left or came.
    """

    joint: Literal["episodes", "none"] = Field(
        default="episodes",
        description="How versions are checked together; none where nobody keeps an older one.",
        examples=["episodes", "none"],
    )
    audience: Names = Field(
        default=(), description="Other releases that the same readers may hold.", examples=[["outpatients"]]
    )
    on_refusal: OnRefusal | None = Field(
        default=None,
        description="What a run does where changes would not pass beside earlier versions.",
        examples=["hold_back", "refuse"],
    )
    cohort: Cohort = Field(
        default="auto", description="How many newcomers of a block are shown together.", examples=["auto", 20]
    )
    skip: Share = Field(
        default=Fraction(1, 100),
        description="How often a batch of newcomers is set aside unseen, where models need it.",
        examples=[0.01],
    )
    row_counts: Literal["unknown", "known"] = Field(
        default="unknown",
        description="Whether it may be known how many rows somebody has in a block.",
        examples=["unknown", "known"],
    )
    max_lag: Share | None = Field(
        default=None, description="The share of the rows beyond which a release is lagging.", examples=[0.05]
    )
    max_wait: Age | None = Field(
        default=None, description="The time beyond which a release is lagging.", examples=["8w"]
    )
    keep: Positive = Field(default=3, description="How many versions are kept for rollback.", examples=[3])
    stale_after: Age | None = Field(
        default=None, description="The age at which the release counts as stale.", examples=["36h", "8d"]
    )
    confirm: Digest | None = Field(
        default=None,
        description="The digest of a source that may be published though very many people went or came.",
        examples=["0" * 64],
    )


@plain(frozen=True)
class Origin:
    """The file of a spec, the place of everything in it, and the loader's warnings."""

    path: Path = Path("spec.yaml")
    places: dict[Place, tuple[int, int]] = field(default_factory=dict, repr=False, hash=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Spec:
    """A release spec, valid as far as the file alone can tell."""

    version: Annotated[Literal[1], BeforeValidator(_version)] = Field(
        description="The format of the file.", examples=[1]
    )
    release: ReleaseName = Field(
        description="The name of the release: letters, digits and _, at most 40.", examples=["inpatients"]
    )
    source: Source = Field(
        description="Where the rows come from.",
        examples=[{"url": "${WAREHOUSE_URL}", "table": "clinic.inpatient"}, {"file": "people.parquet"}],
    )
    attributes: dict[str, Annotated[Attribute, BeforeValidator(_shorthand)]] = Field(
        description="The columns by name, each with its role; a column that is not named is not published.",
        examples=[{"patient_id": "identifying", "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10]}}}],
    )
    entity: Name | None = Field(
        default=None, description="The column that says who a row is about.", examples=["patient_id"]
    )
    count: Literal["rows", "entities"] = Field(
        default="rows",
        description="Whether models count rows or the people whom the rows are about.",
        examples=["rows", "entities"],
    )
    privacy: Annotated[tuple[InstanceOf[Requirement], ...], WithJsonSchema({"type": "array"})] = Field(
        description="Privacy models; all must hold.",
        examples=[[{"k_anonymity": {"k": 5}}, {"t_closeness": {"t": 0.3, "sensitive": "diagnosis"}}]],
    )
    suppression_limit: Limit = Field(
        default=0,
        description="How many rows may be left out: a fraction of the rows below 1, or a number of rows from 1.",
        examples=[0, 0.02, 50],
    )
    search: Search = Field(
        default_factory=Search,
        description="How a node is found and chosen.",
        examples=[{"choose_by": "loss"}],
    )
    publish: Publish = Field(
        default_factory=Publish,
        description="Where readers find the view.",
        examples=[{"schema": "published", "readers": ["analyst"]}],
    )
    private: Private | None = Field(
        default=None,
        description="Of Spark alone: where ledger and private copies are.",
        examples=[{"url": "sqlite:///qblock/ledger.sqlite", "path": "/data/private"}],
    )
    versions: Versions = Field(
        default_factory=Versions,
        description="How versions are checked together, and kept.",
        examples=[{"keep": 5, "stale_after": "8d"}],
    )
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
