"""What a release spec says, as a frozen class of its sections (docs/spec.md)."""

from __future__ import annotations

from dataclasses import dataclass as plain
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, InstanceOf, WithJsonSchema
from pydantic.dataclasses import dataclass

from qblock.spec.accepted import Accepted
from qblock.spec.document import Path as Place
from qblock.spec.document import Scalar, dotted
from qblock.spec.fields import (
    Limit,
    Name,
    ReleaseName,
    key,
)
from qblock.spec.privacy import Requirement
from qblock.spec.reporting import Reporting
from qblock.spec.sections import Attribute, Newcomers, OnRefusal, Private, Publish, Role, Search, Source, Versions
from qblock.spec.sources import STRICT, CsvFile, HierarchySource, written


def _shorthand(raw: Any) -> Any:
    return {"role": raw} if isinstance(raw, str | Scalar) else raw


def _version(raw: object) -> int:
    value = raw.value if isinstance(raw, Scalar) else raw
    if value != 1 or isinstance(value, bool):
        raise ValueError("{it} is not a version of the spec format; write `version: 1`")
    return 1


@plain(frozen=True)
class Origin:
    """The file of a spec, the place of everything in it, and the loader's warnings."""

    path: Path = Path("spec.yaml")
    places: dict[Place, tuple[int, int]] = field(default_factory=dict, repr=False, hash=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Spec:
    """A release spec, valid as far as the file alone can tell."""

    version: Annotated[Literal[1], BeforeValidator(_version)] = key("The format of the file.", 1)
    release: ReleaseName = key("The name of the release: letters, digits and _, at most 40.", "inpatients")
    source: Source = key(
        "Where the rows come from.",
        {"url": "${WAREHOUSE_URL}", "table": "clinic.inpatient"},
        {"file": "people.parquet"},
    )
    attributes: dict[str, Annotated[Attribute, BeforeValidator(_shorthand)]] = key(
        "The columns by name, each with its role; a column that is not named is not published.",
        {"patient_id": "identifying", "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10]}}},
    )
    entity: Name | None = key("The column that says who a row is about.", "patient_id", default=None)
    count: Literal["rows", "entities"] = key(
        "Whether models count rows or the people whom the rows are about.", "rows", "entities", default="rows"
    )
    groups: Name | None = key(
        "The column that says whose household, or other group, a row is of: k-anonymity asks k of them, too.",
        "household_id",
        default=None,
    )
    privacy: Annotated[tuple[InstanceOf[Requirement], ...], WithJsonSchema({"type": "array"})] = key(
        "Privacy models; all must hold.",
        [{"k_anonymity": {"k": 5}}, {"t_closeness": {"t": 0.3, "sensitive": "diagnosis"}}],
    )
    suppression_limit: Limit = key(
        "How many rows may be left out: a fraction of the rows below 1, or a number of rows from 1.",
        0,
        0.02,
        50,
        default=0,
    )
    search: Search = key("How a node is found and chosen.", {"choose_by": "loss"}, default_factory=Search)
    publish: Publish = key(
        "Where readers find the view.", {"schema": "published", "readers": ["analyst"]}, default_factory=Publish
    )
    private: Private | None = key(
        "Where ledger and crosswalk are, for a release on Spark and for a release file.",
        {"url": "sqlite:///qblock/ledger.sqlite", "path": "/data/private"},
        default=None,
    )
    versions: Versions = key(
        "How versions are checked together, and kept.", {"keep": 5, "stale_after": "8d"}, default_factory=Versions
    )
    accept: tuple[Accepted, ...] = key(
        "Findings of `qblock check` that may stay as they are, each with who answers for it, and why.",
        [{"check": "determines", "column": "birth_year", "of": "age", "because": "readers know the age anyway"}],
        default=(),
    )
    report: Reporting = key(
        "What the report measures the release by; nothing of it is published.",
        {"threshold": 0.09, "threshold_because": "EMA Policy 0070"},
        default_factory=Reporting,
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
    def coarser(self) -> dict[str, str]:
        """What sensitive attributes are published as, where that is not their values, in the words of a spec."""
        all_ = ((name, self.attributes[name].publish_as) for name in self.sensitives)
        return {name: written(published) for name, published in all_ if published is not None}

    @property
    def replaced(self) -> dict[str, str]:
        """How columns are read otherwise than they are stored, in the words of a spec."""
        said = {}
        for name in (*self.quasi_identifiers, *self.sensitives):
            keys = {key: getattr(self.attributes[name], key) for key in ("same", "unknown")}
            said[name] = ", ".join(f"{key}: [{', '.join(texts)}]" for key, texts in keys.items() if texts)
        return {name: words for name, words in said.items() if words}

    @property
    def populations(self) -> tuple[str, ...]:
        """The tables of populations."""
        tables = (getattr(requirement.model, "population", None) for requirement in self.privacy)
        return tuple(dict.fromkeys(table for table in tables if table is not None))

    @property
    def plainly(self) -> bool:
        """Whether a value of several spellings is read in none of them, but without what these differ by: where other
        rows must not decide how it is written, those of another version or of a population."""
        return self.checked_together or bool(self.populations)

    @property
    def view(self) -> str:
        return self.publish.view or self.release

    @property
    def checked_together(self) -> bool:
        """Whether versions are checked together: the spec says who a row is about, and does not waive it."""
        return self.entity is not None and self.versions.joint != "none"

    @property
    def published_once(self) -> bool:
        """Whether no other data are ever published under its name: the first version settles what columns show."""
        return self.entity is None and self.versions.joint != "none"

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
    def newcomers(self) -> Newcomers | None:
        """How newcomers are shown as cohorts; None where they wait in the block that the first version has for them."""
        if self.versions.newcomers is not None or self.versions.cohort is not None or self.without_cohorts:
            return self.versions.newcomers
        return Newcomers()

    @property
    def cohort(self) -> int | Literal["auto"]:
        """How many newcomers of a block are shown together, where they wait in it."""
        return self.versions.cohort or "auto"

    @property
    def by_leaves(self) -> bool:
        """Whether newcomers have several rows and are shown as cohorts: of each leaf on its own until then."""
        return self.bundles and self.newcomers is not None

    @property
    def by_boxes(self) -> bool:
        """Whether versions show the boxes of a map: where newcomers have boxes of their own, a node is a map that
        splits nothing."""
        return self.search.recoding == "multidimensional" or self.newcomers is not None

    @property
    def without_cohorts(self) -> str:
        """Why newcomers of such a release are not shown as cohorts; empty where they are."""
        models = [model for requirement in self.privacy for model in requirement.models]
        reasons = {
            "versions that are checked together and lag behind": not self.lags,
            "`versions.row_counts: unknown`": self.by_rows,
            "`suppression_limit: 0`": bool(self.suppression_limit),
            "one release to its readers, without versions.audience": bool(self.versions.audience),
            "models that ask neither a population nor the parts that a box was split from": any(
                {"population", "containing"} & model.needs for model in models
            ),
        }
        return next((needed for needed, missing in reasons.items() if missing), "")

    @property
    def lags(self) -> bool:
        """Whether versions lag behind the source, so that those who left may still be shown."""
        return self.checked_together and self.on_refusal == "hold_back"

    @property
    def shows_weights(self) -> bool:
        """Whether each row is published with a weight."""
        return self.newcomers is not None if self.publish.weights is None else self.publish.weights

    @property
    def shows_since(self) -> bool:
        """Whether each row is published with the version that first showed it."""
        return self.lags if self.publish.since is None else self.publish.since

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """The weight of each quasi-identifier, in the order of `quasi_identifiers`."""
        return tuple(self.search.weights.get(name, Fraction(1)) for name in self.quasi_identifiers)

    @property
    def least_box(self) -> int:
        """The rows, or people (`count: entities`), that every box of a map has at least; 1 unless the spec says so."""
        return 1 if self.search.box is None else self.search.box.least

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
