"""Weekly runs of the job on the demo's people: `python -m benchmarks.weeks [--people N] [--churn S] [--node NODE]`.

The spec is that of the demo, with its recoding map; `--node` asks for a node instead, `--least` and `--within` for
other boxes and another delay. In each week as many people join as leave, and a tenth as many have another occupation
and salary. Prints what became of the runs, how long newcomers waited and how far the view lagged, beside what `qblock
plan --churn` said, and the time of a run in units of one GROUP BY over the raw columns. Waits are counted in runs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import sqlalchemy as sa

from benchmarks.clock import Clock, summary
from benchmarks.units import one_group_by
from qblock.cli.app import run as qblock
from qblock.demo.people import generate
from qblock.demo.tables import load_people, place_at
from qblock.demo.write import IN_FOLDER, SCHEMA, TABLE, write_demo
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.releases import Release
from qblock.spec import load_spec
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.pending.state import State, read_state

PEOPLE_SEED, NEWCOMERS_SEED, CHURN_SEED = 1, 2, 20_262
CHANGED = ("occupation", "salary_class")
IDLE_RUNS = 5


class Source:
    """The table of people in DuckDB or PostgreSQL."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url, self.directory, self.clock = url, directory, Clock(url)
        self.table = f"{SCHEMA}.{TABLE}" if url.startswith("postgresql") else "main.people"

    def change(self, leave: np.ndarray, join: pa.Table, changed: pa.Table) -> None:
        """Delete people, insert others, and give some other values (by person_id)."""
        if self.url.startswith("duckdb"):
            with duckdb.connect(str(self.directory / self.url.removeprefix("duckdb:///"))) as connection:
                connection.register("leaving", pa.table({"person_id": leave}))
                connection.register("joining", join)
                connection.register("changing", changed)
                named = ", ".join(f"{name} = changing.{name}" for name in CHANGED)
                connection.execute(f"DELETE FROM {self.table} WHERE person_id IN (SELECT person_id FROM leaving)")
                connection.execute(f"INSERT INTO {self.table} BY NAME SELECT * FROM joining")
                connection.execute(
                    f"UPDATE {self.table} SET {named} FROM changing WHERE changing.person_id = people.person_id"
                )
            return
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {self.table} WHERE person_id = ANY(%s)", [leave.tolist()])
            with cursor.copy(f"COPY {self.table} ({', '.join(join.column_names)}) FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in join.columns), strict=True):
                    copy.write_row(row)
            named = ", ".join(f"{name} = %s" for name in CHANGED)
            rows = [(*(row[name] for name in CHANGED), row["person_id"]) for row in changed.to_pylist()]
            cursor.executemany(f"UPDATE {self.table} SET {named} WHERE person_id = %s", rows)


class People:
    """Who is in the source, and who joins, leaves and changes in each week."""

    def __init__(self, rows: int, weeks: int, share: float) -> None:
        self.random = np.random.default_rng(CHURN_SEED)
        self.moving, self.changing = round(rows * share), max(1, round(rows * share / 10))
        self.present = np.arange(1, rows + 1)
        self.pool = generate(max(1, self.moving * weeks), NEWCOMERS_SEED)
        self.pool = self.pool.set_column(0, "person_id", pa.array(np.arange(rows + 1, rows + 1 + len(self.pool))))
        self.joined = 0

    @property
    def size(self) -> int:
        """How many rows the source has."""
        return len(self.present)

    def week(self) -> tuple[np.ndarray, pa.Table, pa.Table]:
        leave = self.random.choice(self.present, self.moving, replace=False)
        join = self.pool.slice(self.joined, self.moving)
        self.joined += self.moving
        stay = np.setdiff1d(self.present, leave)
        who = self.random.choice(stay, self.changing, replace=False)
        # A value like that of somebody else; for a few it is the same as before, and nothing changes.
        like = self.random.integers(0, len(self.pool), self.changing)
        values = self.pool.select(CHANGED).take(like)
        changed = pa.table({"person_id": who, **{name: values[name].cast(pa.string()) for name in CHANGED}})
        self.present = np.concatenate([stay, join["person_id"].to_numpy()])
        plain = pa.schema([(c.name, pa.string() if pa.types.is_dictionary(c.type) else c.type) for c in join.schema])
        return leave, join.cast(plain), changed


@dataclass
class Waits:
    """How long newcomers waited, followed in the crosswalk by digest. before: since which run somebody waits."""

    place: Store
    release: str
    before: dict[str, int] = field(default_factory=dict)
    shown: int = 0
    waited: int = 0
    worst: int = 0

    def follow(self, admitted: int) -> State:
        """After a run that has shown so many newcomers."""
        with self.place, open_crosswalk(self.place, read_only=True) as crosswalk:
            state = read_state(crosswalk, self.release)
            assert state is not None
            t = crosswalk.tables.shown
            rows = crosswalk.own.fetch(sa.select(t.c.entity).where(t.c.release == self.release))
        shown = set(rows["entity"].to_pylist())
        run = state.memory.run
        now = {person: since for person, since in state.memory.since.items() if person not in shown}
        done = [run - since for person, since in self.before.items() if person not in now and person in shown]
        self.shown += admitted
        self.waited += sum(done)
        self.worst = max([self.worst, *done, *(run - since for since in now.values())])
        self.before = now
        return state


def job(source: Source, arguments: list[str]) -> tuple[int, tuple[float, float]]:
    """Exit status of a command, and what it took."""
    statuses: list[int] = []
    with contextlib.redirect_stdout(io.StringIO()):
        taken = source.clock.measured(lambda: statuses.append(qblock(arguments)))
    return statuses[0], taken


def prepared(directory: Path, url: str | None, rows: int) -> tuple[Source, Path]:
    """The demo's people and spec, with an entity."""
    directory.mkdir(parents=True, exist_ok=True)
    demo = write_demo(directory, rows, PEOPLE_SEED, IN_FOLDER if url is None else place_at(url))
    text = demo.spec.read_text("utf-8")
    if url is not None:
        load_people(url, rows, PEOPLE_SEED)
        os.environ["WAREHOUSE_URL"] = url
    if "\nentity:" not in text:
        demo.spec.write_text(text.replace("\nsource:", "\nentity: person_id\nsource:", 1), "utf-8")
    return Source(url or "duckdb:///census.duckdb", directory), demo.spec


def at_node(choice: str, spec: Path, share: float) -> dict[str, Any]:
    """Pin a node (`chosen` by the search, `recommended`, or its levels), and say what is expected of it."""
    text = spec.read_text("utf-8").replace("recoding: multidimensional, ", "", 1).replace(", box: {least: 40}", "", 1)
    spec.write_text(text, "utf-8")
    answer = Release(spec).search(churn=share).to_dict()
    named = {"recommended": answer["forecast"]["recommended"], "chosen": answer["chosen"]["levels"]}
    node = named[choice] if choice in named else [int(level) for level in choice.split(",")]
    spec.write_text(text.replace("search: {", f"search: {{node: {node}, ", 1), "utf-8")
    (entry,) = Release(spec).search(churn=share).to_dict()["forecast"]["nodes"]
    return {"node": node, "lag": entry["lag"], "worst lag": entry["worst_lag"], "oldest wait": entry["worst_wait"]}


def of_boxes(spec: Path, share: float) -> dict[str, Any]:
    """What is expected of the boxes and the delay that the spec says."""
    (row,) = (row for row in Release(spec).plan(churn=share).to_dict()["frontier"]["rows"] if row["today"])
    return {
        "not shown": row["not_shown"],
        "most not shown": row["most_not_shown"],
        "oldest wait": row["longest_wait"],
        "leavers": row["left"],
        "versions": row["versions"],
    }


def weekly(source: Source, spec: Path, people: People, weeks: int) -> dict[str, Any]:
    """Run the job in each week; then again, with nothing new."""
    place, release = store_of(load_spec(spec)), load_spec(spec).release
    result = spec.with_name("result.json")
    waits, statuses, lags = Waits(place, release), [], []
    times: dict[str, list[tuple[float, float]]] = {"first": [], "publishing": [], "waiting": [], "unchanged": []}
    kept: State | None = None
    by_week: list[dict[str, Any]] = []
    reasons: Counter[str] = Counter()
    for week in range(weeks + 1 + IDLE_RUNS):
        if 0 < week <= weeks:
            source.change(*people.week())
        status, taken = job(source, ["release", str(spec), "--quiet", "--result", str(result)])
        outcome = json.loads(result.read_text("utf-8"))
        if week > weeks:
            times["unchanged"].append(taken)
            continue
        statuses.append(status)
        if status:
            reasons[outcome["reason"]] += 1
            continue
        if week:
            times["publishing" if outcome["status"] == "published" else "waiting"].append(taken)
            lags.append(outcome["lag"]["share"])
            left = outcome["waiting"].get("leavers", 0)
            there = outcome["rows"] - left
            by_week.append(
                {"week": week, "rows": outcome["rows"], "leavers": left, "not shown": 1 - there / people.size}
            )
        else:
            times["first"].append(taken)
        kept = waits.follow(_admitted(spec, outcome["run"]) if week else 0)
    assert kept is not None
    return {
        "runs": weeks,
        "published": len(times["publishing"]),
        "exit statuses": dict(Counter(statuses)),
        "refused": dict(reasons),
        "lag": {"mean": statistics.fmean(lags), "last": lags[-1], "worst": max(lags)},
        "mean wait": waits.waited / waits.shown if waits.shown else None,
        "oldest wait": waits.worst,
        "newcomers shown": waits.shown,
        "newcomers waiting": len(waits.before),
        "by week": by_week,
        "batches closed": dict(kept.closed),
        "batches failed": dict(kept.failed),
        "times": times,
    }


def _admitted(spec: Path, run: str) -> int:
    """Newcomers whom a run has shown."""
    events = Release(spec).history().to_dict()["events"]
    return sum(
        int((e["detail"] or {}).get("newcomers", 0)) for e in events if (e["run"], e["state"]) == (run, "published")
    )


def report(stats: dict[str, Any]) -> None:
    def percent(share: float) -> str:
        return f"{share:.2%}"

    expected, lag = stats["expected"] or {}, stats["lag"]
    print(f"{stats['engine']}, {stats['people']:,} people, {stats['churn']:.1%} a week, node {stats['node']}")
    print(f"  runs that published     {stats['published']} of {stats['runs']}; exit statuses {stats['exit statuses']}")
    for reason, n in stats["refused"].items():
        print(f"  refused {n} times       {reason}")
    print(f"  lag                     mean {percent(lag['mean'])}, last {percent(lag['last'])}", end="")
    print(f", worst {percent(lag['worst'])}", end="")
    if "lag" in expected:
        print(f"; expected mean {percent(expected['lag'])}, worst {percent(expected['worst lag'])}", end="")
    print()
    print(f"  wait of newcomers       mean {stats['mean wait'] or 0:.2f}, longest {stats['oldest wait']} runs", end="")
    print(f"; expected longest {expected['oldest wait']}" if expected else "")
    print(f"  newcomers               {stats['newcomers shown']:,} shown, {stats['newcomers waiting']:,} wait")
    for said in stats["by week"]:
        if said["week"] % 13 == 0 or said is stats["by week"][-1]:
            gone = f"{said['leavers']:,} ({percent(said['leavers'] / said['rows'])}) of people who have left"
            print(f"  week {said['week']:<19}{said['rows']:,} rows, {gone}; {percent(said['not shown'])} not shown")
    if expected and "leavers" in expected:
        year = f"{percent(expected['leavers'])} of people who have left after a year, {expected['versions']} versions"
        hidden = f"{percent(expected['not shown'])} not shown on average, {percent(expected['most not shown'])} at most"
        print(f"  expected                {year}; {hidden}")
    closed, failed = stats["batches closed"], stats["batches failed"]
    print(f"  batches                 closed {closed}, failed {failed}; expected to fail 0.1 %")
    print(f"  one leaf GROUP BY       {stats['group by']['seconds']:.3f} s ({stats['group by']['cpu']:.3f} s of CPU)")
    for kind, taken in stats["times"].items():
        if taken:
            print(
                f"  {kind + ' run':<23} {taken['seconds']:.2f} s, {taken['ratio']:.0f} GROUP BYs "
                f"({taken['cpu']:.2f} s of CPU, {taken['cpu ratio']:.0f}; longest {taken['longest']:.2f} s; "
                f"{taken['runs']} runs)"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--churn", type=float, default=0.01)
    parser.add_argument("--node", help="instead of a map: recommended, chosen (by the search alone), or levels")
    parser.add_argument("--least", type=int, default=40, help="people of a box of the map, at least")
    parser.add_argument("--within", type=int, default=1, help="in how many runs newcomers are shown")
    parser.add_argument("--url", help="a PostgreSQL database to load and measure instead of DuckDB")
    parser.add_argument("--directory", type=Path, help="where to keep the demo, the ledger and the versions")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        source, spec = prepared(arguments.directory or Path(temporary), arguments.url, arguments.people)
        text = spec.read_text("utf-8").replace("box: {least: 40}", f"box: {{least: {arguments.least}}}", 1)
        spec.write_text(text.replace("{within: 1}", f"{{within: {arguments.within}}}", 1), "utf-8")
        expected = at_node(arguments.node, spec, arguments.churn) if arguments.node else of_boxes(spec, arguments.churn)
        unit = one_group_by(spec)
        people = People(arguments.people, arguments.weeks, arguments.churn)
        stats = weekly(source, spec, people, arguments.weeks)
    stats["times"] = {kind: summary(taken, unit) for kind, taken in stats["times"].items() if taken}
    stats |= {
        "engine": "postgresql" if arguments.url else "duckdb",
        "people": arguments.people,
        "churn": arguments.churn,
        "node": expected.get("node", "of a map"),
        "expected": expected,
        "group by": dict(zip(("seconds", "cpu"), unit, strict=True)),
    }
    if arguments.json:
        print(json.dumps(stats, indent=2))
    else:
        report(stats)


if __name__ == "__main__":
    main()
