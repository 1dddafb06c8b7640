"""`qblock init`: a first spec for any table, that loads and can be searched as it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from integration.hostile import NAMES, VALUES
from integration.sources import execute, quoted

from qblock.spec import load_spec

pytestmark = pytest.mark.either_engine

PEOPLE: dict[str, list[Any]] = {
    "patient_id": list(range(100, 130)),
    "age": [20 + i % 17 for i in range(30)],
    "zip": [f"130{i % 7:02}" for i in range(30)],
    "gender": ["m", "f", None] * 10,
    "city": [f"city {i % 5}" for i in range(30)],
    "admission": [date(2020, 1, 1) + timedelta(days=9 * (i % 11)) for i in range(30)],
    "diagnosis": ["flu", "cold", "cough"] * 10,
    "note": [f"free text {i}" for i in range(30)],
}


@pytest.fixture
def init(qblock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """`init(url, table, directory)`: run the command, and make what it wrote loadable."""

    def run(url: str, table: str, directory: Path | None = None, *more: str) -> Any:
        monkeypatch.setenv("WAREHOUSE_URL", url)
        return qblock("init", url, table, "--directory", directory or tmp_path / "made", *more)

    return run


def test_roles_and_hierarchies(warehouse, engine_name: str, qblock, init, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE, schema="clinic")
    ran = init(url, "clinic.people", None, "--json")
    assert (ran.status, ran.err) == (0, "")
    roles = {column["name"]: column["role"] for column in ran.json["columns"]}
    assert roles == {
        "patient_id": "identifying",
        "age": "quasi_identifier",
        "zip": "quasi_identifier",
        "gender": "quasi_identifier",
        "city": "quasi_identifier",
        "admission": "quasi_identifier",
        "diagnosis": "sensitive",
        "note": "identifying",
    }
    assert all(column["reason"] for column in ran.json["columns"])
    files = {Path(file).relative_to(tmp_path / "made").as_posix() for file in ran.json["files"]}
    assert files == {"release.yaml", "hierarchies/city.csv"}
    assert all((tmp_path / "made" / file).is_file() for file in files)
    spec = load_spec(tmp_path / "made" / "release.yaml")
    forms = {name: spec.attributes[name].hierarchy.form for name in spec.quasi_identifiers}  # type: ignore[union-attr]
    assert forms == {"age": "ranges", "zip": "digits", "gender": "suppress", "city": "file", "admission": "dates"}
    assert spec.attributes["gender"].nulls == "top"
    assert spec.source.url.url.startswith(engine_name)
    found = qblock("search", tmp_path / "made" / "release.yaml", "--json")
    assert found.status == 0
    assert found.json["quasi_identifiers"] == ["age", "zip", "gender", "city", "admission"]


def test_what_is_printed_for_people(warehouse, init, tmp_path: Path) -> None:
    ran = init(warehouse("people", PEOPLE), "people")
    assert ran.status == 0
    assert "diagnosis" in ran.out
    assert "qblock search" in ran.out
    for value in ("13001", "city 3", "free text", "flu", "cough"):
        assert value not in ran.out + ran.err
    text = (tmp_path / "made" / "release.yaml").read_text("utf-8")
    assert "free text" not in text


def test_files_that_are_there_are_kept(warehouse, init, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    spec = tmp_path / "made" / "release.yaml"
    assert init(url, "people").status == 0
    spec.write_text("mine", encoding="utf-8")
    again = init(url, "people")
    assert again.status == 2
    assert "already exists; give another folder with --directory, or --force to replace it" in again.err
    assert spec.read_text("utf-8") == "mine"
    assert init(url, "people", None, "--force").status == 0
    assert spec.read_text("utf-8") != "mine"


def test_a_password_is_not_written_down(warehouse, engine_name: str, init, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    if engine_name == "postgresql":
        url = url.replace("postgresql://postgres:@", "postgresql://postgres:s3cret@").replace(
            "postgresql://postgres@", "postgresql://postgres:s3cret@"
        )
        assert "s3cret" in url
    ran = init(url, "people")
    assert ran.status == 0
    text = (tmp_path / "made" / "release.yaml").read_text("utf-8")
    assert "s3cret" not in text + ran.out + ran.err
    assert ("${WAREHOUSE_URL}" in text) == (engine_name == "postgresql")


FAR = [float("inf"), float("nan"), 1e300, -1.7e308]


def random_column(draw: random.Random, size: int) -> tuple[list[Any], str]:
    """Values of some type, rarely all alike, and its SQL name."""
    nulls = draw.choice([0, 0, 0.2, 0.2, 1])
    made: dict[str, tuple[str, Callable[[], Any]]] = {
        "text": ("VARCHAR", lambda: draw.choice([*VALUES, "", "*", "carriage\rreturn"])),
        "code": ("CHAR(5)", lambda: f"{draw.randrange(99999):05}" if draw.random() < 0.9 else "12"),
        "int": ("INTEGER", lambda: draw.randrange(-50, 2000)),
        "big": ("BIGINT", lambda: draw.randrange(-(2**62), 2**62)),
        "decimal": ("NUMERIC(12,3)", lambda: Decimal(draw.randrange(-(10**9), 10**9)) / 1000),
        "float": (
            "DOUBLE PRECISION",
            lambda: draw.choice([draw.gauss(0, 1e5), float("inf"), float("nan"), 1e300, -1.7e308]),
        ),
        "date": (
            "DATE",
            lambda: draw.choice([date(2020, 1, draw.randrange(1, 29)), date(1, 1, 1), date(9999, 12, 31)]),
        ),
        "time": ("TIMESTAMP", lambda: datetime(2020, 1, 1) + timedelta(seconds=draw.randrange(10**7))),
        "flag": ("BOOLEAN", lambda: draw.random() < 0.5),
        "uuid": ("UUID", lambda: f"{draw.getrandbits(128):032x}"),
        "one": ("VARCHAR", lambda: "same"),
    }
    type_, value = made[draw.choice([*made, "text"])]
    return [None if draw.random() < nulls else value() for _ in range(size)], type_


@pytest.mark.parametrize("seed", range(6))
def test_any_table(warehouse, qblock, init, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    size = draw.choice([1, 3, 30, 120])
    names = draw.sample(NAMES, 6)
    columns = {name: random_column(draw, size) for name in names} | {"always": (["a", "b", "a"] * size, "VARCHAR")}
    table, schema = draw.choice(NAMES), draw.choice(NAMES)
    url = warehouse(
        table,
        {name: values[:size] for name, (values, _) in columns.items()},
        {name: type_ for name, (_, type_) in columns.items()},
        schema,
    )
    ran = init(url, quoted(schema, table), None, "--json")
    assert (ran.status, ran.err) == (0, "")
    left = [column["name"] for column in ran.json["columns"] if column["role"] == "left out"]
    spec = load_spec(tmp_path / "made" / "release.yaml")
    assert [*spec.attributes] == [name for name in columns if name not in left]
    found = qblock("search", tmp_path / "made" / "release.yaml", "--json")
    # A first spec may ask too much of a table, but it is never wrong.
    assert found.status in (0, 3), found.err
    assert found.json["rows"] == size


def test_names_that_would_share_a_file(warehouse, qblock, init, tmp_path: Path) -> None:
    values = ["u", "v", "w"] * 4
    url = warehouse(
        "名前", {"a b": values, "a_b": values[::-1], "A-B!": ["x", "y", "z"] * 4, "名": values, "é": values}
    )
    assert init(url, "名前").status == 0
    spec = load_spec(tmp_path / "made" / "release.yaml")
    files = [spec.attributes[name].hierarchy.file for name in spec.quasi_identifiers]  # type: ignore[union-attr]
    assert len({file.lower() for file in files}) == len(files) == 4
    assert qblock("search", tmp_path / "made" / "release.yaml", "--json").status == 0


def test_long_names(warehouse, qblock, init, tmp_path: Path, engine_name: str) -> None:
    longest = 63 if engine_name == "postgresql" else 300
    url = warehouse("t" * longest, {"a" * longest: ["x", "y", "z"] * 4, "é" * (longest // 2): ["x", "y", "z"] * 4})
    assert init(url, "t" * longest).status == 0
    assert qblock("search", tmp_path / "made" / "release.yaml", "--json").status == 0


def test_views_and_types_of_the_engine(warehouse, engine_name: str, qblock, init, tmp_path: Path) -> None:
    url = warehouse("plain", {"mood": ["ok", "sad", "ok"], "n": [1, 2, 3], "s": ["a", "b", "c"]})
    odd = "['x', s]" if engine_name == "duckdb" else "ARRAY['x', s]"
    execute(
        url,
        "CREATE TYPE feeling AS ENUM ('ok', 'sad')",
        f"CREATE VIEW v AS SELECT CAST(mood AS feeling) AS mood, {odd} AS list, n, s FROM plain",
    )
    assert init(url, "v").status == 0
    assert qblock("search", tmp_path / "made" / "release.yaml", "--json").status in (0, 3)


def test_tables_that_no_spec_is_made_of(warehouse, init, qblock, tmp_path: Path) -> None:
    url = warehouse("nobody", {"a": []}, {"a": "INTEGER"})
    empty = init(url, "nobody")
    assert empty.status == 3
    assert "nobody is empty: there is nothing to profile" in empty.err
    warehouse("alone", {"diagnosis": ["flu", "cold"]})
    alone = init(url, "alone")
    assert alone.status == 2
    assert "no column of alone can be a quasi-identifier (diagnosis: sensitive, " in alone.err
    missing = init(url, "nowhere")
    assert missing.status == 2
    assert "table nowhere does not exist, or you lack permission to read it" in missing.err
    assert not (tmp_path / "made").exists()
    nothing = qblock("init", "mysql://x/y", "t")
    assert nothing.status == 2
    assert "no engine for 'mysql'" in nothing.err


def test_schema_is_that_of_the_specs(qblock, warehouse, init, tmp_path: Path) -> None:
    import jsonschema
    import yaml

    ran = qblock("schema")
    assert (ran.status, ran.err) == (0, "")
    assert init(warehouse("people", PEOPLE), "people").status == 0
    document = yaml.safe_load((tmp_path / "made" / "release.yaml").read_text("utf-8"))
    jsonschema.validate(document, ran.json)
    document["privacy"] = [{"k_anonymity": {"kk": 4}}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, ran.json)


def test_a_column_that_repeats_people_is_proposed_as_the_entity(warehouse, qblock, init, tmp_path: Path) -> None:
    """The same columns as `search` speaks of; the proposal is a comment, since it changes what is counted."""
    file = tmp_path / "made" / "release.yaml"
    for table, numbers, proposed in (("visits", [100 + i // 3 for i in range(30)], True), ("once", range(30), False)):
        url = warehouse(table, PEOPLE | {"patient_id": list(numbers)})
        assert init(url, table, None, "--force").status == 0
        assert ("\n# entity: patient_id  # its values repeat" in file.read_text("utf-8")) is proposed
        assert load_spec(file).entity is None
        assert (
            "column patient_id repeats values that look like" in " ".join(qblock("search", file).out.split())
        ) is proposed


@pytest.mark.parametrize("name", ["people $1.parquet", "people.csv", "part-*.parquet"])
def test_files_are_a_table_by_themselves(qblock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    table = pa.table(PEOPLE)
    if name.endswith(".csv"):
        pc.write_csv(table, name)
    else:
        pq.write_table(table, name.replace("*", "1"))
    ran = qblock("init", name, "--directory", "made")
    assert ran.status == 0, ran.err
    spec = load_spec(tmp_path / "made" / "release.yaml")
    assert (spec.directory / str(spec.source.file)).resolve() == tmp_path / name
    assert ("types: {" in (tmp_path / "made" / "release.yaml").read_text()) == name.endswith(".csv")
    assert qblock("search", "made/release.yaml", "--quiet").status in (0, 3)


def test_a_database_has_a_table_and_files_have_none(qblock, tmp_path: Path) -> None:
    pq.write_table(pa.table(PEOPLE), tmp_path / "a.parquet")
    for arguments, said in (
        ([tmp_path / "a.parquet", "people"], "files are a table by themselves; leave TABLE out"),
        (["duckdb:///a.duckdb"], "which table of the database? name it after the URL"),
        ([tmp_path / "b.parquet"], "does not exist"),
    ):
        ran = qblock("init", *arguments, "--directory", tmp_path / "made")
        assert (ran.status, said in ran.err) == (2, True), ran.err
    assert not (tmp_path / "made").exists()
