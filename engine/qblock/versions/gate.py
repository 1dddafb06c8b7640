"""J1 and J1-linked: whether all that an audience was ever shown still satisfies the models, for readers who do not know
whose value changed and for those who do.

Sound for candidates: exchanging the values of two episodes of one cell changes no published table and no suppression,
so every value of a cell stays possible for everybody in it. It does not bound the beliefs of somebody who weighs all
consistent tables alike, and it does not cover that finer nodes failed (releases.md sections 2 and 8).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Blocks, Ints, Mask, Reference
from qblock.engines.arrow import whole_numbers
from qblock.engines.queries import Query
from qblock.errors import InputError, QblockError, Refused
from qblock.hierarchy.labels import whole
from qblock.models import Model
from qblock.models.multi import Attribute, monotone, split
from qblock.models.multi import passes as multi_passes
from qblock.search.assessment import HELD_BY_ALL
from qblock.spec import Requirement, Spec
from qblock.versions.batching.state import Block, Histogram, Passes, Trial
from qblock.versions.crosswalk import Crosswalk, load_texts
from qblock.versions.episodes import Mode, VersionKey, episodes, joint_cells, next_episodes, placed, roll
from qblock.versions.recorded import Candidate, RecordedVersion, recorded
from qblock.versions.texts import Sets, decoded, kept_sets


@dataclass(frozen=True, eq=False)
class Cells:
    """Joint cells with the count of each value. name: of each cell; cell, value, count: int64[R], one per pair of them.

    values: what the codes in `value` stand for, one text per sensitive attribute; shows: bool[C, V], the versions that
    show a cell. bundles: whether somebody may have several rows: then values have a set of texts per sensitive
    attribute, and counts are of people.
    """

    name: tuple[str, ...]
    cell: Ints
    value: Ints
    count: Ints
    values: tuple[tuple[str | None, ...], ...] | tuple[Sets, ...]
    shows: Mask
    bundles: bool = False

    def __len__(self) -> int:
        return len(self.name)


def read_cells(table: pa.Table, keys: Sequence[VersionKey], *, with_candidate: bool, sets: int | None = None) -> Cells:
    """The result of `joint_cells` as arrays. keys: the versions, with the candidate last where there is one; sets: the
    number of sensitive attributes, where values are bundles."""
    if not len(table):
        nothing = np.zeros(0, dtype=np.int64)
        return Cells((), nothing, nothing, nothing, (), np.zeros((0, len(keys)), dtype=bool), sets is not None)
    cell = table["cell"].combine_chunks().dictionary_encode()
    part = whole(table["part"].combine_chunks()).astype(np.int64)
    both = whole(cell.indices).astype(np.int64) * (int(part.max()) + 1) + part
    _, first, number = np.unique(both, return_index=True, return_inverse=True)
    value = table["value"].combine_chunks().dictionary_encode()
    before = table["before"].combine_chunks().take(whole_numbers(first)).dictionary_encode()
    column = {key.text: i for i, key in enumerate(keys)}
    shown = np.zeros((len(before.dictionary), len(keys)), dtype=bool)
    for i, text in enumerate(before.dictionary.to_pylist()):
        shown[i, [column[key] for key in text.split()]] = True
    shows = shown[whole(before.indices)]
    if with_candidate:
        shows[:, -1] = whole(table["published"].combine_chunks())[first] == 1
    names = table["cell"].combine_chunks().take(whole_numbers(first)).to_pylist()
    return Cells(
        tuple(names),
        number.reshape(-1).astype(np.int64),
        whole(value.indices).astype(np.int64),
        whole(table["n"].combine_chunks()).astype(np.int64),
        tuple((decoded(t) if sets is None else kept_sets(t, sets)) for t in value.dictionary.to_pylist()),  # type: ignore[arg-type]
        shows,
        bundles=sets is not None,
    )


def held_by_all(cells: Cells, attributes: int) -> Mask:
    """bool[C]: the cells of bundles in which everybody holds some value of one of the sensitive attributes."""
    common = np.zeros(len(cells), dtype=bool)
    if not cells.bundles or not len(cells):
        return common
    everything = np.ones(len(cells.cell), dtype=bool)
    people = np.bincount(cells.cell, weights=cells.count, minlength=len(cells)).astype(np.int64)
    for index in range(attributes):
        texts = frozenset[str | None]().union(*(value[index] or () for value in cells.values))
        codes = {text: code for code, text in enumerate(sorted(texts, key=lambda t: (t is None, t or "")))}
        blocks = Blocks.from_pairs(*by_value(cells, index, codes, everything))
        common |= blocks.largest == people
    return common


def by_value(cells: Cells, index: int, codes: Mapping[str | None, int], chosen: Mask) -> tuple[Ints, Ints, Ints]:
    """The cell, the code of a value and the people who hold it, of bundles: one for each of some pairs and each value.

    index: of the sensitive attribute; codes: of its values, others get -1; chosen: bool[R].
    """
    sets = [[codes.get(text, -1) for text in value[index] or ()] for value in cells.values]
    lengths = np.array([len(held) for held in sets], dtype=np.int64)
    flat = np.array([code for held in sets for code in held], dtype=np.int64)
    start = np.cumsum(lengths) - lengths
    of = cells.value[chosen]
    n = lengths[of]
    pair = np.repeat(np.arange(len(of), dtype=np.int64), n)
    within = np.arange(int(n.sum()), dtype=np.int64) - np.repeat(np.cumsum(n) - n, n)
    return cells.cell[chosen][pair], flat[start[of[pair]] + within], cells.count[chosen][pair]


@dataclass(frozen=True)
class Verdict:
    """What the check of versions together found: only counts.

    versions: how many were checked together; cells: joint cells that were ever shown; failing, rows: cells that fail
    and the episodes in them; models: name and failing cells of each requirement that fails. considered: the versions,
    oldest first, with the candidate last; names: of the failing cells (private: `members_of` joins them to persons).
    """

    mode: Mode
    versions: int
    cells: int
    failing: int
    rows: int
    models: tuple[tuple[str, int], ...]
    considered: tuple[VersionKey, ...] = ()
    names: tuple[str, ...] = field(default=(), repr=False)

    @property
    def passed(self) -> bool:
        return not self.failing


OF_COUNT = {
    "rows": "`count: rows`",
    "entities": "`count: entities`",
    "entities by rows": "`count: entities` with `versions.row_counts: known`",
}
"""`Spec.counted`, as a spec says it."""


def members(spec: Spec, versions: Sequence[RecordedVersion]) -> list[RecordedVersion]:
    """The recorded versions that this spec's readers may hold, oldest first.

    Its own, those of the releases it names as `versions.audience`, and those of releases that name it. Releases that
    share no sensitive attribute with it tell nothing about its values. Raises InputError for one with some of them, and
    for one that tells people apart in another way (`count`, `versions.row_counts`).
    """
    newest = {v.key.release: v for v in versions}
    named = {spec.release, *spec.versions.audience}
    named |= {release for release, v in newest.items() if spec.release in v.audience}
    readable = []
    for version in versions:
        if version.key.release not in named:
            continue
        if version.sensitive != spec.sensitives:
            if version.key.release != spec.release and not set(version.sensitive) & set(spec.sensitives):
                continue
            raise InputError(
                f"{spec.at('versions', 'audience')}: version {version.key.version} of release {version.key.release} "
                f"has the sensitive attributes {', '.join(version.sensitive) or '(none)'}, and {spec.release} has "
                f"{', '.join(spec.sensitives) or '(none)'}. They cannot be checked together. Name the same ones in the "
                "same order, or write `versions: {joint: none}`"
            )
        if version.counted != spec.counted:
            key = version.key
            own = key.release == spec.release
            remedy = (
                "Write both as they were" if own else "Leave it out of `versions.audience` if no reader can hold both"
            )
            raise InputError(
                f"{spec.at('count') if own else spec.at('versions', 'audience')}: version {key.version} of release "
                f"{key.release} tells people apart by {OF_COUNT[version.counted]}, and {spec.release} by "
                f"{OF_COUNT[spec.counted]}: they cannot be checked together. {remedy}, or write "
                "`versions: {joint: none}`"
            )
        readable.append(version)
    return readable


def check(
    crosswalk: Crosswalk,
    spec: Spec,
    references: Sequence[Sequence[Reference]],
    candidate: Candidate | None = None,
    mode: Mode | None = None,
) -> Verdict:
    """Check all versions that the audience could ever read, with one that is about to be published or without.

    references: of this run, for each requirement one for each of its sensitive attributes; they bring the priors. mode:
    one of the two rules alone; None for both, with the verdict of the one that fails. Raises Refused for models that
    are not defined for joint cells, InputError for an audience that cannot be checked.
    """
    versions = [v for v in members(spec, recorded(crosswalk)) if candidate is None or v.key != candidate.about.key]
    keys = [version.key for version in versions]
    if versions:
        check_models(spec)
    roll(crosswalk, spec.release, keys)
    query = _episodes(crosswalk, spec, candidate)
    sets = len(spec.sensitives) if spec.bundles else None
    if candidate is not None:
        versions, keys = [*versions, candidate.about], [*keys, candidate.about.key]

    def judged(rule: Mode) -> tuple[Verdict, int]:
        table = crosswalk.own.fetch(joint_cells(crosswalk, spec.release, query, rule))
        latest = table["latest"][0].as_py() if len(table) else 1
        cells = read_cells(table, keys, with_candidate=candidate is not None, sets=sets)
        if len(versions) < 2 and not spec.bundles:
            # A version alone is checked by the search, with models that joint cells may not have.
            return Verdict(rule, len(versions), len(cells), 0, 0, (), tuple(keys)), latest
        return judge(cells, spec.privacy, spec.sensitives, versions, references, rule), latest

    verdict, latest = judged(mode or "episodes")
    if mode is not None or not verdict.passed or latest == 1:
        return verdict
    linked, _ = judged("linked")
    return verdict if linked.passed else linked


def unchanged(crosswalk: Crosswalk, spec: Spec, verdict: Verdict) -> bool:
    """Whether the versions that a check looked at are still all that there are, the candidate being recorded.

    Must be asked in the transaction that publishes: runs of two releases of one audience may each have been checked
    before the other one was recorded. At least the later of them sees both then.
    """
    return {version.key for version in members(spec, recorded(crosswalk))} == set(verdict.considered)


def _episodes(crosswalk: Crosswalk, spec: Spec, candidate: Candidate | None) -> Query:
    if candidate is None:
        return episodes(crosswalk, spec.release)
    return next_episodes(crosswalk, spec.release, candidate.rows, candidate.about.key)


def members_of(crosswalk: Crosswalk, spec: Spec, verdict: Verdict, candidate: Candidate) -> Query:
    """The digests of the entities in the joint cells that fail (column entity), right after the `check` of the
    candidate that gave the verdict."""
    rows = placed(crosswalk, _episodes(crosswalk, spec, candidate), verdict.mode)
    wanted = load_texts(crosswalk.own, cell=verdict.names)
    return sa.select(rows.c.entity).where(rows.c.cell.in_(sa.select(wanted.c.cell))).distinct()


OTHER_VALUES = "the crosswalk holds values that are not in the domain of the version that shows them: it was altered"
OF_A_NODE = {"containing": "coarser nodes", "guards": "what the people of each block guard"}
"""What models may need besides counts that joint cells do not have."""


def check_models(spec: Spec) -> None:
    """Raise Refused for requirements that are not defined for joint cells."""
    for requirement in spec.privacy:
        model = requirement.model
        if spec.bundles and len(requirement.sensitive) > 1:
            raise Refused(
                f"{spec.at_requirement(requirement)}: with `count: entities`, versions are checked together for one "
                "sensitive attribute at a time. Write the requirement once for each of "
                f"{', '.join(requirement.sensitive)}, or `versions: {{joint: none}}`"
            )
        if model.needs & OF_A_NODE.keys() or (model.needs & {"population"} and model.name != "k_map"):
            what = next((OF_A_NODE[need] for need in OF_A_NODE if need in model.needs), "a population")
            raise Refused(
                f"{spec.at_requirement(requirement)}: {model.name} is defined by {what}, which several versions "
                "together do not have. Publish one version only, ask for another model, or write `versions: {joint: "
                "none}`"
            )


def judge(
    cells: Cells,
    requirements: Sequence[Requirement],
    sensitives: Sequence[str],
    versions: Sequence[RecordedVersion],
    references: Sequence[Sequence[Reference]],
    mode: Mode = "episodes",
) -> Verdict:
    """Apply every requirement to every cell, with the quantities of each version that shows it."""
    failing = np.zeros(len(cells), dtype=bool)
    failed = []
    known = [version.references for version in versions]
    for requirement, current in zip(requirements, references, strict=True):
        bad = np.zeros(len(cells), dtype=bool)
        todo = cells.shows.copy()
        for i in reversed(range(len(versions))):
            mask = todo[:, i]
            if not mask.any():
                continue
            used = references_of(requirement, versions[i], known[i], current)
            bad[np.flatnonzero(mask)] |= ~passing(cells, mask, requirement, sensitives, used)
            if not any(model.needs for model in requirement.models):
                todo[mask] = False  # counts alone decide: every version says the same
        if bad.any():
            failed.append((requirement.model.name, int(bad.sum())))
        failing |= bad
    common = held_by_all(cells, len(sensitives))
    if common.any():
        failed.append((HELD_BY_ALL, int(common.sum())))
        failing |= common
    rows = np.bincount(cells.cell, weights=cells.count, minlength=len(cells)).astype(np.int64)
    return Verdict(
        mode,
        len(versions),
        len(cells),
        int(failing.sum()),
        int(rows[failing].sum()),
        tuple(failed),
        tuple(version.key for version in versions),
        tuple(sorted({cells.name[i] for i in np.flatnonzero(failing)})),
    )


def references_of(
    requirement: Requirement, version: RecordedVersion, known: dict[str, Reference], current: Sequence[Reference]
) -> list[Reference]:
    """The quantities of a version for a requirement, with the prior of the run that checks."""
    if not requirement.sensitive:
        return [Reference(version.rows, (), np.zeros(0, dtype=np.int64))]
    references = []
    for name, now in zip(requirement.sensitive, current, strict=True):
        reference = known[name]
        if now.prior is not None:
            weights = dict(zip(now.domain, now.prior, strict=True))
            reference = replace(reference, prior=tuple(weights.get(value, Fraction(0)) for value in reference.domain))
        # Versions that were kept before only `order` ordered have their values as the domain was written.
        references.append(replace(reference.like(now), ordered=now.ordered))
    return references


def passing(
    cells: Cells, mask: Mask, requirement: Requirement, sensitives: Sequence[str], references: Sequence[Reference]
) -> Mask:
    """bool[mask.sum()]: which of the masked cells satisfy a requirement."""
    chosen = mask[cells.cell]
    number = np.cumsum(mask) - 1
    cell, value, count = number[cells.cell[chosen]], cells.value[chosen], cells.count[chosen]
    if not requirement.sensitive:
        blocks = Blocks.from_pairs(cell, np.zeros_like(cell), count)
        if "population" in requirement.model.needs:
            # Whoever is in a cell is in the population as well, so its rows are at most the population's.
            blocks = replace(blocks, population=blocks.rows, population_only=np.zeros(0, dtype=np.int64))
        return requirement.model.passes(blocks, references[0])
    if cells.bundles:
        codes = {text: code for code, text in enumerate(references[0].domain)}
        owner, held, n = by_value(cells, sensitives.index(requirement.sensitive[0]), codes, chosen)
        if held.min(initial=0) < 0:
            raise QblockError(OTHER_VALUES)
        blocks = Blocks.from_pairs(number[owner], held, n)
        people = np.bincount(cell, weights=count, minlength=len(blocks)).astype(np.int64)
        return requirement.models[0].passes(replace(blocks, rows=people), references[0])
    columns = []
    for name, reference in zip(requirement.sensitive, references, strict=True):
        codes, index = {text: code for code, text in enumerate(reference.domain)}, sensitives.index(name)
        known = [codes.get(texts[index], -1) for texts in cells.values]  # type: ignore[arg-type]
        columns.append(np.array(known, dtype=np.int64)[value])
    if any((column < 0).any() for column in columns):
        raise QblockError(OTHER_VALUES)
    models: tuple[Model, ...] = requirement.models
    if len(columns) == 1:
        return models[0].passes(Blocks.from_pairs(cell, columns[0], count), references[0])
    parts = split(cell, np.stack(columns, axis=1), count)
    attributes = [
        Attribute(model, blocks, reference, owner)
        for model, reference, (blocks, owner) in zip(models, references, parts, strict=True)
    ]
    return multi_passes(attributes, int(mask.sum()))


OF_COUNTS = frozenset({"numbers"})
"""Needs that a value which is new to the domain does not change."""
Rows = Callable[[Sequence[Block]], Mapping[Block, Histogram]]
"""The people by sensitive values in blocks, as the version before shows them."""


def judged(spec: Spec, first: RecordedVersion, current: Sequence[Sequence[Reference]], rows: Rows) -> Passes:
    """Whether every joint cell of a trial satisfies the spec's models.

    first: the version whose quantities of the whole table are used, so that no verdict changes what another one was
    based on; current: the references of this run, which bring priors and orders. A histogram counts people by the tuple
    of their sensitive values. rows: asked for models that are not monotone, since a block of cells that pass may fail.
    Raises Refused for a value that is not in the domain of the first version, where a model depends on the domain.
    """
    known = first.references
    whole = [q for q in spec.privacy if not monotone(q.models, entities=spec.bundles).generalization]

    def satisfied(requirements: Sequence[Requirement], histograms: Sequence[Histogram]) -> bool:
        if not histograms or not requirements:
            return True
        cells = _cells(histograms, spec.bundles)
        if held_by_all(cells, len(spec.sensitives)).any():
            return False
        everything = np.ones(len(cells), dtype=bool)
        for requirement, now in zip(spec.privacy, current, strict=True):
            if requirement not in requirements:
                continue
            used = references_of(requirement, first, known, now)
            if requirement.sensitive:
                used = [
                    _with(spec, requirement, _declared(spec, name, latest, reference), name, cells)
                    for name, latest, reference in zip(requirement.sensitive, now, used, strict=True)
                ]
            if not passing(cells, everything, requirement, spec.sensitives, used).all():
                return False
        return True

    def passes(trial: Trial) -> bool:
        parts = [part for group in trial.groups for part in group.parts]
        return satisfied(spec.privacy, parts) and (not whole or satisfied(whole, _after(rows, trial)))

    return passes


def _cells(histograms: Sequence[Histogram], bundles: bool) -> Cells:
    values = list(dict.fromkeys(value for counts in histograms for value in counts))
    code = {value: i for i, value in enumerate(values)}
    triples = [(i, code[value], n) for i, counts in enumerate(histograms) for value, n in counts.items()]
    cell, value, count = (np.array(column, dtype=np.int64) for column in zip(*triples, strict=True))
    names = tuple(str(i) for i in range(len(histograms)))
    shows = np.ones((len(names), 1), dtype=bool)
    return Cells(names, cell, value, count, tuple(values), shows, bundles)  # type: ignore[arg-type]


def _declared(spec: Spec, name: str, now: Reference, first: Reference) -> Reference:
    """The first version's quantities over the values that the spec declares, which is public; else as they are."""
    return as_first(spec, name, now, first) if isinstance(spec.attributes[name].domain, tuple) else first


def _with(spec: Spec, requirement: Requirement, reference: Reference, name: str, cells: Cells) -> Reference:
    """A reference whose domain has every value of some cells."""
    index, domain = spec.sensitives.index(name), set(reference.domain)
    texts = {text for value in cells.values for text in _texts(value[index])}
    new = sorted(texts - domain, key=lambda text: (text is None, text or ""))
    if not new:
        return reference
    needs = frozenset().union(*(model.needs for model in requirement.models))
    numeric = reference.numbers is not None and None not in new
    if not needs <= OF_COUNTS or ("numbers" in needs and not numeric):
        raise Refused(
            f"{spec.at('attributes', name)}: the source has values of {name} that the first version did not have; "
            f"nothing is published. {requirement.model.name} depends on all values of the column. Declare all the "
            f"values of {name} (`domain`), or take those rows out of the source"
        )
    domain_now = (*reference.domain, *new)
    totals = np.concatenate([reference.totals, np.zeros(len(new), dtype=np.int64)])
    if not numeric or reference.numbers is None:
        return replace(reference, domain=domain_now, totals=totals, taxonomy=None, prior=None, numbers=None)
    numbers = (*reference.numbers, *(Fraction(text) for text in new if text is not None))
    extended = replace(reference, domain=domain_now, totals=totals, taxonomy=None, prior=None, numbers=numbers)
    return extended.ascending()


def _texts(value: str | frozenset[str | None] | None) -> Collection[str | None]:
    return value if isinstance(value, frozenset) else (value,)


def as_first(spec: Spec, name: str, now: Reference, first: Reference) -> Reference:
    """The quantities of the first version over the values of now. Raises Refused where now lacks some of them."""
    total: dict[str | None, int] = dict(zip(first.domain, first.totals.tolist(), strict=True))
    if any(n for value, n in total.items() if value not in now.domain):
        raise Refused(
            f"{spec.at('attributes', name)}: the release shows nobody with some values of {name} that the first "
            f"version had; nothing is published. A model compares with all of them. Declare all the values of {name} "
            "(`domain`)"
        )
    totals = np.array([total.get(value, 0) for value in now.domain], dtype=np.int64)
    return replace(now, rows=first.rows, totals=totals)


def _after(rows: Rows, trial: Trial) -> list[Histogram]:
    """The blocks that a trial and the batches before it touch, as the next version would show them."""
    touched = sorted({block for block, _ in trial.change})
    blocks = {block: dict(counts) for block, counts in rows(touched).items()}
    for (block, value), n in trial.change.items():
        counts = blocks.setdefault(block, {})
        counts[value] = counts.get(value, 0) + n
    positive = [{value: n for value, n in counts.items() if n} for counts in blocks.values()]
    return [counts for counts in positive if counts]
