"""What a spec takes for granted: columns that give back what generalization hides, and values that are not what they
seem."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.checks.dependencies import dependencies
from qblock.checks.values import Column, impossible, spellings, unique, unknown_codes
from qblock.cli.app import run
from qblock.errors import InputError, Refused
from qblock.ledger.schema import tables
from qblock.ledger.stores import store_of
from qblock.release.taken import Taken, taken_of
from qblock.releases import Release
from qblock.report.read import read_report
from qblock.results.check import figures_in_words
from qblock.search.run import open_task
from qblock.spellings import plain
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine
ROWS = 400
CITIES = ["oslo", "bergen", "hamar", "molde"]
ATTRIBUTES: dict[str, Any] = {
    "id": "identifying",
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 40]}},
    "city": {"role": "quasi_identifier", "hierarchy": "suppress"},
    "born": "insensitive",
    "code": "insensitive",
    "ward": "insensitive",
    "disease": "sensitive",
}
PRIVACY = [{"k_anonymity": {"k": 5}}, {"distinct_l_diversity": {"l": 2, "sensitive": "disease"}}]


def people(seed: int = 1) -> dict[str, list[Any]]:
    """born tells the age but for a year, code the city; ward and disease have nothing to do with either."""
    rng = random.Random(seed)
    ages = [rng.randrange(40) for _ in range(ROWS)]
    cities = [rng.choice(CITIES) for _ in range(ROWS)]
    return {
        "id": list(range(ROWS)),
        "age": ages,
        "city": cities,
        "born": [2026 - age - rng.randrange(2) for age in ages],
        "code": [100 + CITIES.index(city) for city in cities],
        "ward": [rng.randrange(6) for _ in range(ROWS)],
        "disease": [rng.choice(["flu", "cold", "gout"]) for _ in range(ROWS)],
    }


ANSWERED = [
    {"check": "determines", "column": "born", "of": "age", "because": "readers have it"},
    {"check": "determines", "column": "code", "of": "city", "because": "a code of the office"},
]


def misspelled(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    diseases = columns["disease"]
    return columns | {"disease": [name.upper() if i < 30 else name for i, name in enumerate(diseases)]}


def job_of(make_job: MakeJob, columns: dict[str, list[Any]] | None = None, **settings: Any) -> Job:
    known = {"attributes": ATTRIBUTES, "privacy": PRIVACY, "search": {"node": {"age": 1, "city": 1}}}
    return make_job(columns or people(), **{**known, **settings})


def slow_pairs(rows: Sequence[dict[str, Any]], same: Sequence[str], leaf: str, label: Any) -> tuple[int, int]:
    """One pair of rows after another: those that agree in columns and in the label, and of them those with one leaf."""
    agree = one = 0
    for a, b in itertools.permutations(rows, 2):
        if all(a[name] == b[name] for name in same) and label(a[leaf]) == label(b[leaf]):
            agree, one = agree + 1, one + (a[leaf] == b[leaf])
    return agree, one


def test_the_leaves_that_remain_are_those_of_pairs_of_rows(make_job: MakeJob) -> None:
    job, columns = job_of(make_job), people()
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    with open_task(job.spec) as task:
        told = {(d.column, d.of): d for d in dependencies(task, (1, 1))}
    assert set(told) == {("born", "age"), ("code", "city")}
    for (column, of), label in ((("born", "age"), lambda age: age // 10), (("code", "city"), lambda city: "*")):
        agree, one = slow_pairs(rows, [], of, label)
        assert told[column, of].without == pytest.approx(agree / one)
        agree, one = slow_pairs(rows, [column], of, label)
        assert told[column, of].left == pytest.approx(agree / one)
    # The smallest group with one age, and with one city of a range of ages.
    assert told["born", "age"].k == min(Counter(columns["age"]).values())
    known = Counter((age // 10, city) for age, city in zip(columns["age"], columns["city"], strict=True))
    assert told["code", "city"].k == min(known.values())


@pytest.mark.each_engine
def test_what_the_table_computes_is_told_however_few_values_it_leaves_out(make_job: MakeJob) -> None:
    """By the catalog: 24 rows are too few to tell, and five of ten ages too many."""
    ages = list(range(24))
    attributes = {"age": ATTRIBUTES["age"], "fifth": "insensitive", "third": "insensitive", "half": "insensitive"}
    job = make_job({"age": ages}, attributes=attributes, privacy=[{"k_anonymity": {"k": 4}}], search={"node": [1]})
    stored = "STORED" if job.engine == "postgresql" else "VIRTUAL"
    floor = "/" if job.engine == "postgresql" else "//"
    computed = ", ".join(
        f'"{name}" integer GENERATED ALWAYS AS (age {floor} {by}) {stored}' for name, by in (("fifth", 5), ("half", 20))
    )
    job.change(f"CREATE TABLE t (age integer, {computed}, third integer DEFAULT 7)")
    job.change("INSERT INTO t (age, third) SELECT age, age % 3 FROM people")
    job.settings["source"]["table"] = "t"
    with open_task(job.spec) as task:
        told = {d.column: d for d in dependencies(task, (1,))}
    assert set(told) == {"fifth"}
    assert told["fifth"].computed
    # Labels of 10, 10 and 4 ages; of who reads the column, too, of 5, 5, 5, 5 and 4.
    assert (told["fifth"].without, told["fifth"].left) == (216 / 24, 116 / 24)
    assert "fifth, which the table computes of age, is published" in Release(job.spec).check().checks[0].sentence


def test_of_what_is_published_as_it_is_nothing_is_given_back(make_job: MakeJob) -> None:
    job = job_of(make_job, search={"node": {"age": 1, "city": 0}})
    with open_task(job.spec) as task:
        assert {d.of for d in dependencies(task, (1, 0))} == {"age"}
        assert {d.of for d in dependencies(task, None)} == {"age", "city"}
        assert {d.of for d in dependencies(task, None, {1})} == {"city"}


def test_a_sensitive_attribute_is_published_as_it_is_too(make_job: MakeJob) -> None:
    columns = people()
    columns["disease"] = [f"of {city}" for city in columns["city"]]
    with open_task(job_of(make_job, columns).spec) as task:
        assert ("disease", "city") in {(d.column, d.of) for d in dependencies(task, (1, 1))}


@pytest.mark.parametrize("recoding", ["full_domain", "multidimensional"])
def test_a_release_stops_unless_somebody_answers(make_job: MakeJob, recoding: str) -> None:
    job = job_of(make_job, search={"recoding": recoding, **({"node": [1, 1]} if recoding == "full_domain" else {})})
    with pytest.raises(Refused, match=r"born is published as it is and tells age: of .* accept: \[\{check: determines"):
        job.run()
    with pytest.raises(Refused, match="would stop a release"):
        Release(job.spec).search().raise_refused()
    accept = [{"check": "determines", "column": "born", "of": "age", "because": "readers have it"}]
    if recoding == "full_domain":  # the map shows every city
        with pytest.raises(Refused, match="code is published as it is and tells city"):
            job.set(accept=accept).run()
        accept += [{"check": "determines", "column": "code", "of": "city", "because": "a code of the office"}]
    assert job.set(accept=accept).run().status == "published"
    (event,) = [e for e in Release(job.spec).history().events if e.state == "published"]
    said = [f"accepted: {a['column']} determines {a['of']}, because: {a['because']}" for a in accept]
    assert str(event.reason).endswith("; ".join(said))


def test_the_command_says_each_with_its_figure_and_remedy(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    accept = [{"check": "determines", "column": name, "of": "city", "because": "known"} for name in ("code", "ward")]
    job = job_of(make_job, accept=accept)
    answer = Release(job.spec).check()
    assert [(f.check, f.columns, f.severity, f.because) for f in answer.checks] == [
        ("determines", ("born", "age"), "unsafe", None),
        ("determines", ("code", "city"), "unsafe", "known"),
    ]
    assert [note.split(": ", 1)[1] for note in answer.notes] == ["determines finds nothing of ward: remove it"]
    with pytest.raises(Refused, match="1 finding would stop a release"):
        answer.raise_refused()


def status(job: Job, command: str, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit status of a command, and what it printed."""
    capfd.readouterr()
    ended = run([command, str(job.write()), *options])
    return ended, " ".join(capfd.readouterr().out.split())


@pytest.mark.parametrize("command", ["search", "plan"])
def test_a_command_answers_all_and_ends_as_a_release_would(
    make_job: MakeJob, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    job = job_of(make_job, misspelled(people()))
    ended, printed = status(job, command, capfd)
    whole = "k_anonymity" if command == "search" else "Publish it as"
    assert ended == 3
    assert whole in printed
    assert "unsafe determines: born is published as it is and tells age" in printed
    assert "1 warning (qblock check): spellings of disease" in printed
    assert "Publish: qblock release" not in printed
    ended, printed = status(job, command, capfd, "--json")
    answer = json.loads(printed)
    told = [("determines", ["born", "age"]), ("determines", ["code", "city"]), ("spellings", ["disease"])]
    assert ended == 3
    assert [(f["check"], f["columns"]) for f in answer["checks"]] == told
    ended, printed = status(job.set(accept=ANSWERED), command, capfd)
    assert ended == 0
    assert "unsafe" not in printed
    assert "spellings of disease" in printed


def test_a_release_names_warnings_once_and_asks_nothing_where_nothing_changed(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(make_job, misspelled(people()), accept=ANSWERED)
    named = "1 warning (qblock check): spellings of disease"
    assert named in job.run().notes
    (event,) = [e for e in Release(job.spec).history().events if e.state == "published"]
    found = Release(job.spec).check().checks
    assert [f.check for f in found] == ["spellings", "determines", "determines"]
    taken = [Taken(f.check, f.columns, f.because is not None, f.figure) for f in found]
    assert sorted(taken_of(event.detail), key=str) == sorted(taken, key=str)
    assert "flu" not in str(event.detail)
    assert named not in job.run(force=True).notes
    monkeypatch.setattr("qblock.checks.run.nearly_unique", lambda task: pytest.fail("the source was asked again"))
    monkeypatch.setattr("qblock.checks.run.dependencies", lambda *_: pytest.fail("the source was asked again"))
    assert job.run().status == "unchanged"


def test_a_later_version_is_asked_too(make_job: MakeJob) -> None:
    job = job_of(make_job, people() | {"born": [0] * ROWS, "code": [0] * ROWS}, versions={"joint": "none"})
    job.run()
    number = "2026 - CAST(age AS INTEGER)"
    job.change(f"UPDATE people SET born = {number}")
    with pytest.raises(Refused, match="born is published as it is and tells age"):
        job.run()
    assert [e.state for e in Release(job.spec).history().events][-1] == "refused"


def test_the_report_has_what_the_ledger_recorded(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(make_job, misspelled(people()), accept=ANSWERED, versions={"joint": "none"})
    assert "No version is published yet" in read_report(job.spec, candidate=True).text()
    job.run()
    monkeypatch.setattr("qblock.checks.run.dependencies", lambda *_: pytest.fail("the source was asked again"))
    # Neither the source nor the spec of now is looked at.
    job.change("UPDATE people SET disease = 'flu'")
    report = read_report(job.set(accept=[]).spec, internal=True)
    assert report.inside.taken is not None
    told = [(f.check, f.columns, f.because) for f in report.inside.taken.findings]
    reasons = [("determines", (a["column"], a["of"]), a["because"]) for a in ANSWERED]
    assert sorted(told, key=str) == sorted([*reasons, ("spellings", ("disease",), None)], key=str)
    assert report.inside.taken.findings[-1].figure == "6 values are 3"
    for form in ("html", "md"):
        text = report.text(form)  # type: ignore[arg-type]
        assert "born is published as it is and tells age" in text
        assert "a code of the office" in text
        theirs = read_report(job.spec).text(form)  # type: ignore[arg-type]
        assert not re.search("for granted|readers have it|of the office|spell|tells age", theirs)


def test_a_reason_whose_spec_was_altered_is_not_given(make_job: MakeJob) -> None:
    job = job_of(make_job, accept=ANSWERED)
    job.run()
    with store_of(job.spec).write() as connection:
        table = tables(connection).spec
        text = connection.scalar(sa.select(table.c.content)).replace("readers have it", "nobody minds")
        connection.execute(table.update().values(content=text))
    taken = read_report(job.spec, internal=True).inside.taken
    assert taken is not None
    assert {f.because for f in taken.findings} == {None}
    assert "the ledger no longer has the spec that said why" in read_report(job.spec, internal=True).text()


@pytest.mark.parametrize(
    ("wrong", "remedy"), [(float, "publish_as: {ranges: [...]}"), (str, "round disease in a view, or")]
)
def test_a_value_of_nearly_every_row_is_published_coarser_where_it_is_a_number(
    make_job: MakeJob, wrong: Any, remedy: str
) -> None:
    columns = people()
    job = job_of(make_job, columns | {"disease": [wrong(i + 0.5) for i in range(len(columns["disease"]))]})
    (finding,) = [f for f in Release(job.spec).check().checks if f.check == "unique_sensitive"]
    assert remedy in finding.remedy
    assert "or ask for t_closeness or epsilon_m_anonymity of it" in finding.remedy


def of_values(kind: str, rows: dict[str, int], name: str = "c", sensitive: bool = False) -> Column:
    return Column(name, kind, sensitive, rows)


def test_spellings() -> None:
    alike = {"flu": 3, " Flu": 1, "FLU": 1, "cold": 2, "caf\u00e9": 1, "cafe\u0301": 2}
    assert spellings(of_values("text", alike)) == (5, 2)
    assert spellings(of_values("text", {"flu": 1, "cold": 1})) is None
    assert spellings(of_values("integer", {"1": 1, "2": 1})) is None
    assert plain("Stra\u00dfe  A") == plain("STRASSE a")


@pytest.mark.parametrize(
    ("kind", "rows", "codes"),
    [
        ("integer", {**{str(age): 50 for age in range(18, 80)}, "999": 60}, ["999"]),
        ("integer", {**{str(age): 50 for age in range(18, 80)}, "-1": 60}, ["-1"]),
        ("text", {**{str(age): 50 for age in range(18, 80)}, "99": 60}, ["99"]),
        ("integer", {**{str(age): 50 for age in range(110)}, "99": 2000}, ["99"]),
        ("integer", {str(n): 5000 >> n // 2 for n in range(40)}, []),
        # A value as any other, at the end or in between, and too few rows to tell.
        ("integer", {str(n): 50 for n in range(1, 10)}, []),
        ("integer", {str(age): 50 for age in range(100)}, []),
        ("integer", {**{str(age): 50 for age in range(18, 80)}, "999": 3}, []),
        ("integer", {str(n): 50 for n in range(-5, 6)}, []),
        ("date", {**{f"2026-01-{day:02}": 5 for day in range(1, 29)}, "1900-01-01": 40}, ["1900-01-01"]),
        ("date", {f"1970-01-{day:02}": 40 for day in range(1, 29)}, []),
        ("text", {"flu": 50, "cold": 50, "99": 50}, []),
    ],
)
def test_codes_for_unknown(kind: str, rows: dict[str, int], codes: list[str]) -> None:
    assert unknown_codes(of_values(kind, rows)) == codes


def test_values_of_one_row_and_impossible_ones() -> None:
    salaries = {str(3000 + i): 1 for i in range(50)}
    assert unique(of_values("integer", salaries, sensitive=True)) == (50, 50)
    assert unique(of_values("integer", salaries)) is None
    assert unique(of_values("integer", {**salaries, "1": 1000}, sensitive=True)) is None
    today = date(2026, 11, 27)
    days = {(today + timedelta(days=n)).isoformat(): 2 for n in range(-3, 3)}
    assert impossible(of_values("date", days), today) == (4, "in the future")
    assert impossible(of_values("date", {"9999-12-31": 5, "2026-11-27": 1}), today) is None
    ages = {**{str(n): 30 for n in range(18, 80)}, "150": 1, "-3": 1, "999": 40}
    assert impossible(of_values("integer", ages, "age_at_entry"), today) == (2, "below 0 or above 120 years")
    assert impossible(of_values("integer", ages, "dosage"), today) is None
    assert impossible(of_values("integer", {str(n): 1 for n in range(200, 900)}, "age"), today) is None


def test_what_is_accepted_says_why(make_job: MakeJob) -> None:
    job = job_of(make_job)
    with pytest.raises(InputError, match="because"):
        job.set(accept=[{"check": "determines", "column": "born", "of": "age"}]).run()
    with pytest.raises(InputError, match="check"):
        job.set(accept=[{"check": "determined", "column": "born", "because": "x"}]).run()


def test_figures_of_every_check_have_words() -> None:
    figures: dict[str, dict[str, float]] = {
        "determines": {"without": 9.4, "left": 1.0, "k": 1500},
        "spellings": {"values": 6, "without": 3},
        "unknown_codes": {"rows": 97, "values": 1},
        "unique_sensitive": {"rows": 329, "values": 508},
        "skew": {"share": 0.97},
        "groups": {"blocks": 4, "rows": 20},
        "uncovered": {"rows": 24},
        "history": {"rows": 2},
    }
    said = [figures_in_words(check, ("born", "age"), figure) for check, figure in figures.items()]
    assert (
        said[0]
        == "9.4 values remain for who reads the label, 1.0 for who reads born, too; the smallest group is 1,500 then"
    )
    assert said[1:] == [
        "6 values are 3",
        "97 rows",
        "329 of 508 values",
        "97.0% of the group",
        "4 groups, 20 rows",
        "24 rows",
        "2 rows",
    ]
    assert not any(name in text for text in said for name in ("{", "without "))
    assert figures_in_words("later", ("x",), {"some_rows": 3}) == "some rows 3"
    assert figures_in_words("volatile", ("x",), {}) == ""
