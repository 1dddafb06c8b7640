"""What may befall a release between two runs, and must not make the check of its versions void.

Each event changes the world, and may write another spec to be run; the people and their real values stay who they are.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg

from attack.world import NUMBERS, TIME, VALUES, World

Event = Callable[[World], Path | None]
"""Does it, and gives the spec to run where that is not the release's own."""


def another_type_of_the_sensitive_column(world: World) -> None:
    if world.written.value_type != TIME:
        world.written.value_type = world.rng.choice([t for t in NUMBERS if t != world.written.value_type])


def another_type_of_the_entity_column(world: World) -> None:
    world.written.who_type = world.rng.choice([t for t in (*NUMBERS, "VARCHAR") if t != world.written.who_type])


def a_recode_of_the_sensitive_column(world: World) -> None:
    if world.rng.random() < 0.5:
        world.written.code = {real: code + 10 for real, code in world.written.code.items()}
    else:
        codes = world.rng.sample(range(1, 20), len(VALUES))
        world.written.code = dict(zip(VALUES, codes, strict=True))


def a_recode_of_the_entity_column(world: World) -> None:
    world.written.who_shift += 1000


def another_time_zone(world: World) -> None:
    zone = world.rng.choice(["America/New_York", "Asia/Kolkata", "Pacific/Auckland"])
    if world.engine == "postgresql":
        with psycopg.connect(world.url, autocommit=True) as connection:
            (name,) = connection.execute("SELECT current_database()").fetchone() or ("",)
            connection.execute(f"ALTER DATABASE {name} SET timezone = '{zone}'")
            connection.execute(f"ALTER DATABASE {name} SET datestyle = 'SQL, DMY'")
    else:
        os.environ["TZ"] = zone


def the_attribute_in_another_role(world: World) -> Path:
    """A release of the same audience that publishes the sensitive attribute as it is, at the leaves."""
    attributes = {
        "who": "identifying",
        "q": {"role": "quasi_identifier", "hierarchy": {"digits": 2}},
        "r": {"role": "quasi_identifier", "hierarchy": "suppress"},
        "s": "insensitive",
    }
    world.spec(versions={"audience": ["other"]})
    return world.spec(
        "other",
        attributes=attributes,
        privacy=[{"k_anonymity": {"k": 2}}],
        search={"choose_by": "loss"},
        versions={"audience": ["people"]},
    )


def a_second_spec_of_the_name(world: World) -> Path:
    """Another table's people under the name of this release."""
    world.change(
        "DROP TABLE IF EXISTS others",
        "CREATE TABLE others AS SELECT who + 5000 AS who, q, r, who + 100 AS s FROM people"
        if world.written.who_type != "VARCHAR"
        else "CREATE TABLE others AS SELECT who, q, r, 100 + length(who) AS s FROM people",
    )
    return world.spec(source={"url": world.url, "table": "others"}, search={"node": [2, 1]})


def private_state_lost(world: World) -> None:
    """All of it, or the ledger, or the crosswalk."""
    if world.engine == "duckdb":
        folder = world.folder / "qblock"
        what = world.rng.choice(["all", "ledger", "crosswalk"])
        if what == "all":
            shutil.rmtree(folder, ignore_errors=True)
        else:
            (folder / f"{what}.duckdb").unlink(missing_ok=True)
        return
    if world.rng.random() < 0.5:
        # Ledger and crosswalk together; the versions stay, since a dump of some tables was restored over them.
        world.change("DELETE FROM qblock.event", "DELETE FROM qblock.guarantee", "DELETE FROM qblock.pointer")
    tables = ("crosswalk", "crosswalk_version", "crosswalk_block", "crosswalk_episode", "crosswalk_signature")
    world.change(*(f"DELETE FROM qblock.{table}" for table in (*tables, "crosswalk_rolled", "crosswalk_frozen")))


def older_private_state(world: World) -> None:
    """A backup from before the last run is put back (`keep_backup` made it)."""
    if world.engine == "duckdb":
        backup = world.folder / "backup"
        if backup.exists():
            shutil.rmtree(world.folder / "qblock", ignore_errors=True)
            shutil.copytree(backup, world.folder / "qblock")
        return
    for table in _tables(world, "backup"):
        world.change(f'DELETE FROM qblock."{table}"', f'INSERT INTO qblock."{table}" SELECT * FROM backup."{table}"')


def keep_backup(world: World) -> None:
    """Keep what is private as it is now, with the folder's mode."""
    if world.engine == "duckdb":
        folder, backup = world.folder / "qblock", world.folder / "backup"
        shutil.rmtree(backup, ignore_errors=True)
        if folder.exists():
            shutil.copytree(folder, backup)
        return
    world.change("DROP SCHEMA IF EXISTS backup CASCADE", "CREATE SCHEMA backup")
    for table in _tables(world, "qblock"):
        if table.startswith(("crosswalk", "event", "guarantee", "pointer", "reference")):
            world.change(f'CREATE TABLE backup."{table}" AS SELECT * FROM qblock."{table}"')


def _tables(world: World, schema: str) -> list[str]:
    with psycopg.connect(world.url) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename"
        return [name for (name,) in connection.execute(query, [schema]).fetchall()]


EVENTS: tuple[Event, ...] = (
    another_type_of_the_sensitive_column,
    another_type_of_the_entity_column,
    a_recode_of_the_sensitive_column,
    a_recode_of_the_entity_column,
    another_time_zone,
    the_attribute_in_another_role,
    a_second_spec_of_the_name,
    private_state_lost,
    older_private_state,
)
TYPES: tuple[Event, ...] = (another_type_of_the_sensitive_column, another_type_of_the_entity_column)
"""After these `qblock ledger retype` may be the way on."""
