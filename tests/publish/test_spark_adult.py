"""The Adult data, the demo's people and the worked examples, released and audited on DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
import yaml
from engines import Absent
from reference.worked import read_rows

from publish.spark_releases import same_keys
from publish.three_engines import Three, searched
from qblock.api import audit
from qblock.demo.people import generate, hierarchies, next_week
from qblock.demo.write import IN_POSTGRESQL, spec_text
from qblock.engines.duckdb.adapter import DuckdbAdapter
from qblock.engines.postgresql.adapter import PostgresqlAdapter

pytestmark = pytest.mark.spark

FIVE = ("age", "gender", "race", "marital_status", "education")
SEVEN = (*FIVE, "native_country", "work_class")
PEOPLE = 3000
"""Of the demo, which has 50,000."""
AUDITED = {
    "figure2": ("inpatient_figure2.csv", ["zip", "age", "nationality"], ["condition"]),
    "figure3": ("inpatient_figure3.csv", ["zip", "age", "nationality"], ["condition"]),
    "closeness2": ("closeness_table2.csv", ["zip", "age"], ["disease"]),
    **{f"thesis{n}": (f"thesis_2_{n}.csv", ["zip", "age"], ["diagnostic"]) for n in (9, 10, 11, 12)},
    "table3": ("vldb_table3.csv", ["age", "gender"], ["disease"]),
}
ASKED: list[Any] = [
    {"k_anonymity": {"k": 6}},
    {"entropy_l_diversity": {"l": 4}},
    {"t_closeness": {"t": 0.3}},
]


@pytest.fixture
def three(client: Any, hive: tuple[str, Path], postgresql_url: str, tmp_path: Path) -> Three:
    return Three(client, *hive, postgresql_url, tmp_path)


def texts(file: Path) -> pa.Table:
    """The rows of a file, every column as text."""
    with file.open(encoding="utf-8", newline="") as opened:
        names = next(csv.reader(opened))
    options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return pyarrow.csv.read_csv(file, convert_options=options)


@pytest.fixture
def adult(shared: Path) -> Path:
    folder = shared / "data" / "adult"
    if not (folder / "adult.csv").exists():
        raise Absent("the Adult data beside the checkout (../shared/data/adult) is absent")
    return folder


def quasi(file: Path) -> dict[str, Any]:
    return {"role": "quasi_identifier", "hierarchy": {"file": str(file)}}


@pytest.mark.parametrize(("names", "limit", "nodes"), [(FIVE, 0, 240), (FIVE, 0.02, 240), (SEVEN, 0, 2160)])
def test_adult(three: Three, adult: Path, names: tuple[str, ...], limit: float, nodes: int) -> None:
    rows = texts(adult / "adult.csv")
    assert rows.num_rows == 45_222
    three.become("adult", rows.select([*names, "occupation"]))
    spec = {
        "attributes": {n: quasi(adult / "hierarchies" / f"{n}.csv") for n in names} | {"occupation": "sensitive"},
        "privacy": ASKED,
        "suppression_limit": limit,
        "versions": {"joint": "none"},
    }
    found = three.same({engine: searched(one) for engine, one in three.releases("adult", spec).items()})
    assert found["nodes_total"] == nodes
    assert len(found["minimal"]) > 1
    published = three.published("adult", spec)
    assert published["rows"] + published["suppressed"] == 45_222
    assert (published["suppressed"] > 0) == (limit > 0)
    assert list(published["node"].values()) in found["minimal"] or limit


@pytest.mark.parametrize("model", [{"k_anonymity": {"k": 4}}, {"entropy_l_diversity": {"l": 2.8}}])
def test_inpatients(three: Three, shared: Path, golden: dict[str, Any], model: Any) -> None:
    three.become("inpatients", texts(shared / "golden" / "inpatient_raw.csv"))
    names = ("zip", "age", "nationality")
    attributes = {name: quasi(shared / "golden" / f"inpatient_hierarchy_{name}.csv") for name in names}
    spec = {
        "attributes": {**attributes, "condition": "sensitive"},
        "privacy": [model],
        "versions": {"joint": "none"},
    }
    found = three.same({engine: searched(one) for engine, one in three.releases("inpatients", spec).items()})
    expected = golden["ldiv.lattice"]["expected"]
    asked = "minimal 4-anonymous" if "k_anonymity" in model else "minimal entropy-2.8"
    assert found["minimal"] == expected[asked]
    assert three.published("inpatients", spec)["rows"] == 12


def test_worked_examples(three: Three, shared: Path, golden: dict[str, Any]) -> None:
    for name, (file, known, sensitive) in AUDITED.items():
        rows = read_rows(shared / "golden" / file)
        three.become(name, pa.table({column: [row[column] for row in rows] for column in rows[0]}))
        places = {"duckdb": (f"duckdb:///{three.folder}/w.duckdb", name)}
        places |= {"postgresql": (three.postgresql, f"clinic.{name}"), "spark": (three.server, f"clinic.{name}")}
        found = {}
        for engine, (url, table) in places.items():
            one = audit(url, known, sensitive, table=table).to_dict()
            found[engine] = {part: value for part, value in one.items() if part not in ("seconds", "queries")}
        same = three.same(found)
        assert same["rows"] == len(rows)
        assert len(same["tightest"]) > 10


@pytest.mark.parametrize(("recoding", "weeks"), [("multidimensional", 1), ("full_domain", 10)])
def test_people_of_the_demo(three: Three, recoding: str, weeks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of the demo's steady job, with the keys and hashes that a cluster has on every engine: of a map there is
    a second version with a week's newcomers, of a node with ten weeks'."""
    same_keys(monkeypatch)
    for facts in (DuckdbAdapter, PostgresqlAdapter):
        monkeypatch.setattr(facts, "keeps_secrets", False)
    spec = yaml.safe_load(spec_text(IN_POSTGRESQL))
    for part in ("version", "release", "source", "publish"):
        del spec[part]
    del spec["search"]["box"]
    spec["search"]["recoding"] = recoding
    for name, text in hierarchies().items():
        file = three.folder / "hierarchies" / f"{name}.csv"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    people = generate(PEOPLE)
    three.become("census", people)
    first = three.published("census", spec)
    assert (first["version"], first["rows"] + first["suppressed"]) == (1, PEOPLE)
    for week in range(weeks):
        people = next_week(people, 2 + week, 1).people
    three.become("census", people)
    second = three.published("census", spec)
    assert (second["status"], second["digest"] != first["digest"]) == ("published", True)
    assert second["waiting"]["leavers"] > 0
