"""People with several rows: weeks of the job against the policy alone, and what is refused."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from steady.pure import first_version

from qblock.errors import InputError, Refused
from qblock.ledger.stores import store_of
from qblock.models import DistinctLDiversity, KAnonymity
from qblock.release.apply import plan
from qblock.release.erase import erase
from qblock.release.rekey import rekey
from qblock.release.retype import retype, type_note
from qblock.versions.batching.proposals import by_block
from qblock.versions.batching.rules import Rules, rules_for
from qblock.versions.batching.state import Memory, Person, Trial
from qblock.versions.batching.step import Step, step
from release.crossing import alter
from release.jobs import Job, MakeJob
from release.test_steady_job import counts
from release.test_steady_policy import by_digest
from release.test_waiting import ATTRIBUTES

pytestmark = pytest.mark.either_engine

WEEKS = 6 if os.environ.get("QBLOCK_TEST_ENGINES") == "all" else 3
"""Of each drawn history: after two of them batches of every kind have closed."""
Row = tuple[str, str | int, str]
"""Who, in which block, with which value."""


def visits_job(make_job: MakeJob, rows: list[Row], **settings: Any) -> Job:
    asked = {"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2, "sensitive": "value"}}
    names = ("id", "block", "value")
    return make_job(
        {name: [row[i] for row in rows] for i, name in enumerate(names)},
        **{
            "attributes": ATTRIBUTES,
            "privacy": list(asked),
            "entity": "id",
            "count": "entities",
            "versions": {"cohort": 4},
            "search": {"node": [0]},
            **settings,
        },
    )


def show(job: Job, rows: list[Row]) -> None:
    """The source has these rows now."""
    job.change("DELETE FROM people")
    job.change(f"INSERT INTO people (id, block, value) VALUES {', '.join(map(str, rows))}")


def visits(text: str) -> list[Row]:
    """`p:q:ab` is two rows of p in block q."""
    return [(who, block, value) for who, block, values in (one.split(":") for one in text.split()) for value in values]


@dataclass
class Weeks:
    """A drawn history of visits."""

    rng: random.Random
    rows: list[Row] = field(default_factory=list)
    people: int = 0
    most: int = 9
    """Rows of somebody in a block, at the most."""

    def come(self, n: int) -> None:
        for _ in range(n):
            for _ in range(self.rng.choice([1, 1, 2, 3])):
                self.rows.append((f"n{self.people:03}", self.rng.choice("qrs"), self.rng.choice("aabbcd")))
            self.people += 1

    def churn(self) -> None:
        rng = self.rng
        for _ in range(len(self.rows) // 8):  # somebody known visits again
            who = rng.choice(self.rows)[0]
            self.rows.append((who, rng.choice("qqrs"), rng.choice("aabbcd")))
        for i in rng.sample(range(len(self.rows)), len(self.rows) // 15):  # a value is corrected, or a block
            who, block, value = self.rows[i]
            self.rows[i] = (who, block, rng.choice("abcd")) if rng.random() < 0.8 else (who, rng.choice("qrs"), value)
        gone = set(rng.sample(sorted({row[0] for row in self.rows}), 5))
        self.rows = [row for row in self.rows if row[0] not in gone]
        self.come(8)

    @property
    def table(self) -> list[Row]:
        """What the source gives of the rows."""
        given: Counter[tuple[str, str]] = Counter()
        found = []
        for who, block, value in self.rows:
            given[who, block] += 1
            if given[who, block] <= self.most:
                found.append((who, block, value))
        return found

    def present(self, known: bool) -> dict[str, Person]:
        found: dict[str, list[str]] = {}
        for who, block, value in self.table:
            found.setdefault(f"{who} {block}", []).append(value)
        return {
            unit: Person((unit[-1], str(len(values))) if known else (unit[-1],), tuple(sorted(values)))
            for unit, values in found.items()
        }


def passes(trial: Trial) -> bool:
    """At least two people, two values, and none that everybody holds."""

    def one(part: Mapping[Hashable, int]) -> bool:
        held: Counter[Hashable] = Counter()
        for values, n in part.items():
            assert isinstance(values, frozenset)
            held.update(dict.fromkeys(values, n))
        people = sum(part.values())
        return people >= 2 and len(held) >= 2 and max(held.values()) < people

    return all(one(part) for group in trial.groups for part in group.parts)


def bundle(value: Hashable) -> Counter[str]:
    assert isinstance(value, tuple)
    return Counter(value)


@pytest.mark.parametrize(("seed", "known"), [(0, False), (1, False), (2, False), (3, True), (5, True)])
def test_every_version_shows_what_the_policy_decides(make_job: MakeJob, seed: int, known: bool) -> None:
    """known: how many rows somebody has in a block."""
    weeks = Weeks(random.Random(seed), most=2 if known else 9)
    weeks.come(90 if known else 60)
    job = visits_job(make_job, weeks.table)
    job.settings["publish"]["people"] = True
    job.set(versions={"cohort": 4, "leave": 4, "row_counts": "known" if known else "unknown"})
    found_rules = rules_for((KAnonymity(k=2), DistinctLDiversity(l=2)))
    rules = Rules(**{**vars(found_rules), "bundles": True})

    def counted(value: Hashable) -> Hashable:
        return frozenset(bundle(value))

    def change(before: Hashable, after: Hashable) -> tuple[int, ...]:
        one, other = bundle(before), bundle(after)
        return (*((one.total(), other.total()) if known else ()), one < other)

    assert job.run().version == 1
    found: Step = first_version(by_digest(job, weeks.present(known)), Memory(), passes, counted=counted)
    closed: Counter[str] = Counter()
    out = 0
    for _ in range(WEEKS):
        weeks.churn()
        show(job, weeks.table)
        found = step(
            found.shown,
            by_digest(job, weeks.present(known)),
            found.memory,
            rules,
            passes,
            newcomers=by_block(lambda block: 4),
            leave=4,
            counted=counted,
            change=change,
            owner=lambda unit: unit[:-2],
        )
        result = job.run()
        wanted = Counter(
            f"{unit.cell.block[0]}:{value}"
            for unit in found.shown.values()
            for value in bundle(unit.values[-1])
            for _ in range(bundle(unit.values[-1])[value])
        )
        assert counts(job) == wanted
        of_blocks = dict(job.query("SELECT block, people FROM published.people_blocks"))
        assert of_blocks == Counter(unit.cell.block[0] for unit in found.shown.values())
        n = found.counts
        waiting = {"newcomers": n.newcomers, "leavers": n.leavers, "changes": n.changes}
        assert {why: m for why, m in result.waiting.items() if why in waiting} == {
            w: m for w, m in waiting.items() if m
        }
        assert result.lag.rows == n.lag
        assert (result.status == "published") == found.published
        closed += Counter(n.closed)
        out += sum(why in ("changed", "moved") for why in found.memory.out.values())
    assert closed["newcomers"] >= 2
    assert closed["leavers"] + closed["changed values"] >= 2
    assert out


EVEN = " ".join(f"p{i}:q:{'abc'[i % 3]}" for i in range(12))


def test_a_value_that_everybody_holds_is_refused(make_job: MakeJob) -> None:
    """Two values in each block, and yet everybody in q has an a."""
    job = visits_job(make_job, visits(f"{EVEN} r0:r:ab r1:r:a r2:r:ac r3:r:a"))
    with pytest.raises(Refused, match="a value that everybody holds"):
        job.run()


def test_who_has_rows_in_two_blocks_withdraws_from_both(make_job: MakeJob) -> None:
    rows = visits(f"{EVEN} p0:r:b p1:r:ab p2:r:c p3:r:a p4:r:ac p5:r:b z0:s:a z1:s:b z2:s:ac")
    job = visits_job(make_job, rows)
    job.run()
    assert erase(job.spec, ["p0"]).status == "queued"
    waits = job.run(force=True).waiting
    assert waits["withdrawals"] == 1
    erased = erase(job.spec, ["p1"], now=True, agree=lambda sharing: True)
    assert erased.companions
    assert erased.published is not None
    assert counts(job) == {"s:a": 2, "s:b": 1, "s:c": 1}


def test_a_new_key_keeps_units(make_job: MakeJob) -> None:
    job = visits_job(make_job, visits(EVEN + " p0:r:b p1:r:ab p2:r:c"))
    job.run()
    rekey(store_of(job.spec))
    show(job, visits(EVEN + " p0:r:b p1:r:ab p2:r:c n1:q:a n2:q:b n3:q:c n4:q:ab"))
    result = job.run()
    assert (result.status, result.waiting, result.rows) == ("published", {}, 12 + 4 + 5)


def test_a_lone_number_of_rows_is_refused_where_it_may_be_known(make_job: MakeJob) -> None:
    job = visits_job(make_job, visits(f"{EVEN} r0:q:abc"), versions={"row_counts": "known"})
    with pytest.raises(
        Refused, match=r"1 of 2 groups of people who have equally many rows in a block fail, with 1 people"
    ):
        job.run()
    assert job.set(versions={"row_counts": "unknown"}).run().status == "published"


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"on_refusal": "refuse"}, "where people have several rows"),
        ({"audience": ["other"]}, "releases of people with several rows"),
    ],
)
def test_what_was_not_simulated_is_refused(make_job: MakeJob, versions: dict[str, Any], message: str) -> None:
    job = visits_job(make_job, visits(EVEN), versions=versions)
    with pytest.raises(InputError, match=message):
        job.run()


COUNTED = [
    # as the first version counted, as the second would: people who are counted otherwise are other units
    ({"count": "rows"}, {}),
    ({"count": "rows", "versions": {"on_refusal": "refuse"}}, {}),
    ({}, {"count": "rows"}),
    ({}, {"versions": {"cohort": 4, "row_counts": "known"}}),
    ({"versions": {"cohort": 4, "row_counts": "known"}}, {}),
]
LONE = " ".join(f"p{i}:{'qr'[i % 2]}:{'abc'[i % 3]}" for i in range(24))


@pytest.mark.parametrize(("before", "now"), COUNTED)
def test_people_are_not_counted_otherwise_later(make_job: MakeJob, before: dict[str, Any], now: dict[str, Any]) -> None:
    rows = visits(LONE)
    job = visits_job(make_job, rows, **before)
    assert job.run().version == 1
    job.set(**{"count": "entities", "versions": {"cohort": 4}, **now})
    show(job, [*rows, *visits("n1:q:a n2:q:b n3:q:c n4:q:a")])
    with pytest.raises(InputError, match=r"version 1 of release people tells people apart by.*Write both as they were"):
        job.run()
    job.set(**{"count": "entities", "versions": {"cohort": 4}, **before})
    assert job.run().version == 2


def test_releases_that_count_otherwise_are_no_audience(make_job: MakeJob) -> None:
    rows = visits(LONE)
    job = visits_job(make_job, rows)
    job.run()
    publish = job.settings["publish"] | {"view": "other"}
    if job.engine == "duckdb":
        publish["url"] = f"duckdb:///{job.folder}/other.duckdb"
    job.set(release="other", publish=publish, count="rows", versions={"audience": ["people"], "cohort": 4})
    with pytest.raises(InputError, match=r"release people tells people apart by `count: entities`.*Leave it out"):
        job.run()
    job.set(versions={"cohort": 4})
    if job.engine == "duckdb":  # two files beside each other have the same readers
        with pytest.raises(Refused, match=r"people with both files can read both.*publish to other readers"):
            job.run()
        return
    assert job.run().version == 1


def test_bundles_are_not_converted_to_other_types(make_job: MakeJob) -> None:
    job = visits_job(make_job, visits(LONE))
    job.run()
    alter(
        job,
        "value",
        "CHAR(5)" if job.engine == "postgresql" else "INTEGER",
        None if job.engine == "postgresql" else "ascii(value)",
    )
    with pytest.raises(Refused, match=r"column value is of type") as raised:
        job.run()
    assert "Give the column its type again" in str(raised.value)
    assert "retype" not in str(raised.value)
    note = type_note(plan(job.spec))
    assert note is not None
    assert "retype" not in note
    with pytest.raises(InputError, match="people with several rows"):
        retype(job.spec)


def test_an_edited_hierarchy_that_moves_units_is_refused(make_job: MakeJob) -> None:
    attributes = {**ATTRIBUTES, "block": {"role": "quasi_identifier", "hierarchy": {"file": "blocks.csv"}}}
    job = visits_job(make_job, visits(EVEN + " p0:r:b p1:r:a p2:r:c"), attributes=attributes)
    (job.folder / "blocks.csv").write_text("block,pair,all\nq,Q,*\nr,R,*\n", "utf-8")
    job.set(search={"node": [1]}).run()
    (job.folder / "blocks.csv").write_text("block,pair,all\nq,Q,*\nr,Q,*\n", "utf-8")
    with pytest.raises(Refused, match="hierarchies were edited"):
        job.run()


def test_ranges_follow_the_values_there_are_and_move_nobody(make_job: MakeJob) -> None:
    """Who left had a value that nobody has any more, and who came has one that nobody had."""
    attributes = {**ATTRIBUTES, "block": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20]}}}
    ages: list[Row] = [(who, 30 + int(who[1:]) % 5, value) for who, _, value in visits(LONE)]
    job = visits_job(make_job, [*ages, ("p40", 37, "a")], attributes=attributes)
    assert job.set(search={"node": [1]}).run().version == 1
    show(job, [*ages, *((f"n{i}", 39, value) for i, value in enumerate("abca"))])
    assert job.run().status in ("published", "unchanged")
    job.set(attributes={**attributes, "block": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 20]}}})
    with pytest.raises(
        Refused, match="hierarchies were edited, which shows 29 sets of people's records in another block"
    ):
        job.run()
