"""Progress as people read it."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.cli import output
from qblock.cli.output import duration, every_so_often, progress_words
from qblock.search.progress import SearchProgress


def reached(**other: Any) -> SearchProgress:
    known: dict[str, Any] = {
        "stage": "search",
        "decided": 1_681,
        "left": 239,
        "questions": 52,
        "rows_read": 4_049_836,
        "seconds": 26.0,
        "remaining": 18.2,
    }
    return SearchProgress(**{**known, **other})


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            {},
            "1,681 nodes decided, 239 left; 52 questions, 2.0 a second, 4,049,836 rows read; about 18 s more",
        ),
        ({"remaining": None, "rows_read": 0}, "1,681 nodes decided, 239 left; 52 questions, 2.0 a second"),
        ({"left": 0, "remaining": 0.0, "seconds": 0.0, "rows_read": 0}, "1,681 nodes decided, 0 left; 52 questions"),
        (
            {"stage": "choice", "remaining": 7200.0},
            "1,681 nodes measured, 239 left; 52 questions, 2.0 a second, 4,049,836 rows read; about 2.0 h more",
        ),
        (
            {"stage": "boxes", "remaining": None, "settled": 0.424, "questions": 9},
            "1,681 boxes done with 42 % of the rows, 239 parts open; round 9",
        ),
        ({"stage": "boxes", "remaining": None, "questions": 1}, "1,681 boxes done, 239 parts open; round 1"),
    ],
)
def test_a_line_says_what_is_known(other: dict[str, Any], said: str) -> None:
    assert progress_words(reached(**other)) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.01, "1 s"), (89, "89 s"), (91, "2 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_durations_are_round(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_line_is_written_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    lines: list[str] = []
    report = every_so_often(lines.append)
    for now[0] in (1.0, 4.9, 5.0, 6.0, 9.9, 10.0):
        report(reached(questions=int(now[0] * 10)))
    assert [line.split("; ")[1].split(" ")[0] for line in lines] == ["50", "100"]


def test_a_bar_says_that_the_source_is_read_first(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(output.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with output.progress(False) as report:
        assert report is not None
        report(reached())
    err = capsys.readouterr().err
    assert "reading the source" in err
    assert "1,681/1,920 nodes, 52 questions, about 18 s more" in err


@pytest.mark.parametrize("settled", [0.42, None])
def test_a_bar_of_a_map_is_as_long_as_its_share_of_the_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, settled: float | None
) -> None:
    monkeypatch.setattr(output.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    with output.progress(False) as report:
        assert report is not None
        report(reached(stage="boxes", remaining=None, settled=settled, questions=9))
    share = " with 42 % of the rows" if settled else ""
    assert f"1,681 boxes done{share}, 239 parts open; round 9" in capsys.readouterr().err
