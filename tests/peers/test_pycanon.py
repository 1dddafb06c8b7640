"""Audits of generalized tables held against pycanon, for what it computes as the literature defines it.

Where it computes something else, the disagreement is named with its reason, and the test fails when it goes away.
`make test` installs pycanon without what it pins (it wants an older typer for its own command line).
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from qblock.blocks import Blocks, Reference
from qblock.models import DeltaDisclosure, EntropyLDiversity, RecursiveCLDiversity
from qblock.search.audit import audit_table

pytestmark = pytest.mark.filterwarnings("default")
anonymity = pytest.importorskip("pycanon.anonymity", reason="pycanon is not installed: pip install --no-deps pycanon")

QUASI = ["age", "zone"]


def released(seed: int, numeric: bool = False) -> pd.DataFrame:
    """A generalized table: three to six blocks of two to nine rows, two to five sensitive values."""
    draw = random.Random(seed)
    values: list[Any] = [10, 20, 30, 40, 50] if numeric else ["asthma", "cold", "flu", "gout", "rash"]
    values = values[: draw.randint(2, 5)]
    rows = []
    for block in range(draw.randint(3, 6)):
        for _ in range(draw.randint(2, 9)):
            rows.append({"age": f"{block}0s", "zone": f"z{block % 2}", "s": draw.choice(values)})
    draw.shuffle(rows)
    return pd.DataFrame(rows)


def audited(table: pd.DataFrame, folder: Path) -> dict[tuple[str, str | None], dict[str, Any]]:
    """(model, distance or variant) -> parameter -> tightest value, by an audit of the table in a warehouse."""
    file = folder / "released.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("frame", table)
        connection.execute("CREATE OR REPLACE TABLE released AS SELECT * FROM frame")
    found = audit_table(f"duckdb:///{file}", "released", QUASI, ["s"])
    return {
        (entry["model"], entry["asked"].get("distance")): {v["parameter"]: v["value"] for v in entry["values"]}
        for entry in found["tightest"]
        if entry["model"] != "epsilon_privacy"
    }


def counted(table: pd.DataFrame) -> tuple[Blocks, Reference]:
    names = sorted(table["s"].unique())
    blocks = [part["s"].map(names.index).value_counts().to_dict() for _, part in table.groupby(QUASI)]
    found = Blocks.of(blocks)
    return found, Reference.of(found)


@pytest.mark.parametrize("seed", range(8))
def test_they_agree(seed: int, tmp_path: Path) -> None:
    table = released(seed)
    ours = audited(table, tmp_path)
    assert ours["k_anonymity", None]["k"] == anonymity.k_anonymity(table, QUASI)
    assert ours["distinct_l_diversity", None]["l"] == anonymity.l_diversity(table, QUASI, ["s"])
    alpha, k = anonymity.alpha_k_anonymity(table, QUASI, ["s"])
    assert ours["alpha_k_anonymity", None] == {"alpha": pytest.approx(alpha), "k": k}
    assert ours["t_closeness", "equal"]["t"] == pytest.approx(anonymity.t_closeness(table, QUASI, ["s"]))
    assert ours["beta_likeness", None]["beta"] == pytest.approx(anonymity.basic_beta_likeness(table, QUASI, ["s"]))


@pytest.mark.parametrize("seed", range(4))
def test_they_agree_on_the_ordered_distance(seed: int, tmp_path: Path) -> None:
    table = released(seed, numeric=True)
    ours = audited(table, tmp_path)["t_closeness", "ordered"]["t"]
    assert ours == pytest.approx(anonymity.t_closeness(table, QUASI, ["s"]))


@pytest.mark.parametrize("seed", range(4))
def test_its_delta_disclosure_skips_absent_values(seed: int) -> None:
    table = released(seed)
    blocks, reference = counted(table)
    model = DeltaDisclosure(delta=1, absent="skip")
    ours = float(model.tightest(blocks, reference).values[0].value or 0)
    assert ours == pytest.approx(anonymity.delta_disclosure(table, QUASI, ["s"]))


def test_known_disagreement_entropy_l_is_rounded_down() -> None:
    table = pd.DataFrame({"age": ["x"] * 4, "zone": ["y"] * 4, "s": ["a", "a", "b", "c"]})
    blocks, reference = counted(table)
    ours = float(EntropyLDiversity(l=1).tightest(blocks, reference).values[0].value or 0)
    assert ours == pytest.approx(2 * math.sqrt(2))
    assert anonymity.entropy_l_diversity(table, QUASI, ["s"]) == 2


def test_known_disagreement_recursive_c_sorts_the_wrong_way() -> None:
    table = pd.DataFrame({"age": ["x"] * 7, "zone": ["y"] * 7, "s": ["a"] * 4 + ["b"] * 2 + ["c"]})
    blocks, reference = counted(table)
    values = {v.parameter: v.value for v in RecursiveCLDiversity(c=5, l=2).tightest(blocks, reference).values}
    assert values["c"] == Fraction(4, 3)
    theirs, _ = anonymity.recursive_c_l_diversity(table, QUASI, ["s"])
    assert theirs < Fraction(4, 3)


def test_known_disagreement_null_is_dropped() -> None:
    table = pd.DataFrame({"age": ["x", "x", None], "zone": ["y", "y", "y"], "s": ["a", "b", "c"]})
    assert anonymity.k_anonymity(table, QUASI) == 2
