"""A column with a collation that takes texts for equal: they are other values here, as everywhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from engines import COLLATION
from integration.sources import execute

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.errors import Refused
from qblock.release.verify import verify
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.every_postgresql
TYPES = {"duckdb": "VARCHAR COLLATE NOCASE", "postgresql": "text COLLATE folded"}
CITIES = ["Oslo", "OSLO", "Bergen", "bergen"] * 10
WORDS = ["flu", "Flu", "FLU", "burn", "Burn"] * 8
ATTRIBUTES = {
    "name": "identifying",
    "city": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [20]}},
    "disease": "sensitive",
}


def folded_job(make_job: MakeJob, engine_name: str, view: bool, **settings: Any) -> Job:
    ages = [20 + i % 20 for i in range(len(CITIES))]
    columns = {"name": [f"p{i}" for i in range(len(CITIES))], "city": CITIES, "age": ages, "disease": WORDS}
    job = make_job(columns, table="plain", attributes=ATTRIBUTES, privacy=[{"k_anonymity": {"k": 2}}], **settings)
    if engine_name == "postgresql":
        job.change(COLLATION)
    of = TYPES[engine_name]
    job.change(f"CREATE TABLE people (name text, city {of}, age integer, disease {of})")
    job.change("INSERT INTO people SELECT name, city, age, disease FROM plain")
    if view:
        job.change("CREATE VIEW seen AS SELECT * FROM people WHERE age > 0")
    table = "seen" if view else "people"
    job.settings["source"]["table"] = table if engine_name == "duckdb" else f"public.{table}"
    return job


@pytest.mark.parametrize(("recoding", "view"), [("full_domain", True), ("multidimensional", False)])
def test_its_texts_are_counted_and_published_by_their_bytes(
    make_job: MakeJob, engine_name: str, recoding: str, view: bool
) -> None:
    search = {"node": [0, 1]} if recoding == "full_domain" else {"recoding": recoding}
    job = folded_job(make_job, engine_name, view, entity="name", search=search)
    assert job.run().status == "published"
    assert Counter(job.query("SELECT city, disease FROM published.people")) == Counter(zip(CITIES, WORDS, strict=True))
    assert not verify(job.spec).problems
    job.change("INSERT INTO people VALUES ('new', 'oslo', 21, 'flu'), ('newer', 'oslo', 22, 'fLU')")
    assert job.run().status == "unchanged"
    assert not verify(job.spec).problems


def test_a_spelling_of_one_person_is_a_group_of_one(make_job: MakeJob, engine_name: str) -> None:
    job = folded_job(make_job, engine_name, False, search={"node": [0, 1]})
    job.change("UPDATE people SET city = 'oSLO' WHERE name = 'p0'")
    with pytest.raises(Refused, match="fails k_anonymity"):
        job.run()


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_other_types_stay_as_they_are_beside_it(warehouse: Any) -> None:
    """Whatever their names, and in a schema that has to be quoted."""
    types = {
        "a": "VARCHAR COLLATE NOCASE",
        'a "b"': "VARCHAR COLLATE NOCASE.NOACCENT",
        "plain": "VARCHAR",
        "mood": "ENUM('x COLLATE y')",
        "parts": "STRUCT(a VARCHAR)",
        "many": "VARCHAR[]",
    }
    url = warehouse("unused", {"x": [1]})
    columns = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}" {type_}' for name, type_ in types.items())
    execute(url, 'CREATE SCHEMA "The clinic"', f'CREATE TABLE "The clinic"."select" ({columns})')
    opened = open_warehouse(url, Path())
    with opened.snapshot() as session:
        told = {name: column.type for name, column in session.columns(TableName("The clinic", "select")).items()}
    opened.close()
    assert {name: type_.upper() for name, type_ in told.items()} == {n: type_.upper() for n, type_ in types.items()}
