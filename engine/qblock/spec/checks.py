"""What has to hold between the entries of a spec, each checked with its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qblock.errors import choices
from qblock.metrics import METRICS
from qblock.models.anonymity import KAnonymity, why_no_projections
from qblock.spec.document import Document, Path, Scalar
from qblock.spec.model import Spec
from qblock.spec.privacy import Requirement
from qblock.spec.sections import BOUND_ENDS, HELPER_VIEWS, MIDDLE, ROLES, SINCE_NAME, WEIGHTS_NAME
from qblock.spec.sources import CsvFile, DimensionTable, Edges, Ranges, TaxonomyLevel

ONLY: dict[str, tuple[str, ...]] = {
    "identifying": (),
    "insensitive": (),
    "quasi_identifier": ("hierarchy", "nulls", "unknown", "same", "uncovered"),
    "sensitive": ("taxonomy", "order", "domain", "nulls", "unknown", "same", "publish_as"),
}
NOT_SENSITIVE = {
    "quasi_identifier": "publish_as is of sensitive attributes, and {name} is a quasi_identifier; write `hierarchy` in "
    "its place",
    "insensitive": "publish_as is of sensitive attributes, and {name} is insensitive; remove it, or write "
    "`role: sensitive`",
    "identifying": "publish_as is of sensitive attributes, and {name} is identifying; remove it, since the column is "
    "not published",
}
MOST_RANGES = 1_000
RANGES_PUBLISHED = "publish_as: {ranges: [10000], from: 0, to: 200000}"
"""An example, for messages."""
NOT_OF_TAXONOMIES = {
    "max": "max is the highest level that may be published, and a taxonomy is not generalized by",
    "finest": "finest is for quasi-identifiers: sensitive values are published as they are",
}
SPELLED = ("true", "false", "nan", "inf", "infinity", "-inf", "-infinity")
"""Texts without a digit that can be written in several ways."""
SPLIT_CHOICES = ("loss", "discernibility", "kl_divergence")
"""Metrics that add up over boxes, so that a split of one has a gain."""
OF_THRESHOLD = ("threshold_because", "threshold_on")
"""Keys of `report` that are about its threshold."""
NULLS = {"quasi_identifier": ("refuse", "top"), "sensitive": ("refuse", "value")}


def section(document: Document, *keys: str) -> dict[str, Any]:
    """The mapping at these keys as written; an empty one where there is none, or something else."""
    value = document.data
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def roles(document: Document) -> dict[str, str | None]:
    """The role of each column as written, None where it is not a role: also of a spec with errors elsewhere."""
    result: dict[str, str | None] = {}
    for name, entry in section(document, "attributes").items():
        role = entry.get("role") if isinstance(entry, dict) else entry
        result[name] = role if isinstance(role, str) and role in ROLES else None
    return result


def check(document: Document, columns: dict[str, str | None], entries: tuple[Requirement, ...]) -> None:
    """Record every conflict between entries."""
    for name, role in columns.items():
        if role is not None:
            _attribute(document, ("attributes", name), role, section(document, "attributes", name))
    written = isinstance(document.data.get("attributes"), dict)
    if written and None not in columns.values() and "quasi_identifier" not in columns.values():
        document.wrong(("attributes",), "no column is a quasi_identifier; at least one must be")
    _entity(document, columns)
    quasi = [name for name, role in columns.items() if role == "quasi_identifier"]
    _node(document, quasi)
    for name in section(document, "search", "weights"):
        if name not in quasi:
            document.wrong(("search", "weights", name), f"{name} is not a quasi_identifier; {choices(quasi, name)}")
    renamed = [
        *HELPER_VIEWS,
        *(f"{name}_{end}" for name in quasi for end in (*BOUND_ENDS, MIDDLE)),
        "people",
        WEIGHTS_NAME,
        SINCE_NAME,
    ]
    for name in section(document, "publish", "names"):
        if name not in renamed:
            what = f"{name} is neither a helper view nor a column of bounds; {choices(renamed, name)}"
            document.wrong(("publish", "names", name), what)
    _workload(document, columns)
    _recoding(document, entries)
    for requirement in entries:
        _needs(document, requirement)
    _report(document)
    audience, release = section(document, "versions").get("audience"), document.data.get("release")
    if isinstance(audience, list) and release in audience:
        what = f"{release} is this release; name the others that its readers may hold"
        document.wrong(("versions", "audience"), what)


def _report(document: Document) -> None:
    """Record what the keys of `report` lack."""
    declared = section(document, "report")
    for name in OF_THRESHOLD:
        if declared.get(name) is not None and declared.get("threshold") is None:
            document.wrong(("report", name), f"{name} is about a threshold; add `threshold: 0.09`, or leave it out")
    population = declared.get("population")
    if isinstance(population, dict) and len({"size", "fraction"} & population.keys()) != 1:
        what = "write one of size and fraction: `population: {size: 120000}`, or `population: {fraction: 0.05}`"
        document.wrong(("report", "population"), what)


def check_people(document: Document, spec: Spec) -> None:
    """Record why the people of each block are not published."""
    if not spec.publish.people:
        return
    what = None
    if not spec.bundles:
        what = "people are told apart from rows with `count: entities`; add it, or leave `people` out"
    elif not spec.checked_together:
        what = "who knows how many rows nobody exceeds could learn a value; leave out `people`, or `joint: none`"
    elif all(len(requirement.sensitive) > 1 for requirement in spec.privacy):
        what = (
            "the people of a block are what k_anonymity, or a guarantee for one sensitive attribute, is about; add one "
            "to `privacy`, such as k_anonymity: {k: 2}"
        )
    if what is not None:
        document.wrong(("publish", "people"), what)


def without_projections(spec: Spec, requirement: Requirement) -> str | None:
    """Why `of` or `any` of k-anonymity cannot be counted under this spec; None where it can, or is not asked."""
    if "projections" not in requirement.model.needs:
        return None
    remedies = {
        "`suppression_limit: 0`: a block that is left out is missing from the others' projections": bool(
            spec.suppression_limit
        ),
        "`count: rows`: people with rows in several blocks would be counted twice": spec.bundles,
        "`search: {recoding: full_domain}`: the labels of a map's boxes overlap": spec.search.recoding
        == "multidimensional",
        "`versions: {joint: none}`: it is not defined for several versions together": spec.checked_together,
    }
    needed = next((remedy for remedy, missing in remedies.items() if missing), None)
    if needed is not None:
        return f"k_anonymity with `of` or `any` needs {needed}"
    return why_no_projections(requirement.model, spec.quasi_identifiers)


def check_projections(document: Document, spec: Spec) -> None:
    """Record why `of` or `any` of k-anonymity cannot be counted."""
    for requirement in spec.privacy:
        what = without_projections(spec, requirement)
        if what is not None:
            document.wrong(("privacy", requirement.index, requirement.model.name), what)


def without_groups(spec: Spec) -> str | None:
    """Why groups cannot be counted under this spec; None where they can, or are not asked for."""
    if spec.groups is None:
        return None
    role = spec.attributes[spec.groups].role if spec.groups in spec.attributes else "identifying"
    remedies = {
        f"an identifying column, and the role of {spec.groups} is {role}; make it identifying, or leave it out of "
        "attributes": role != "identifying",
        "another column than `entity`: one person is not a group": spec.groups == spec.entity,
        "a model that asks k of them; add `k_anonymity: {k: 5}` to privacy": not any(q.groups for q in spec.privacy),
        "`search: {recoding: full_domain}`: the boxes of a map are not cut by groups": spec.search.recoding
        == "multidimensional",
        "`versions: {joint: none}`: it is not defined for several versions together": spec.checked_together,
    }
    return next((f"groups needs {remedy}" for remedy, missing in remedies.items() if missing), None)


def check_groups(document: Document, spec: Spec) -> None:
    """Record why groups cannot be counted."""
    what = without_groups(spec)
    if what is not None:
        document.wrong(("groups",), what)


def check_weights(document: Document, spec: Spec) -> None:
    """Record why rows cannot have weights, or not under the name that these would have."""
    if not spec.shows_weights:
        return
    if not spec.lags:
        reason = "`entity: COLUMN`, which says who a row is of"
        if spec.entity is not None:
            waived = spec.versions.joint == "none"
            reason = f"`versions: {{{'joint: episodes' if waived else 'on_refusal: hold_back'}}}`"
        document.wrong(
            ("publish", "weights"),
            f"weights say how many of those shown are still there, where versions lag behind, and need {reason}; add "
            "it, or leave `weights` out",
        )
    name = spec.publish.names.get(WEIGHTS_NAME, WEIGHTS_NAME)
    others = [column for column, attribute in spec.attributes.items() if attribute.role != "identifying"]
    taken = next((column for column in others if column.casefold() == name.casefold()), None)
    if taken is not None:
        document.wrong(
            ("attributes", taken),
            f"column {taken} is published, and the weight of each row would be, too, as {name}. Give that another "
            f"name: publish: {{names: {{{WEIGHTS_NAME}: share_present}}}}, or write publish: {{weights: false}}",
        )


def check_since(document: Document, spec: Spec) -> None:
    """Record why rows cannot say since when they are shown, or not under the name that this would have."""
    if not spec.shows_since:
        return
    if not spec.lags:
        document.wrong(
            ("publish", "since"),
            "it says which version first showed a row, where versions are kept together and lag behind; leave it out, "
            "or add `entity: COLUMN`, which says who a row is of",
        )
    name = spec.publish.names.get(SINCE_NAME, SINCE_NAME)
    others = [column for column, attribute in spec.attributes.items() if attribute.role != "identifying"]
    taken = next((column for column in others if column.casefold() == name.casefold()), None)
    if taken is not None:
        document.wrong(
            ("attributes", taken),
            f"column {taken} is published, and so would be the version that first showed each row, as {name}. Give "
            f"that another name: publish: {{names: {{{SINCE_NAME}: shown_since}}}}, or write publish: {{since: false}}",
        )


def without_means(spec: Spec) -> str:
    """What a spec needs so that means of blocks can be published; empty where they can. Each was seen to tell more than
    labels do (docs/decisions/0035-typical-values.md)."""
    models = [model for requirement in spec.privacy for model in requirement.models]
    sizes = [model.k for model in models if isinstance(model, KAnonymity) and not model.needs]
    remedies = {
        "one publication: leave `entity` and `groups` out": spec.entity is not None or spec.groups is not None,
        "one publication: leave `versions: {joint: none}` out": not spec.published_once,
        "all rows: leave `suppression_limit` out, and `uncovered: quarantine`": not spec.shows_every_row,
        "who is in the table to be no secret: leave `k_map` and `delta_presence` out": any(
            {"population", "containing"} & model.needs for model in models
        ),
        "blocks of two people at least: add `k_anonymity: {k: 5}` to privacy": max(sizes, default=1) < 2,
    }
    return next((remedy for remedy, missing in remedies.items() if missing), "")


def check_typical(document: Document, spec: Spec) -> None:
    """Record why means of blocks cannot be published."""
    remedy = "" if spec.publish.typical == "none" else without_means(spec)
    if remedy:
        document.wrong(("publish", "typical"), f"means of blocks need {remedy}; or write `typical: none`")


def check_published(document: Document, spec: Spec) -> None:
    """Record why sensitive values cannot be published as the spec says."""
    for name, attribute in spec.attributes.items():
        published, place = attribute.publish_as, ("attributes", name, "publish_as")
        if isinstance(published, TaxonomyLevel):
            if not isinstance(attribute.taxonomy, CsvFile | DimensionTable):
                what = (
                    f"it is a level of the taxonomy of {name}, which a file or table has; add `taxonomy: {{file: CSV}}`"
                )
                document.wrong(place, f"{what}, or write `{RANGES_PUBLISHED}`")
        elif published is not None:
            problem = _unfit_ranges(published)
            if problem is not None:
                document.wrong(place, problem)
    for requirement in spec.privacy:
        for name, model in zip(requirement.sensitive, requirement.models, strict=False):
            if "numbers" in model.needs and name in spec.sensitives and spec.attributes[name].publish_as is not None:
                what = (
                    f"{model.name} computes with the numbers of {name}, and `publish_as` makes them labels; leave it "
                    "out, or take another model"
                )
                document.wrong(("privacy", requirement.index, model.name), what)


def _unfit_ranges(published: Ranges | Edges) -> str | None:
    """Why values cannot be published in such ranges."""
    for key in ("finest", "max"):
        if getattr(published, key) is not None:
            return f"{key} is of hierarchies, which have levels; values are published in ranges of one width; remove it"
    if published.labels != "plain":
        return "labels is of hierarchies; ranges that are published are half open, [0, 10), in any case; remove it"
    if isinstance(published, Edges):
        too_many = len(published.edges) > MOST_RANGES
        return f"these are more than {MOST_RANGES:,} ranges; write fewer edges" if too_many else None
    if len(published.ranges) > 1:
        return f"values are published in ranges of one width, and these are {len(published.ranges)}; keep one"
    if published.first_and_last is None:
        return (
            "ranges that are published begin and end where the spec says, so no label tells a value of the data; "
            "write both: {ranges: [10000], from: 0, to: 200000}"
        )
    first, last = published.first_and_last
    if last - first >= MOST_RANGES:
        return f"these are more than {MOST_RANGES:,} ranges; write a larger width"
    return None


def check_newcomers(document: Document, spec: Spec) -> None:
    """Record why newcomers cannot be shown as the spec says."""
    if spec.versions.newcomers is None:
        return
    if spec.versions.cohort is not None:
        document.wrong(("versions", "cohort"), "with `newcomers` all who wait are one cohort; keep one of the two")
    if spec.without_cohorts:
        document.wrong(("versions", "newcomers"), f"cohorts of newcomers need {spec.without_cohorts}; or leave it out")


def _attribute(document: Document, path: Path, role: str, entry: dict[str, Any]) -> None:
    for key in entry:
        if key in {key for keys in ONLY.values() for key in keys} and key not in ONLY[role]:
            if key == "publish_as":
                document.wrong((*path, key), NOT_SENSITIVE[role].format(name=path[-1]))
                continue
            owners = " or ".join(name for name, keys in ONLY.items() if key in keys)
            takes = f"{role} takes {', '.join(ONLY[role]) or 'no further key'}"
            document.wrong((*path, key), f"{key} is for {owners}, and the role here is {role}; remove it: {takes}")
    if role == "quasi_identifier" and entry.get("hierarchy") is None:
        document.wrong(path, "a quasi_identifier needs a hierarchy; add `hierarchy: suppress` or another")
    nulls = entry.get("nulls")
    if role in NULLS and nulls in ("top", "value") and nulls not in NULLS[role]:
        document.wrong((*path, "nulls"), f"{{it}} is not valid for a {role}; {choices(NULLS[role])}")
    if entry.get("unknown") is not None:
        _unknown(document, path, role, entry)
    taxonomy = entry.get("taxonomy")
    for key, what in NOT_OF_TAXONOMIES.items():
        if isinstance(taxonomy, dict) and key in taxonomy:
            document.wrong((*path, "taxonomy", key), f"{what}; remove it")
    if role == "sensitive":
        _domain(document, path, entry)


def _unknown(document: Document, path: Path, role: str, entry: dict[str, Any]) -> None:
    """What is unknown is NULL: of a quasi-identifier `*` at every level, of a sensitive attribute an ordinary value."""
    nulls = entry.get("nulls")
    if role == "quasi_identifier" and nulls == "refuse":
        what = "what is unknown is read as NULL, which is * at every level then; leave `nulls` out"
        document.wrong((*path, "nulls"), what)
    if role == "sensitive" and nulls != "value":
        what = f"what is unknown is read as NULL, which {path[-1]} may not have; add `nulls: value` (it is a value)"
        document.wrong((*path, "unknown"), what)
    codes = entry["unknown"] if isinstance(entry["unknown"], list) else []
    for key in ("domain", "order"):
        listed = entry.get(key)
        for text in sorted(_texts(codes) & _texts(listed if isinstance(listed, list) else [])):
            document.wrong((*path, key), f"the {key} has {text}, which is unknown; take it out of one of the two")


def _domain(document: Document, path: Path, entry: dict[str, Any]) -> None:
    domain, order = entry.get("domain"), entry.get("order")
    if domain == "observed" and entry.get("taxonomy") is not None:
        document.wrong((*path, "domain"), "the leaves of the taxonomy are the domain; keep one of taxonomy and domain")
    for key, values in (("domain", domain), ("order", order)):
        if isinstance(values, list) and None in values and entry.get("nulls") != "value":
            document.wrong((*path, key), f"the {key} holds null; add `nulls: value` (NULL as a value)")
    if isinstance(domain, list) and isinstance(order, list) and _words(domain) ^ _words(order):
        different = ", ".join(sorted(_words(domain) ^ _words(order)))
        document.wrong((*path, "order"), f"order and domain must hold the same values; one lacks {different}")


def _texts(values: list[Any]) -> set[str]:
    return {value.text if isinstance(value, Scalar) else value for value in values if isinstance(value, str | Scalar)}


def _words(values: list[Any]) -> set[str]:
    """The texts that stand for one value whatever the column's type; whether 1.5 and 1.50 do, the type decides."""
    texts = _texts(values)
    spelled = {text for text in texts if any(character.isdigit() for character in text) or text.lower() in SPELLED}
    return texts - spelled


def _entity(document: Document, columns: dict[str, str | None]) -> None:
    entity, count = document.data.get("entity"), document.data.get("count")
    role = columns.get(entity) if isinstance(entity, str) else None
    if role not in (None, "identifying"):
        document.wrong(("entity",), f"{{it}} says who a row is about, and its role is {role}; make it identifying")
    if section(document, "versions").get("row_counts") == "known" and count != "entities":
        document.wrong(("versions", "row_counts"), "rows of a person are told apart with `count: entities`; add it")
    if count == "entities" and entity is None:
        document.wrong(("count",), "entities cannot be counted without `entity: COLUMN`; add it, or count: rows")


def _node(document: Document, names: list[str]) -> None:
    search = section(document, "search")
    node = search.get("node")
    path: Path = ("search", "node")
    if search.get("recoding") == "multidimensional":
        if node is not None and not (isinstance(node, dict) and list(node) == ["version"]):
            document.wrong(
                path,
                "a recoding map has no levels; write {version: N} for the map of that version, leave it out, or search "
                "with `recoding: full_domain`",
            )
    elif isinstance(node, dict):
        for name in node:
            if name not in names:
                document.wrong((*path, name), f"{name} is not a quasi_identifier; {choices(names, name)}")
        missing = [name for name in names if name not in node]
        if missing:
            document.wrong(path, f"no level for {', '.join(missing)}; a pinned node has one per quasi_identifier")
    elif isinstance(node, list) and len(node) != len(names):
        document.wrong(path, f"{len(node)} levels given; write one for each of {', '.join(names)}")


def _recoding(document: Document, entries: tuple[Requirement, ...]) -> None:
    search = section(document, "search")
    multidimensional = search.get("recoding") == "multidimensional"
    for entry in entries:
        variant = getattr(entry.model, "variant", None)
        place: Path = ("privacy", entry.index, entry.model.name, "variant")
        if variant == "partition" and not multidimensional:
            document.wrong(
                place,
                "partition asks for the parts that a block was split from, which only a recoding map has. Add "
                "`recoding: multidimensional` to search, or write own_or_top or lattice",
            )
        if variant == "lattice" and multidimensional:
            document.wrong(
                place, "the blocks of a recoding map are at no node of the lattice; write partition or own_or_top"
            )
    if isinstance(search.get("box"), dict) and not multidimensional:
        least = getattr(search["box"].get("least"), "text", "N")
        line = f"`search: {{recoding: multidimensional, box: {{least: {least}}}}}`"
        document.wrong(("search", "box"), f"boxes are of a recoding map; write {line}, or leave `box` out")
    if multidimensional and search.get("choose_by") not in (None, *SPLIT_CHOICES):
        document.wrong(
            ("search", "choose_by"),
            f"{{it}} cannot choose between splits; with `recoding: multidimensional` {choices(SPLIT_CHOICES)}",
        )


def _workload(document: Document, columns: dict[str, str | None]) -> None:
    search = section(document, "search")
    looks = [metric.name for metric in METRICS if metric.sensitive]
    if search.get("choose_from") == "sizes" and search.get("choose_by") in looks:
        document.wrong(
            ("search", "choose_by"),
            "{it} uses sensitive values, and `choose_from: sizes` must not; choose by another metric",
        )
    check_queries(document, ("search", "workload"), search.get("workload"), columns)


def check_queries(document: Document, place: Path, workload: Any, columns: Mapping[str, str | None]) -> None:
    """Record what is wrong with the columns that the queries of a workload name. columns: of the spec, by role."""
    queries = workload if isinstance(workload, list) else []
    named = {name for query in queries if isinstance(query, dict) for name in query}
    valid = [name for name, role in columns.items() if role in ("quasi_identifier", "sensitive")]
    for name in named:
        if name not in valid:
            document.wrong(place, f"{name} is neither a quasi_identifier nor sensitive; {choices(valid, name)}")
    sensitive = [name for name in valid if columns[name] == "sensitive" and name in named]
    if len(sensitive) > 1:
        document.wrong(
            place, f"its queries restrict {' and '.join(sensitive)}; only one sensitive attribute may be asked"
        )


def _needs(document: Document, requirement: Requirement) -> None:
    model = requirement.model
    place: Path = ("privacy", requirement.index, model.name)
    if requirement.guards is not None and document.data.get("entity") is None:
        document.wrong((*place, "predicates"), "a person's predicates need `entity: COLUMN` in the spec; add it")
    for name in requirement.sensitive:
        entry = section(document, "attributes", name)
        for key, value in (("distance", "hierarchical"), ("predicates", "taxonomy")):
            if getattr(model, key, None) == value and entry.get("taxonomy") is None:
                add = f"add `taxonomy: {{file: CSV}}` to attributes.{name}"
                document.wrong((*place, key), f"{value} needs a taxonomy of {name}; {add}")
