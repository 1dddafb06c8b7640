"""A small table of people on either engine, the forms in which its values are written, and its release job."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import yaml

NODES = [(q, r) for q in range(3) for r in range(2)]
VALUES = (1, 2, 3)
LEAVES = [(q, r) for q in ("00", "01", "10", "11") for r in "xy"]
NUMBERS = ("INTEGER", "NUMERIC(10,1)", "BIGINT", "DOUBLE PRECISION", "NUMERIC(12,4)")
TIME = "TIMESTAMPTZ"


@dataclass
class Person:
    """who: as an entity; value: the real one, however it is written; present: whether the source has a row."""

    who: int
    leaf: tuple[str, str]
    value: int
    present: bool = True


@dataclass
class Written:
    """How the source writes things. value_type, who_type: SQL types; code: real value -> the number written."""

    value_type: str = "INTEGER"
    who_type: str = "INTEGER"
    code: dict[int, int] = field(default_factory=lambda: {v: v for v in VALUES})
    who_shift: int = 0

    def value(self, real: int) -> str:
        """A literal."""
        number = self.code[real]
        return f"'2024-01-{number:02} 12:30:00+00'" if self.value_type == TIME else str(number)

    def real(self, shown: Any) -> int:
        """The real value of one that a reader sees; what nobody in this table has is 0."""
        number = _day(shown) if self.value_type == TIME else int(Decimal(str(shown)))
        return next((real for real, code in self.code.items() if code == number), 0)


def _day(shown: Any) -> int:
    """The day in UTC, in whatever style a session writes it."""
    if isinstance(shown, datetime):
        return shown.astimezone(UTC).day
    text = str(shown)
    if "/" in text:
        return int(text[:2])
    return datetime.fromisoformat(text).astimezone(UTC).day


@dataclass
class World:
    """One history's table and job. url: of the source; folder: of the spec."""

    engine: str
    url: str
    folder: Path
    rng: random.Random
    people: list[Person] = field(default_factory=list)
    written: Written = field(default_factory=Written)
    node: tuple[int, int] = (0, 0)

    @property
    def present(self) -> list[Person]:
        return [person for person in self.people if person.present]

    def change(self, *statements: str) -> None:
        """Change the source, as its owner."""
        if self.engine == "duckdb":
            with duckdb.connect(self.url.removeprefix("duckdb:///")) as connection:
                for statement in statements:
                    connection.execute(statement)
            return
        with psycopg.connect(self.url) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    def fill(self) -> None:
        """Write the table anew as it stands: the order of its rows says nothing."""
        shuffled = self.rng.sample(self.present, len(self.present))
        rows = ", ".join(
            f"({p.who + self.written.who_shift}, '{p.leaf[0]}', '{p.leaf[1]}', {self.written.value(p.value)})"
            for p in shuffled
        )
        written = self.written
        self.change(
            "DROP TABLE IF EXISTS people",
            f"CREATE TABLE people (who {written.who_type}, q VARCHAR, r VARCHAR, s {written.value_type})",
            f"INSERT INTO people VALUES {rows}",
        )

    def spec(self, name: str = "people", **changed: Any) -> Path:
        """Write the spec of a release; `changed` replaces top-level keys."""
        publish: dict[str, Any] = {"schema": "published", "view": name}
        if self.engine == "duckdb":
            publish["url"] = f"duckdb:///{self.folder}/{name}.duckdb"
        settings: dict[str, Any] = {
            "version": 1,
            "release": name,
            "source": {"url": self.url, "table": "people"},
            "entity": "who",
            "attributes": {
                "who": "identifying",
                "q": {"role": "quasi_identifier", "hierarchy": {"digits": 2}},
                "r": {"role": "quasi_identifier", "hierarchy": "suppress"},
                "s": "sensitive",
            },
            "privacy": [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
            "search": {"node": list(self.node)},
            "publish": publish,
            "versions": {},
        }
        # Every version shows the source: one that lags has attackers of its own (tests/steady).
        changed = {**changed, "versions": {"on_refusal": "refuse", **changed.get("versions", {})}}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings | changed, sort_keys=False), "utf-8")
        return path

    def rows(self, name: str = "people") -> list[tuple[Any, ...]]:
        """q, r, s of each row that a reader sees; none where nothing is published."""
        query = f"SELECT q, r, s FROM published.{name}"
        try:
            if self.engine == "duckdb":
                with duckdb.connect(f"{self.folder}/{name}.duckdb", read_only=True) as connection:
                    return connection.execute(query).fetchall()
            with psycopg.connect(self.url) as connection:
                return connection.execute(query).fetchall()  # type: ignore[arg-type]
        except (duckdb.Error, psycopg.Error):
            return []


def block(leaf: tuple[str, str], node: Sequence[int]) -> str:
    """The label of a leaf at a node, as it is published."""
    q = {0: leaf[0], 1: f"{leaf[0][0]}*", 2: "*"}[node[0]]
    return f"{q} {leaf[1] if node[1] == 0 else '*'}"


def drawn_people(rng: random.Random) -> list[Person]:
    """10 to 12 people: in pairs that differ, so that any node passes with any other; or as it comes."""
    leaves = rng.sample(LEAVES, rng.choice([2, 3, 4, 6]))
    diverse = rng.random() < 0.5
    people: list[Person] = []
    for who in range(rng.choice([10, 12])):
        if diverse and who % 2:
            other = people[-1]
            people.append(Person(who, other.leaf, rng.choice([v for v in VALUES if v != other.value])))
        else:
            people.append(Person(who, rng.choice(leaves), rng.choice(VALUES)))
    return people


Draw = Callable[[World], None]


def churn(world: World) -> None:
    """Who comes: two people of one leaf who differ, at most a fifth of all. Seldom somebody leaves, or changes."""
    rng, people = world.rng, world.people
    if rng.random() < 0.6:
        first, second = rng.sample(VALUES, 2)
        leaf = rng.choice(people).leaf
        people += [Person(len(people), leaf, first), Person(len(people) + 1, leaf, second)]
    if rng.random() < 0.1:
        rng.choice(people).present = False
    if rng.random() < 0.1:
        rng.choice(people).value = rng.choice(VALUES)
