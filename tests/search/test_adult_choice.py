"""k=5 on the Adult data with 2% and 5% suppression, chosen by loss and by discernibility."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from qblock.metrics import BY_NAME, Published
from qblock.search.result import SearchResult
from qblock.search.run import open_task, run_search
from qblock.spec import read_spec

from .test_adult import NAMES, Adult


@pytest.fixture(scope="module")
def url(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Adult data in a DuckDB file."""
    file = tmp_path_factory.mktemp("adult") / "adult.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE TABLE adult AS SELECT * FROM read_csv(?, header = true, all_varchar = true)",
            [str(shared / "data" / "adult" / "adult.csv")],
        )
    return f"duckdb:///{file}"


def chosen(shared: Path, url: str, quasi_identifiers: int, limit: str, by: str) -> SearchResult:
    folder = shared / "data" / "adult" / "hierarchies"
    attributes = "".join(
        f"  {name}: {{role: quasi_identifier, hierarchy: {{file: {folder / name}.csv}}}}\n"
        for name in NAMES[:quasi_identifiers]
    )
    text = (
        f"version: 1\nrelease: adult\nsource: {{url: '{url}', table: adult}}\nattributes:\n{attributes}"
        f"privacy:\n  - k_anonymity: {{k: 5}}\nsuppression_limit: {limit}\nsearch: {{choose_by: {by}}}\n"
    )
    with open_task(read_spec(text, "spec.yaml", {})) as task:
        return run_search(task)


@pytest.mark.parametrize("limit", ["0.02", "0.05"])
def test_five_quasi_identifiers_against_a_scan_by_numpy(shared: Path, url: str, limit: str) -> None:
    adult = Adult(shared, NAMES[:5], 5)
    figures = {}
    for node in adult.lattice.nodes():
        keys, sizes = adult.blocks(node)
        kept = sizes >= 5
        published = Published.of_blocks(node, adult.hierarchies, keys[kept], sizes[kept], len(adult.rows))
        if published.suppressed <= float(limit) * len(adult.rows):
            figures[node] = {name: BY_NAME[name].of(published) for name in ("loss", "discernibility")}
    for name in ("loss", "discernibility"):
        result = chosen(shared, url, 5, limit, name)
        best = min(figures, key=lambda node, name=name: (float(f"{figures[node][name]:.12g}"), sum(node), node))
        assert result.chosen is not None
        assert result.chosen.node == best
        assert result.metrics[name] == pytest.approx(figures[best][name])
        assert result.outcome is not None
        assert result.outcome.satisfying() == sorted(figures)


def test_seven_quasi_identifiers_as_arx_chooses(shared: Path, url: str) -> None:
    result = chosen(shared, url, 7, "0.02", "loss")
    assert result.chosen is not None
    assert result.levels() == dict(zip(NAMES, (4, 0, 0, 0, 2, 1, 1), strict=True))
    assert result.chosen.suppressed == 836
    assert result.metrics["loss"] == pytest.approx(0.1784675, abs=5e-8)
    # The bounds spare most of the satisfying nodes a look at their blocks.
    assert result.queries < 3 * (result.outcome.nodes_evaluated if result.outcome else 0) + 100
