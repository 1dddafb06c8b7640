"""What commands print at 80 and 140 columns: nothing is wider, nothing is cut off, and nothing is said less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from release.jobs import Job

from qblock.cli.app import run

pytestmark = pytest.mark.either_engine

WIDTHS = (80, 140)
SCREENS = (
    ("search", "--quiet"),
    ("search", "--quiet", "--nodes", "all"),
    ("audit",),
    ("audit", "--all"),
    ("search", "--quiet", "--verbose"),
    ("compare", "--quiet"),
    ("compare", "--quiet", "--recoding", "both"),
    ("plan",),
    ("release", "--force", "--quiet"),
    ("verify",),
    ("history",),
    ("report", "--output", "report.html"),
    ("rollback", "1", "--plan"),
    ("hierarchy", "check"),
)
LONG = {
    "years_since_the_first_diagnosis": [i // 6 for i in range(24)],
    "marital_status_of_the_patient": ["never married", "widowed and living alone", "divorced"] * 8,
    "country_of_birth": ["north of the river", "south of the river"] * 12,
    "disease": ["viral", "cancer", "heart", "none"] * 6,
}


@pytest.fixture
def at_width(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def shown(width: int, arguments: list[str]) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        capfd.readouterr()
        assert run(arguments) == 0
        return capfd.readouterr().out

    return shown


def check(texts: dict[int, str], *, same: bool) -> None:
    for width, text in texts.items():
        assert "…" not in text
        # An identifier that is longer than the screen may go beyond it; nothing else does.
        assert [line for line in text.splitlines() if len(line.rstrip()) > width and len(line.split()) > 1] == []
    if same:
        narrow, wide = (sorted("".join(texts[width].split())) for width in WIDTHS)
        assert narrow == wide


@pytest.mark.parametrize("screen", SCREENS, ids=" ".join)
def test_a_release(
    released: Job, screen: tuple[str, ...], at_width: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(released.folder)
    name, *more = screen[:2] if screen[0] == "hierarchy" else screen[:1]
    arguments = [name, *more, str(released.spec.path), *screen[1 + len(more) :]]
    # Times, digests and numbers of versions differ from run to run.
    check({width: at_width(width, arguments) for width in WIDTHS}, same=name in ("audit", "hierarchy"))


@pytest.mark.parametrize(
    "screen", [screen for screen in SCREENS if screen[0] in ("search", "audit", "hierarchy")], ids=" ".join
)
def test_long_names(
    warehouse: Any, spec: Callable[..., Path], screen: tuple[str, ...], at_width: Callable[..., str]
) -> None:
    quasi = {"role": "quasi_identifier", "hierarchy": "suppress"}
    attributes = {**{name: quasi for name in LONG if name != "disease"}, "disease": "sensitive"}
    asked = [{"k_anonymity": {"k": 6}}, {"t_closeness": {"t": 0.3}}]
    file = spec(warehouse("people", LONG), "people", attributes, asked)
    words = list(screen)
    words.insert(2 if screen[0] == "hierarchy" else 1, str(file))
    texts = {width: at_width(width, words) for width in WIDTHS}
    check(texts, same=screen[0] != "search")
    if screen == ("search", "--quiet"):
        for text in texts.values():
            flat = " ".join(text.split())
            assert "marital_status_of_the_patient: suppressed to *" in flat
            assert "2 of 3 quasi-identifiers are suppressed: of little use; what would show them:" in flat
            assert "Limit: k_anonymity (k asked 6, satisfied 6)" in flat


def test_a_first_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_width: Callable[..., str]) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [",".join(LONG), *(",".join(map(str, row)) for row in zip(*LONG.values(), strict=True))]
    Path("people.csv").write_text("\n".join(lines) + "\n", "utf-8")
    arguments = ["init", "people.csv", "--yes", "--force", "--sensitive", "disease"]
    check({width: at_width(width, arguments) for width in WIDTHS}, same=False)
