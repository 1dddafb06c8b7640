"""`qblock init`: a first spec for any table, that loads and can be searched as it is."""

from __future__ import annotations

import os
import pty
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from faults.nursery import MAIN
from integration.hostile import NAMES, VALUES
from integration.sources import execute, quoted

from qblock.cli.start import _shown
from qblock.spec import load_spec

pytestmark = pytest.mark.either_engine
OPEN = "qblock: Person column not set"

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

HIDDEN = "'THE URL THAT YOU GAVE'"


@pytest.fixture
def init(qblock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """`init(url, table, directory)`: run the command, and make what it wrote loadable."""

    def run(url: str, table: str, directory: Path | None = None, *more: str) -> Any:
        monkeypatch.setenv("WAREHOUSE_URL", url)
        ran = qblock("init", url, table, "--directory", directory or tmp_path / "made", *more)
        if ran.status == 0:
            decide((directory or tmp_path / "made") / "release.yaml")
        return ran

    return run


def decide(spec: Path) -> None:
    """As a person does who finds that all candidates are sensitive, and that others know what has a hierarchy."""
    text = re.sub(r"role: '?\?\?\?'?, hierarchy", "role: quasi_identifier, hierarchy", spec.read_text("utf-8"))
    text = text.replace("role: ???", "role: sensitive").replace("role: '???'", "role: sensitive")
    spec.write_text(re.sub(r"(?m)^(  .*): \?\?\?(?=  #)", r"\1: sensitive", text), "utf-8")


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


def test_the_url_that_the_spec_does_not_hold_is_a_line_to_paste(warehouse, engine_name: str, init) -> None:
    url = warehouse("people", {"age": [1, 2, 3]})
    ran = init(url, "people")
    lines = [line for line in ran.out.splitlines() if line.startswith("export WAREHOUSE_URL=")]
    assert len(lines) == (engine_name == "postgresql")
    for line in lines:
        given = url if _shown(url) != HIDDEN else "THE URL THAT YOU GAVE"
        assert shlex.split(line) == ["export", f"WAREHOUSE_URL={given}"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:s3cret@host/db",
        "postgresql://ana:@host/db",
        "postgresql://host/db?user=ana&password=s3cret",
        "sc://host:15002/;token=s3cret",
    ],
)
def test_a_url_with_a_secret_is_not_repeated(url: str) -> None:
    assert _shown(url) == HIDDEN
    assert shlex.split(_shown("postgresql://ana@host/d b")) == ["postgresql://ana@host/d b"]


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
    columns = {name: random_column(draw, size) for name in names} | {"always": (["a", "b", "c"] * size, "VARCHAR")}
    table, schema = draw.choice(NAMES), draw.choice(NAMES)
    url = warehouse(
        table,
        {name: values[:size] for name, (values, _) in columns.items()},
        {name: type_ for name, (_, type_) in columns.items()},
        schema,
    )
    ran = init(url, quoted(schema, table), None, "--json")
    # Which of two columns says who a row is about may be left open.
    said = (
        ""
        if ran.json["entity"]["how"] != "open"
        else f"qblock: {ran.json['entity']['why']} (--entity COLUMN sets it)\n"
    )
    assert (ran.status, ran.err) == (0, said)
    left = [column["name"] for column in ran.json["columns"] if column["role"] in ("left out", "decide")]
    left = [name for name in left if name not in ran.json["open"]]
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
    assert len({file.lower() for file in files}) == len(files) == 5
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


def numbered(**columns: Any) -> dict[str, Any]:
    """PEOPLE twice over, with other columns in the place of patient_id, and no diagnosis that tells the gender."""
    twice = {name: values * 2 for name, values in PEOPLE.items() if name not in ("patient_id", "note")}
    return {n: list(v) for n, v in columns.items()} | twice | {"gender": [*PEOPLE["gender"], *["f", None, "m"] * 10]}


STAYS = {"visit_id": range(60), "patient_id": [100 + i // 3 for i in range(60)]}
TWO = {"patient_id": [i // 2 for i in range(60)], "customer_id": [i // 3 for i in range(60)]}


@pytest.mark.parametrize(
    ("columns", "column", "count", "how"),
    [
        ({"patient_id": range(60)}, "patient_id", "rows", "found"),
        ({"id": range(60)}, "id", "rows", "found"),
        ({"patient_id": STAYS["patient_id"]}, "patient_id", "entities", "found"),
        # Rows are visits of patients.
        (STAYS, "patient_id", "entities", "found"),
        # One row for each patient, and a doctor has many.
        ({"patient_id": range(60), "doctor_id": [i // 4 for i in range(60)]}, "patient_id", "rows", "found"),
        # Two numbers of the same people.
        ({"ssn": [f"s{i // 3}" for i in range(60)], "patient_id": STAYS["patient_id"]}, "ssn", "entities", "found"),
        # As many values, and not the same people.
        ({"client_id": [i % 20 for i in range(60)], "patient_id": STAYS["patient_id"]}, None, None, "open"),
        (TWO, None, None, "open"),
        # Rows are orders, and nothing says of whom.
        ({"order_id": range(60)}, None, None, "open"),
        ({"patient_id": [None, *range(59)]}, None, None, "open"),
        ({"patient_code": [f"p{i // 3}" for i in range(60)]}, "patient_code", "entities", "found"),
        ({"ward_id": [i % 5 for i in range(60)]}, None, None, "nobody"),
    ],
)
def test_who_a_row_is_about(
    warehouse, qblock, init, tmp_path: Path, columns: dict[str, Any], column: str | None, count: str | None, how: str
) -> None:
    url, file = warehouse("people", numbered(**columns)), tmp_path / "made" / "release.yaml"
    ran = init(url, "people", None, "--json")
    assert ran.status == 0, ran.err
    found = ran.json["entity"]
    assert (found["column"], found["count"], found["how"]) == (column, count, how)
    assert bool(found["candidates"]) == (how != "nobody")
    assert (OPEN in ran.err) == (how == "open")
    spec, text = load_spec(file), file.read_text("utf-8")
    assert (spec.entity, spec.count) == (column, count or "rows")
    assert column is None or spec.attributes[column].role == "identifying"
    assert ran.json["regime"] == ("once" if column is None else "steady")
    assert f"this spec is ({'b' if column else 'c'})" in text
    # Of a table that changes a map is proposed in boxes from which who left can go.
    assert spec.search.recoding == ("multidimensional" if column is None else "full_domain")
    boxes = "" if column is None else f", box: {{least: {4 * vars(spec.privacy[0].models[0])['k']}}}"
    assert f"search: {{recoding: multidimensional, choose_by: loss{boxes}}}\n" in text
    for one in found["candidates"]:
        assert (f"\n# entity: {one['column']}  # " in text) == (column is None)
    searched = qblock("search", file)
    assert searched.status == 0, searched.err
    said = " ".join(searched.out.split())
    # Of an entity nothing more is said; else search speaks of the same columns.
    assert ("look like people's" in said) == any(c["count"] == "entities" for c in found["candidates"] if not column)
    assert ("a run with changed data will be refused" in said) == (column is None)


def test_rows_of_a_value_are_counted(warehouse, init) -> None:
    ran = init(warehouse("people", numbered(**STAYS)), "people", None, "--json")
    assert ran.json["entity"]["candidates"] == [
        {
            "column": "patient_id",
            "count": "entities",
            "distinct": 20,
            "nulls": 0,
            "rows_mean": 3.0,
            "rows_most": 3,
            "meaning": "patient_id repeats, so a person has several rows; people are counted (`count: entities`)",
        },
        {
            "column": "visit_id",
            "count": "rows",
            "distinct": 60,
            "nulls": 0,
            "rows_mean": 1.0,
            "rows_most": 1,
            "meaning": "visit_id is different in every row, so each person has one row",
        },
    ]
    assert "visit_id is different in every row, and identifies rows; patient_id identifies" in ran.json["entity"]["why"]


@pytest.mark.parametrize(("answer", "column"), [("customer_id", "customer_id"), ("city", "city"), ("none", None)])
def test_who_a_row_is_about_is_said_beforehand(
    warehouse, qblock, init, tmp_path: Path, answer: str, column: str | None
) -> None:
    ran = init(warehouse("people", numbered(**TWO)), "people", None, "--entity", answer, "--json")
    assert (ran.status, ran.err) == (0, "")
    assert (ran.json["entity"]["column"], ran.json["entity"]["how"]) == (column, "given")
    spec = load_spec(tmp_path / "made" / "release.yaml")
    assert spec.entity == column
    assert column is None or spec.attributes[column].role == "identifying"
    # A hierarchy of a column that is not published is not written.
    assert (tmp_path / "made" / "hierarchies" / "city.csv").exists() == (column != "city")
    assert qblock("search", tmp_path / "made" / "release.yaml").status == 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("patient", "--entity: table people has no column 'patient'; did you mean patient_id"),
        ("gender", "--entity: column gender is NULL in 20 rows, and every row must say who it is about"),
    ],
)
def test_an_entity_that_cannot_be(warehouse, init, tmp_path: Path, answer: str, said: str) -> None:
    ran = init(warehouse("people", numbered(**TWO)), "people", None, "--entity", answer)
    assert (ran.status, said in ran.err) == (2, True), ran.err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("columns", "typed", "column"),
    [
        (TWO, "7\n2\n", "customer_id"),
        (STAYS, "\n", "patient_id"),
        (STAYS, "3\n", None),
        # Nothing else may say it: nobody is asked.
        ({"patient_id": range(60)}, None, "patient_id"),
    ],
)
def test_somebody_at_a_terminal_is_asked(
    warehouse, tmp_path: Path, columns: dict[str, Any], typed: str | None, column: str | None
) -> None:
    url = warehouse("people", numbered(**columns))
    terminal, theirs = pty.openpty()
    with open(terminal, "r+b", buffering=0) as keys:
        command = [sys.executable, "-c", MAIN, "init", url, "people", "--directory", str(tmp_path / "made")]
        with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE) as running:
            os.close(theirs)
            keys.write(f"{typed or ''}\n".encode())  # the last one: all candidates are sensitive
            out = running.communicate()[0].decode()
        screen = ""
        # Once the other side is closed, reading fails at the end.
        with suppress(OSError):
            while more := keys.read(4096):
                screen += more.decode()
    assert running.returncode == 0, screen
    assert ("1  patient_id repeats, so a person has several rows" in screen) == (typed is not None)
    assert ("Write a number from 1 to 3." in screen) == (typed is not None and typed.startswith("7"))
    assert "Which column identifies" not in out
    text = (tmp_path / "made" / "release.yaml").read_text("utf-8")
    assert (f"\nentity: {column}\n" in text) if column else "\nentity:" not in text


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
    decide(tmp_path / "made" / "release.yaml")
    spec = load_spec(tmp_path / "made" / "release.yaml")
    assert (spec.directory / str(spec.source.file)).resolve() == tmp_path / name
    assert ("types:\n" in (tmp_path / "made" / "release.yaml").read_text()) == name.endswith(".csv")
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


TEXTS = {
    "note": [f"came on day {i % 30}, call {i % 30:03}-55 after work" for i in range(40)],
    "remark": [f"ward {i % 30} bed {i % 3}" for i in range(40)],
    "diagnosis_text": [f"asthma since {1960 + i}, worse in spring" for i in range(40)],
    "contact": [f"someone{i % 15}@mail{i % 3}.example" for i in range(40)],
    "reach": [f"+49 (0)30 {1234560 + i}" for i in range(40)],
    "postcode": [f"{1000000 + 37 * i}" for i in range(40)],
    "ward": [f"ward {i % 4}" for i in range(40)],
    "salary": [f"{40 + i},500" for i in range(40)],
    "age": list(range(20, 60)),
}


def test_texts_that_lead_to_a_person_are_not_published(warehouse, init) -> None:
    found = init(warehouse("visits", TEXTS, {"age": "INTEGER"}), "visits", None, "--json")
    assert found.status == 0, found.err
    columns = {one["name"]: (one["role"], one["reason"]) for one in found.json["columns"]}
    assert {name: role for name, (role, _) in columns.items()} == {
        "note": "left out",
        "remark": "left out",
        "diagnosis_text": "left out",
        "contact": "identifying",
        "reach": "identifying",
        "postcode": "quasi_identifier",
        "ward": "quasi_identifier",
        "salary": "sensitive",
        "age": "quasi_identifier",
    }
    assert "free text" in columns["note"][1]
    assert "free text" in columns["diagnosis_text"][1]
    assert "with digits inside" in columns["remark"][1]
    assert "e-mail" in columns["contact"][1]
    assert "telephone" in columns["reach"][1]


def test_few_texts_are_no_free_text(warehouse, init) -> None:
    """However long they are, and whatever is inside, who has one of them shares it."""
    shared = {name: [values[i % 20] for i in range(40)] for name, values in TEXTS.items()}
    found = init(warehouse("visits", shared, {"age": "INTEGER"}), "visits", None, "--json")
    roles = {one["name"]: one["role"] for one in found.json["columns"]}
    assert (roles["note"], roles["remark"], roles["reach"]) == ("quasi_identifier",) * 3
    assert roles["contact"] == "identifying"
