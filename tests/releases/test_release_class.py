"""Release and Ledger: what they return is values, and the very answers that the command line prints."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from pydantic import ValidationError

import qblock
from qblock.cli import main
from qblock.results.base import Answer, Value

SPEC = """version: 1
release: people
source: {url: "duckdb:///source.duckdb", table: people}
entity: name
attributes:
  name: identifying
  zip: {role: quasi_identifier, hierarchy: {digits: 5}}
  "<b>": {role: quasi_identifier, hierarchy: suppress}
  disease: sensitive
privacy:
  - k_anonymity: {k: 2}
publish: {url: "duckdb:///release.duckdb"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("release")
    with duckdb.connect(str(made / "source.duckdb")) as source:
        source.execute(
            "CREATE TABLE people AS SELECT 'p' || i AS name, '1305' || (i // 2) % 10 AS zip, 'x' AS \"<b>\", "
            "['flu', 'heart'][i % 2 + 1] AS disease FROM range(8) t(i)"
        )
    (made / "spec.yaml").write_text(SPEC, "utf-8")
    return made


@pytest.fixture(scope="module")
def release(folder: Path) -> qblock.Release:
    made = qblock.Release(folder / "spec.yaml")
    assert made.publish().status == "published"
    return made


@pytest.fixture(scope="module")
def answers(release: qblock.Release) -> dict[str, Answer]:
    """One answer of each kind, by the command that prints the same."""
    return {
        "search": release.search(all_nodes=True),
        "compare": release.compare(),
        "compare --recoding both": release.compare_recodings(),
        "plan": release.plan(),
        "verify": release.verify(),
        "history": release.history(),
        "hierarchy check": release.check_hierarchies(),
        "ledger retype": release.retype(),
        "release": release.publish(),
        "rollback": release.rollback(1),
    }


MOVING = {"seconds", "age_seconds", "run", "queries", "statements", "ledger_head"}
"""Keys whose values differ from call to call: the head, too, since a run that finds nothing new remembers that."""


def still(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: still(value) for key, value in found.items() if key not in MOVING}
    return [still(value) for value in found] if isinstance(found, list) else found


@pytest.mark.parametrize(
    "command",
    [
        "search",
        "compare",
        "compare --recoding both",
        "plan",
        "verify",
        "history",
        "hierarchy check",
        "ledger retype",
        "release",
    ],
)
def test_an_answer_is_what_the_command_prints(
    answers: dict[str, Answer],
    folder: Path,
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more = ["--nodes", "all"] if command == "search" else []
    monkeypatch.setattr("sys.argv", ["qblock", *command.split(), str(folder / "spec.yaml"), "--json", *more])
    with pytest.raises(SystemExit):
        main()
    printed = json.loads(capsys.readouterr().out)
    printed.pop("exit_status", None)
    assert list(printed) == list(answers[command].to_dict())
    assert still(printed) == still(answers[command].to_dict())


def test_answers_are_frozen_values(answers: dict[str, Answer]) -> None:
    for name, answer in answers.items():
        assert pickle.loads(pickle.dumps(answer)) == answer, name
        hash(answer)
        with pytest.raises(ValidationError, match="frozen"):
            answer.release = "another"  # type: ignore[attr-defined]


def parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Value):
        yield from (part for _, field in value for part in parts(field))
    elif isinstance(value, Mapping):
        yield from (part for field in value.values() for part in parts(field))
    elif isinstance(value, list | tuple):
        yield from (part for element in value for part in parts(element))
    else:
        yield value


def test_nothing_but_plain_values_is_in_an_answer(answers: dict[str, Answer]) -> None:
    for name, answer in answers.items():
        assert {type(part) for part in parts(answer)} <= {str, int, float, bool, type(None), Fraction}, name


def test_answers_are_frames_and_tables(answers: dict[str, Answer]) -> None:
    for name, answer in answers.items():
        frame = answer.to_frame()
        assert isinstance(frame, pd.DataFrame), name
        assert len(frame) or name == "ledger retype", name  # which had nothing to convert
        html = answer._repr_html_()
        assert "<b>" not in html, name
    assert list(answers["history"].to_frame()["state"])[:3] == ["staged", "checked", "published"]
    assert len(answers["compare"].to_frame()) == 12
    figures = answers["compare --recoding both"].to_frame().set_index("figure")
    assert list(figures.loc["blocks"]) == [4, 4]
    assert list(figures.loc["suppressed: <b>"]) == [0, 0]


def test_a_search_that_finds_nothing_answers(folder: Path) -> None:
    nothing = qblock.Release(folder / "spec.yaml").spec
    spec = dataclasses.replace(nothing, privacy=qblock.Release(_spec(folder, k=9)).spec.privacy)
    found = qblock.Release(spec).search()
    assert (found.chosen, found.guarantees) == (None, ())
    with pytest.raises(qblock.Refused, match="asks k 9; the most general node satisfies k 8"):
        found.raise_refused()


def _spec(folder: Path, k: int) -> Path:
    path = folder / "nothing.yaml"
    path.write_text(SPEC.replace("k: 2", f"k: {k}"), "utf-8")
    return path


def test_a_spec_may_be_a_path_a_mapping_or_a_spec(folder: Path) -> None:
    by_path = qblock.Release(str(folder / "spec.yaml"))
    assert qblock.Release(by_path.spec).name == by_path.name == "people"
    with pytest.raises(qblock.InputError, match="relese"):
        qblock.Release({"version": 1, "relese": "people"})


def test_a_ledger_is_that_of_a_spec_or_of_a_url(release: qblock.Release, folder: Path) -> None:
    by_spec = qblock.Ledger(str(folder / "spec.yaml")).upgrade()
    by_url = qblock.Ledger(f"sqlite:///{folder / 'qblock' / 'ledger.sqlite'}").upgrade()
    assert by_spec == by_url
    assert by_spec.before == by_spec.after


def test_people_withdraw(release: qblock.Release) -> None:
    found = release.erase(["p1"], now=True)
    assert (found.status, found.asked, found.shown) == ("erased", 1, 1)
    assert found.published is not None
    assert found.published.version == 2
    assert found.to_dict()["published"] == found.published.to_dict()
    ended = release.retire()
    assert (ended.status, ended.version) == ("retired", 2)
    assert list(found.to_frame().itertuples(index=False, name=None))[:3] == [
        ("status", "erased"),
        ("release", "people"),
        ("asked", 1),
    ]
    assert "<td>retired</td>" in ended._repr_html_()


@pytest.mark.parametrize("named", [False, True])
def test_values_are_named_to_those_alone_who_may_see_them(folder: Path, tmp_path: Path, named: bool) -> None:
    text = SPEC.replace("duckdb:///source.duckdb", f"duckdb:///{folder / 'source.duckdb'}")
    uncovered = tmp_path / "uncovered.yaml"
    (tmp_path / "zip.csv").write_text("zip,all\na,*\n", "utf-8")
    uncovered.write_text(text.replace("{digits: 5}", "{file: zip.csv}"), "utf-8")
    with pytest.raises(qblock.InputError) as raised:
        qblock.Release(uncovered, name_values=named).search()
    assert ("13050" in str(raised.value)) == named


@pytest.mark.parametrize("named", [False, True])
def test_what_the_database_said_is_behind_an_error_for_those_alone(
    release: qblock.Release, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise qblock.QblockError("the database failed") from ValueError("13050")

    monkeypatch.setattr("qblock.release.verify.verify", broken)
    monkeypatch.setattr("qblock.ledger.store.Store.upgrade", broken)
    ledger = qblock.Ledger(str(release.spec.path), name_values=named)
    for ask in (qblock.Release(release.spec, name_values=named).verify, ledger.upgrade):
        with pytest.raises(qblock.QblockError) as raised:
            ask()
        assert isinstance(raised.value.__cause__, ValueError) == named
        assert raised.value.__suppress_context__
