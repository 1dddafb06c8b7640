"""Writes the demo's folder: the DuckDB warehouse, hierarchies and the release spec."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

import duckdb
import pyarrow as pa

from qblock.demo.people import ROWS, SEED, WORDS, generate, hierarchies
from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.faults import explain_duckdb
from qblock.errors import InputError, QblockError
from qblock.ledger.stores import store_of
from qblock.resources import sql_text
from qblock.spec import read_spec

WAREHOUSE = "census.duckdb"
PUBLISHED, PRIVATE = "published.duckdb", "qblock"
"""What the job makes: the release file, and the folder of ledger, crosswalk and versions."""
MADE = (WAREHOUSE, PUBLISHED, PRIVATE)
SPEC = "release.yaml"
RECORD = ".qblock-demo.json"
"""Lists what the demo wrote or had the job write, with the digest of the files that a person may edit."""

SCHEMA, TABLE = "census", "people"


@dataclass(frozen=True)
class Place:
    """Where the people are. source, table, publish: of the spec; files: what is in the folder besides texts."""

    source: str
    table: str
    publish: str
    files: tuple[str, ...] = ()


# DuckDB names the file's catalog after the file, and cannot tell a schema of the same name from it.
_IN_FILE = f'url: "duckdb:///{PUBLISHED}", schema: main, view: census'
_ON_SERVER = "${WAREHOUSE_URL}", f"{SCHEMA}.{TABLE}"
IN_FOLDER = Place(f"duckdb:///{WAREHOUSE}", f"main.{TABLE}", _IN_FILE, MADE)
IN_POSTGRESQL = Place(*_ON_SERVER, "schema: published, view: census")
# A release on Spark would need two folders of the cluster that only some may read.
IN_SPARK = Place(*_ON_SERVER, _IN_FILE, (PUBLISHED, PRIVATE))


@dataclass(frozen=True)
class Demo:
    """What was written. warehouse: the DuckDB file, or None where the people are not in the folder."""

    directory: Path
    spec: Path
    warehouse: Path | None


def spec_text(place: Place = IN_FOLDER) -> str:
    """The release spec; that of a server names it WAREHOUSE_URL."""
    template = Template(Path(__file__).with_name("release.yaml.template").read_text("utf-8"))
    return template.substitute(vars(place), salaries=", ".join(WORDS.salaries))


def write_demo(directory: Path, rows: int = ROWS, seed: int = SEED, place: Place = IN_FOLDER) -> Demo:
    """Write census.duckdb (where the people are in the folder), hierarchies/*.csv and release.yaml.

    Files of an earlier demo are rewritten, and what was published of its people, with its ledger and crosswalk, is
    removed: they are evidence about people who are there no more. Raises InputError, before anything is written, where
    the folder holds a file of one of these names that is not the demo's or was edited since, or the ledger of another
    release.
    """
    people = generate(rows, seed) if WAREHOUSE in place.files else None
    texts = {f"hierarchies/{name}.csv": text for name, text in hierarchies().items()} | {SPEC: spec_text(place)}
    path = directory / WAREHOUSE if people is not None else None
    with _filesystem(directory):
        known = _known(directory)
        _check(directory, known, texts, place.files)
        for name, text in texts.items():
            _write_text(directory / name, text)
        record: dict[str, str | None] = {name: _digest(text.encode()) for name, text in texts.items()}
        record |= dict.fromkeys(name for name in MADE if name in place.files or name in known)
        _write_text(directory / RECORD, json.dumps(record, indent=1) + "\n")
        if PUBLISHED in place.files:
            (directory / PUBLISHED).unlink(missing_ok=True)
        if PRIVATE in place.files and (directory / PRIVATE).exists():
            shutil.rmtree(directory / PRIVATE)
        if path is not None and people is not None:
            write_warehouse(path, people)
    return Demo(directory, directory / SPEC, path)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, "utf-8")
    new.replace(path)


def write_warehouse(path: Path, people: pa.Table) -> None:
    """Write people (`generate`) to the DuckDB file in place of those that it has.

    Fills a new file beside the old one, then rename it: whoever has the old one open can go on reading it."""
    new = path.with_name(f".{path.name}.new")
    for stale in (new, _log(new), _log(path)):
        stale.unlink(missing_ok=True)  # DuckDB would replay a log that a crash left into the new file
    try:
        with duckdb_session.connect(new) as connection:
            connection.register("generated", people)
            connection.execute(sql_text("demo_people", "duckdb"))
    except duckdb.Error as error:
        raise explain_duckdb(error) from error
    new.replace(path)


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def _check(directory: Path, known: dict[str, str | None], texts: dict[str, str], files: tuple[str, ...]) -> None:
    """Refuse to overwrite what a person made. A text that is already what will be written was left by a crash."""
    for name in files:
        if (directory / name).exists() and name not in known:
            raise InputError(f"{directory / name} is not the demo's; name another folder, or move it away")
    for name, text in texts.items():
        path = directory / name
        if path.exists() and _digest(path.read_bytes()) not in (known.get(name), _digest(text.encode())):
            what = "was edited since the demo wrote it" if name in known else "is not a file of the demo"
            raise InputError(f"{path} {what}; name another folder, or move it away")
    if PRIVATE in files:
        _check_ledger(directory / PRIVATE)


def _check_ledger(folder: Path) -> None:
    spec = read_spec(spec_text(), folder.parent / SPEC)
    place = store_of(spec)
    if not place.exists:
        return
    with place.read() as reader:
        if set(reader.releases()) - {spec.release}:
            raise InputError(f"{folder} has the ledger of other releases than the demo's; name another folder")


def _known(directory: Path) -> dict[str, str | None]:
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; name a folder for the demo")
    record = directory / RECORD
    if not record.exists():
        return {}
    try:
        return dict(json.loads(record.read_text("utf-8")))
    except ValueError as error:
        raise InputError(f"{record} is not a record of the demo; name another folder, or move it away") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _filesystem(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise QblockError(f"the demo cannot be written to {directory}: {error.strerror or error}") from error
