"""What `plan` says of boxes and delays before one chooses, through the command line and the Python API."""

from __future__ import annotations

import json
from typing import Any

import pytest

import qblock
from qblock.cli.app import run
from qblock.release import frontier
from qblock.release.frontier import Choice, Outcome
from qblock.spec import load_spec
from release.jobs import Job, MakeJob
from release.test_forecast import ATTRIBUTES, columns_of

pytestmark = pytest.mark.either_engine

PEOPLE = 600
PRIVACY: list[Any] = [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}]
MAP: dict[str, Any] = {"recoding": "multidimensional", "choose_by": "loss"}
KEYS = [
    "least",
    "within",
    "box",
    "today",
    "boxes",
    "loss",
    "not_shown",
    "most_not_shown",
    "longest_wait",
    "newcomers",
    "left",
    "gone",
    "error",
    "error_unweighted",
    "versions",
    "moves",
]


def weekly_job(make_job: MakeJob, **settings: Any) -> Job:
    more = {"attributes": ATTRIBUTES, "entity": "id", "privacy": PRIVACY, "search": MAP}
    return make_job(columns_of(PEOPLE), **{**more, **settings})


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*arguments, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def outcome(**said: Any) -> Outcome:
    usual: dict[str, Any] = {
        "boxes": 9,
        "loss": 0.3,
        "not_shown": 0.01,
        "most_not_shown": 0.02,
        "longest_wait": 3,
        "newcomers": 0.9,
        "left": 0.1,
        "gone": 0.6,
        "error": 0.1,
        "error_unweighted": 0.2,
        "versions": 40,
    }
    return Outcome(**{**usual, **said})


def test_each_choice_of_boxes_and_delay_is_a_row_and_that_of_the_spec_is_marked(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job = weekly_job(make_job, versions={"newcomers": {"within": 4, "box": 10}})
    path = str(job.write())
    notes = printed(capsys, "plan", path)
    assert "frontier" not in notes
    assert any("--churn 0.01" in note for note in notes["notes"])
    planned = printed(capsys, "plan", path, "--churn", "0.02")
    assert "forecast" not in planned
    rows, table = planned["frontier"]["rows"], planned["frontier"]
    assert all(list(row) == KEYS for row in rows)
    assert [(row["least"], row["within"]) for row in rows] == [
        (least, within) for least in (3, 8, 12, 18, 24) for within in (1, 4, 13)
    ]
    assert [(row["least"], row["within"], row["box"]) for row in rows if row["today"]] == [(3, 4, 10)]
    assert all(row["box"] == max(10, row["least"]) for row in rows)
    assert (table["runs"], table["people"], table["churn"]["leaving"]) == (52, PEOPLE, 0.02)
    boxes = [row["boxes"] for row in rows if row["within"] == 1]
    assert boxes == sorted(boxes, reverse=True)
    assert len(set(boxes)) == len(boxes)
    # Larger boxes cost detail and let more people leave; a longer delay hides more people.
    first, last = rows[0], rows[-3]
    assert first["loss"] < last["loss"]
    assert first["left"] > last["left"]
    hidden = [row["not_shown"] for row in rows if row["least"] == 24]
    assert hidden == sorted(hidden)
    assert all(row["longest_wait"] >= row["within"] - 1 for row in rows)
    assert all(row["versions"] > 1 for row in rows)
    # The same people come and leave again.
    answer = qblock.Release(path).plan(churn=0.02)
    assert answer.frontier is not None
    assert answer.frontier.model_dump(mode="json") == table


def test_the_table_is_printed_with_lines_to_paste(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = weekly_job(make_job, versions={"newcomers": {"within": 13, "box": 10}, "max_lag": 0.1})
    path = str(job.write())
    table = printed(capsys, "plan", path, "--churn", "0.02")["frontier"]
    assert run(["plan", path, "--churn", "0.02", "--quiet"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Frontier: 52 runs of 600 people. In each run 2.00% come and 2.00% leave" in said
    assert "* 3 13 " in said
    chosen = table["recommended"]
    (row,) = (row for row in table["rows"] if all(row[key] == chosen[key] for key in chosen))
    able = [row for row in table["rows"] if row["moves"] and row["most_not_shown"] <= 0.1]
    assert row["loss"] == min(row["loss"] for row in able)
    assert "at most 10 % of the people" in table["why"]
    assert f"newcomers: {{within: {chosen['within']}" in said
    assert not any(value in said for value in ("flu", "heart", "cancer", "viral"))
    # What is to be pasted is what was simulated.
    versions = {"newcomers": {"within": chosen["within"], "box": chosen["box"]}}
    search = {**MAP, "box": {"least": chosen["least"]}}
    job.settings |= {"versions": versions, "search": search}
    job.write()
    spec = load_spec(job.write())
    assert (spec.least_box, spec.newcomers.box) == (chosen["least"], chosen["box"])  # type: ignore[union-attr]


def test_a_box_that_the_spec_asks_for_is_marked_beside_that_of_the_models(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job = weekly_job(make_job, search={**MAP, "box": {"least": 20}}, versions={"newcomers": {"within": 1, "box": 10}})
    rows = printed(capsys, "plan", str(job.write()), "--churn", "0.02")["frontier"]["rows"]
    assert sorted({row["least"] for row in rows}) == [3, 8, 12, 18, 20, 24]
    assert [(row["least"], row["box"]) for row in rows if row["today"]] == [(20, 10)]


def test_who_waits_has_no_part_in_it_but_by_sizes(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = weekly_job(make_job, versions={"newcomers": {"within": 4, "box": 10}})
    job.begin()
    path = str(job.write())
    before = printed(capsys, "plan", path, "--churn", "0.02")["frontier"]
    assert {row["least"] for row in before["rows"]} == {3}
    assert [row["within"] for row in before["rows"]] == [1, 4, 13]
    assert "as version 1 shows them" in " ".join(before["assumes"])
    # So many people of one box that nobody could leave it, if all of them had one value.
    rows = ", ".join(f"('n{i:02}', '100', 27, 'flu')" for i in range(90))
    job.change(f"INSERT INTO people (id, zip, age, disease) VALUES {rows}")
    come = printed(capsys, "plan", path, "--churn", "0.02")["frontier"]
    assert come["people"] == PEOPLE + 90
    job.change("UPDATE people SET disease = 'viral' WHERE id LIKE 'n%2' OR id LIKE 'n%4' OR id LIKE 'n%6'")
    assert printed(capsys, "plan", path, "--churn", "0.02")["frontier"] == come
    assert printed(capsys, "search", path, "--churn", "0.02")["frontier"] == come


def test_at_a_node_the_delay_is_the_choice_and_no_box_is_finer_than_the_node(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = {"newcomers": {"within": 4, "box": 10}}
    job = weekly_job(make_job, search={"node": [2, 1], "choose_by": "loss"}, versions=versions)
    path = str(job.write())
    chosen = printed(capsys, "search", path)["chosen"]
    planned = printed(capsys, "plan", path, "--churn", "0.02")
    rows = planned["frontier"]["rows"]
    assert [(row["least"], row["within"], row["today"]) for row in rows] == [
        (3, 1, False),
        (3, 4, True),
        (3, 13, False),
    ]
    assert all(row["loss"] >= chosen["metrics"]["loss"] for row in rows)
    assert [node["node"] for node in planned["forecast"]["nodes"]] == [[2, 1]]
    job.run()
    later = printed(capsys, "plan", path, "--churn", "0.02")["frontier"]["rows"]
    assert [row["boxes"] for row in later] == [row["boxes"] for row in rows]


def test_many_people_are_drawn_from(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qblock.release.sample.MOST_PEOPLE", 300)
    job = weekly_job(make_job, versions={"newcomers": {"within": 4, "box": 10}})
    table = printed(capsys, "plan", str(job.write()), "--churn", "0.02")["frontier"]
    assert table["people"] == PEOPLE
    assert any("300 of 600 people were drawn" in text for text in table["assumes"])


@pytest.mark.parametrize(
    ("limits", "rows", "best"),
    [
        ({}, [outcome(loss=0.2), outcome(loss=0.3)], 0),
        # The best one does not move: no second version, or leavers stay.
        ({}, [outcome(loss=0.1, versions=1), outcome(loss=0.3)], 1),
        ({}, [outcome(loss=0.1, gone=0.02), outcome(loss=0.3)], 1),
        ({}, [outcome(loss=0.1, newcomers=0.0), outcome(loss=0.3)], 1),
        ({}, [outcome(gone=0.02), outcome(versions=1)], None),
        ({}, [outcome(loss=0.1, most_not_shown=0.06), outcome()], 1),
        ({"max_lag": 0.07}, [outcome(loss=0.1, most_not_shown=0.06), outcome()], 0),
        ({"max_lag": 0.01}, [outcome(), outcome()], None),
        ({"max_wait": "8w"}, [outcome(loss=0.1, longest_wait=9), outcome()], 1),
        ({"max_wait": "2w"}, [outcome(), outcome()], None),
    ],
)
def test_what_is_recommended_moves_and_keeps_to_the_limits(
    make_job: MakeJob, limits: dict[str, Any], rows: list[Outcome], best: int | None
) -> None:
    job = weekly_job(make_job, versions={"newcomers": {"within": 4}, **limits})
    choices = [Choice(3 + i, 4, 10) for i in range(len(rows))]
    chosen, why = frontier._recommended(load_spec(job.write()), list(zip(choices, rows, strict=True)))
    assert chosen == (None if best is None else choices[best])
    assert why


def test_a_job_at_which_nobody_is_shown_is_not_recommended(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    """So few come that no cohort is ever large enough, and so few leave that no box is."""
    job = weekly_job(make_job, versions={"newcomers": {"within": 4, "box": 100}})
    path = str(job.write())
    table = printed(capsys, "plan", path, "--churn", "0.0005")["frontier"]
    assert table["recommended"] is None
    assert not any(row["moves"] for row in table["rows"])
    assert run(["plan", path, "--churn", "0.0005", "--quiet"]) == 0
    assert "Recommended: none (no choice lets newcomers" in " ".join(capsys.readouterr().out.split())
