"""What `search` and `plan` say of how a job would go on, through the command line and the Python API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import qblock
from qblock.cli.app import run
from qblock.ledger.stores import store_of
from qblock.release import forecast
from qblock.release.forecast import churn_so_far, forecast_of_search, published
from qblock.search.run import open_task, run_search
from qblock.spec import load_spec
from qblock.versions.batching.cohort import Churn
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine

PEOPLE = 480
ATTRIBUTES: dict[str, Any] = {
    "id": "identifying",
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 3}},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
    "disease": "sensitive",
}
KEYS = ["node", "blocks", "mean_wait", "worst_wait", "lag", "worst_lag", "never"]


def columns_of(people: int) -> dict[str, list[Any]]:
    return {
        "id": [f"p{i}" for i in range(people)],
        "zip": [f"{(i * i) % 4}{i % 3}{(i // 7) % 3}" for i in range(people)],
        "age": [20 + (i * 7) % 60 % 40 for i in range(people)],
        "disease": [("flu", "heart", "cancer", "viral")[(i // 3) % 4] for i in range(people)],
    }


def weekly_job(make_job: MakeJob, **settings: Any) -> Job:
    """Newcomers come by block."""
    known = {"attributes": ATTRIBUTES, "entity": "id", "versions": {"cohort": "auto"}}
    return make_job(columns_of(PEOPLE), **{**known, **settings})


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def insert(job: Job, *names: str) -> None:
    for name in names:
        job.change(f"INSERT INTO people (id, zip, age, disease) VALUES ('{name}', '100', 27, 'flu')")


def test_a_search_compares_nodes_and_names_one_that_moves(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job = weekly_job(make_job)
    path = str(job.write())
    assert "forecast" not in printed(capsys, "search", path)
    found = printed(capsys, "search", path, "--churn", "0.02")
    made = found["forecast"]
    assert made["churn"] == {"coming": 0.02, "leaving": 0.02, "changing": 0.002}
    assert all(list(one) == KEYS for one in made["nodes"])
    assert found["chosen"]["levels"] in [one["node"] for one in made["nodes"]]
    assert len({one["blocks"] for one in made["nodes"]}) == len(made["nodes"]) > 3
    assert made["nodes"] == sorted(made["nodes"], key=lambda one: -one["blocks"])
    (chosen,) = (one for one in made["nodes"] if one["node"] == made["recommended"])
    assert (chosen["never"], chosen["worst_wait"] <= 26, chosen["lag"] <= 0.05) == (0, True, True)
    assert made["nodes"][0]["worst_wait"] > 26
    answer = qblock.Release(path).search(churn=0.02)
    assert answer.forecast.recommended == tuple(chosen["node"])
    assert [list(one.node) for one in answer.forecast.nodes] == [one["node"] for one in made["nodes"]]
    assert [one.lag for one in answer.forecast.nodes] == [one["lag"] for one in made["nodes"]]
    assert hash(answer) == hash(answer)
    assert run(["search", path, "--churn", "0.02"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2.00% of the people come, 2.00% leave and 0.20% change" in said
    assert f"Recommended: zip level {chosen['node'][0]}, age level {chosen['node'][1]} (the best by" in said
    planned = printed(capsys, "plan", path, "--churn", "0.02")
    assert planned["forecast"] == made
    assert qblock.Release(path).plan(churn=0.02).forecast == answer.forecast


def test_where_no_node_moves_the_one_with_the_least_lag_is_named(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job = weekly_job(make_job, versions={"cohort": 200})
    made = printed(capsys, "search", str(job.write()), "--churn", "0.001")["forecast"]
    least = min(one["lag"] for one in made["nodes"])
    assert next(one for one in made["nodes"] if one["node"] == made["recommended"])["lag"] == least
    assert made["why"].startswith("the least lag; no node has waits of at most")


def test_the_best_by_choose_by_is_recommended_among_those_that_move(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "MOST_LAG", 0.15)  # a table of so few people lags far
    job = weekly_job(make_job, search={"choose_by": "precision"})
    with open_task(job.spec) as task:
        made = forecast_of_search(run_search(task), Churn(0.04, 0.04, 0.0001))
    assert made is not None
    heights = [(sum(level / height for level, height in zip(one.node, (3, 3), strict=True))) for one in made.nodes]
    moving = [height for one, height in zip(made.nodes, heights, strict=True) if one.moves]
    assert 1 < len(moving) < len(heights)
    best = next(height for one, height in zip(made.nodes, heights, strict=True) if one.node == made.recommended)
    assert best == min(moving)


def test_few_nodes_are_compared_and_all_of_them_satisfy_the_spec(make_job: MakeJob) -> None:
    job = weekly_job(make_job)
    with open_task(job.spec) as task:
        found = run_search(task)
        nodes = forecast.candidates(found, 1)
        assert len(nodes) == len(set(nodes)) <= 12
        assert found.outcome is not None
        assert all(found.outcome.satisfied[node] for node in nodes)
        smallest = {int(task.sizes(node).size[0]) for node in nodes}
    assert len(smallest) > 2


def test_a_pinned_node_is_all_that_is_said_something_of(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = weekly_job(make_job, search={"node": [2, 2]})
    made = printed(capsys, "plan", str(job.write()), "--churn", "0.02")["forecast"]
    assert ([one["node"] for one in made["nodes"]], made["recommended"]) == ([[2, 2]], [2, 2])


def test_blocks_that_are_suppressed_show_no_newcomers(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = weekly_job(make_job, search={"node": [3, 0]}, suppression_limit=240, privacy=[{"k_anonymity": {"k": 13}}])
    path = str(job.write())
    found = printed(capsys, "search", path, "--churn", "0.02")
    (one,) = found["forecast"]["nodes"]
    assert found["chosen"]["suppressed"] > 0
    assert one["never"] == pytest.approx(found["chosen"]["suppressed"] / PEOPLE)
    job.run()
    (state,) = printed(capsys, "plan", path, "--churn", "0.02")["forecast"]["nodes"]
    assert (state["blocks"], state["never"]) == (one["blocks"], one["never"])


def test_who_waits_changes_no_word_of_it(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = weekly_job(make_job, search={"node": [2, 2]})
    job.begin()
    path = str(job.write())
    asked = [["search", path, "--churn", "0.02"], ["plan", path, "--churn", "0.02"]]
    before = [printed(capsys, *command)["forecast"] for command in asked]
    assert [one["node"] for one in before[0]["nodes"]] == [[2, 2]]
    insert(job, "n1", "n2", "n3")
    job.change("UPDATE people SET disease = 'flu' WHERE id IN ('p10', 'p11', 'p12')")
    job.change("DELETE FROM people WHERE id = 'p20'")
    assert [printed(capsys, *command)["forecast"] for command in asked] == before
    assert job.run().status == "unchanged"
    assert [printed(capsys, *command)["forecast"] for command in asked] == before


def test_the_churn_of_earlier_runs_stands_in(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = weekly_job(make_job, search={"node": [2, 2]})
    path = str(job.write())
    assert any("--churn 0.01" in note for note in printed(capsys, "plan", path)["notes"])
    job.run()
    assert "forecast" not in printed(capsys, "search", path)
    insert(job, "n1", "n2", "n3")
    job.run()
    job.change("DELETE FROM people WHERE id IN ('p20', 'n2')")
    insert(job, "n4")
    job.change("UPDATE people SET disease = 'lung' WHERE id IN ('p11', 'p12')")
    job.run()
    job.change("UPDATE people SET disease = 'skin' WHERE id IN ('p12')")
    job.run()
    with store_of(job.spec).read() as reader:
        events = [e.detail or {} for e in reader.history("people") if e.state == "waiting"]
    assert [[e.get(key, 0) for key in ("came", "left", "changed")] for e in events] == [[3, 0, 0], [1, 1, 2], [0, 0, 1]]
    churn = {"coming": 4 / 3 / PEOPLE, "leaving": 1 / 3 / PEOPLE, "changing": 3 / 3 / PEOPLE}
    for command in ("search", "plan"):
        found = printed(capsys, command, path)
        assert found["forecast"]["churn"] == pytest.approx(churn)
        assert not any("--churn" in note for note in found.get("notes", []))


def test_a_dry_run_is_no_churn(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = weekly_job(make_job, search={"node": [2, 2]})
    job.begin()
    insert(job, "n1")
    path = str(job.write())
    assert run(["release", path, "--dry-run"]) == 0
    capsys.readouterr()
    assert "forecast" not in printed(capsys, "search", path)


@pytest.mark.parametrize(
    ("settings", "share", "said"),
    [
        ({"entity": None}, "0.01", "do not lag behind the source"),
        ({"versions": {"on_refusal": "refuse"}}, "0.01", "do not lag behind the source"),
        ({}, "0", "give the share of the people"),
        ({}, "1.5", "give the share of the people"),
    ],
)
@pytest.mark.parametrize("command", ["search", "plan"])
def test_a_churn_that_means_nothing_is_an_error(
    make_job: MakeJob,
    capsys: pytest.CaptureFixture[str],
    command: str,
    settings: dict[str, Any],
    share: str,
    said: str,
) -> None:
    job = weekly_job(make_job, **settings)
    if not job.settings["entity"]:
        job.settings.pop("entity")
    assert run([command, str(job.write()), "--churn", share]) == 2
    assert said in capsys.readouterr().err


def test_a_cohort_between_two_sampled_blocks_is_that_of_the_nearer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = forecast.np.array([50, 10, 40, 20, 30])
    asked: list[int] = []
    monkeypatch.setattr(forecast, "SAMPLED", 2)
    assert forecast._sampled(rows, lambda block: asked.append(block) or int(rows[block])) == [50, 10, 50, 10, 10]  # type: ignore[func-returns-value]
    assert asked == [1, 0]
    monkeypatch.setattr(forecast, "SAMPLED", 9)
    assert forecast._sampled(rows, lambda block: int(rows[block])) == rows.tolist()


def test_a_ledger_without_churn_has_none() -> None:
    assert churn_so_far([], 10) is None


def test_a_search_on_spark_needs_no_ledger(tmp_path: Path) -> None:
    """A source that holds no private state, and a spec that says no other place for it."""
    (tmp_path / "release.yaml").write_text(
        "version: 1\nrelease: people\nsource: {url: 'sc://127.0.0.1:1', table: main.people}\nentity: id\nattributes:\n"
        "  id: identifying\n  age: {role: quasi_identifier, hierarchy: {ranges: [5, 10]}}\n  ill: sensitive\n"
        "privacy: [{k_anonymity: {k: 3}}]\n",
        "utf-8",
    )
    spec = load_spec(tmp_path / "release.yaml")
    assert spec.lags
    assert published(spec, None, None) is None
    assert next(qblock.Release(spec).own_files()).path == spec.path
    assert len(list(qblock.Release(spec).own_files())) == 1
