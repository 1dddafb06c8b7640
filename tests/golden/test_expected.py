"""Every worked example, by its id."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import check_adversary, check_closeness, check_diversity
from golden.checks import CHECKS, Entry

MODULES = (check_adversary, check_closeness, check_diversity)
NOT_ASKED = {
    "ldiv.envelope": "an estimate of the paper for tables without correlation",
    "thesis.camille_age": "a misprint in the paper's text",
    "vldb.eq9_group": "a misprint in a formula of the paper",
    "vldb.table5_audit": "bounds between printed figures, whose data is not published",
    "vldb.table5_monotonicity": "printed figures, whose data is not published",
    "vldb.table5_row_5210": "intervals of shares that would explain printed figures",
}
"""Examples about the paper itself, with the reason why no engine is asked."""


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_example(name: str, golden: dict[str, Entry], shared: Path) -> None:
    CHECKS[name](golden[name], shared / "golden")


def test_no_example_is_forgotten(golden: dict[str, Entry]) -> None:
    assert golden.keys() == CHECKS.keys() | NOT_ASKED.keys()
    assert not CHECKS.keys() & NOT_ASKED.keys()
    assert {name for name, entry in golden.items() if entry.get("about") == "the paper"} == NOT_ASKED.keys()
    assert all(MODULES)
