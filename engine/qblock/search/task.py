"""A spec's question about its source, asked node by node: the evaluator over a database."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Reference
from qblock.errors import InputError
from qblock.frequency import FrequencySets, Sizes, positions
from qblock.frequency.sets import ALL, SAMPLED, Portion
from qblock.lattice import Lattice, Node
from qblock.models import KAnonymity, Model
from qblock.models.anonymity import projected
from qblock.models.multi import monotone, split
from qblock.search.assessment import Assessment, NodeCounts, Part, held_by_all, tightest_of
from qblock.search.containing import containing
from qblock.source import SourceTable
from qblock.source.knowledge import GuardSets, Population, RecodedPopulation, with_prior
from qblock.spec import GuardTable, Requirement, Spec
from qblock.spec.checks import without_projections
from qblock.spec.sources import Edges, Published, Ranges

ENDED = "the replica ended the copy of the source {}, and it was made anew"
QUARANTINED = "{} rows wait until their hierarchies cover them (uncovered: quarantine)"
SOME, SIZES = 0.1, 0.3
"""What counting some blocks costs of counting all, and sizes of counting values."""
AGAIN = 16
"""A test that seldom rejects is run again at every so many nodes: the next may be others."""
Bound = list[tuple[Model, Reference]]
"""The models of a requirement, each with the quantities of the whole table that it is checked with."""
Refuted = dict[tuple[Requirement, int, int], set[Node]]
"""Nodes that a requirement alone fails, with so many rows to suppress and so large a least box."""
TASKS = itertools.count()
"""Several tasks may share one session, each with temporary tables of its own."""


class Prefilter:
    """Cheap necessary conditions, tried first while they reject often enough to pay.

    It counts how often each has rejected a node, in all threads; the verdicts are the same whichever is run.
    """

    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._lock = threading.Lock()

    def rejects(self, test: str, cost: float, run: Callable[[], bool]) -> bool:
        """Whether a test rejects the node, if it is run. cost: its share of what the whole verdict costs."""
        with self._lock:
            if self.rate(test) < cost:
                self._left_out[test] += 1
                if self._left_out[test] % AGAIN:
                    return False
            self._tried[test] += 1
        rejected = run()
        with self._lock:
            self._rejected[test] += rejected
        return rejected

    def rate(self, test: str) -> float:
        """How often it has rejected a node, about."""
        return (self._rejected[test] + 1) / (self._tried[test] + 1.5)


class Task:
    """Evaluates nodes of the lattice for the requirements of a spec. Implements search.lattice.Evaluator."""

    def __init__(
        self,
        source: SourceTable,
        localize: Callable[[SourceTable], SourceTable] | None = None,
        refuted: Refuted | None = None,
    ) -> None:
        """localize: gives the source with its coded table here, where that pays for more than a few nodes; refuted:
        what is known from other questions about this source."""
        self.source = source
        self._localize = localize
        self._refuted: Refuted = {} if refuted is None else refuted
        self.spec: Spec = source.spec
        self.lattice: Lattice = source.lattice
        self.budget = self.spec.suppressed_rows_allowed(source.rows)
        self.warnings: list[str] = list(self.spec.warnings)
        if source.session.conflicts:
            self.warnings.append(ENDED.format({1: "once", 2: "twice"}[source.session.conflicts]))
        if source.quarantined:
            self.warnings.append(QUARANTINED.format(source.quarantined))
        self._prefilter = Prefilter()
        self._index = {name: i for i, name in enumerate(source.sensitives)}
        self._sizes = Reference(source.rows, (), np.zeros(0, dtype=np.int64))
        self._guards: dict[tuple[GuardTable, str], GuardSets] = {}
        self.bound_models = [(requirement, self._bind(requirement)) for requirement in self.spec.privacy]
        """Each requirement with its models and the quantities of the whole table that they are checked with."""
        self._populations: dict[str, Population | RecodedPopulation] = {}
        for requirement, bound in self.bound_models:
            for model, reference in bound:
                self._check(requirement, model, reference)
        entities = self.spec.count == "entities"
        self.implied = max(m.least_block_size(r, entities=entities) for _, bound in self.bound_models for m, r in bound)
        """The least size of a block that can satisfy all models."""
        self.least = max(self.implied, self.spec.least_box)

    def with_privacy(self, requirements: Iterable[Requirement]) -> Task:
        """The same source, asked for these requirements."""
        return self.asking(replace(self.spec, privacy=tuple(requirements)))

    def asking(self, spec: Spec) -> Task:
        """The same source, of which another spec asks something."""
        return Task(replace(self.source, spec=spec), refuted=self._refuted)

    @property
    def sizes_monotone(self) -> bool:
        return True

    @property
    def forbids_held_by_all(self) -> bool:
        """Whether a block fails in which everybody holds some value: versions that are checked together ask that of
        people with several rows (releases.md section 9).

        Not monotone where somebody has rows in two blocks: p has a and q has b in one, p has b and q has a in another;
        united both have both."""
        return self.spec.bundles and self.spec.checked_together and bool(self.source.sensitives)

    @cached_property
    def monotone(self) -> bool:
        if not all(map(self.monotone_under_budget, self.spec.privacy)):
            return False
        return not self.forbids_held_by_all or self._of_one_block

    @property
    def _of_one_block(self) -> bool:
        """Whether nobody has rows in two blocks of any node. Then whoever lacks a value in a block lacks it in every
        union; else rows of the other block may bring it."""
        sets = self.source.frequency_sets
        sizes = sets.sizes(sets.lattice.bottom)
        return int((sizes.size * sizes.blocks).sum()) == sets.people()

    @property
    def sizes_only(self) -> bool:
        # The budget is in rows, the sizes are in entities.
        of_both = self.spec.count == "entities" and self.budget
        if of_both or self.forbids_held_by_all or self._of_groups:
            return False
        sizes = (isinstance(q.model, KAnonymity) and not q.model.needs and not q.sensitive for q in self.spec.privacy)
        return all(sizes)

    def materialize_locally(self) -> None:
        """Say that many nodes are about to be asked, before the first of them is."""
        if self._localize is not None:
            self.source, self._localize = self._localize(self.source), None
        if self._by_block:
            self.source.frequency_sets.share()
        self.source.frequency_sets.count_in_memory()

    @property
    def statements(self) -> int:
        """Statements sent so far, in the warehouse and where frequency sets are rolled up."""
        sessions = {id(s): s for s in (self.source.session, self.source.frequency_sets.session)}
        return sum(s.statements for s in sessions.values())

    @property
    def protected(self) -> bool:
        """Whether nothing looks at the sensitive attributes, so that the choice of a node reveals nothing of them."""
        return not self.forbids_held_by_all and not any(q.model.about.uses_sensitive for q in self.spec.privacy)

    def sizes_pass(self, node: Node) -> bool:
        sets = self.source.frequency_sets

        def sampled() -> bool:
            return sets.sampled_below(node, self.least) > self.budget

        if sets.worth_sampling(node, ()) and self._prefilter.rejects("some sizes", SOME, sampled):
            return False
        return sets.small(node, self.least).small_n <= self.budget

    def passes(self, node: Node) -> bool:
        if self.sizes_only:
            return self.sizes_pass(node)
        rejects = self._prefilter.rejects
        if self.least > 1 and rejects("sizes", SIZES, lambda: not self.sizes_pass(node)):
            return False

        def sampled() -> bool:
            return self._counts(node, SAMPLED).failing_rows > self.budget

        sampling = self._by_block and self.source.frequency_sets.worth_sampling(node, self._needed[:1])
        if sampling and rejects("some values", SOME, sampled):
            return False
        if self._fails_alone(node):
            return False
        return self._in_parts(node)

    def _fails_alone(self, node: Node) -> bool:
        """Whether a requirement that often does fails the node: in memory its counts alone are a part of all."""
        sets, tests = self.source.frequency_sets, [i for i, (q, _) in enumerate(self.bound_models) if q.sensitive]
        if len(tests) < 2 or not sets.in_memory or sets.parts(node, self._needed[:1]) > 1:
            return False
        known = {i: self._refuted.setdefault(self._key(i), set()) for i in tests}
        if any(node in nodes for nodes in known.values()):
            return True

        def fails(i: int) -> bool:
            if self._counts(node, of=(i,)).failing_rows <= self.budget:
                return False
            known[i].add(node)
            return True

        by_rate = sorted(tests, key=lambda i: -self._prefilter.rate(f"alone {i}"))
        return any(self._prefilter.rejects(f"alone {i}", 1 / len(tests), partial(fails, i)) for i in by_rate)

    def _key(self, i: int) -> tuple[Requirement, int, int]:
        """What decides alone whether a requirement fails a node."""
        return self.spec.privacy[i], self.budget, self.spec.least_box

    def _in_parts(self, node: Node) -> bool:
        """Whether a node's blocks pass."""
        return all(failing <= self.budget for failing in itertools.accumulate(self._failing(node)))

    def _failing(self, node: Node) -> Iterator[int]:
        """The rows in failing blocks, of so many blocks at a time as the client's memory holds."""
        sets = self.source.frequency_sets
        parts = sets.parts(node, self._needed[:1]) if self._by_block else 1
        rows = 0
        for i in range(parts):
            counts = self._counts(node, Portion(number=i, of=parts))
            rows += int(counts.rows.sum())
            yield counts.failing_rows
        sets.add_up(rows, node)

    def failing_rows(self, node: Node) -> int:
        """The rows in failing blocks of a node. No block comes here where sizes decide."""
        sets = self.source.frequency_sets
        if self.sizes_only and not sets.entities:
            return sets.small(node, self.least).small_n
        return sum(self._failing(node))

    @property
    def max_concurrency(self) -> int:
        # What needs more than the blocks of a node is counted from tables that are not shared.
        return self.source.frequency_sets.max_concurrency if self._by_block else 1

    def evaluate_many(self, nodes: Sequence[Node], ask: Callable[[Node], bool]) -> list[bool]:
        if self.max_concurrency == 1:
            return [ask(node) for node in nodes]
        with ThreadPoolExecutor(len(nodes), "qblock") as threads:
            try:
                return [future.result() for future in [threads.submit(copy_context().run, ask, node) for node in nodes]]
            except BaseException:
                # Before the threads are waited for.
                self.source.frequency_sets.session.interrupt()
                raise

    def plan_hubs(self, wanted: Floats, *, sizes: bool) -> Floats:
        sets, groups = self.source.frequency_sets, self.source.groups
        if groups is not None and not sizes:
            groups.plan_hubs(wanted)
        if sizes or self.sizes_only or not self._needed:
            return sets.plan_hubs(wanted)
        total = sets.plan_hubs(wanted) * SIZES if self.least > 1 else np.zeros(1)
        for i in self._needed:
            total = total + sets.plan_hubs(wanted, (i,))
        return total

    def iter_nodes(self) -> Iterator[Node]:
        """Every node, finer ones first, whose counts are about to be asked for: all of them, one after the other."""
        left = np.ones(self.lattice.shape)
        for node in self.lattice.nodes():
            self.plan_hubs(left, sizes=False)
            yield node
            left[node] = 0

    def equivalent_range(self, node: Node) -> tuple[Node, Node]:
        finest, coarsest = self.source.frequency_sets.coding.equivalent_range(node)
        return finest, tuple(map(min, coarsest, self.lattice.top))

    def sizes(self, node: Node) -> Sizes:
        return self.source.frequency_sets.sizes(node)

    def counts(self, node: Node) -> NodeCounts:
        """The blocks of a node for every requirement."""
        return self._counts(node, keyed=True)

    def _counts(
        self, node: Node, portion: Portion = ALL, *, keyed: bool = False, of: Sequence[int] | None = None
    ) -> NodeCounts:
        """keyed: with their keys, where no model needs them; of: the numbers of some requirements, for these alone."""
        sets = self.source.frequency_sets
        bound = self.bound_models if of is None else [self.bound_models[i] for i in of]
        needed, keyed = self._needed if of is None else self._alone(bound), keyed or self._by_keys
        blocks = sets.blocks(node, needed, portion=portion, keyed=keyed)
        single, plain = dict(zip(needed, blocks, strict=False)), blocks[0]
        keys = np.zeros((len(plain), 0), dtype=np.int64) if plain.keys is None else plain.keys
        rows = sets.row_counts(node, portion=portion) if sets.entities else plain.rows
        parts = tuple(self._parts(q, models, node, single, plain, portion) for q, models in bound)
        common = held_by_all(blocks) if self.forbids_held_by_all and of is None else None
        return NodeCounts(node, keys, rows, parts, common, plain.rows < self.spec.least_box)

    @cached_property
    def _needed(self) -> list[int]:
        """The sensitive attributes that a requirement looks at alone; all of them where no value may be held by all."""
        if self.forbids_held_by_all:
            return list(range(len(self.source.sensitives)))
        return self._alone(self.bound_models)

    def _alone(self, bound: Iterable[tuple[Requirement, Bound]]) -> list[int]:
        return sorted({self._index[s] for q, _ in bound if len(q.sensitive) == 1 for s in q.sensitive})

    @property
    def _by_block(self) -> bool:
        """Whether each block can be decided without any other."""
        needs = {need for q in self.spec.privacy for model in q.models for need in model.needs}
        of_others = self._of_groups or any(q.guards is not None for q in self.spec.privacy)
        return not needs & {"containing", "population", "projections"} and not of_others

    @property
    def _of_groups(self) -> bool:
        """Whether households or other groups are counted, too."""
        return any(q.groups for q in self.spec.privacy)

    @property
    def _by_keys(self) -> bool:
        """Whether a model's counts come from several queries, whose blocks are told by their keys."""
        return not self._by_block or any(len(q.sensitive) > 1 for q in self.spec.privacy)

    def assess(self, node: Node) -> Assessment:
        """The verdict of a node with the tightest values of what would be published."""
        counts = self.counts(node)
        satisfied = counts.failing_rows <= self.budget
        kept = ~counts.failing if satisfied else np.ones(len(counts.rows), dtype=bool)
        tightest = tuple(tightest_of(parts, kept) for parts in counts.parts)
        return Assessment(counts, satisfied, kept, counts.failing_rows if satisfied else 0, tightest)

    def groups(self, node: Node, keys: Ints) -> Ints:
        """int64[B]: the households or other groups in each block of a node, which may have rows in several blocks."""
        assert self.source.groups is not None
        (theirs,) = self.source.groups.blocks(node, ())
        assert theirs.keys is not None
        return theirs.rows[positions(keys, theirs.keys)]

    def monotone_under_budget(self, requirement: Requirement) -> bool:
        """Whether a requirement's verdict survives generalization under the counting and suppression limit in force."""
        flags = monotone(requirement.models, entities=self.spec.count == "entities")
        return flags.suppression if self.budget else flags.generalization

    @property
    def references(self) -> list[list[Reference]]:
        """The quantities of the whole table for each requirement, one for each of its sensitive attributes."""
        return [[reference for _, reference in bound] if q.sensitive else [] for q, bound in self.bound_models]

    def _bind(self, requirement: Requirement) -> Bound:
        if not requirement.sensitive:
            return [(requirement.model, self._sizes)]
        values = [self.source.sensitives[name] for name in requirement.sensitive]
        references = [with_prior(self.source, requirement, value) for value in values]
        if requirement.guards is not None:
            references = [replace(references[0], guarded=self._guard_sets(requirement).sets)]
        return list(zip(requirement.models, references, strict=True))

    def _guard_sets(self, requirement: Requirement) -> GuardSets:
        assert requirement.guards is not None
        (name,) = requirement.sensitive
        key = (requirement.guards, name)
        if key not in self._guards:
            place, prefix = self.spec.at_requirement(requirement), f"qblock_guards_{next(TASKS)}"
            self._guards[key] = GuardSets(self.source, requirement.guards, self.source.sensitives[name], place, prefix)
            self.warnings += self._guards[key].warnings
        return self._guards[key]

    def guard_frequency_sets(self, requirement: Requirement) -> FrequencySets:
        """Who guards what, for a requirement whose predicates a table lists."""
        return self._guard_sets(requirement).frequency_sets

    def population_sets(self, requirement: Requirement) -> FrequencySets:
        """The population that a requirement counts."""
        population = self._population(requirement)
        assert isinstance(population, Population)
        return population.frequency_sets

    def _population(self, requirement: Requirement) -> Population | RecodedPopulation:
        table = getattr(requirement.model, "population", None)
        place = self.spec.at_requirement(requirement)
        if table is None:
            raise InputError(f"{place}: {requirement.model.name} needs `population: {{table: ...}}`")
        if table not in self._populations:
            prefix = f"qblock_population_{next(TASKS)}"
            recoded = self.source.recoding is not None
            self._populations[table] = (
                RecodedPopulation(self.source, table, place)
                if recoded
                else Population(self.source, table, place, prefix)
            )
        return self._populations[table]

    def _check(self, requirement: Requirement, model: Model, reference: Reference) -> None:
        place = self.spec.at_requirement(requirement)
        problem = without_projections(self.spec, requirement)
        if problem is not None:
            raise InputError(f"{place}: {problem}")
        name = requirement.sensitive[0] if requirement.sensitive else ""
        needed = missing_inputs(model, reference)
        if requirement.sensitive and getattr(model, "distance", "") == "kernel_js" and not reference.ordered:
            needed += ["order"] if self.spec.attributes[name].order is not None else []  # asked for, and text has none
        if needed:
            given = how_to_give(needed[0], reference, self.spec.attributes[name].publish_as)
            raise InputError(f"{place}: {model.name} needs of the sensitive attribute {name} {given}")
        try:
            self.warnings += model.validate(reference)
        except InputError as error:
            raise type(error)(f"{place}: {error}") from None

    def _parts(
        self,
        requirement: Requirement,
        bound: Bound,
        node: Node,
        single: dict[int, Blocks],
        plain: Blocks,
        portion: Portion,
    ) -> tuple[Part, ...]:
        if not requirement.sensitive:
            if "projections" in bound[0][0].needs:
                least = projected(bound[0][0], plain, self.spec.quasi_identifiers)
                # With an owner: these are not the people of the blocks.
                return (Part(bound[0][0], least, bound[0][1], np.arange(len(plain), dtype=np.int64)),)
            if "population" in bound[0][0].needs:
                plain = self._population(requirement).counted(node, plain)
            if requirement.groups:
                assert plain.keys is not None
                plain = replace(plain, groups=self.groups(node, plain.keys))
            return (Part(bound[0][0], plain, bound[0][1]),)
        if len(requirement.sensitive) == 1:
            blocks = single[self._index[requirement.sensitive[0]]]
            if "containing" in bound[0][0].needs:
                sensitive = self._index[requirement.sensitive[0]]
                blocks = replace(blocks, containing=containing(self.source, requirement, node, sensitive, blocks))
            if requirement.guards is not None:
                blocks = self._guard_sets(requirement).counted(node, blocks)
            return (Part(bound[0][0], blocks, bound[0][1]),)
        return self._multiple(requirement, node, bound, plain, portion)

    def _multiple(
        self,
        requirement: Requirement,
        node: Node,
        bound: Bound,
        plain: Blocks,
        portion: Portion,
    ) -> tuple[Part, ...]:
        indexes = [self._index[name] for name in requirement.sensitive]
        keys, values, rows = self.source.frequency_sets.joint(node, indexes, portion=portion)
        assert plain.keys is not None
        block = positions(keys, plain.keys)
        return tuple(
            Part(model, blocks, reference, owner)
            for (model, reference), (blocks, owner) in zip(bound, split(block, values, rows), strict=True)
        )


def missing_inputs(model: Model, reference: Reference) -> list[str]:
    """Of "order", "numbers" and "taxonomy", what the model needs and the attribute has not."""
    has = {
        "order": reference.ordered,
        "numbers": reference.numbers is not None,
        "taxonomy": reference.taxonomy is not None,
    }
    return [need for need, there in has.items() if need in model.needs and not there]


def how_to_give(need: str, reference: Reference, published: Published | None) -> str:
    """What a spec has to say for it. published: in place of the attribute's values."""
    has_order = reference.kind not in (None, "text") or isinstance(published, Ranges | Edges)
    ascending = "`order: ascending` or " if has_order else ""
    return {
        "order": f"an order: write {ascending}a list of its values, `order: [...]`",
        "numbers": "numbers: its column must be numeric and without NULL",
        "taxonomy": "a taxonomy: write `taxonomy: {file: ...}`",
    }[need]
