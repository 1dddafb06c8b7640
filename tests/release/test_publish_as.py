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
    "single": [-1.5, -0.0, 9999.9, 1e4, 16777216.0, 0.1, 2e4, 3e38, None, 1.0, 29999.9, 3e4],
    "float": [-1e300, -0.0, 9999.999999, 1e4, 5e-324, 19999.5, 2e4, 1e300, None, 1.0, 29999.9, 3e4],
}
TYPES = {"integer": "BIGINT", "decimal": "NUMERIC(12, 2)", "single": "REAL", "float": "DOUBLE PRECISION"}
RANGES = {"ranges": [10_000], "from": 0, "to": 30_000}


def expected(value: Any) -> str | None:
    """The label by hand: of plain arithmetic on fractions."""
    if value is None:
        return None
    number = Fraction(value)
    if number < 0:
        return "<0"
    if number >= 30_000:
        return ">=30000"
    low = math.floor(number / 10_000) * 10_000
    return f"[{low}, {low + 10_000})"


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
    by_hand = sorted(str(expected(value)) for value in INCOMES[kind] * 2)
    assert sorted(str(row[0]) for row in job.query("SELECT income FROM published.people")) == by_hand
    assert not verify(job.spec).problems
    seen = [{expected(v) for v in (INCOMES[kind] * 2)[i::2]} for i in (0, 1)]
    audited = next(entry for entry in Release(job.write()).audit("0").tightest if entry.model == "distinct_l_diversity")
    assert audited.values[0].value == min(map(len, seen))


def test_models_are_asked_of_the_ranges(make: Callable[..., Job]) -> None:
    """Eleven incomes are five labels and NULL: 7 values cannot be had, though the source has them."""
    job = make("duckdb", "integer").set(privacy=[{"distinct_l_diversity": {"l": 7, "sensitive": "income"}}])
    with pytest.raises(Refused, match="satisfies l 6"):
        job.run()
    del job.settings["attributes"]["income"]["publish_as"]
    assert job.run().status == "published"


def test_it_is_a_table_that_was_made_coarser_before(make: Callable[..., Job], tmp_path: Path) -> None:
    job = make("duckdb", "integer")
    (tmp_path / "before").mkdir()
    columns = columns_of("integer")
    columns["income"] = [expected(value) for value in columns["income"]]
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
    kept = sorted(str(expected(v)) for v in INCOMES["integer"] * 2 if v is not None and v >= 10_001)
    assert sorted(row[0] for row in job.query("SELECT income FROM published.people")) == kept


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("parquet", "decimal"),
        ("csv", "decimal"),
        ("csv", "float"),
        ("postgresql", "single"),
        ("only read", "single"),
        ("only read", "integer"),
        ("published in postgresql", "integer"),
    ],
)
def test_the_content_is_that_of_a_duckdb_file(
    make: Callable[..., Job], form: str, kind: str, tmp_path: Path, engine_url: Callable[[str, Path], str]
) -> None:
    job = make("duckdb", kind)
    digest = job.run().digest
    (tmp_path / "copied").mkdir()
    publish = {**job.settings["publish"], "url": f"duckdb:///{tmp_path}/copied/release.duckdb"}
    source: dict[str, Any] = {"file": f"people.{form}"}
    if form in ("parquet", "csv"):
        with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
            connection.execute(f"COPY people TO '{tmp_path}/copied/people.{form}'")
        if form == "csv":
            source["types"] = {"age": "integer", "income": {"decimal": "decimal(12, 2)", "float": "double"}[kind]}
    else:
        url = engine_url("postgresql", tmp_path)
        create_table(url, "people", columns_of(kind), {"income": TYPES[kind]})
        source = {"url": url, "table": "people"}
        if form == "published in postgresql":
            source, publish["url"] = job.settings["source"], url
        elif form == "postgresql":
            del publish["url"]
    copied = Job("duckdb", tmp_path / "copied", "", {**job.settings, "source": source, "publish": publish})
    assert copied.run().digest == digest
    assert not verify(copied.spec).problems


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


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_the_order_of_ranges_is_that_of_numbers(make: Callable[..., Job], engine: str) -> None:
    """As texts >=30000 would come before [0, 10000): a distance of ranges is that of a list which has them in order."""
    job = make(engine, "integer", order="ascending")
    job.set(privacy=[{"t_closeness": {"t": 0.5, "distance": "ordered", "sensitive": "income"}}])
    found = [Release(job.write()).search().chosen]
    order = ["<0", "[0, 10000)", "[10000, 20000)", "[20000, 30000)", ">=30000", None]
    job.settings["attributes"]["income"]["order"] = order
    found.append(Release(job.write()).search().chosen)
    job.settings["attributes"]["income"]["order"] = [*sorted(filter(None, order)), None]
    found.append(Release(job.write()).search().chosen)
    assert found[0] is not None
    assert found[0] == found[1] != found[2]
