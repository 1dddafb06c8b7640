"""What `qblock init` counts of texts: in how many rows there is one of each form, beside a count by Python."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from engines import COLLATION
from integration.sources import execute

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.profiling.profiles import LENGTHS, Table, profile
from qblock.profiling.words import CODES

pytestmark = pytest.mark.every_postgresql

TEXTS = [
    *("", " ", "-", "@", "%", "a'b", "ann@example.org", "a b@c.de", "x@y", "0", "007", "D04", "12345", "90210-1234"),
    *("020 7946 0958", "+49 (30) 1234567", "123.456.789", "1234567", "999999999999", "9999999999999", "C34.1", "J45"),
    *("DE", "IE", "USA", "de", "10.0.0.1", "DE89370400440532013000", "2345-7", "a sentence of many words", "é" * 21),
    "exactly twenty chars",
]
FORMS: dict[str, Callable[[str], bool]] = {
    "long": lambda text: len(text) > 20,
    "at": lambda text: "@" in text,
    "mails": lambda text: re.search(r"(?s)^.+@.+\..+$", text) is not None and " " not in text,
    "digits": lambda text: any(character in "0123456789" for character in text),
    "numbers": lambda text: re.fullmatch(r"[ +\-/().0-9]*", text) is not None and len(re.findall("[0-9]", text)) >= 7,
}


def code(name: str, text: str) -> bool:
    of = next(of for of in CODES if of.name == name)
    return bool(of.countries and text in {"DE", "IE", "USA"}) or bool(
        of.pattern and re.match(f"^({of.pattern})$", text)
    )


def looked_at(url: str) -> dict[str, Any]:
    opened = open_warehouse(url, Path.cwd())
    try:
        with opened.snapshot() as session:
            return {p.column.name: p for p in profile(Table(session, TableName.parse("visits")))[1]}
    finally:
        opened.close()


@pytest.mark.parametrize("seed", range(3))
def test_texts_that_repeat_and_texts_that_do_not_are_counted_by_row(warehouse: Any, seed: int) -> None:
    draw = random.Random(seed)
    every = [draw.choice([*TEXTS, None]) for _ in range(400)]
    columns: dict[str, list[str | None]] = {
        "repeats": every,
        "differs": [draw.choice([f"{text or ''}{i}", f"{i}{text or ''}"]) for i, text in enumerate(every)],
        "few": [*draw.sample(TEXTS, len(TEXTS)), *TEXTS[-9:], *[None] * (391 - len(TEXTS))],
        "empty": [None] * 399 + ["7"],
    }
    profiles = looked_at(warehouse("visits", columns))
    assert profiles["repeats"].distinct * 2 <= 400 - profiles["repeats"].nulls
    assert profiles["few"].distinct * 2 > 400 - profiles["few"].nulls
    for name, column in columns.items():
        there, seen = [text for text in column if text is not None], profiles[name]
        assert {form: getattr(seen, form) for form in FORMS} == {
            form: sum(map(is_one, there)) for form, is_one in FORMS.items()
        }, name
        assert seen.codes == tuple(
            sum(re.fullmatch(f"[0-9]{{{n}}}", text) is not None for text in there) for n in LENGTHS
        )
        assert seen.forms == tuple(sum(code(of.name, text) for text in there) for of in CODES), name
        assert (seen.shortest, seen.longest) == (min(map(len, there)), max(map(len, there)))


FOLDED = {
    "duckdb": ["CREATE TABLE visits (word VARCHAR COLLATE NOCASE, address VARCHAR COLLATE NOCASE)"],
    "postgresql": [
        COLLATION,
        "CREATE TABLE visits (word text COLLATE folded, address text COLLATE folded)",
    ],
}


def test_texts_that_a_column_takes_for_equal_are_looked_at_once(warehouse: Any, engine_name: str) -> None:
    """Such as two that differ in case. PostgreSQL matches no pattern in such a column."""
    row = "INSERT INTO visits SELECT 'word', 'ann@example.org' FROM generate_series(1, 60) AS series(i)"
    url = warehouse("unused", {"x": [1]})
    execute(url, *FOLDED[engine_name], row, row.replace("ann@", "ANN@"))
    figures = {name: (p.longest, p.mails, p.forms) for name, p in looked_at(url).items()}
    assert figures == {"word": (4, 0, (0,) * len(CODES)), "address": (15, 120, (0,) * len(CODES))}


def test_of_a_wide_table_the_first_columns_and_the_folder_are_named(
    warehouse: Any, qblock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(4)
    columns = {f"word{i}": [draw.choice("abcdefg") for _ in range(60)] for i in range(60)}
    url = warehouse("visits", columns)
    out = qblock("init", url, "visits", "--directory", tmp_path, "--sensitive", "word3").out
    listed = " ".join(out.split())
    assert re.search(r"yours to decide word\d+, (word\d+, ){38}word\d+ and 1\d others: left out until you", listed)
    assert f"Written: 59 hierarchies in {tmp_path / 'hierarchies'}, {tmp_path / 'release.yaml'}" in listed
    out = qblock("init", url, "visits", "--directory", tmp_path / "page", "--sensitive", "word3", "--open").out
    page = f"{tmp_path / 'page' / 'roles.html'}, {tmp_path / 'page' / 'release.yaml'}"
    assert f"Written: 59 hierarchies in {tmp_path / 'page' / 'hierarchies'}, {page}" in " ".join(out.split())
    flags = {f"flag{i}": [draw.choice([0, 1]) for _ in range(60)] for i in range(60)}
    out = qblock("init", warehouse("flags", flags), "flags", "--directory", tmp_path / "flags").out
    assert re.search(
        r"sensitive: (flag\d+ \(line \d+\), ){39}flag39 \(line \d+\) and 20 others\.",
        " ".join(out.split()),
    )


@pytest.mark.parametrize("kind", ["DOUBLE PRECISION", "DECIMAL(30, 12)"])
def test_ends_are_written_as_the_engine_writes_values(warehouse: Any, kind: str) -> None:
    """Without an exponent, whatever the engine says first."""
    draw = random.Random(8)
    exponents = (
        [-310, -40, -12, -7, -4, -1, 0, 3, 6, 15, 16, 22, 300] if kind.startswith("DOUBLE") else [-12, -1, 0, 9, 16]
    )
    columns: dict[str, list[Any]] = {
        f"c{i}": sorted(Decimal(f"{draw.choice([-1, 1]) * draw.randint(1, 99)}e{exponent}") for _ in range(2))
        for i, exponent in enumerate(exponents * 3)
    }
    columns["nothing"], columns["zero"] = [None, None], [Decimal(0), Decimal("-0.0")]
    if kind.startswith("DOUBLE"):
        columns["endless"], columns["no_number"] = [float("-inf"), float("inf")], [float("nan"), float("nan")]
    opened = open_warehouse(warehouse("visits", columns, dict.fromkeys(columns, kind)), Path.cwd())
    try:
        with opened.snapshot() as session:
            table = Table(session, TableName.parse("visits"))
            for p in profile(table)[1]:
                value = table.value(p.column)
                ends = [session.text_of(end, p.column.kind) for end in (sa.func.min(value), sa.func.max(value))]
                row = table.row([end.label(name) for end, name in zip(ends, ("least", "greatest"), strict=True)])
                assert (p.least, p.greatest) == (row["least"], row["greatest"]), p.column.name
    finally:
        opened.close()


def test_a_table_of_more_columns_than_a_statement_has_figures(warehouse: Any) -> None:
    """PostgreSQL answers 1,664 at most in one row, and each column takes six and more."""
    draw = random.Random(5)
    words = {f"w{i}": [draw.choice("abcdefg"[: 2 + i % 6]) for _ in range(30)] for i in range(150)}
    numbers = {f"n{i}": [draw.randrange(2 + i) for _ in range(30)] for i in range(150)}
    profiles = looked_at(warehouse("visits", words | numbers))
    assert {name: p.distinct for name, p in profiles.items()} == {
        name: len(set(column)) for name, column in (words | numbers).items()
    }
    assert {name: p.longest for name, p in profiles.items() if name in words} == dict.fromkeys(words, 1)
