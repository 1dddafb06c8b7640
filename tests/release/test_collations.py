"""A column with a collation that takes texts for equal: they are other values here, as everywhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.release.verify import verify
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.every_postgresql
TYPES = {"duckdb": "VARCHAR COLLATE NOCASE", "postgresql": "text COLLATE folded"}
FOLDED = """DO $$ BEGIN
    CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN  -- a PostgreSQL without ICU
    CREATE COLLATION folded FROM "C";
END $$"""
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
        job.change(FOLDED)
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
    assert job.run().status in ("published", "unchanged")
    assert not verify(job.spec).problems


def test_a_spelling_of_one_person_is_a_group_of_one(make_job: MakeJob, engine_name: str) -> None:
    job = folded_job(make_job, engine_name, False, search={"node": [0, 1]})
    job.change("UPDATE people SET city = 'oSLO' WHERE name = 'p0'")
    with pytest.raises(Refused, match="fails k_anonymity"):
        job.run()
