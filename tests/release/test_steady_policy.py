"""Weeks of the job against the policy alone, which has no database."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from steady.pure import first_version, judge

from qblock.blocks import Reference
from qblock.ledger.stores import store_of
from qblock.models import DistinctLDiversity, KAnonymity
from qblock.versions.batching.proposals import by_attribute, by_block
from qblock.versions.batching.rules import combine_rules, rules_for
from qblock.versions.batching.state import Memory, Person, Trial
from qblock.versions.batching.step import Step, step
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.people import digests_of
from release.jobs import Job, MakeJob
from release.test_steady_job import counts
from release.test_waiting import ATTRIBUTES, HOLD_BACK, people_job

pytestmark = pytest.mark.either_engine


@dataclass
class Weeks:
    """A drawn history. people: block and value of everybody who is there."""

    rng: random.Random
    people: dict[str, tuple[str, str]] = field(default_factory=dict)
    number: int = 0

    def come(self, n: int) -> None:
        for _ in range(n):
            self.people[f"n{self.number:03}"] = (self.rng.choice("qrs"), self.rng.choice("aabbcd"))
            self.number += 1

    def churn(self) -> None:
        for one in self.rng.sample(sorted(self.people), len(self.people) // 6):
            del self.people[one]
        for one in self.rng.sample(sorted(self.people), len(self.people) // 6):
            self.people[one] = (self.people[one][0], self.rng.choice("abcd"))
        self.come(12)

    @property
    def present(self) -> dict[str, Person]:
        return {one: Person((block,), value) for one, (block, value) in self.people.items()}


def by_digest(job: Job, present: dict[str, Person]) -> dict[str, Person]:
    """By digests, which decide who of the people that left in one run goes first. A unit's name ends with its block."""
    names = {name: name.split(" ")[0] for name in present}
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        digests = dict(zip(names, digests_of(crosswalk, list(names.values())), strict=True))
    return {digests[name] + name.removeprefix(names[name]): person for name, person in present.items()}


@pytest.mark.parametrize("seed", range(3))
def test_every_version_shows_what_the_policy_decides(make_job: MakeJob, seed: int) -> None:
    weeks = Weeks(random.Random(seed))
    weeks.come(60)
    job = people_job(make_job, " ".join(f"{one}:{b}:{v}" for one, (b, v) in weeks.people.items()), **HOLD_BACK)
    job.set(versions={"on_refusal": "hold_back", "cohort": 4}, search={"node": [0]})
    models = (KAnonymity(k=2), DistinctLDiversity(l=2))

    passes, rules = judge(models, Reference(0, (), np.zeros(0, dtype=np.int64))), rules_for(models)
    job.run()
    found: Step = first_version(by_digest(job, weeks.present), Memory(), passes)
    published = 0
    for _ in range(5):
        weeks.churn()
        job.change("DELETE FROM people")
        job.change(
            "INSERT INTO people (id, block, value) VALUES "
            + ", ".join(f"('{one}', '{b}', '{v}')" for one, (b, v) in weeks.people.items())
        )
        present = by_digest(job, weeks.present)
        batches = by_block(lambda block: 4)
        found = step(found.shown, present, found.memory, rules, passes, newcomers=batches, stale=Fraction(3, 5))
        result = job.run()
        wanted = Counter(f"{unit.cell.block[0]}:{unit.values[-1]}" for unit in found.shown.values())
        assert counts(job) == wanted
        waiting = {
            "newcomers": found.counts.newcomers,
            "leavers": found.counts.leavers,
            "changes": found.counts.changes,
        }
        assert {**result.waiting, "out": 0} == {**{why: n for why, n in waiting.items() if n}, "out": 0}
        assert (result.status == "published") == found.published
        published += found.published
    assert published >= 2


def test_every_version_shows_what_the_policy_decides_of_two_attributes(make_job: MakeJob) -> None:
    """Leavers go where both attributes let them, and values change together that changed in the same attributes."""
    rng = random.Random(4)
    people = {f"n{i:03}": ("q", rng.choice("ab"), rng.choice("xy")) for i in range(60)}
    one_of = {"k_anonymity": {"k": 2}}
    privacy = [one_of, *({"distinct_l_diversity": {"l": 2, "sensitive": name}} for name in ("value", "other"))]
    rows = [(one, *found) for one, found in people.items()]
    names = ("id", "block", "value", "other")
    job = make_job(
        {name: [row[i] for row in rows] for i, name in enumerate(names)},
        attributes={**ATTRIBUTES, "other": "sensitive"},
        privacy=privacy,
        entity="id",
        versions={"on_refusal": "hold_back", "cohort": 4, "leave": 4, "stale": 0.4},
        search={"node": [0]},
    )
    models = (KAnonymity(k=2), DistinctLDiversity(l=2))
    alone, rules = judge(models, Reference(0, (), np.zeros(0, dtype=np.int64))), combine_rules([rules_for(models)] * 2)

    def passes(trial: Trial) -> bool:
        """Both attributes of every cell."""
        groups = [
            group._replace(parts=tuple(by_attribute(part, rules.ls)[i][0] for part in group.parts))
            for group in trial.groups
            for i in range(2)
        ]
        return alone(Trial(trial.batch, tuple(groups), {}))

    def change(before: object, after: object) -> tuple[bool, ...]:
        assert isinstance(before, tuple)
        assert isinstance(after, tuple)
        return tuple(a != b for a, b in zip(before, after, strict=True))

    def present() -> dict[str, Person]:
        return {one: Person((block,), values) for one, (block, *both) in people.items() for values in [tuple(both)]}

    job.run()
    found: Step = first_version(by_digest(job, present()), Memory(), passes)
    closed: Counter[str] = Counter()
    for week in range(6):
        for one in rng.sample(sorted(people), 4):
            del people[one]
        for one in rng.sample(sorted(people), 9):
            block, value, other = people[one]
            flipped = [(value, "y" if other == "x" else "x"), ("b" if value == "a" else "a", other)][rng.random() < 0.6]
            people[one] = (block, *flipped)
        for i in range(3):
            people[f"w{week}{i}"] = ("q", rng.choice("ab"), rng.choice("xy"))
        job.change("DELETE FROM people")
        listed = ", ".join(str((one, *found)) for one, found in people.items())
        job.change(f"INSERT INTO people (id, block, value, other) VALUES {listed}")
        found = step(
            found.shown,
            by_digest(job, present()),
            found.memory,
            rules,
            passes,
            newcomers=by_block(lambda block: 4),
            leave=4,
            stale=Fraction(2, 5),
            change=change,
        )
        job.run()
        wanted = Counter((unit.cell.block[0], *unit.values[-1]) for unit in found.shown.values())  # type: ignore[misc]
        assert Counter(job.published()) == wanted
        closed += Counter(found.counts.closed)
    assert closed["leavers"] >= 2
    assert closed["changed values"] >= 2
