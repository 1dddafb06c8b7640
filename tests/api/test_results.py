"""Results: frozen values, the answers of the command line, data frames, and HTML in which every text is a text."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import traceback
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from pydantic import ValidationError

import qblock
from qblock import api
from qblock.cli.app import run
from qblock.results import base

FRAME = pd.DataFrame({"age": [1, 1, 2, None], "sex": ["f", "m", None, "f"], "disease": ["flu", None, "flu", "x"]})


def test_an_audit_is_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.register("given", FRAME)
        connection.execute("CREATE SCHEMA clinic; CREATE TABLE clinic.people AS SELECT * FROM given")
    url = f"duckdb:///{tmp_path}/a.duckdb"
    arguments = ["--url", url, "--table", "clinic.people", "-q", "age", "-q", "sex", "-s", "disease", "--json"]
    assert run(["audit", *arguments]) == 0
    printed = json.loads(capsys.readouterr().out)
    of_database = qblock.audit(url, ["age", "sex"], ["disease"], table="clinic.people").to_dict()
    of_frame = qblock.audit(FRAME, ["age", "sex"], ["disease"]).to_dict()
    assert printed == of_database == of_frame
    assert [c.role for c in qblock.profile(url, table="clinic.people").columns] == [
        c.role for c in qblock.profile(FRAME).columns
    ]


def results() -> list[Any]:
    audited = qblock.audit(FRAME, ["age", "sex"], ["disease"])
    made = qblock.anonymize(FRAME.dropna(), {"age": "suppress"}, ["disease"], privacy=[{"k_anonymity": {"k": 1}}])
    return [audited, made, qblock.profile(FRAME)]


def test_results_are_frozen_values() -> None:
    for found in results():
        for name in type(found).model_fields:
            with pytest.raises(ValidationError, match="frozen"):
                setattr(found, name, None)
        again = pickle.loads(pickle.dumps(found))
        assert again.to_dict() == found.to_dict()
        pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
        assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_audit_and_profile_as_frames() -> None:
    audited, _, profiled = results()
    frame = audited.to_frame()
    assert list(frame.columns) == ["model", "sensitive", "asked", "parameter", "value", "attained", "holds"]
    (k,) = frame[frame["model"] == "k_anonymity"].to_dict("records")
    assert (k["parameter"], k["value"], k["holds"]) == ("k", 1, None)
    assert profiled.to_frame().to_dict("records")[2] | {"reason": ""} == {
        "column": "disease", "type": "VARCHAR", "role": "sensitive", "distinct": 2, "nulls": 1, "reason": ""
    }  # fmt: skip
    assert (
        "t_closeness (disease, distance=ordered)",
        "needs an order: write a list of its values, `order: [...]`",
    ) in [(missing.what, missing.why) for missing in audited.not_computed]
    assert "Not computed: t_closeness (disease, distance=ordered), needs an order" in audited._repr_html_()
    assert all(sentence for attacked in audited.attacks for sentence in attacked.sentences)
    assert len(audited.attacks) > 0


def test_a_profile_is_what_anonymize_takes() -> None:
    frame = pd.DataFrame({"age": range(20, 60), "city": ["a", "b", "c", "d"] * 10, "salary": [1, 2, 3, 4, 5] * 8})
    profiled = qblock.profile(frame)
    found = qblock.anonymize(frame, profiled.quasi_identifiers, profiled.sensitive, privacy=[{"k_anonymity": {"k": 4}}])
    assert set(found.frame.columns) == {"age", "age_low", "age_high", "city", "salary"}
    assert found.guarantees[0].holds
    assert profiled.quasi_identifiers["city"] == {"hierarchy": "suppress"}


def test_a_profile_says_who_a_row_is_about() -> None:
    stays = pd.DataFrame({"stay_id": range(12), "patient_id": [i // 2 for i in range(12)], "age": range(20, 32)})
    entity = qblock.profile(stays).entity
    assert (entity.column, entity.count, entity.how) == ("patient_id", "entities", "found")
    assert [(c.column, c.distinct, c.rows_mean, c.rows_most) for c in entity.candidates] == [
        ("patient_id", 6, 2.0, 2),
        ("stay_id", 12, 1.0, 1),
    ]
    assert qblock.profile(stays).to_dict()["entity"] == entity.to_dict()
    assert "Person column: patient_id repeats" in qblock.profile(stays)._repr_html_()
    assert qblock.profile(stays[["age"]]).entity.candidates == ()


class Tags(HTMLParser):
    """The tags and texts that a browser sees."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


HOSTILE = "<script>alert('&amp;')</script>\"><img src=x onerror=1>"


def test_html_shows_names_and_values_as_text() -> None:
    frame = pd.DataFrame({f"age {HOSTILE}": [1, 2, 1, 2], f"disease {HOSTILE}": [HOSTILE, "b", "b", HOSTILE]})
    known, private = frame.columns
    for found in (
        qblock.audit(frame, [known], [private]),
        qblock.profile(frame),
        qblock.anonymize(frame, {known: "suppress"}, [private], privacy=[{"k_anonymity": {"k": 1}}]),
    ):
        seen = Tags()
        seen.feed(found._repr_html_())
        assert seen.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
        assert any(HOSTILE in text for text in seen.texts)
    page = base.page(HOSTILE, base.table([HOSTILE], [[HOSTILE, None, 0.1]]), HOSTILE)
    assert "<script" not in page
    assert "<img" not in page


def test_anonymized_rows_are_shown_with_their_hierarchies() -> None:
    frame = pd.DataFrame({"age": [20 + i % 20 for i in range(60)], "disease": [HOSTILE, "b"] * 30})
    made = qblock.anonymize(frame, ["age"], ["disease"], privacy=[{"k_anonymity": {"k": 4}}])
    seen = Tags()
    seen.feed(made._repr_html_())
    assert seen.texts.count(HOSTILE) + seen.texts.count("b") == 10
    assert "These are the first 10 of 60 rows." in seen.texts
    assert "ranges: [5, 10, 20], labels: half_open" in seen.texts
    assert "age_low" in seen.texts


def test_every_public_value_shows_itself_as_a_table() -> None:
    public = [getattr(api, name) for names in api._MODULES.values() for name in names.split()]
    values = [kind for kind in public if isinstance(kind, type) and issubclass(kind, base.Value)]
    assert len(values) > 30
    assert all(callable(kind._repr_html_) for kind in values)
    audited, made, profiled = results()
    for value in (audited.guarantees[0], audited.attacks[0], made.guarantees[0].values[0], profiled.entity):
        seen = Tags()
        seen.feed(value._repr_html_())
        assert type(value).__name__ in seen.texts
    assert "<td>k_anonymity</td>" in audited.guarantees[0]._repr_html_()


def test_public_names_are_there_and_nothing_else_is() -> None:
    assert set(qblock.__all__) <= set(dir(qblock))
    for name in qblock.__all__:
        assert getattr(qblock, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        qblock.nothing  # noqa: B018
    assert issubclass(qblock.Refused, qblock.QblockError)


@pytest.mark.parametrize(
    ("code", "without"),
    [
        ("qblock.InputError; qblock.__version__", ("duckdb", "numpy", "pyarrow", "pandas", "pydantic")),
        ("qblock.anonymize; qblock.Anonymized", ("pandas",)),
    ],
)
def test_what_is_not_used_is_not_imported(code: str, without: tuple[str, ...]) -> None:
    asked = f"import qblock, sys; {code}; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=120)
    assert not set(without) & set(ran.stdout.split())


def test_a_spec_is_proposed_of_files_of_this_machine_alone() -> None:
    for data in ("https://host/a.csv", "s3://bucket/*.parquet", "file:///a.csv"):
        with pytest.raises(qblock.InputError, match="files of a network are not read; copy them to this machine"):
            qblock.propose_spec(data)


def test_paths_urls_and_tables(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet")
    assert qblock.audit(str(tmp_path / "a.parquet"), ["age"]).rows == qblock.audit(tmp_path / "a.parquet", ["age"]).rows
    for data, more, said in (
        ("https://host/a.csv", {}, "files of a network are not read"),
        ("s3://bucket/*.parquet", {}, "files of a network are not read"),
        ("duckdb:///a.duckdb", {}, "which table of the database"),
        ("http://host/a", {"table": "t"}, "no engine for 'http'"),
        ("postgresql://u:secret@host:x/d", {"table": "t"}, "port"),
        (tmp_path / "a.parquet", {"table": "t"}, "table: it names a table of a database"),
        (tmp_path / "b.parquet", {}, "does not exist"),
        ("a.xlsx", {}, "does not end in .parquet or .csv"),
        (FRAME, {"types": {"age": "integer"}}, "types: they are those of the columns of a CSV file"),
    ):
        for ask in (lambda d, m: qblock.audit(d, ["age"], **m), lambda d, m: qblock.profile(d, **m)):
            with pytest.raises(qblock.InputError) as caught:
                ask(data, more)
            assert said in str(caught.value) or (
                said.startswith("does not end") and "ends in .xlsx" in str(caught.value)
            )
            assert "secret" not in str(caught.value)


def test_an_error_shows_nothing_of_the_data_wherever_it_is_printed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,s\nsecret,x\n")
    (tmp_path / "b.csv").write_text("age,s\n1,x\nsecret\n")
    (tmp_path / "c.parquet").write_text("secret")
    pd.DataFrame({"age": pd.to_datetime([1], unit="ns", utc=True)}).to_parquet(tmp_path / "d.parquet")
    for data, types in (
        (tmp_path / "a.csv", {"age": "integer"}),
        (tmp_path / "b.csv", {}),
        (tmp_path / "c.parquet", {}),
        (tmp_path / "d.parquet", {}),
        (pd.DataFrame({"age": ["secret", 1]}), None),
        (pd.DataFrame({"age": [1, "secret"]}), None),
    ):
        for ask in (lambda d, t: qblock.audit(d, ["age"], types=t), lambda d, t: qblock.profile(d, types=t)):
            with pytest.raises(qblock.InputError) as caught:
                ask(data, types)
            shown = "".join(traceback.format_exception(caught.value))
            assert "secret" not in shown
            assert "1970-01-01" not in shown
            assert "pyarrow.lib" not in shown


def test_a_table_of_a_database_is_named_by_its_url(warehouse) -> None:
    columns = {"age": [1, 1, 2, None], "sex": ["f", "m", None, "f"], "disease": ["flu", None, "flu", "x"]}
    url = warehouse("people", columns, {"age": "INTEGER"}, schema="clinic")
    audited = qblock.audit(url, ["age", "sex"], ["disease"], table="clinic.people")
    assert audited == qblock.audit(pa.table(columns), ["age", "sex"], ["disease"])
    profiled = qblock.profile(url, table="clinic.people")
    assert [(c.name, c.distinct, c.nulls) for c in profiled.columns] == [
        ("age", 2, 1),
        ("sex", 2, 1),
        ("disease", 2, 1),
    ]
    with pytest.raises(qblock.InputError, match=r"did you mean clinic\.people") as caught:
        qblock.audit(url, ["age"], table="clinic.peeple")
    assert caught.value.suggestions == ("clinic.people",)
    with pytest.raises(qblock.InputError, match="column 'agee'; did you mean age"):
        qblock.audit(url, ["agee"], table="clinic.people")
