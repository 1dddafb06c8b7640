"""A report's figures, counted again from the published rows by code that shares nothing with it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa
from release.jobs import Job, MakeJob

from qblock.engines.sql_session import SqlSession
from qblock.errors import InputError, Refused
from qblock.hierarchy.core import TOP
from qblock.release.retire import retire
from qblock.report import read_report, rendered
from qblock.report.drawings import areas
from qblock.report.read import in_order
from qblock.results.report import Published

NONE = {"joint": "none"}
VISITS: dict[str, list[Any]] = {
    "age": [23, 27, 29, 31, 34, 38, 45, 46, 47, 51, 52, 97] * 3,
    "sex": ["f", "m", "f", "m", "m", "f"] * 6,
    "disease": ["flu", "heart", "cancer", "flu", "flu", "flu", None, "heart", "flu"] * 4,
    "cost": [100, 110, 900, 120, 130, 950] * 6,
}
ACCEPT = [{"check": "determines", "column": "cost", "of": "age", "because": "three rows of each"}]
QUASI = {
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 50]}},
    "sex": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "disease": {"role": "sensitive", "nulls": "value"},
    "cost": "sensitive",
}


def visits(make_job: MakeJob, **settings: Any) -> Job:
    given = {"attributes": QUASI, "privacy": [{"k_anonymity": {"k": 2}}], "search": {"node": [1, 0]}, "versions": NONE}
    return make_job(VISITS, {"age": "INTEGER", "cost": "INTEGER"}, accept=ACCEPT, **{**given, **settings})


AS_IT_IS = {"age": r"\d+", "sex": "[fm]", "zip": r"\d{5}"}
"""Values of the source, by column."""


def lower_end(label: str) -> float:
    """`20-29` begins at 20, `>=20` too, and `<20` below all."""
    return -math.inf if label[:1] in ("<", "*") else float(label.removeprefix(">=").partition("-")[0])


def check_figures(job: Job, shown: Published) -> None:
    """Every figure against the rows of the view."""
    rows = job.published()
    names = [column.name for column in shown.columns if not column.role.startswith("bound of ")]
    known = [i for i, name in enumerate(names) if name in {column.name for column in shown.quasi_identifiers}]
    blocks = Counter(tuple(row[i] for i in known) for row in rows)
    assert (shown.rows, shown.blocks) == (len(rows), len(blocks))
    for column in shown.quasi_identifiers:
        labels = Counter(row[names.index(column.name)] for row in rows)
        assert column.values == len(labels)
        assert column.share_suppressed == pytest.approx(labels[TOP] / len(rows))
        shares = [n / len(rows) for n in labels.values()]
        assert column.bits == pytest.approx(-sum(share * math.log2(share) for share in shares))
        most = sorted(labels.items(), key=lambda one: (-one[1], one[0]))[:3]
        if column.name == "age":
            most.sort(key=lambda one: (one[0] == TOP, lower_end(one[0])))
        most.sort(key=lambda one: one[0] == TOP)
        assert [(one.label, one.rows) for one in column.labels] == most
        plain = sum(n for label, n in labels.items() if re.fullmatch(AS_IT_IS[column.name], label))
        assert column.share_as_is == pytest.approx(plain / len(rows))
    others = {column.name: column.share_as_is for column in shown.columns if column not in shown.quasi_identifiers}
    assert set(others.values()) <= {1.0, None}
    assert {name for name, share in others.items() if share is None} == set(others) - set(names)
    for risk in shown.risk:
        left = [i for i in known if names[i] != risk.column]
        without = Counter(tuple(row[i] for i in left) for row in rows)
        assert (risk.blocks, risk.least) == (len(without), min(without.values()))
        assert risk.most_sure == 1 / risk.least
        assert risk.mean == pytest.approx(sum(1 / without[tuple(row[i] for i in left)] for row in rows) / len(rows))
    assert [one.column for one in shown.risk] == [None, *(names[i] for i in known)]
    counted = [0, 0]
    for one in shown.sizes:
        some = [n for n in blocks.values() if one.low <= n <= one.high]
        assert (one.blocks, one.rows) == (len(some), sum(some))
        counted[0] += one.blocks
        counted[1] += one.rows
    assert counted == [len(blocks), len(rows)]
    check_attacks(rows, names, known, shown)
    assert shown.sample.columns == tuple(names)
    texts = {tuple(None if value is None else str(value) for value in row) for row in rows}
    assert shown.sample.rows
    assert set(shown.sample.rows) <= texts


def check_attacks(rows: list[tuple[Any, ...]], names: list[str], known: list[int], shown: Published) -> None:
    for name in shown.sensitive:
        at = names.index(name)
        values: dict[tuple[Any, ...], Counter[Any]] = {}
        for row in rows:
            values.setdefault(tuple(row[i] for i in known), Counter())[row[at]] += 1
        own = [one for one in shown.attacks if one.sensitive == name]
        assert {"homogeneity", "background_knowledge", "skewness"} <= {one.attack for one in own}
        for one in own:
            if one.attack == "homogeneity":
                found = [found for found in values.values() if len(found) == 1]
            elif one.attack == "background_knowledge":
                assert one.detail is not None
                found = [found for found in values.values() if len(found) <= one.detail + 1]
            else:
                continue
            assert (one.blocks, one.rows) == (len(found), sum(map(Counter.total, found)))


def test_figures_are_those_of_the_published_rows(job: Job) -> None:
    job.begin()
    shown = read_report(job.spec).shown
    check_figures(job, shown)
    assert shown.map is None
    assert (shown.version, shown.previous) == (1, None)
    zip_, age = shown.quasi_identifiers
    assert (zip_.before, zip_.after) == ("text", "by the first 4 of 5 digits (3 values)")
    assert (age.before, age.after) == ("a whole number", "in ranges of 20 (2 values)")


def test_labels_of_numbers_stand_by_their_lower_ends(make_job: MakeJob) -> None:
    """Though most rows have the last one."""
    table = {**VISITS, "age": [9] * 6 + [25] * 9 + [101] * 18 + [55] * 3}
    job = make_job(
        table,
        {"age": "INTEGER", "cost": "INTEGER"},
        attributes={**QUASI, "sex": "insensitive"},
        privacy=[{"k_anonymity": {"k": 4}}],
        search={"node": [1]},
        suppression_limit=0.2,
        versions=NONE,
    )
    job.run()
    shown = read_report(job.spec).shown
    check_figures(job, shown)
    age, bounds = shown.columns[0], shown.columns[1:3]
    assert [label.label for label in age.labels] == ["0-9", "20-29", "100-109"]
    assert [label.rows for label in age.labels] == [6, 9, 18]
    assert (age.share_as_is, age.share_suppressed) == (0.0, 0.0)
    assert [bound.share_as_is for bound in bounds] == [None, None]


@pytest.mark.parametrize(
    ("ends", "order"), [({"9": "9", "10": "10"}, ["9", "10", "*"]), ({"9": None, "10": None}, ["10", "9", "*"])]
)
def test_what_is_hidden_comes_last(ends: dict[str, str | None], order: list[str]) -> None:
    levels = [{"label": label, "low": low, "high": None, "sort": i} for i, (label, low) in enumerate(ends.items(), 1)]
    hidden = {"label": "*", "low": "-inf", "high": "inf", "sort": 3}
    assert in_order([*levels, hidden], ["*", "10", "9"]) == order


@pytest.mark.parametrize("node", [[0, 0], [1, 0], [2, 1]])
def test_figures_at_other_nodes(make_job: MakeJob, node: list[int]) -> None:
    job = visits(make_job, search={"node": node})
    job.settings["privacy"] = [{"k_anonymity": {"k": 1}}]
    job.run()
    check_figures(job, read_report(job.spec).shown)


def test_figures_of_a_map(make_job: MakeJob) -> None:
    job = visits(make_job, search={"recoding": "multidimensional"})
    job.run()
    shown = read_report(job.spec).shown
    check_figures(job, shown)
    assert shown.quasi_identifiers[0].after.endswith(" %")
    assert shown.map is not None
    assert (shown.map.across, shown.map.down, shown.map.rows) == ("age", "sex", shown.rows)
    pairs = Counter(row[:2] for row in job.published())
    assert {(one.across, one.down): one.rows for one in shown.map.areas} == pairs
    assert all(one.blocks == 1 for one in shown.map.areas), "with two quasi-identifiers a pair of labels is a block"
    assert shown.map.total == len(pairs) > 1
    said = job.query("SELECT label, low, high FROM published.people_levels WHERE column_name = 'age'")
    ends = {label: (low and float(low), high and float(high)) for label, low, high in said}
    assert {one.across: (one.low, one.high) for one in shown.map.areas} == ends
    drawn = areas(shown.map, "a label")
    assert drawn.count('class="area"') == len(pairs)
    assert all(f"{one.rows} rows in" in drawn for one in shown.map.areas)


def test_a_column_that_every_row_shows_as_it_is_is_drawn_by_its_texts(make_job: MakeJob) -> None:
    """It keeps its type in the view."""
    table = {
        "kids": [i % 2 for i in range(140)],
        "age": [20 + i // 2 % 2 if i < 100 else 40 + i % 20 for i in range(140)],
    }
    attributes = {"kids": QUASI["sex"], "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20]}}}
    job = make_job(
        table,
        dict.fromkeys(table, "INTEGER"),
        attributes=attributes,
        privacy=[{"k_anonymity": {"k": 3}}],
        search={"recoding": "multidimensional"},
    )
    job.run()
    assert {type(kids) for kids, *_ in job.published()} == {int}
    drawn = read_report(job.spec).shown.map
    assert drawn is not None
    assert (drawn.across, drawn.down, {area.down for area in drawn.areas}) == ("age", "kids", {"0", "1"})
    assert {(area.across, area.down): area.rows for area in drawn.areas} == Counter(
        (age, str(kids)) for kids, age in job.published()
    )
    assert all(area.low is not None and area.high is not None for area in drawn.areas)


def test_a_guarantee_is_as_the_helper_view_says(make_job: MakeJob) -> None:
    job = visits(make_job, privacy=[{"k_anonymity": {"k": 2}}, {"t_closeness": {"t": 0.9, "sensitive": "disease"}}])
    job.run()
    shown = read_report(job.spec).shown
    said = job.query("SELECT model, sensitive, asked, holds, satisfied, in_words FROM published.people_guarantees")
    found = [(one.model, one.sensitive, one.asked, one.holds, one.satisfied, one.in_words) for one in shown.guarantees]
    assert found == said
    least = min(size for size in Counter(row[:2] for row in job.published()).values())
    assert found[0][4] == f"k = {least}"


def test_the_next_version_is_reported_once_it_is_shown(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    job.settings["search"] = {"node": [2, 1]}
    job.run()
    shown = read_report(job.spec).shown
    assert (shown.version, shown.previous) == (2, 1)
    check_figures(job, shown)
    assert shown.blocks == 2


def test_similar_values_are_found_by_the_taxonomy_of_the_spec(make_job: MakeJob) -> None:
    taxonomy = {**QUASI, "disease": {"role": "sensitive", "taxonomy": {"file": "$${disease}.csv"}}}
    given = {"privacy": [{"k_anonymity": {"k": 2}}], "search": {"node": [0, 0]}, "versions": NONE}
    long, other = ("heart", "cancer", "heart"), ("flu", "heart", "cancer")
    table = {**VISITS, "disease": [(long if i % 12 < 2 else other)[i // 12] for i in range(36)]}
    job = make_job(table, {"age": "INTEGER", "cost": "INTEGER"}, attributes=taxonomy, **given)
    (job.folder / "${disease}.csv").write_text("disease,kind,all\nflu,short,*\nheart,long,*\ncancer,long,*\n")
    job.run()
    found = [one for one in read_report(job.spec).shown.attacks if one.attack == "similarity"]
    kinds = {"flu": "short", "heart": "long", "cancer": "long"}
    blocks: dict[Any, set[str]] = {}
    rows = Counter(row[:2] for row in job.published())
    for row in job.published():
        blocks.setdefault(row[:2], set()).add(kinds[row[2]])
    alike = [block for block, labels in blocks.items() if len(labels) == 1]
    assert alike
    assert [(one.sensitive, one.detail) for one in found] == [("disease", 1)]
    assert (found[0].blocks, found[0].rows) == (len(alike), sum(rows[block] for block in alike))


def test_whose_a_row_is(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    shown = read_report(job.spec).shown
    assert "does not say whose" in shown.whose
    said = [guarantee.in_words for guarantee in shown.guarantees]
    assert said == ["each row is hidden among at least 2 rows that look the same"]


def test_people_are_counted_where_a_row_is_a_person(make_job: MakeJob) -> None:
    people = {"person": [f"p{i}" for i in range(36)], **VISITS}
    job = make_job(
        people,
        {"age": "INTEGER", "cost": "INTEGER"},
        attributes={"person": "identifying", **QUASI},
        privacy=[{"k_anonymity": {"k": 2}}],
        search={"node": [1, 0]},
        entity="person",
    )
    job.run()
    shown = read_report(job.spec).shown
    assert shown.whose == "A row is a person."
    assert shown.guarantees[0].in_words == "everybody is hidden among at least 2 people who look the same"
    assert "of 36 people" in next(one.sentence for one in shown.attacks if one.attack == "homogeneity")
    assert "person" not in {column.name for column in shown.columns}


def test_the_people_of_blocks_are_said_to_be_that(make_job: MakeJob) -> None:
    job = make_job(entity="name", count="entities")
    job.settings["publish"]["people"] = True
    job.run()
    found = {column.name: column for column in read_report(job.spec).shown.columns}
    assert found["people"].after == "how many people the rows of its block are about"


def test_what_was_made_by_an_earlier_program_is_to_be_published_again(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    if job.engine == "duckdb":
        with duckdb.connect(str(job.target)) as connection:
            connection.execute("DROP TABLE published.people_columns")
    else:
        job.change("DROP VIEW published.people_columns")
    with pytest.raises(InputError, match="no helper view people_columns that this login may read"):
        read_report(job.spec)


def test_nothing_is_reported_where_nothing_is_published(make_job: MakeJob) -> None:
    job = visits(make_job)
    with pytest.raises(Refused, match="no version of release people is published"):
        read_report(job.spec)
    job.run()
    retire(job.spec)
    with pytest.raises(Refused, match="no version of release people is published"):
        read_report(job.spec)


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_reader_makes_the_same_report(job: Job, roles: dict[str, str]) -> None:
    """With a login that may read the view and its helper views, and nothing else."""
    job.run()
    ours = read_report(job.spec)
    own = sa.make_url(job.url)
    job.settings["source"]["url"] = own.set(username=roles["reader"], password=None).render_as_string(False)
    theirs = read_report(job.spec)
    assert theirs.shown == ours.shown
    assert rendered(theirs, "html").replace(theirs.made, ours.made) == rendered(ours, "html")


def test_the_report_asks_for_nothing_but_the_views(job: Job) -> None:
    """The source may be gone, and the ledger too."""
    job.begin()
    if job.engine == "duckdb":
        (job.folder / "warehouse.duckdb").unlink()
    else:
        job.change("DROP TABLE people")
    assert read_report(job.spec).shown.rows == 12


def test_rows_from_begin_to_end_are_drawn_by_one_statement(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement is a job where the view is on Spark."""
    job.begin()
    true, sent = SqlSession.fetch, []

    def counted(self: SqlSession, statement: Any, parameters: Any = None) -> Any:
        sent.append(str(statement))
        return true(self, statement, parameters)

    monkeypatch.setattr(SqlSession, "fetch", counted)
    drawn = read_report(job.spec).shown.sample.rows
    assert len([text for text in sent if "row_number()" in text]) == 1
    rows = [tuple(None if value is None else str(value) for value in row) for row in job.published()]
    assert drawn == tuple(rows[i * len(rows) // 8] for i in range(8))


def test_json_has_every_field_and_reads_back(job: Job) -> None:
    job.begin()
    report = read_report(job.spec)
    found = json.loads(rendered(report, "json"))
    assert found == json.loads(json.dumps(report.to_dict()))
    assert found["published"]["columns"][0]["labels"][0].keys() == {"label", "rows"}
