"""What a report for those who run the job adds: against searches of its own, and the ledger."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from release.jobs import Job, MakeJob

from qblock import Release
from qblock.errors import InputError, Refused
from qblock.lattice import Lattice
from qblock.ledger.history import history
from qblock.report import internal as reading
from qblock.report import read_report, rendered
from qblock.report.drawings import curves
from qblock.report.internal import read_internal
from qblock.results.report import Internal
from qblock.search.compare import compare
from qblock.search.compare_results import to_json
from qblock.search.run import open_task, run_search
from report.test_read import ACCEPT, QUASI, VISITS

NONE = {"joint": "none"}
VALUES = {"disease": 4, "cost": 6}
MODELS = [
    {"k_anonymity": {"k": 3}},
    {"distinct_l_diversity": {"l": 2, "sensitive": "cost"}},
    {"t_closeness": {"t": 0.5, "sensitive": "disease"}},
]


def visits(make_job: MakeJob, **settings: Any) -> Job:
    given = {"attributes": QUASI, "privacy": MODELS, "search": {"choose_by": "loss"}, "versions": NONE}
    return make_job(VISITS, {"age": "INTEGER", "cost": "INTEGER"}, accept=ACCEPT, **{**given, **settings})


def searched(job: Job, privacy: list[dict[str, Any]]) -> tuple[int, float | None]:
    """How many nodes satisfy, and the least loss of them, by a search of its own."""
    kept, job.settings["privacy"] = job.settings["privacy"], privacy
    with open_task(job.spec) as task:
        found = run_search(task, strategy="exhaustive").to_json()
    job.settings["privacy"] = kept
    return found["satisfying"], None if found["chosen"] is None else found["chosen"]["metrics"]["loss"]


def test_the_lattice_is_that_of_a_search(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    found = read_internal(job.spec).lattice
    with open_task(job.spec) as task:
        said = run_search(task, all_nodes=True).to_json()
    assert found.whole
    assert (found.total, len(found.nodes)) == (len(Lattice((3, 1))), said["nodes_total"])
    assert [(list(one.levels), one.satisfied) for one in found.nodes] == [
        (one["levels"], one["satisfied"]) for one in said["nodes"]
    ]
    assert [one.measure for one in found.nodes] == [one["metrics"]["loss"] for one in said["nodes"]]
    assert set(found.minimal) == {tuple(levels) for levels in said["minimal"]}
    assert found.chosen == found.published == tuple(said["chosen"]["levels"])
    assert all("fails" in " ".join(one.tightest) for one in found.nodes if not one.satisfied)


@pytest.mark.parametrize("limit", [0, 0.3], ids=["whole", "suppressed"])
def test_other_questions_give_what_a_search_of_them_gives(make_job: MakeJob, limit: float) -> None:
    """With suppressed rows each question is searched for, else all are read from one lattice."""
    job = visits(make_job, suppression_limit=limit)
    found = read_internal(job.spec)
    assert found.what_if is not None
    told = {one.change: (one.satisfying, one.measure) for one in found.what_if}
    k, l_, t = MODELS
    questions = {
        "as the spec asks": MODELS,
        "without k_anonymity": [l_, t],
        "without distinct_l_diversity of cost": [k, t],
        "without t_closeness of disease": [k, l_],
        "k_anonymity: k = 2 instead of 3": [{"k_anonymity": {"k": 2}}, l_, t],
        "k_anonymity: k = 4 instead of 3": [{"k_anonymity": {"k": 4}}, l_, t],
        "distinct_l_diversity of cost: l = 3 instead of 2": [
            k,
            {"distinct_l_diversity": {"l": 3, "sensitive": "cost"}},
            t,
        ],
        "t_closeness of disease: t = 0.45 instead of 0.5": [
            k,
            l_,
            {"t_closeness": {"t": 0.45, "sensitive": "disease"}},
        ],
        "t_closeness of disease: t = 0.55 instead of 0.5": [
            k,
            l_,
            {"t_closeness": {"t": 0.55, "sensitive": "disease"}},
        ],
    }
    for change, privacy in questions.items():
        assert told[change] == searched(job, privacy), change
    assert len({count for count, _ in told.values()}) > 1


def test_columns_one_level_finer_and_coarser(make_job: MakeJob) -> None:
    job = visits(make_job)
    found = read_internal(job.spec)
    assert found.what_if is not None
    chosen = found.lattice.chosen
    assert chosen is not None
    nodes = {one.levels: one for one in found.lattice.nodes}
    near = [one for one in found.what_if if "one level" in one.change]
    assert near
    for one in near:
        assert one.levels is not None
        assert sum(abs(a - b) for a, b in zip(one.levels, chosen, strict=True)) == 1
        node = nodes[one.levels]
        assert (one.measure, bool(one.satisfying)) == (node.measure, node.satisfied)
        assert ("fails" in one.change) is not node.satisfied
        name = one.change.partition(" one level")[0]
        assert f"{name} one level {'finer' if sum(one.levels) < sum(chosen) else 'coarser'}" in one.change


def test_why_other_questions_are_not_worked_out(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = visits(make_job, suppression_limit=0.1)
    monkeypatch.setattr(reading, "MOST_SEARCHED", 3)
    found = read_internal(job.spec)
    assert found.what_if is None
    assert "rows may be suppressed" in str(found.why_not)
    monkeypatch.setattr(reading, "MOST_NODES", 3)
    del job.settings["suppression_limit"]
    found = read_internal(job.spec)
    assert found.what_if is None
    assert "more than 3 nodes" in str(found.why_not)
    assert not found.lattice.whole
    with open_task(job.spec) as task:
        said = run_search(task, all_nodes=True).to_json()
    whole = {tuple(one["levels"]): one for one in said["nodes"]}
    first = {*found.lattice.minimal, found.lattice.chosen}
    near = {node for node, one in whole.items() if one["satisfied"] and (node in first or _above(node, first))}
    assert {one.levels for one in found.lattice.nodes} == near > first
    assert all(one.measure == whole[one.levels]["metrics"]["loss"] for one in found.lattice.nodes)


def _above(node: tuple[int, ...], first: set[tuple[int, ...] | None]) -> bool:
    """Whether a node is one level coarser than one of these."""
    return any((*node[:i], level - 1, *node[i + 1 :]) in first for i, level in enumerate(node))


def test_the_frontier_is_what_no_node_beats_and_room_is_that_of_the_ledger(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    found = read_internal(job.spec)
    nodes = {one.levels: one for one in found.lattice.nodes if one.satisfied and None not in (one.measure, one.margin)}
    better = {
        (a, b)
        for a, one in nodes.items()
        for b, other in nodes.items()
        if (one.measure, -one.margin) != (other.measure, -other.margin)
        and one.measure <= other.measure
        and one.margin >= other.margin
    }
    beaten = {b for _, b in better}
    best = {(nodes[node].measure, nodes[node].margin) for node in nodes.keys() - beaten}
    assert {(nodes[node].measure, nodes[node].margin) for node in found.lattice.frontier} == best
    assert len(found.lattice.frontier) == len(best) > 1
    assert beaten
    published = next(one for one in found.lattice.nodes if one.levels == found.lattice.published)
    assert published.margin == pytest.approx(min(one.margin for one in found.margins if one.margin is not None))


def test_runs_room_and_head_are_those_of_the_ledger(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    job.settings["privacy"] = [{"k_anonymity": {"k": 400}}]
    with pytest.raises(Refused):
        job.run()
    job.settings["privacy"] = MODELS
    found, past = read_internal(job.spec), history(job.spec)
    assert [(one.state, one.version) for one in found.runs] == [("refused", None), ("published", 1)]
    refused = [event["reason"] for event in past["events"] if event["state"] == "refused"]
    assert list(found.runs[0].why) == refused
    assert found.head == past["ledger_head"]
    assert {(one.version, one.model) for one in found.margins} == {(1, next(iter(model))) for model in MODELS}
    least = min((one.margin, one.model) for one in found.margins if one.margin is not None)
    assert str(found.binding).startswith(least[1])
    assert found.problems == ()


def test_a_version_that_is_kept_is_reported_as_it_was(make_job: MakeJob) -> None:
    two = {"versions": {"joint": "none", "keep": 2}, "privacy": [{"k_anonymity": {"k": 2}}]}
    job = visits(make_job, search={"node": [1, 0]}, **two)
    job.run()
    before = read_report(job.spec).shown
    job.settings["search"] = {"node": [2, 1]}
    job.run()
    assert read_report(job.spec).shown.blocks != before.blocks
    report = read_report(job.spec, internal=True, version=1)
    assert report.shown.model_copy(update={"columns": ()}) == before.model_copy(update={"columns": ()})
    for now, then in zip(report.shown.columns, before.columns, strict=True):
        assert now.model_copy(update={"after": ""}) == then.model_copy(update={"after": ""})
    assert report.shown.columns[0].after == "groups like 20-29 for 100 %"
    recorded = [one for one in history(job.spec)["guarantees"] if one["version"] == 1]
    assert [one.satisfied for one in report.shown.guarantees] == [f"k = {one['satisfied']}" for one in recorded]
    text = rendered(report, "html")
    assert "Readers see version 2, not version 1." in text
    assert "The spec has changed since" in text
    assert report.to_dict()["internal"]["kept"] == {"version": 1, "current": 2, "same_spec": False}
    assert "is the one that readers see" in rendered(read_report(job.spec, internal=True, version=2), "md")
    job.settings["search"] = {"node": [3, 1]}
    job.run()
    with pytest.raises(InputError, match=r"version 1 of release people is not kept; kept: 2, 3$"):
        read_report(job.spec, internal=True, version=1)
    with pytest.raises(InputError, match="add --internal"):
        read_report(job.spec, version=2)


def test_a_kept_version_that_was_altered_is_not_reported(make_job: MakeJob) -> None:
    job = visits(make_job, search={"node": [1, 0]}, privacy=[{"k_anonymity": {"k": 2}}])
    job.run()
    if job.engine == "duckdb":
        (file,) = job.folder.rglob("v1.duckdb")
        with duckdb.connect(str(file)) as connection:
            connection.execute("UPDATE published.people_v1 SET cost = cost + 1")
    else:
        job.change("UPDATE qblock.v1_people SET cost = cost + 1")
    with pytest.raises(Refused, match="its content was altered"):
        read_report(job.spec, internal=True, version=1)


def test_a_kept_version_whose_helper_views_were_dropped_is_not_reported(make_job: MakeJob) -> None:
    job = visits(make_job, search={"node": [1, 0]}, privacy=[{"k_anonymity": {"k": 2}}])
    job.run()
    if job.engine == "duckdb":
        (file,) = job.folder.rglob("v1.duckdb")
        with duckdb.connect(str(file)) as connection:
            connection.execute("DROP TABLE published.people_version")
    else:
        job.change("DELETE FROM qblock.shown_version")
    with pytest.raises(InputError, match="version 1 of release people has no helper views, which a report needs"):
        read_report(job.spec, internal=True, version=1)


def test_problems_of_a_verification_are_said(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    if job.engine == "duckdb":
        with duckdb.connect(str(job.target)) as connection:
            connection.execute("UPDATE published.people_levels SET rows = rows + 1 WHERE column_name = 'age'")
    else:
        job.change("UPDATE qblock.now_levels_people SET rows = rows + 1 WHERE column_name = 'age'")
    found = read_internal(job.spec)
    assert found.problems
    text = rendered(read_report(job.spec, internal=True), "html")
    assert 'class="failed">A verification found' in text


def test_a_map_is_no_node_of_the_picture(make_job: MakeJob) -> None:
    job = visits(make_job, search={"recoding": "multidimensional", "choose_by": "loss"})
    job.run()
    report = read_report(job.spec, internal=True)
    assert report.inside.lattice.published is None
    assert report.inside.runs[0].how.startswith("map of ")
    assert "Readers see a recoding map" in rendered(report, "md")


def test_a_candidate_is_reported_before_anything_is_published(make_job: MakeJob) -> None:
    job = visits(make_job)
    report = read_report(job.spec, candidate=True)
    assert report.published is None
    text = rendered(report, "html")
    assert "before its first version" in text
    assert "The job has not run yet" in text
    assert 'id="verdict"' not in text
    assert history(job.spec)["events"] == []
    assert "satisfy the spec on the source as it is now" in report.inside.candidate


def test_a_candidate_of_a_spec_that_nothing_satisfies(make_job: MakeJob) -> None:
    job = visits(make_job, privacy=[{"k_anonymity": {"k": 400}}])
    report = read_report(job.spec, candidate=True)
    assert report.inside.lattice.chosen is None
    assert "No node of full-domain recoding satisfies the spec" in rendered(report, "html")
    assert report.inside.what_if is not None
    assert {one.levels for one in report.inside.what_if} == {None}


def test_internal_pages_are_marked_and_readers_get_none(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    theirs, ours = read_report(job.spec), read_report(job.spec, internal=True)
    public, internal = (rendered(one, "html") for one in (theirs, ours))
    sections = re.findall(r"<h2[^>]*>(.*?)</h2>", internal)
    assert len(sections) == 18
    assert all('<span class="mark">internal</span>' in one for one in sections)
    assert "@top-right" in internal
    for text in (public, rendered(theirs, "md"), rendered(theirs, "json")):
        assert "nternal" not in text.replace(".internal", "")
        assert "lattice" not in text.replace("svg.lattice", "")
    assert "<script" not in public
    assert internal.count("<script>") == 1
    assert json.loads(rendered(theirs, "json")).keys() == {"program", "made", "release", "published"}
    assert json.loads(rendered(ours, "json"))["internal"]["head"] == history(job.spec)["ledger_head"]
    assert "url" not in ours.inside.spec
    assert isinstance(ours.internal, Internal)


def test_no_password_is_in_it(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    report = read_report(job.spec, internal=True)
    for form in ("html", "md", "json"):
        assert job.url not in rendered(report, form)  # type: ignore[arg-type]


def test_epsilon_of_nodes_and_requirements_is_that_of_a_comparison(make_job: MakeJob) -> None:
    close = {"t_closeness": {"t": 0.2, "sensitive": "disease"}}
    job = visits(make_job, privacy=[*MODELS[:2], close])
    found = read_internal(job.spec)
    with open_task(job.spec) as task:
        said = to_json(compare(task))
    whole = {tuple(node["levels"]): node["tightest"] for node in said["nodes"]}
    assert {one.sensitive for one in found.epsilon} == {"disease", "cost"}
    for one in found.epsilon:
        assert found.lattice.chosen == one.levels[0]
        assert set(one.levels) == {found.lattice.chosen, *found.lattice.minimal}
        assert len(one.adversaries) >= 3
        for levels, values in zip(one.levels, one.values, strict=True):
            known = [float(value) for value in whole[levels].values() if value is not None]
            for value in values:
                assert any(float(value.replace(",", "")) == pytest.approx(one, rel=1e-3) for one in known)
    told = {(one["definition"], one["sensitive"], one["adversary"]): one for one in said["granted"]}
    assert {(one.requirement, one.sensitive, one.adversary) for one in found.granted} == told.keys()
    for one in found.granted:
        epsilon = told[one.requirement, one.sensitive, one.adversary]["epsilon"]
        assert (one.epsilon is None) == (epsilon in (None, "inf"))
        assert one.epsilon is None or float(one.epsilon.replace(",", "")) == pytest.approx(epsilon, rel=1e-3)
    assert any(one.epsilon is not None for one in found.granted)
    assert all("looks at no sensitive value" in one.why for one in found.granted if "k_anonymity" in one.requirement)


def test_curves_are_those_of_a_comparison_with_each_adversary(make_job: MakeJob, tmp_path: Path) -> None:
    job = visits(make_job, privacy=[{"k_anonymity": {"k": 2}}], search={"node": [1, 0]}, suppression_limit=0.2)
    found = read_internal(job.spec).curves
    assert {one.levels for one in found} == {(1, 0)}
    priors = {"A_d, uniform prior": "uniform", "A_c, table's prior": "table", "A_-, any prior": None}
    asked: dict[tuple[str, str, str], dict[str, Any]] = {}
    for one in found:
        prior, values = priors[one.adversary], VALUES[one.sensitive]
        assert one.stubbornness == (*(f"1e{i}" for i in range(2, 9)), *(["inf"] if prior else []))
        for text in one.stubbornness:
            entry: dict[str, Any] = {"epsilon": 7, "sensitive": one.sensitive, "prior": prior, "adversary": "III"}
            if text != "inf":
                sigma = int(float(text))
                entry |= {"adversary": "I" if prior else "II", "stubbornness": sigma, "at_most": not prior}
                assert sigma >= values
            asked[one.sensitive, one.adversary, text] = {k: v for k, v in entry.items() if v is not None}
    (tmp_path / "more.yaml").write_text(json.dumps({"privacy": [{"epsilon_privacy": one} for one in asked.values()]}))
    with open_task(job.spec) as task:
        said = compare(task, file=tmp_path / "more.yaml", nodes=[(1, 0)])
    numbers = [i for i, one in enumerate(said.definitions) if one.origin == "definitions"]
    expected = dict(zip(asked, (said.rows[0].values[i][0].value for i in numbers), strict=True))
    told = [(one, text, value) for one in found for text, value in zip(one.stubbornness, one.values, strict=True)]
    for one, text, value in told:
        exact = expected[one.sensitive, one.adversary, text]
        assert value == (None if exact == math.inf else pytest.approx(float(exact)))
    assert {value is None for *_, value in told} == {True, False}
    drawn = curves([one for one in found if one.sensitive == "disease"], "a label")
    finite = [value for one, _, value in told if one.sensitive == "disease" and value is not None]
    assert len(re.findall(r'class="point c\d"', drawn)) == len(finite) + len(priors)
    assert drawn.count("epsilon inf") == sum(value is None for one, _, value in told if one.sensitive == "disease")


def test_nothing_is_weighed_where_no_node_satisfies(make_job: MakeJob) -> None:
    job = visits(make_job, privacy=[{"k_anonymity": {"k": 400}}])
    report = read_report(job.spec, candidate=True)
    assert report.inside.epsilon == ()
    assert "there is nothing to weigh" in rendered(report, "html")


def test_beliefs_are_those_of_the_audit(make_job: MakeJob) -> None:
    job = visits(make_job)
    job.run()
    weights = job.folder / "weights.csv"
    known = sorted(set(zip(VISITS["age"], VISITS["sex"], strict=True)))
    values = ("flu", "heart", "cancer", "")
    lines = [f"{age},{sex},{disease},{1 + age % 5}" for age, sex in known for disease in values]
    weights.write_text("\n".join(["age,sex,disease,weight", *lines, ""]))
    found = read_internal(job.spec, prior=str(weights))
    published = found.lattice.published
    assert published is not None
    node = ",".join(map(str, published))
    said = Release(job.spec).audit(node, adversary="bayes", prior=str(weights)).to_dict()["beliefs"]
    assert [one.sensitive for one in found.beliefs] == [one["sensitive"] for one in said] == ["disease"]
    for one, audited in zip(found.beliefs, said, strict=True):
        assert one.levels == published
        assert (one.people, one.breach, one.moved) == (36, audited["breach"]["people"], audited["moved"]["people"])
        assert audited["moved"]["sentence"] in one.sentences
    assert found.beliefs[0].moved > 0
    assert read_internal(job.spec).beliefs == ()
    with pytest.raises(InputError, match="add internal"):
        Release(job.spec).report(prior="table")
    weights.write_text("x,weight\n1,1\n")
    with pytest.raises(InputError, match="it has no column 'age'"):
        read_internal(job.spec, prior=str(weights))


def test_a_published_node_of_other_columns_is_none_of_the_lattice(make_job: MakeJob) -> None:
    """The spec has lost a quasi-identifier, or a level, since the version was published."""
    job = make_job()
    node = tuple(job.run().node.values())
    assert read_internal(job.spec).lattice.published == node
    attributes = job.settings["attributes"]
    job.settings["attributes"] = attributes | {"age": {"role": "quasi_identifier", "hierarchy": "suppress"}}
    lower = read_internal(job.spec).lattice
    assert lower.published == (node if node[1] < 2 else None)
    job.settings["attributes"] = attributes | {"age": "identifying"}
    fewer = read_internal(job.spec)
    assert fewer.lattice.published is None
    assert {len(node.levels) for node in fewer.lattice.nodes} == {1}
