"""What a release that lags says of itself, and to whom."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.cli.app import run
from qblock.errors import InputError
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release.preview import preview
from qblock.spec import read_spec
from qblock.spec.sections import Newcomers
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.pending.decision import rules_of
from release.jobs import Job, MakeJob
from release.test_steady_job import SIXTEEN
from release.test_waiting import HOLD_BACK, insert, people_job

pytestmark = pytest.mark.either_engine


NOT_DECIDED = ("crosswalk_key", "crosswalk_turnover", "crosswalk_episode", "crosswalk_signature", "crosswalk_rolled")
"""The key, who was there, and what follows from the versions recorded."""


def kept_privately(job: Job) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in the crosswalk."""
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        return {
            table.name: sorted(tuple(row.values()) for row in crosswalk.own.fetch(sa.select(table)).to_pylist())
            for table in vars(crosswalk.tables).values()
            if isinstance(table, sa.Table) and table.name not in NOT_DECIDED
        }


@pytest.mark.parametrize(
    ("people", "verdict"),
    [("", "version 1 would stay"), ("t:q:a u:q:b", "version 2 would be published"), ("t:q:a u:q:a", "version 1 would")],
)
def test_a_dry_run_tells_the_ledger_alone_what_a_run_would_come_to(
    make_job: MakeJob,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    people: str,
    verdict: str,
) -> None:
    monkeypatch.setattr("qblock.versions.people.ONE_IN", 0)
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    insert(job, people)
    before, known = kept_privately(job), history(job.spec)["events"]
    result = tmp_path / "result.json"
    assert run(["release", str(job.spec.path), "--dry-run", "--json", "--result", str(result)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {**found, "run": ""} == {"release": "people", "run": "", "status": "dry_run", "exit_status": 0}
    assert json.loads(result.read_text("utf-8")) == found
    assert kept_privately(job) == before
    (event,) = history(job.spec)["events"][len(known) :]
    assert (event["state"], event["reason"].startswith(verdict)) == ("dry_run", True)
    # What it decided is decided anew: nobody was set apart.
    insert(job, "v:q:c")
    assert (job.run().status == "published") == bool(people)


def test_a_dry_run_that_would_be_refused_ends_like_any_other(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job = people_job(make_job, "p1:q:a p2:q:a", **HOLD_BACK)
    assert run(["release", str(job.spec.path), "--dry-run"]) == 0
    assert capsys.readouterr().out == "A dry run of people is done. `qblock history` shows its result.\n"
    (event,) = history(job.spec)["events"]
    assert event["reason"].startswith("a run would be refused: ")


def test_a_run_that_lags_by_more_than_the_spec_allows_says_so_to_the_hook(
    make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qblock.versions.people.ONE_IN", 0)
    job = people_job(make_job, "p1:q:a p2:q:b p3:q:a p4:q:b", **HOLD_BACK)
    job.run()
    insert(job, "t:q:a")
    result = tmp_path / "result.json"

    def told(**versions: Any) -> tuple[str, list[str]]:
        job.set(versions={**HOLD_BACK, **versions})
        assert run(["release", str(job.spec.path), "--quiet", "--result", str(result), "--result-force"]) == 0
        found = json.loads(result.read_text("utf-8"))
        return found["status"], found["lag"]["beyond"]

    assert told() == ("unchanged", [])
    assert told(max_lag=0.2) == ("unchanged", [])
    assert told(max_lag=0.19) == ("lagging", ["max_lag"])
    assert told(max_wait="1h") == ("unchanged", [])
    with open_crosswalk(store_of(job.spec)) as crosswalk:
        t = crosswalk.tables.steady
        state = json.loads(crosswalk.own.scalar(sa.select(t.c.state)))
        state.pop("quiet", None)
        state["moments"] = dict.fromkeys(state["moments"], "2020-01-01T00:00:00+00:00")
        crosswalk.write(sa.update(t).values(state=json.dumps(state)), job.spec.release)
    assert told(max_wait="1h") == ("lagging", ["max_wait"])


@pytest.mark.parametrize(
    ("privacy", "said"),
    [
        ([{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}], None),
        ([{"k_anonymity": {"k": 2}}], "models of sizes alone promise nothing about values"),
        ([{"t_closeness": {"t": 0.5}}], r"failing t_closeness tells which .* ask for distinct_l_diversity \{l: 2\}"),
    ],
)
def test_a_plan_says_which_rules_versions_lag_by(make_job: MakeJob, privacy: list[Any], said: str | None) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK).set(privacy=privacy)
    notes = [note for note in preview(job.spec).notes if "versions lag by the core" in note]
    assert bool(notes) == (said is not None)
    assert said is None or re.search(said, notes[0])


TWO_ATTRIBUTES = """
version: 1
release: people
source: {url: "duckdb:///w.duckdb", table: people}
entity: id
attributes:
  block: {role: quasi_identifier, hierarchy: suppress}
  value: sensitive
  other: sensitive
privacy:
  - t_closeness: {t: 0.3, sensitive: value}
  - distinct_l_diversity: {l: 2, sensitive: SENSITIVE}
"""


def test_a_cohort_is_a_number_or_auto(tmp_path: Path) -> None:
    text = "versions: {cohort: some}\n"
    with pytest.raises(InputError, match="'some' is not a number of people; write a whole number from 1, or auto"):
        read_spec(TWO_ATTRIBUTES + text, tmp_path / "spec.yaml", {})


COHORTS = "newcomers: {within: 4, box: auto}"


@pytest.mark.parametrize("recoding", ["full_domain", "multidimensional"])
@pytest.mark.parametrize(
    ("versions", "more", "way"),
    [
        ("", "", "cohorts"),
        (COHORTS, "", "cohorts"),
        ("cohort: auto", "", "block"),
        ("cohort: 9", "", "block"),
        ("audience: [others]", "", "block"),
        ("on_refusal: refuse", "", "block"),
        ("", "suppression_limit: 0.1", "block"),
        (f"{COHORTS}, cohort: auto", "", "keep one of the two"),
    ],
)
def test_newcomers_are_cohorts_unless_the_spec_says_cohort_or_they_cannot_be(
    tmp_path: Path, recoding: str, versions: str, more: str, way: str
) -> None:
    text = TWO_ATTRIBUTES.replace("SENSITIVE", "value") + f"search: {{recoding: {recoding}}}\n{more}\n"
    text += f"versions: {{{versions}}}\n"
    if way not in ("cohorts", "block"):
        with pytest.raises(InputError, match=way):
            read_spec(text, tmp_path / "spec.yaml", {})
        return
    spec = read_spec(text, tmp_path / "spec.yaml", {})
    assert (spec.newcomers == Newcomers(), spec.shows_weights) == (way == "cohorts", way == "cohorts")
    assert spec.cohort == (9 if "9" in versions else "auto")


def test_a_model_of_one_attribute_does_not_make_up_for_one_of_another(tmp_path: Path) -> None:
    """Failing t-closeness of one attribute tells its value, whatever is asked of the other: newcomers need the coin."""
    for sensitive, coin in (("other", True), ("value", False)):
        spec = read_spec(TWO_ATTRIBUTES.replace("SENSITIVE", sensitive), tmp_path / "spec.yaml", {})
        rules = rules_of(spec, other_releases=False)
        assert (rules.coin, rules.cells) == (coin, False), sensitive
