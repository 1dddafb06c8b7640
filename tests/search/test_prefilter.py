"""A requirement that fails a node alone spares the others, and changes no answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frequency.test_samples import people
from integration.sources import make_spec, opened

from qblock.lattice import Node
from qblock.search.run import run_search
from qblock.search.task import Prefilter, Task

pytestmark = pytest.mark.either_engine

PRIVACY: dict[str, list[dict[str, Any]]] = {
    "entropy and closeness": [
        {"entropy_l_diversity": {"l": 2.6, "sensitive": "ill"}},
        {"t_closeness": {"t": 0.25, "distance": "equal", "sensitive": "job"}},
    ],
    "joint": [
        {"recursive_cl_diversity": {"c": 2, "l": 2, "sensitive": "ill"}},
        {"entropy_l_diversity": {"l": 1.1, "sensitive": ["ill", "job"]}},
    ],
    "k": [
        {"k_anonymity": {"k": 6}},
        {"distinct_l_diversity": {"l": 4, "sensitive": "ill"}},
        {"beta_likeness": {"beta": 0.9, "sensitive": "job"}},
    ],
}


@pytest.mark.parametrize("entities", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize("limit", [0, 15])
@pytest.mark.parametrize("privacy", PRIVACY)
def test_what_fails_alone_changes_no_answer(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, privacy: str, limit: int, entities: bool
) -> None:
    rows, spared, alone = people(tmp_path, 240, 1), dict[float, list[Node]](), Task._fails_alone
    who = [i % 150 for i in range(rows.size)]
    filled = {column.name: column.values for column in rows.columns} | ({"who": who} if entities else {})
    more: dict[str, Any] = {"entity": "who", "count": "entities"} if entities else {}
    more |= {"suppression_limit": limit, "search": {"roll_up": "local"}}
    url, satisfied = warehouse("t", filled), dict[float, list[Any]]()
    for rate in (0.0, 1.0):

        def noted(task: Task, node: Node, rate: float = rate) -> bool:
            fails = alone(task, node)
            spared[rate] += [node] * fails
            return fails

        spared[rate] = []
        monkeypatch.setattr(Prefilter, "rate", lambda _, test, rate=rate: rate)
        monkeypatch.setattr(Task, "_fails_alone", noted)
        with opened(url, "t", rows.attributes(), tmp_path, PRIVACY[privacy], **more) as task:
            outcome = run_search(task).outcome
        assert outcome is not None
        assert outcome.satisfied is not None
        satisfied[rate] = outcome.satisfied.tolist()
    assert satisfied[0.0] == satisfied[1.0]
    assert any(map(bool, spared[1.0]))
    assert len(spared[0.0]) < len(spared[1.0])


@pytest.mark.parametrize("entities", [False, True], ids=["rows", "people"])
def test_what_one_question_refuted_is_refuted_for_another_that_asks_it_too(
    warehouse: Any, tmp_path: Path, entities: bool
) -> None:
    rows = people(tmp_path, 240, 1)
    who = [i % 150 for i in range(rows.size)]
    filled = {column.name: column.values for column in rows.columns} | ({"who": who} if entities else {})
    more: dict[str, Any] = {"entity": "who", "count": "entities"} if entities else {}
    questions = [PRIVACY["entropy and closeness"], PRIVACY["k"]]
    # The first again, asking more of one of the models, and less; then less of the other.
    questions += [[{"entropy_l_diversity": {"l": least, "sensitive": "ill"}}, questions[0][1]] for least in (3.4, 1.5)]
    questions.append([questions[0][0], {"t_closeness": {"t": 0.6, "distance": "equal", "sensitive": "job"}}])
    url = warehouse("t", filled)
    with opened(url, "t", rows.attributes(), tmp_path, questions[0], search={"roll_up": "local"}, **more) as task:
        task.materialize_locally()
        specs = [
            make_spec(url, "t", rows.attributes(), privacy, tmp_path, suppression_limit=limit, **more)
            for privacy in questions
            for limit in (15, 0)
        ]
        for spec in specs * 2:
            known, alone = (run_search(of).outcome for of in (task.asking(spec), Task(replace(task.source, spec=spec))))
            assert known is not None
            assert alone is not None
            assert known.satisfied is not None
            assert known.satisfied.tolist() == alone.satisfied.tolist()
