"""The crosswalk of a real source: every row is in it once, in its block, with its values, and nobody is named."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from engines import sql_engine

from qblock.errors import InputError
from qblock.ledger.stores import store_of
from qblock.search.assessment import Assessment
from qblock.search.run import open_task
from qblock.search.task import Task
from qblock.spec import Spec, read_spec
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, prepare
from qblock.versions.gate import check
from qblock.versions.recorded import candidate, record, recorded
from qblock.versions.texts import decoded

SPEC = """
version: 1
release: clinic
source: {{url: "${{URL}}", table: people}}
attributes:
  zip: {{role: quasi_identifier, hierarchy: {{digits: 3}}}}
  'a"ge': {{role: quasi_identifier, hierarchy: {{ranges: [10]}}, nulls: top}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  condition: {{role: sensitive, nulls: value}}
  'in come': sensitive
  person: identifying
entity: person
{more}
"""
PRIVACY = """
privacy:
  - k_anonymity: {k: 2}
  - distinct_l_diversity: {l: 2, sensitive: condition}
suppression_limit: 6
"""
COLUMNS = {
    "person": [f"n{i}" for i in range(14)],
    "zip": ["111", "111", "112", "112", "121", "121", "122", "122", "211", "212", "212", "311", "311", "411"],
    'a"ge': [21, 22, 23, 24, 21, 22, 31, 32, 41, 42, 43, None, None, 25],
    "sex": ["f", "m"] * 7,
    "condition": ["flu", "cold", "flu", None, "flu", "flu", "cold", "flu", "flu", "cold", "flu", "flu", "cold", "V1:N"],
    "in come": [10, 20, 10, 20, 10, 20, 10, 20, 10, 20, 10, 20, 10, 20],
}
NODE = (1, 1, 1)


def make_spec(url: str, folder: Path, more: str = PRIVACY) -> Spec:
    return read_spec(SPEC.format(more=more), folder / "spec.yaml", {"URL": url})


@contextmanager
def opened(spec: Spec) -> Iterator[tuple[Task, Crosswalk]]:
    place = store_of(spec)
    place.upgrade()
    prepare(place)
    with open_task(spec) as task, open_crosswalk(place, task.source.session) as crosswalk:
        yield task, crosswalk


def expected_blocks() -> dict[str, tuple[str, str]]:
    found = {}
    for person, zip_, age in zip(COLUMNS["person"], COLUMNS["zip"], COLUMNS['a"ge'], strict=True):
        found[person] = (zip_[:2] + "*", "*" if age is None else f"{age // 10}")
    return found


def test_every_row_is_in_the_crosswalk_once_with_its_block_label_and_values(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", COLUMNS)
    spec = make_spec(url, tmp_path)
    with opened(spec) as (task, crosswalk):
        chosen: Assessment = task.assess(NODE)
        assert chosen.satisfied
        record(crosswalk, candidate(crosswalk, task, chosen, 1))
        relation = task.source.relation
        digests = task.source.session.fetch(
            sa.select(relation.c.person, crosswalk.entity(relation.c.person, relation).label("entity")).select_from(
                relation
            )
        ).to_pylist()
        rows = crosswalk.own.fetch(sa.select(crosswalk.tables.row)).to_pylist()
        labels = crosswalk.own.fetch(sa.select(crosswalk.tables.block)).to_pylist()
        versions = recorded(crosswalk)
    person = {row["entity"]: row["person"] for row in digests}
    assert len(person) == len(rows) == 14
    assert not set(person) & set(person.values())
    expected = expected_blocks()
    sizes = Counter(expected.values())
    known = zip(COLUMNS["person"], COLUMNS["condition"], COLUMNS["in come"], strict=True)
    values = {person: (condition, str(income)) for person, condition, income in known}
    blocks: dict[int, set[tuple[str, str]]] = {}
    for row in rows:
        who = person[row["entity"]]
        blocks.setdefault(row["block"], set()).add(expected[who])
        inside = {values[p][0] for p, block in expected.items() if block == expected[who]}
        published = sizes[expected[who]] >= 2 and len(inside) >= 2
        assert row["shown"] == ("P" if published else "S" if sizes[expected[who]] >= 2 else "-"), who
        assert row["block_rows"] == sizes[expected[who]]
        assert decoded(row["value"]) == values[who]
    assert all(len(one) == 1 for one in blocks.values())
    assert len(blocks) == len(labels) == len(sizes)
    assert {row["shown"] for row in rows} == {"P", "S", "-"}
    assert {row["block"]: (row["shown"], row["rows"]) for row in labels} == {
        row["block"]: (row["shown"], row["block_rows"]) for row in rows
    }
    (version,) = versions
    assert (version.rows, version.least, version.node) == (14, 2, NODE)
    assert version.sensitive == ("condition", "in come")
    assert version.references["condition"].domain == task.source.sensitives["condition"].reference.domain
    assert version.references["in come"].totals.tolist() == [7, 7]


def test_a_source_that_did_not_change_passes_again_and_a_split_by_another_node_does_not(
    warehouse, tmp_path: Path
) -> None:
    spec = make_spec(warehouse("people", COLUMNS), tmp_path)
    passing = {(3, 2, 1): True, (3, 2, 0): True, (2, 2, 1): False}
    for version, node in enumerate([(3, 2, 1), (3, 2, 1), (3, 2, 0), (2, 2, 1)], 1):
        with opened(spec) as (task, crosswalk):
            chosen = task.assess(node)
            found = candidate(crosswalk, task, chosen, version)
            references = [[part.reference for part in parts] for parts in chosen.counts.parts]
            verdict = check(crosswalk, spec, references, found)
            assert verdict.passed == passing[node], (version, verdict)
            assert verdict.versions == version
            record(crosswalk, found)
            if task.source.session.engine == "postgresql":
                task.source.session.connection.commit()


def test_the_form_of_several_attributes_is_checked_in_joint_cells(warehouse, tmp_path: Path) -> None:
    """Newcomers whose conditions differ, and whose incomes are one for each condition."""
    several = "privacy:\n  - distinct_l_diversity: {l: 2, sensitive: [condition, in come]}\n"
    columns = {
        "person": [f"n{i}" for i in range(8)],
        "zip": ["111"] * 8,
        'a"ge': [20] * 8,
        "sex": ["f"] * 8,
        "condition": ["flu", "flu", "cold", "cold"] * 2,
        "in come": [10, 20, 10, 20, 10, 10, 20, 20],
    }
    url = warehouse("people", {name: values[:4] for name, values in columns.items()})
    for version, passes in ((1, True), (2, False)):
        spec = make_spec(url, tmp_path, several)
        with opened(spec) as (task, crosswalk):
            chosen = task.assess((3, 2, 1))
            assert chosen.satisfied
            found = candidate(crosswalk, task, chosen, version)
            references = [[part.reference for part in parts] for parts in chosen.counts.parts]
            verdict = check(crosswalk, spec, references, found)
            assert verdict.passed == passes
            record(crosswalk, found)
            if task.source.session.engine == "postgresql":
                task.source.session.connection.commit()
        if version == 1:
            insert(url, {name: [values[i] for i in (0, 1, 2, 3, 4, 7)] for name, values in columns.items()}, 4)
    assert (verdict.cells, verdict.failing, verdict.rows) == (2, 1, 2)


def insert(url: str, columns: dict[str, list[object]], first: int) -> None:
    """Append the rows from `first` on."""
    engine = sql_engine(url)
    table = sa.table("people", *(sa.column(name) for name in columns))
    with engine.begin() as connection:
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        connection.execute(table.insert(), rows[first:])
    engine.dispose()


def test_a_source_that_says_nothing_of_persons_has_no_crosswalk(warehouse, tmp_path: Path) -> None:
    url, message = warehouse("people", COLUMNS), "write `entity: COLUMN`, or `versions: {joint: none}`"
    text = SPEC.format(more="privacy:\n  - k_anonymity: {k: 2}\n").replace("entity: person\n", "")
    spec = read_spec(text, tmp_path / "spec.yaml", {"URL": url})
    with opened(spec) as (task, crosswalk), pytest.raises(InputError, match=message):
        candidate(crosswalk, task, task.assess((3, 2, 1)), 1)


INPATIENTS = """
version: 1
release: {release}
source: {{url: "${{URL}}", table: people}}
attributes:
  zip: {{role: quasi_identifier, hierarchy: {{file: {golden}/inpatient_hierarchy_zip.csv}}}}
  age: {{role: quasi_identifier, hierarchy: {{file: {golden}/inpatient_hierarchy_age.csv}}}}
  nationality: {{role: quasi_identifier, hierarchy: {{file: {golden}/inpatient_hierarchy_nationality.csv}}}}
  condition: sensitive
entity: id
privacy:
  - {model}
versions: {{audience: [{other}]}}
"""


def test_two_releases_of_the_inpatients_give_the_blocks_of_the_meet(warehouse, tmp_path: Path, golden, shared) -> None:
    """The paper's Figures 2 and 3 publish the same 12 rows at two nodes; every block of their meet is a joint cell."""
    folder = shared / "golden"
    with (folder / "inpatient_raw.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in ("zip", "age", "nationality", "condition")}
    url = warehouse("people", {"id": list(range(len(rows))), **columns}, types={"age": "BIGINT"})
    profile = golden["releases.figure2_and_figure3"]["expected"]["meet_profile"]

    def spec(release: str, model: str) -> Spec:
        other = "figure2" if release == "figure3" else "figure3"
        return read_spec(
            INPATIENTS.format(release=release, other=other, model=model, golden=folder),
            tmp_path / "spec.yaml",
            {"URL": url},
        )

    with opened(spec("figure2", "k_anonymity: {k: 4}")) as (task, crosswalk):
        chosen = task.assess((2, 1, 1))
        record(crosswalk, candidate(crosswalk, task, chosen, 1))
        if task.source.session.engine == "postgresql":
            task.source.session.connection.commit()
    least = {"k_anonymity": ("k", profile["k"]), "distinct_l_diversity": ("l", profile["distinct_l"])}
    for model, (parameter, most) in least.items():
        for asked in (most, most + 1):
            second = spec("figure3", f"{model}: {{{parameter}: {asked}}}")
            with opened(second) as (task, crosswalk):
                chosen = task.assess((1, 2, 1))
                assert chosen.satisfied
                references = [[part.reference for part in parts] for parts in chosen.counts.parts]
                found = check(crosswalk, second, references, candidate(crosswalk, task, chosen, 1))
                assert found.passed == (asked <= most)
                assert (found.versions, found.cells) == (2, profile["blocks"])
    assert (found.failing, found.rows) == (profile["homogeneous_blocks"], profile["homogeneous_tuples"])
