"""People whose every value carries a mark of its own, and the search for marks in all that a run leaves."""

from __future__ import annotations

import base64
import random
import re
import sqlite3
import string
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from psycopg import sql
from release.jobs import PEOPLE, Job

from qblock.ledger.stores import store_of

OFFSET = 48151600
"""Added to ages, which makes them unusual numbers in the same ranges."""
MARK = 9
"""Letters that stand before each text."""
KEPT = re.compile(r"crosswalk.*|reference|data_.*|v[0-9]+_.*")
"""Tables that hold values on purpose: the crosswalk, the kept counts, and the copies of what is published."""


MIDDLES = ["middle"]
"""What spreads have beside ends. The middle of a label is computed from these: that of 20-39 begins as the age 29 is
written, whoever has it."""


def marked(rng: random.Random) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """The people, and what became of each value: value -> marked value."""
    became: dict[str, str] = {}
    columns: dict[str, list[Any]] = {}
    for name, values in PEOPLE.items():
        columns[name] = []
        for value in values:
            if str(value) not in became:
                mark = "".join(rng.sample(string.ascii_letters, MARK))
                became[str(value)] = str(value + OFFSET) if isinstance(value, int) else f"{mark}{value}"
            new = became[str(value)]
            columns[name].append(int(new) if isinstance(value, int) else new)
    return columns, became


@dataclass
class MarkedJob(Job):
    """A job over marked people: what is written for plain people is written for these."""

    became: dict[str, str] = field(default_factory=dict)

    def _of(self, found: Any) -> Any:
        if found == {"digits": 5}:
            return {"digits": 5 + MARK}
        if isinstance(found, dict):
            return {self._key(key): self._of(value) for key, value in found.items()}
        if isinstance(found, list | tuple):
            return [self._of(value) for value in found]
        return self.became.get(found, found) if isinstance(found, str) and len(found) > 1 else found

    def _key(self, key: str) -> str:
        return self.became.get(key, key)

    def text(self, text: str) -> str:
        """A statement or a file, with each value of the plain people as it is marked."""
        words = sorted((w for w in self.became if len(w) > 2), key=len, reverse=True)
        text = re.sub(rf"(?<!\w)({'|'.join(map(re.escape, words))})(?!\w)", lambda m: self.became[m[1]], text)
        return re.sub(r"age < (\d+)", lambda m: f"age < {int(m[1]) + OFFSET}", text)

    def write(self) -> Path:
        plain = self.settings
        self.settings = self._of(plain)
        try:
            for file in self.folder.glob("*.csv"):
                file.write_bytes(self.text(file.read_bytes().decode("latin-1")).encode("latin-1"))
            return super().write()
        finally:
            self.settings = plain

    def change(self, statement: str) -> None:
        super().change(self.text(statement))


def forms(value: str) -> Iterator[tuple[str, str]]:
    """The ways in which a value may stand in a place, each with its name."""
    raw = value.encode()
    yield "plain", value
    yield "hexadecimal", raw.hex()
    yield "percent-encoded", "".join(f"%{byte:02x}" for byte in raw)
    for shift in range(3):
        # Of the three alignments of base64, what does not hang on the neighbours.
        whole = base64.b64encode(bytes(shift) + raw).decode()
        yield f"base64 at {shift}", whole[(0, 2, 3)[shift] + 2 * (shift > 0) : len(whole) // 4 * 4 - 4]


def found_in(marks: Iterable[str], places: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(place, form, mark) for each mark that is in a place."""
    texts = {place: (text, text.lower()) for place, text in places.items()}
    return [
        (place, name, mark)
        for mark in marks
        for name, form in forms(mark)
        for place, (text, lower) in texts.items()
        if (form in text if name.startswith("base64") else form.lower() in lower)
    ]


def pieces(became: Mapping[str, str]) -> list[str]:
    """What is looked for: the mark of each text, which a label or a cut text still holds, and each unusual number."""
    return sorted({new[: MARK - 2] if not new.isdecimal() else new for new in became.values()})


def ledger_texts(job: Job) -> dict[str, str]:
    """Every table of the ledger but those that are kept for their values, as SELECT gives it."""
    texts = {}
    if job.engine == "duckdb":
        place = store_of(job.spec)
        with closing(sqlite3.connect(str(place.file))) as ledger:
            for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                if not KEPT.fullmatch(name):
                    texts[f"ledger: {name}"] = repr(ledger.execute(f'SELECT * FROM "{name}"').fetchall())
        for file in sorted(place.folder.glob("*.duckdb")):
            try:
                opened = duckdb.connect(str(file), read_only=True)
            except duckdb.Error:
                continue
            with opened as connection:
                for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                    if not KEPT.fullmatch(name):
                        rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
                        texts[f"ledger: {file.stem}.{name}"] = repr(rows)
        return texts
    with psycopg.connect(job.url) as connection:
        names = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'qblock'::regnamespace AND relkind IN ('r', 'v')"
        ).fetchall()
        for (name,) in names:
            if not KEPT.fullmatch(name):
                table = sql.SQL("SELECT to_jsonb(t) - %s::text[] FROM qblock.{} AS t").format(sql.Identifier(name))
                rows = connection.execute(table, (MIDDLES if "_spread" in name else [],)).fetchall()
                texts[f"ledger: {name}"] = repr(rows)
    return texts


def not_private(job: Job) -> list[str]:
    """What keeps values on purpose, and others may read."""
    if job.engine == "duckdb":
        folder = store_of(job.spec).folder
        files = [file for file in folder.rglob("*.duckdb") if file.stat().st_mode & 0o077]
        return [str(path) for path in (folder, *files) if path.stat().st_mode & 0o077]
    with psycopg.connect(job.url) as connection:
        found = connection.execute(
            "SELECT c.relname::text, pg_get_userbyid(c.relowner) = current_user, "
            "coalesce((SELECT bool_or(a.grantee <> c.relowner) FROM aclexplode(c.relacl) a), false) "
            "FROM pg_class c WHERE c.relnamespace = 'qblock'::regnamespace AND c.relkind IN ('r', 'p')"
        ).fetchall()
    return [name for name, own, granted in found if KEPT.fullmatch(name) and (not own or granted)]
