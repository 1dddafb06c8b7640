"""Sensitive numbers that are published as ranges: models and readers get the ranges, and nothing else is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from engines import create_table, database

from qblock.errors import InputError, Refused
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import Job, new_job

INCOMES: dict[str, list[Any]] = {
    "integer": [-5, 0, 9_999, 10_000, 15_000, 19_999, 20_000, 2**40, None, 10_001, 29_999, 30_000],
    "decimal": ["-0.01", "0", "9999.99", "10000.00", "1.5", "19999.99", "20000", "99999.99", None, "5", "7", "30000"],
    "float": [-1e300, -0.0, 9999.999999, 1e4, 5e-324, 19999.5, 2e4, 1e300, None, 1.0, 29999.9, 3e4],
}
TYPES = {"integer": "BIGINT", "decimal": "NUMERIC(12, 2)", "float": "DOUBLE PRECISION"}
RANGES = {"ranges": [10_000], "from": 0, "to": 30_000}


def expected(value: Any, *, whole: bool) -> str | None:
    """The label by hand: of plain arithmetic on fractions."""
    if value is None:
        return None
    number = Fraction(value)
    if number < 0:
        return "<0"
    if number >= 30_000:
        return ">=30000"
    low = math.floor(number / 10_000) * 10_000
    return f"{low}-{low + 9_999}" if whole else f"[{low}, {low + 10_000})"


def columns_of(kind: str) -> dict[str, list[Any]]:
    incomes = INCOMES[kind] * 2
    return {"age": [20 + i % 2 for i in range(24)], "income": incomes, "name": [f"p{i}" for i in range(24)]}


def job_of(engine: str, folder: Path, url: str, kind: str, **income: Any) -> Job:
    create_table(url, "people", columns_of(kind), {"income": TYPES[kind]})
    job = new_job(engine, folder, url)
    job.settings["attributes"] = {
        "age": {"role": "quasi_identifier", "hierarchy": "suppress"},
        "income": {"role": "sensitive", "nulls": "value", "publish_as": RANGES, **income},
    }
    return job.set(privacy=[{"distinct_l_diversity": {"l": 3, "sensitive": "income"}}])


@pytest.fixture
def make(engine_url: Callable[[str, Path], str], tmp_path: Path) -> Callable[..., Job]:
    return lambda engine, kind, **more: job_of(engine, tmp_path, engine_url(engine, tmp_path), kind, **more)


@pytest.fixture
def engine_url(server: str) -> Iterator[Callable[[str, Path], str]]:
    with ExitStack() as stack:
        yield (
            lambda engine, folder: (
                f"duckdb:///{folder}/warehouse.duckdb" if engine == "duckdb" else stack.enter_context(database(server))
            )
        )


@pytest.mark.parametrize("kind", list(INCOMES))
@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_readers_get_the_ranges(make: Callable[..., Job], engine: str, kind: str) -> None:
    job = make(engine, kind)
    job.run()
    by_hand = sorted(str(expected(value, whole=kind == "integer")) for value in INCOMES[kind] * 2)
    assert sorted(str(row[0]) for row in job.query("SELECT income FROM published.people")) == by_hand
    assert not verify(job.spec).problems
    seen = [{expected(v, whole=True) for v in (INCOMES[kind] * 2)[i::2]} for i in (0, 1)]
    audited = next(entry for entry in Release(job.write()).audit("0").tightest if entry.model == "distinct_l_diversity")
    assert audited.values[0].value == min(map(len, seen))


def test_models_are_asked_of_the_ranges(make: Callable[..., Job]) -> None:
    """Eleven incomes are five labels and NULL: 7 values cannot be had, though the source has them."""
    job = make("duckdb", "integer").set(privacy=[{"distinct_l_diversity": {"l": 7, "sensitive": "income"}}])
    with pytest.raises(Refused, match="satisfies l 6"):
        job.run()
    del job.settings["attributes"]["income"]["publish_as"]
    assert job.run().status == "published"


def test_the_advice_names_the_key(make: Callable[..., Job]) -> None:
    job = make("duckdb", "integer").set(privacy=[{"distinct_l_diversity": {"l": 13, "sensitive": "income"}}])
    del job.settings["attributes"]["income"]["publish_as"]
    with pytest.raises(Refused, match=r"coarsen the sensitive attribute \(income: {role: sensitive, publish_as: {"):
        job.run()


def test_it_is_a_table_that_was_made_coarser_before(make: Callable[..., Job], tmp_path: Path) -> None:
    job = make("duckdb", "integer")
    (tmp_path / "before").mkdir()
    columns = columns_of("integer")
    columns["income"] = [expected(value, whole=True) for value in columns["income"]]
    create_table(f"duckdb:///{tmp_path}/before/warehouse.duckdb", "people", columns)
    plain = new_job("duckdb", tmp_path / "before", f"duckdb:///{tmp_path}/before/warehouse.duckdb")
    plain.set(privacy=job.settings["privacy"], attributes={**job.settings["attributes"]})
    plain.settings["attributes"]["income"] = {"role": "sensitive", "nulls": "value"}
    assert job.run().digest == plain.run().digest


def test_it_goes_with_a_condition_on_the_number_itself(make: Callable[..., Job]) -> None:
    job = make("duckdb", "integer")
    job.settings["source"]["where"] = "income >= 10001"
    job.set(privacy=[{"k_anonymity": {"k": 2}}])
    job.run()
    kept = sorted(str(expected(v, whole=True)) for v in INCOMES["integer"] * 2 if v is not None and v >= 10_001)
    assert sorted(row[0] for row in job.query("SELECT income FROM published.people")) == kept


@pytest.mark.parametrize("form", ["parquet", "only read"])
def test_what_is_copied_has_the_ranges_too(
    make: Callable[..., Job], form: str, tmp_path: Path, engine_url: Callable[[str, Path], str]
) -> None:
    job = make("duckdb", "integer")
    digest = job.run().digest
    (tmp_path / "copied").mkdir()
    if form == "parquet":
        with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
            connection.execute(f"COPY people TO '{tmp_path}/copied/people.parquet'")
        source: dict[str, Any] = {"file": "people.parquet"}
    else:
        url = engine_url("postgresql", tmp_path)
        create_table(url, "people", columns_of("integer"), {"income": "BIGINT"})
        source = {"url": url, "table": "people"}
    copied = Job("duckdb", tmp_path / "copied", "", {**job.settings, "source": source})
    copied.settings["publish"] = {**job.settings["publish"], "url": f"duckdb:///{tmp_path}/copied/release.duckdb"}
    assert copied.run().digest == digest


@pytest.mark.parametrize(
    ("column", "entry", "said"),
    [
        ("age", {"role": "quasi_identifier", "hierarchy": "suppress", "publish_as": RANGES}, "write `hierarchy`"),
        ("age", {"role": "insensitive", "publish_as": RANGES}, "age is insensitive; remove it"),
        ("income", {"role": "sensitive", "publish_as": {"ranges": [10]}}, "write both: {ranges: "),
        ("income", {"role": "sensitive", "publish_as": {**RANGES, "ranges": [10, 20]}}, "ranges of one width"),
        ("income", {"role": "sensitive", "publish_as": {**RANGES, "ranges": [1]}}, "more than 1,000 ranges"),
        ("name", {"role": "sensitive", "publish_as": RANGES}, "ranges are of numbers"),
    ],
)
def test_what_cannot_be_ranges_is_refused(
    make: Callable[..., Job], column: str, entry: dict[str, Any], said: str
) -> None:
    job = make("duckdb", "integer")
    job.settings["attributes"][column] = entry
    with pytest.raises(InputError, match=said):
        job.run()
    assert not job.target.exists()


def test_the_order_of_ranges_is_asked_for(make: Callable[..., Job]) -> None:
    """As text <0 and 10000-19999 have no order: a distance of numbers is not silently one of texts."""
    job = make("duckdb", "integer", order="ascending")
    job.set(privacy=[{"t_closeness": {"t": 0.5, "distance": "ordered", "sensitive": "income"}}])
    with pytest.raises(InputError, match="order"):
        job.run()
    order = ["<0", "0-9999", "10000-19999", "20000-29999", ">=30000", None]
    job.settings["attributes"]["income"]["order"] = order
    assert job.run().status == "published"
