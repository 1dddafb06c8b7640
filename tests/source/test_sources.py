"""What a source must be before it is counted, and what is said when it is not."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from engines import table_name
from integration.sources import execute, keys_of, opened, quoted
from spark_tables import spark_database_of

from qblock.errors import InputError, QblockError, Refused

pytestmark = pytest.mark.either_engine

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}


def problem(url: str, attributes: dict[str, Any], folder: Path, table: str = "t", **more: Any) -> str:
    """The message of an input that is refused with exit status 2."""
    with pytest.raises(InputError) as caught, opened(url, table, attributes, folder, **more):
        pass
    assert caught.value.exit_status == 2
    return str(caught.value)


def labels(task: Any, node: Sequence[int]) -> dict[tuple[str | None, ...], int]:
    blocks = task.source.frequency_sets.blocks(tuple(node), ())[0]
    return dict(zip(keys_of(task, tuple(node), blocks.keys), blocks.rows.tolist(), strict=True))


def test_values_missing_in_a_hierarchy(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x", "y", "y", "z", "*"], "b": [1, 2, 3, 3, 3], "s": ["u", "v", "v", "v", "w"]})
    (tmp_path / "a.csv").write_text("a,any\nx,*\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("b,any\n1,*\n2,*\n", encoding="utf-8")
    attributes = {
        "a": {**QUASI, "hierarchy": {"file": "a.csv"}},
        "b": {**QUASI, "hierarchy": {"file": "b.csv"}},
        "s": {"role": "sensitive", "domain": ["u", "v"]},
    }
    lines = problem(url, attributes, tmp_path).splitlines()
    assert all(re.match(re.escape(str(tmp_path / "spec.yaml")) + r":\d+: ", line) for line in lines)
    what = [
        ("3 values of column a (4 rows) are missing in its hierarchy", "'y' (2 rows), '*' (1 row), 'z' (1 row); add"),
        ("1 value of column b (3 rows) is missing in its hierarchy", "'3' (3 rows); add them"),
        ("1 value of column s (1 row) is missing in its taxonomy or domain", "'w' (1 row); add them"),
    ]
    assert all(one in line and other in line for line, (one, other) in zip(lines, what, strict=True))
    counted = problem(url, attributes, tmp_path, name_values=False)
    assert "3 values of column a (4 rows) are missing in its hierarchy" in counted
    assert "`qblock hierarchy check` lists them" in counted
    assert not re.search(r"'[yzw*3]'", counted)


def test_only_some_of_many_missing_values_are_listed(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"x": [i / 4 for i in range(40)]})
    (tmp_path / "x.csv").write_text("x,any\n0.5,*\n", encoding="utf-8")
    message = problem(url, {"x": {**QUASI, "hierarchy": {"file": "x.csv"}}}, tmp_path)
    assert "39 values of column x (39 rows)" in message
    assert (message.count(" rows)"), message.count(" row)")) == (1, 10)
    assert "and 29 more" in message


def test_nulls_without_a_rule(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": [1, None, None], "s": [None, "u", "v"]})
    message = problem(url, {"a": QUASI, "s": "sensitive"}, tmp_path)
    assert "column a is NULL in 2 rows; write `nulls: top" in message
    assert "column s is NULL in 1 row; write `nulls: value" in message
    assert message.count("or remove the NULLs from the source") == 2
    attributes = {"a": {**QUASI, "nulls": "top"}, "s": {"role": "sensitive", "nulls": "value"}}
    with opened(url, "t", attributes, tmp_path) as task:
        assert labels(task, [0]) == {("*",): 2, ("1",): 1}
        assert task.source.sensitives["s"].reference.domain == ("u", "v", None)
        assert task.source.sensitives["s"].reference.totals.tolist() == [1, 1, 1]


def test_a_column_of_nulls_alone(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": [None, None], "b": ["x", "y"]}, {"a": "INTEGER"})
    for hierarchy in ("suppress", {"ranges": [5]}):
        with opened(url, "t", {"a": {**QUASI, "hierarchy": hierarchy, "nulls": "top"}, "b": QUASI}, tmp_path) as task:
            assert labels(task, [0, 1]) == {("*", "*"): 2}


def test_rows_wait_for_any_value_without_a_leaf_and_not_for_null(warehouse, tmp_path: Path) -> None:
    for name, leaf in (("a", "u"), ("b", "x")):
        (tmp_path / f"{name}.csv").write_text(f"{name},all\n{leaf},*\n")
    url = warehouse("t", {"a": ["u", "u", "n", None, "u"], "b": ["x", "n", "x", "x", None]})
    more = {"nulls": "top", "uncovered": "quarantine"}
    attributes = {name: {**QUASI, "hierarchy": {"file": f"{name}.csv"}, **more} for name in "ab"}
    with opened(url, "t", attributes, tmp_path) as task:
        assert labels(task, [0, 0]) == {("u", "x"): 1, ("*", "x"): 1, ("u", "*"): 1}
        assert (task.source.rows, task.source.quarantined) == (3, 2)


def test_a_population_without_somebody_of_the_source_is_refused(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x", "y", "z"]})
    warehouse("people", {"a": ["x", "x", "y"]})
    privacy = [{"k_map": {"k": 1, "population": "people"}}]
    refused = pytest.raises(InputError, match=r"1 combinations of quasi-identifiers .* not in the population people")
    with opened(url, "t", {"a": QUASI}, tmp_path, privacy) as task, refused:
        task.assess((0,))


def test_a_leaf_that_reads_like_null_is_refused_beside_it(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["*", None]})
    assert "a leaf `*` reads like NULL generalized" in problem(url, {"a": {**QUASI, "nulls": "top"}}, tmp_path)


def test_unknown_columns_name_near_ones(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"gender": ["m"], "Age": [1], "zip code": ["x"]})
    message = problem(url, {"gendre": QUASI, "age": QUASI, "zip_code": "identifying"}, tmp_path, entity="whatever")
    assert "has no column 'gendre'; did you mean gender?" in message
    assert "has no column 'age'; did you mean Age?" in message
    assert "has no column 'zip_code'; did you mean zip code?" in message
    assert "has no column 'whatever'; its columns are gender, Age, zip code" in message
    assert len(message.splitlines()) == 4
    assert all(re.match(re.escape(str(tmp_path / "spec.yaml")) + r":\d+: ", line) for line in message.splitlines())


def test_a_table_that_is_not_there(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("people", {"a": [1]}, schema="clinic")
    assert "did you mean clinic.people?" in problem(url, {"a": QUASI}, tmp_path, "clinic.peeple")
    assert "write table, or schema.table" in problem(url, {"a": QUASI}, tmp_path, "a.b.c.d")
    said = "table a.b.c does not exist" if engine_name == "spark" else "table or schema.table"  # Spark has catalogs
    assert said in problem(url, {"a": QUASI}, tmp_path, "a.b.c")


def test_an_empty_table_is_refused(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": []}, {"a": "INTEGER"})
    with (
        pytest.raises(Refused, match="the source t is empty: there is nothing to release") as caught,
        opened(url, "t", {"a": QUASI}, tmp_path),
    ):
        pass
    assert caught.value.exit_status == 3


def test_entities(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x", "x", "y"], "who": [1, 1, 2], "row": [1, 2, 3], "gap": [1, None, None]})
    message = problem(url, {"a": QUASI}, tmp_path, entity="who")
    assert "column who has 2 entities in 3 rows" in message
    assert "write `count: entities`" in message
    for count in ("rows", "entities"):
        assert "column gap is NULL in 2 rows" in problem(url, {"a": QUASI}, tmp_path, entity="gap", count=count)
        with opened(url, "t", {"a": QUASI}, tmp_path, entity="row", count=count) as task:
            assert labels(task, [0]) == {("x",): 2, ("y",): 1}
    with opened(url, "t", {"a": QUASI}, tmp_path, entity="who", count="entities") as task:
        assert labels(task, [0]) == {("x",): 1, ("y",): 1}
        assert task.source.rows == 3


def test_views(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("t", {"a b": ["x", "x", "y"], "n": [1, 2, 3]})
    kinds = ["VIEW", "MATERIALIZED VIEW"] if engine_name == "postgresql" else ["VIEW"]
    for i, kind in enumerate(kinds):
        view = table_name(engine_name, f"v {i}")
        execute(url, f'CREATE {kind} "{view}" AS SELECT "a b" AS "c d", n + 1 AS m FROM t WHERE n > 1')
        attributes = {"c d": QUASI, "m": {**QUASI, "hierarchy": {"ranges": [2]}}}
        with opened(url, quoted(view), attributes, tmp_path) as task:
            assert labels(task, [0, 1]) == {("x", "2-3"): 1, ("y", "4-5"): 1}


def test_memory_limits_in_every_unit(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": [1]})
    for limit in ("512MB", "512MiB", "1.5GB", "1 GiB", "900000KB", "900000KiB", "900000kB", "0.5GB", "1TB"):
        if limit.startswith("0"):
            assert "is not an amount of memory" in problem(url, {"a": QUASI}, tmp_path, search={"memory_limit": limit})
            continue
        with opened(url, "t", {"a": QUASI}, tmp_path, search={"memory_limit": limit}) as task:
            assert task.source.rows == 1


def test_the_source_is_only_read(warehouse, engine_name: str, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x", "y"], "s": ["u", "v"]})
    attributes = {"a": QUASI, "s": "sensitive"}
    if engine_name == "duckdb":
        file = Path(url.removeprefix("duckdb:///"))
        before = hashlib.sha256(file.read_bytes()).digest()
        with opened(url, "t", attributes, tmp_path) as task:
            assert labels(task, [1]) == {("*",): 2}
        assert hashlib.sha256(file.read_bytes()).digest() == before
        assert sorted(tmp_path.iterdir()) == [file]
        return
    if engine_name == "spark":  # which has no roles
        database = spark_database_of(url)
        with opened(url, "t", attributes, tmp_path) as task:
            assert labels(task, [1]) == {("*",): 2}
        assert database.query("SHOW SCHEMAS") == [("default",)]
        assert database.query("SHOW TABLES IN default") == [("default", "t", False)]
        assert sorted(database.query("SELECT a, s FROM t")) == [("x", "u"), ("y", "v")]
        return
    role = f"qblock_reads_{secrets.token_hex(4)}"
    execute(url, f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON t TO {role}")
    try:
        reads = sa.make_url(url).set(username=role).render_as_string(hide_password=False)
        with opened(reads, "t", attributes, tmp_path) as task:
            assert labels(task, [1]) == {("*",): 2}
        execute(url, f"REVOKE SELECT ON t FROM {role}")
        with (
            pytest.raises(QblockError, match=r"denied a privilege .* reading table t .*\. .*qblock grants") as caught,
            opened(reads, "t", attributes, tmp_path),
        ):
            pass
        assert caught.value.exit_status == 1
    finally:
        execute(url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'qblock%'").fetchall()
    assert found == []
