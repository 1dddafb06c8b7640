"""anonymize: the words of a spec, the answers of a release, and a check of the very rows that are returned."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import diversity
from reference.lattices import minimal, satisfying
from reference.tables import Table

import qblock
from qblock.hierarchy.core import TOP
from qblock.publish import copy
from qblock.release.apply import release
from qblock.spec import spec_of
from qblock.tables import anonymized as module
from qblock.tables.anonymized import ONE_PUBLICATION

PEOPLE = pd.DataFrame(
    {
        "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
        "sex": list("fmfmfmfmffmm"),
        "disease": [{"h": "heart", "v": "viral", "c": "cancer", "f": "flu"}[one] for one in "hhvvchvvcvfh"],
        "ward": list("AB" * 6),
    }
)  # fmt: skip
QUASI = {"age": {"ranges": [10, 20]}, "sex": "suppress"}
TABLES = 25 if os.environ.get("QBLOCK_TEST_ENGINES") == "all" else 12
K3: list[dict[str, Any]] = [{"k_anonymity": {"k": 3}}]


@pytest.mark.parametrize("ranges", [None, "columns", "text"])
def test_it_is_what_a_release_would_publish(ranges: str | None, tmp_path: Path) -> None:
    privacy = [{"k_anonymity": {"k": 2}}, {"entropy_l_diversity": {"l": 1.5}}]
    PEOPLE.to_parquet(tmp_path / "people.parquet")
    attributes = {name: {"role": "quasi_identifier", "hierarchy": form} for name, form in QUASI.items()}
    spec = {
        "version": 1,
        "release": "people",
        "source": {"file": "people.parquet"},
        "attributes": {**attributes, "disease": "sensitive", "ward": "insensitive"},
        "privacy": privacy,
        "suppression_limit": 0.3,
        "publish": {"url": "duckdb:///release.duckdb", "schema": "main"}
        | ({} if ranges is None else {"ranges": ranges}),
        "versions": {"joint": "none"},
    }
    published = release(spec_of(spec, tmp_path / "spec"))
    found = qblock.anonymize(
        PEOPLE, QUASI, ["disease"], privacy=privacy, insensitive=["ward"], suppression_limit=0.3, ranges=ranges
    )
    assert found.digest == published.digest
    assert (found.rows, found.suppressed, dict(found.node)) == (published.rows, published.suppressed, published.node)
    assert found.tightest == published.tightest
    with duckdb.connect(str(tmp_path / "release.duckdb"), read_only=True) as connection:
        view = connection.sql("SELECT * FROM main.people").to_arrow_table()
    assert found.table.schema.equals(view.schema)
    assert found.table.to_pylist() == view.to_pylist()
    assert ("age_low" in view.schema.names) == (ranges != "text")


def test_a_column_that_every_row_shows_as_it_is_keeps_its_type() -> None:
    frame = PEOPLE.assign(year=[2000 + i % 2 for i in range(12)], born=[date(2000, 1, 1 + i % 2) for i in range(12)])
    known = {"age": {"ranges": [10, 20]}, "year": "suppress", "born": {"dates": ["month"]}}
    shown = qblock.anonymize(frame, known, privacy=K3[:1], search={"node": [3, 0, 0]}).table
    assert shown.schema.names == ["age", "age_low", "age_high", "year", "born"]
    assert [shown.schema.field(name).type for name in ("year", "born")] == [pa.int64(), pa.date32()]
    assert Counter(shown["year"].to_pylist()) == {2000: 6, 2001: 6}
    # A release with `entity` may have to show the column coarser in a later version.
    people = qblock.anonymize(
        frame.assign(id=range(12)), known, privacy=K3[:1], search={"node": [3, 0, 0]}, entity="id"
    )
    assert people.table.schema.names == ["age", "age_low", "age_high", "year", "year_low", "year_high", *BORN]


BORN = ("born", "born_from", "born_until")
STAYS = pd.DataFrame(
    {
        "born": [date(1990, 1, 1), date(1990, 12, 31), date(1991, 6, 1), None] * 4,
        "seen": [datetime(2024, 2, 29, 23, 59), datetime(2024, 3, 1, 0, 0)] * 8,
        "dose": [0.5, 0.75, 1.25, 1.5] * 4,
        "disease": ["flu", "heart", "cancer", "flu"] * 4,
    }
)
STAYS_QUASI: dict[str, Any] = {
    "born": {"hierarchy": {"dates": ["year"]}, "nulls": "top"},
    "seen": {"dates": ["month"]},
    "dose": {"ranges": [0.5]},
}


def test_bounds_are_those_of_the_labels_and_open_days_are_the_first_and_the_last() -> None:
    found = qblock.anonymize(
        STAYS, STAYS_QUASI, ["disease"], privacy=[{"k_anonymity": {"k": 1}}], search={"node": [1, 1, 1]}
    )
    assert found.table.column_names == [
        *("born", "born_from", "born_until"),
        *("seen", "seen_from", "seen_until"),
        *("dose", "dose_low", "dose_high", "disease"),
    ]
    assert {row[:3] for row in found.frame.itertuples(index=False, name=None)} == {
        ("*", date.min, date.max),
        ("1990", date(1990, 1, 1), date(1991, 1, 1)),
        ("1991", date(1991, 1, 1), date(1992, 1, 1)),
    }
    assert {tuple(row) for row in found.frame[["dose", "dose_low", "dose_high"]].values.tolist()} == {
        ("[0.5, 1)", 0.5, 1.0),
        ("[1, 1.5)", 1.0, 1.5),
        ("[1.5, 2)", 1.5, 2.0),
    }


def test_every_value_is_within_the_bounds_of_a_row_that_shows_it() -> None:
    for node in ([0, 0, 0], [1, 1, 1], [2, 2, 2]):
        found = qblock.anonymize(
            STAYS, STAYS_QUASI, ["disease"], privacy=[{"k_anonymity": {"k": 1}}], search={"node": node}
        ).frame
        for born, seen, dose, disease in STAYS.itertuples(index=False, name=None):
            day = seen.date()
            if node[0]:
                within = found[(found.dose_low <= dose) & (dose < found.dose_high)]
                within = within[(within.seen_from <= day) & (day < within.seen_until)]
            else:  # what is shown as it is has no bounds
                within = found[(found.dose == dose) & (found.seen == seen)]
            within = within[within.disease == disease]
            assert len(within[(within.born_from <= born) & (born < within.born_until)] if born else within) > 0


def test_boxes_have_bounds_too() -> None:
    found = qblock.anonymize(PEOPLE, QUASI, ["disease"], privacy=K3, search={"recoding": "multidimensional"})
    assert found.boxes
    low, high = found.frame["age_low"], found.frame["age_high"]
    assert all(low < high)
    assert sorted(PEOPLE["age"])[0] >= low.min()


def test_names_of_bounds_that_are_taken_are_said_and_can_be_others(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = PEOPLE.assign(age_low="x")
    ask: dict[str, Any] = {"sensitive": ["disease"], "insensitive": ["age_low"], "privacy": K3}
    with monkeypatch.context() as patched:
        patched.setattr(module, "run_search", None)  # it is said before anything is searched
        with pytest.raises(qblock.InputError, match=r"bounds of age would be published as age_low.*names: {age_low:"):
            qblock.anonymize(frame, QUASI, **ask)
        with pytest.raises(qblock.InputError, match=r"publish\.ranges: DuckDB has no types of ranges"):
            qblock.anonymize(frame, QUASI, **ask, ranges="native")
    found = qblock.anonymize(frame, QUASI, **ask, names={"age_low": "age_from"})
    assert found.table.column_names == ["age", "age_from", "age_high", "sex", "disease", "age_low"]


def test_rows_with_other_bounds_than_their_labels_are_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = copy.loaded

    def wrong(session: Any, name: str, *rest: Any) -> Any:
        table = loaded(session, name, *rest)
        session.run(f"UPDATE {name} SET t1 = '41.0' WHERE t1 = '40.0'")
        return table

    monkeypatch.setattr(copy, "loaded", wrong)
    with pytest.raises(qblock.Refused, match="holds other bounds of age than its labels have"):
        qblock.anonymize(
            PEOPLE, QUASI, ["disease"], privacy=[{"k_anonymity": {"k": 2}}], search={"node": {"age": 1, "sex": 1}}
        )


def label(value: Any, name: str, level: int) -> str:
    if level == {"age": 3, "sex": 1}[name]:
        return TOP
    width = [1, 10, 20][level]
    return str(value) if level == 0 else f"{value // width * width}-{value // width * width + width - 1}"


@settings(max_examples=TABLES, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 59), st.sampled_from("fm"), st.sampled_from("xyz")), min_size=1, max_size=14
    ),
    k=st.integers(1, 4),
    least=st.sampled_from([1, 2, Fraction(3, 2)]),
    limit=st.sampled_from([0, 2, Fraction(1, 4)]),
)
def test_it_agrees_with_the_slow_reference(
    rows: list[tuple[int, str, str]], k: int, least: int | Fraction, limit: int | Fraction
) -> None:
    heights = {"age": 3, "sex": 1}
    hierarchies = {
        name: {
            value: [label(value, name, level) for level in range(heights[name] + 1)]
            for value in {row[i] for row in rows}
        }
        for i, name in enumerate(heights)
    }
    table = Table([dict(zip(("age", "sex", "s"), row, strict=True)) for row in rows], hierarchies=hierarchies)

    def passes(block: Any) -> bool:
        return diversity.k_holds(block, k) and diversity.entropy_holds(block, least)

    budget = min(limit, len(rows) - 1) if isinstance(limit, int) else limit
    nodes = satisfying(table, passes, budget)
    frame = pd.DataFrame(rows, columns=["age", "sex", "s"])
    ask: dict[str, Any] = {"privacy": [{"k_anonymity": {"k": k}}, {"entropy_l_diversity": {"l": least}}]}
    if not nodes:
        with pytest.raises(qblock.Refused):
            qblock.anonymize(frame, QUASI, ["s"], suppression_limit=limit, **ask)
        return
    found = qblock.anonymize(frame, QUASI, ["s"], suppression_limit=limit, ranges="text", **ask)
    assert sorted(found.minimal) == sorted(minimal(nodes))
    chosen = tuple(found.node.values())
    assert chosen in nodes
    # Ages that are shown as they are stay numbers.
    shown = Counter(tuple(map(str, row)) for row in zip(*found.table.to_pydict().values(), strict=True))
    blocks: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
    for row in rows:
        blocks.setdefault((label(row[0], "age", chosen[0]), label(row[1], "sex", chosen[1])), []).append(row)
    expected: Counter[tuple[str, str, str]] = Counter()
    for key, members in blocks.items():
        block = Table([{"s": row[2]} for row in members]).whole()
        if passes(block):
            expected.update((*key, row[2]) for row in members)
    assert shown == expected
    assert found.suppressed == len(rows) - sum(expected.values())


def test_each_call_is_one_publication_and_says_so() -> None:
    found = qblock.anonymize(PEOPLE, QUASI, ["disease"], privacy=K3)
    assert found.notes[0] == ONE_PUBLICATION
    assert ONE_PUBLICATION in found.to_dict()["notes"]
    assert "one publication" in found._repr_html_()
    assert "Each call is one publication" in str(qblock.anonymize.__doc__)


def test_a_choice_that_tells_is_noted_and_a_pinned_one_is_not() -> None:
    diverse = [{"distinct_l_diversity": {"l": 2}}]
    minimal_ = qblock.anonymize(PEOPLE, QUASI, ["disease"], privacy=diverse)
    pinned = qblock.anonymize(PEOPLE, QUASI, ["disease"], privacy=diverse, search={"node": {"age": 3, "sex": 1}})
    assert (minimal_.protected, pinned.protected) == (False, True)
    assert any("knows how qblock searches" in note for note in minimal_.notes)
    assert not any("knows how qblock searches" in note for note in pinned.notes)
    suppressing = qblock.anonymize(
        PEOPLE, QUASI, ["disease"], privacy=diverse, search={"node": {"age": 1, "sex": 1}}, suppression_limit=5
    )
    assert (suppressing.suppressed > 0, suppressing.protected) == (True, False)
    assert (pinned.choice, pinned.node) == ("pinned", {"age": 3, "sex": 1})


def test_people_with_several_rows_are_counted_where_entity_says_who_they_are() -> None:
    frame = pd.DataFrame({"who": ["a", "a", "a", "b"], "age": [1, 1, 1, 2], "s": ["x", "y", "z", "x"]})
    with pytest.raises(qblock.InputError, match="entity: column who has 2 entities in 4 rows"):
        qblock.anonymize(frame, {"age": "suppress"}, ["s"], privacy=[{"k_anonymity": {"k": 2}}], entity="who")
    found = qblock.anonymize(
        frame, {"age": "suppress"}, ["s"], privacy=[{"k_anonymity": {"k": 2}}], entity="who", count="entities"
    )
    assert found.node == {"age": 1}
    assert "who" not in found.frame
    assert any(note.startswith("not computed from the anonymized rows") for note in found.notes)
    assert qblock.anonymize(frame, {"age": "suppress"}, ["s"], privacy=[{"k_anonymity": {"k": 1}}]).node == {"age": 0}
    audited = qblock.audit(frame, ["age"], ["s"], entity="who", count="entities")
    assert (audited.guarantees[0].model, audited.guarantees[0].values[0].value) == ("k_anonymity", 1)
    assert qblock.audit(frame[:3], ["age"], ["s"]).guarantees[0].values[0].value == 3
    repeated = qblock.audit(
        frame.rename(columns={"who": "patient_id"}), ["age"], ["s"], entity="patient_id", count="entities"
    )
    assert repeated.rows == 4


def test_words_of_a_spec_hierarchies_in_files_and_taxonomies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ward.csv").write_text("ward,wing\nA,north\nB,north\n")
    (tmp_path / "disease.csv").write_text("leaf,kind\nheart,body\ncancer,body\nviral,germ\nflu,germ\n")
    found = qblock.anonymize(
        PEOPLE,
        {"ward": {"hierarchy": {"file": "ward.csv"}}, "age": {"hierarchy": {"ranges": [10]}, "nulls": "refuse"}},
        {"disease": {"taxonomy": {"file": "disease.csv"}}},
        privacy=[{"t_closeness": {"t": 0.9, "distance": "hierarchical"}}, *K3],
    )
    assert found.guarantees[0].model == "t_closeness"
    assert set(found.frame["ward"]) <= {"A", "B", "north", "*"}
    audited = qblock.audit(PEOPLE, ["age"], {"disease": {"taxonomy": {"file": "disease.csv"}}})
    assert any(guarantee.asked.get("distance") == "hierarchical" for guarantee in audited.guarantees)


@pytest.mark.parametrize(
    ("ask", "said", "near"),
    [
        ({"quasi_identifiers": {"aeg": "suppress"}}, "attributes.aeg: the data frame has no column 'aeg'", "age"),
        ({"sensitive": ["diseases"]}, "attributes.diseases: the data frame has no column", "disease"),
        ({"privacy": [{"k_anonimity": {"k": 3}}]}, "privacy[0].k_anonimity", "k_anonymity"),
        ({"privacy": [{"k_anonymity": {"k": 0}}]}, "privacy[0].k_anonymity", None),
        ({"privacy": []}, "privacy: a list is not a list of models", None),
        ({"privacy": {"k_anonymity": {"k": 2}}}, "privacy: a mapping is not a list of models", None),
        ({"quasi_identifiers": {"age": {"rangs": [5]}}}, "attributes.age.hierarchy", "ranges"),
        ({"quasi_identifiers": {"age": {"hierarchy": "suppress", "null": "top"}}}, "attributes.age.null", "nulls"),
        ({"quasi_identifiers": {"age": {"ranges": [5, 7]}}}, "7 is not a multiple of 5", None),
        ({"quasi_identifiers": 5}, "quasi_identifiers: write a mapping of columns to hierarchies", None),
        ({"quasi_identifiers": "age"}, "quasi_identifiers: write a mapping of columns to hierarchies", None),
        ({"quasi_identifiers": ["aeg"]}, "attributes.aeg: the data frame has no column 'aeg'", "age"),
        ({"quasi_identifiers": ["age", "age"]}, "column age is quasi_identifier and quasi_identifier", None),
        ({"quasi_identifiers": []}, "no column is a quasi_identifier", None),
        ({"quasi_identifiers": {}}, "no column is a quasi_identifier", None),
        ({"sensitive": "disease"}, "sensitive: write a list of columns", None),
        ({"sensitive": {"disease": "value"}}, "sensitive.disease: write its entry", None),
        ({"sensitive": ["age"]}, "column age is quasi_identifier and sensitive", None),
        ({"insensitive": ["disease"]}, "column disease is sensitive and insensitive", None),
        ({"entity": "age"}, "entity", None),
        ({"count": "people"}, "count", None),
        ({"search": {"choose_by": "discernability"}}, "search.choose_by", "discernibility"),
        ({"search": {"node": {"age": 9, "sex": 0}}}, "is not in the lattice", None),
        ({"suppression_limit": 1.5}, "suppression_limit", None),
        ({"types": {"age": "integer"}}, "types: they are those of the columns of a CSV file", None),
    ],
)
def test_what_is_wrong_is_said_with_the_key(ask: dict[str, Any], said: str, near: str | None) -> None:
    given: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": ["disease"], "privacy": K3, **ask}
    with pytest.raises(qblock.InputError) as caught:
        qblock.anonymize(PEOPLE, **given)
    assert said in str(caught.value)
    assert all(line.startswith("qblock.anonymize(): ") for line in str(caught.value).splitlines())
    assert near is None or near in caught.value.suggestions


def test_an_audit_takes_columns_and_no_hierarchies() -> None:
    with pytest.raises(qblock.InputError, match="audited as it stands; write a list of columns"):
        qblock.audit(PEOPLE, QUASI, ["disease"])  # type: ignore[arg-type]


def test_where_nothing_is_safe_nothing_is_returned() -> None:
    with pytest.raises(qblock.Refused, match="k_anonymity asks k 13; the most general node satisfies k 12"):
        qblock.anonymize(PEOPLE, QUASI, ["disease"], privacy=[{"k_anonymity": {"k": 13}}])
    with pytest.raises(qblock.Refused, match="column number would be published as is"):
        qblock.anonymize(PEOPLE.assign(number=range(12)), QUASI, ["disease"], insensitive=["number"], privacy=K3)
    with pytest.raises(qblock.InputError, match="a table of a database is published by a release"):
        qblock.anonymize("duckdb:///x.duckdb", QUASI, privacy=K3)


def test_rows_that_are_not_what_was_counted_are_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    again = module._counted_again

    def altered(change: Any) -> Any:
        return lambda spec, table, *rest: again(spec, change(table), *rest)

    def other_block(table: pa.Table) -> pa.Table:
        return table.set_column(1, "sex", pa.array(["x", *table["sex"].to_pylist()[1:]]))

    def other_value(table: pa.Table) -> pa.Table:
        values = table["disease"].to_pylist()
        return table.set_column(2, "disease", pa.array([values[-1], *values[1:-1], values[0]]))

    for change, said in (
        (lambda table: table.slice(1), "rows"),
        (other_block, "blocks"),
        (other_value, "its content is not what was read"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, "_counted_again", altered(change))
            with pytest.raises(qblock.Refused, match=f"nothing is returned: .*{said}"):
                qblock.anonymize(
                    PEOPLE,
                    {"age": {"ranges": [10, 20]}, "sex": "suppress"},
                    ["disease"],
                    privacy=K3[:0] or [{"k_anonymity": {"k": 1}}],
                    ranges="text",
                )


def test_the_answer_is_json_and_the_result_has_values_alone() -> None:
    found = qblock.anonymize(PEOPLE, QUASI, ["disease"], privacy=K3)
    answer = found.to_dict()
    assert json.loads(json.dumps(answer)) == answer
    assert answer["node"] == dict(found.node)
    assert (answer["rows"], answer["digest"]) == (found.rows, found.digest)
    answer["node"].clear()
    assert found.to_dict()["node"]
