"""Random histories through the whole job, with what may befall it; and the attacker who kept every table.

python -m tests.attack.play --engine duckdb --histories 200 --first 1000
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engines import database, start_server
from versions.register import Row

from attack.events import EVENTS, TYPES, Event, another_time_zone, keep_backup
from attack.seen import certain, register_of
from attack.world import NODES, TIME, World, block, churn, drawn_people
from qblock.errors import QblockError
from qblock.release.apply import release
from qblock.release.retype import retype
from qblock.spec import load_spec

RUNS = 3


@dataclass
class Tally:
    """histories, versions; quiet: runs without an event but for the first, and published or found unchanged among them;
    events: kind and how the run after it ended; disclosed: seeds in which somebody is certain, or an audience sees
    rows of another one's table."""

    histories: int = 0
    versions: int = 0
    quiet: int = 0
    quiet_published: int = 0
    several: int = 0
    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    disclosed: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        ended = "\n".join(f"  {name}: {how} {n}" for (name, how), n in sorted(self.events.items()))
        return (
            f"{self.histories} histories, {self.versions} versions, {self.several} histories with more than one; "
            f"{self.quiet_published} of {self.quiet} later runs without an event published; "
            f"{len(self.disclosed)} disclosed {self.disclosed}\n{ended}"
        )


def run(path: Path) -> str:
    """How a run of the job ends."""
    return _exit_of(lambda: release(load_spec(path)).status)


def _exit_of(command: Callable[[], str]) -> str:
    try:
        return command()
    except QblockError as error:
        return f"exit {error.exit_status}"


def play(world: World, seed: int, tally: Tally) -> None:
    """One history: the first version, then runs with churn, and an event before one of them, or none."""
    rng = world.rng
    world.people = drawn_people(rng)
    world.node = rng.choice(NODES[2:])
    if rng.random() < 0.2:
        world.written.value_type = TIME
    strikes = rng.choice([None, *range(1, RUNS)])
    audience = Audience(world)
    for number in range(RUNS):
        if number:
            churn(world)
            if rng.random() < 0.4:
                world.node = rng.choice(NODES)
        world.fill()
        if number and number == strikes:
            _struck(world, tally, audience)
        else:
            keep_backup(world)
            ended = audience.after(run(world.spec()))
            if number and len(audience.shown) > (ended == "published"):
                tally.quiet += 1
                tally.quiet_published += ended in ("published", "unchanged")
    tally.histories += 1
    tally.versions += len(audience.shown)
    tally.several += len(audience.shown) > 1
    if audience.foreign or certain(register_of(audience.shown)):
        tally.disclosed.append(seed)


def _struck(world: World, tally: Tally, audience: Audience) -> None:
    """An event, and the run after it: of the spec that it wrote, or of the release's own."""
    event: Event = world.rng.choice([e for e in EVENTS if e is not another_time_zone or _zoned(world)])
    other = event(world)
    world.fill()
    if other is None:
        other = world.spec()
    elif other.stem == "other":
        # Either may be published first.
        ended = audience.after(run(world.folder / "people.yaml"))
        tally.events[event.__name__, ended] += 1
    ended = audience.after(run(other), other.stem)
    tally.events[f"{event.__name__}{', the other release' if other.stem == 'other' else ''}", ended] += 1
    if event in TYPES and ended == "exit 3" and world.rng.random() < 0.5:
        moved = _exit_of(lambda: retype(load_spec(other)).status)
        tally.events[f"{event.__name__}, then retype", moved] += 1
        ended = audience.after(run(other))
        tally.events[f"{event.__name__}, after retype", ended] += 1


def _zoned(world: World) -> bool:
    return world.written.value_type == TIME


class Audience:
    """Whoever kept every table that was ever readable. shown: the versions; foreign: rows of another table's people."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.shown: list[list[Row]] = []
        self.foreign = False

    def after(self, ended: str, name: str = "people") -> str:
        """Take down what readers see after a run that ended like this."""
        if ended == "published":
            self._note(name)
        return ended

    def _note(self, name: str) -> None:
        written = self.world.written
        seen = Counter((f"{q} {r}", str(written.real(s))) for q, r, s in self.world.rows(name))
        labels = {label for label, _ in seen}
        rows = {
            person.who: Row(str(person.who), len(self.shown) + 1, label, str(person.value), True)
            for person in self.world.present
            for node in NODES
            if (label := block(person.leaf, node)) in labels
        }
        # The table tells which rows there are, not whose: if not of these people, they are another audience's.
        if Counter((row.block, row.value) for row in rows.values()) == seen:
            self.shown.append(list(rows.values()))
        else:
            self.foreign = True


@contextmanager
def database_of(engine: str, server: str | None, folder: str) -> Iterator[str]:
    """URL of an empty database for a history."""
    if engine == "duckdb":
        yield f"duckdb:///{folder}/warehouse.duckdb"
        return
    assert server is not None
    with database(server) as url:
        yield url


def play_all(engine: str, server: str | None, seeds: Sequence[int], say: Callable[[str], None] | None = None) -> Tally:
    """The histories of some seeds on an engine."""
    tally = Tally()
    zone = os.environ.get("TZ")
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="qblock-attack-") as name, database_of(engine, server, name) as url:
            play(World(engine, url, Path(name), random.Random(seed)), seed, tally)
        if zone is None:
            os.environ.pop("TZ", None)
        else:
            os.environ["TZ"] = zone
        if say is not None and tally.histories % 10 == 0:
            say(str(tally).splitlines()[0])
    return tally


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Random histories of the whole job under an exact attacker.")
    parser.add_argument("--engine", choices=["duckdb", "postgresql"], default="duckdb")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--first", type=int, default=100_000, help="the first seed")
    options = parser.parse_args(arguments)
    server = None
    if options.engine == "postgresql":
        server = start_server()
    seeds = range(options.first, options.first + options.histories)
    tally = play_all(options.engine, server, seeds, lambda line: print(line, file=sys.stderr))
    print(tally)
    return 1 if tally.disclosed or 2 * tally.quiet_published < tally.quiet else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
