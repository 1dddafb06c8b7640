"""`same`: values that differ by case, spaces or composition alone are read in one spelling, alike on every engine, and
all that is said of a column is what is said of a table that is written so."""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from engines import table_name
from hypothesis import given, settings
from hypothesis import strategies as st

from integration.sources import opened, quoted
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.search.run import run_search
from qblock.spellings import PARTS, plain
from qblock.tables.audited import audit

pytestmark = pytest.mark.either_engine
QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
E_ACUTE, E_COMBINING = "\u00e9", "e\u0301"
SPELLED = [
    "Gout",
    "gout",
    " Gout",
    "Gout",
    "it's",
    "It's ",
    f"caf{E_ACUTE}",
    f"caf{E_COMBINING}",
    "a  b",
    "A B",
    "",
    None,
]
READ: dict[str, list[str | None]] = {
    "case": ["Gout", "Gout", " Gout", "Gout", "it's", "It's ", SPELLED[6], SPELLED[7], "a  b", "A B", "", None],
    "space": ["Gout", "gout", "Gout", "Gout", "it's", "It's ", SPELLED[6], SPELLED[7], "a  b", "A B", "", None],
    "unicode": ["Gout", "gout", " Gout", "Gout", "it's", "It's ", SPELLED[7], SPELLED[7], "a  b", "A B", "", None],
    "case space unicode": ["Gout"] * 4 + ["It's "] * 2 + [SPELLED[7]] * 2 + ["A B"] * 2 + ["", None],
}
"""By hand: the one of the most rows; of those of one row each, the smallest by code points."""
PLAIN: dict[str, list[str | None]] = {
    "space": ["Gout", "gout", "Gout", "Gout", "it's", "It's", SPELLED[6], SPELLED[7], "a b", "A B", "", None],
    "case space unicode": ["gout"] * 4 + ["it's"] * 2 + [SPELLED[6]] * 2 + ["a b"] * 2 + ["", None],
}


def read(task: Any, name: str) -> list[str | None]:
    """A column as the rows of the source have it, by `id`."""
    session, table = task.source.session, TableName.parse(task.spec.source.table)
    assert session.columns(table)[name].kind == "text"
    relation = session.relation(table)
    return session.fetch(sa.select(relation.c[name].label("v")).order_by(relation.c.id)).column(0).to_pylist()


def spelled(parts: str, **more: Any) -> dict[str, Any]:
    return {"role": "sensitive", "nulls": "value", "same": parts.split(), **more}


@pytest.mark.each_engine
@pytest.mark.parametrize("together", [False, True])
def test_spellings_are_made_one(warehouse: Any, engine_name: str, tmp_path: Path, together: bool) -> None:
    expected = PLAIN if together else READ
    table = table_name(engine_name, 'St"aff')
    columns = {"id": [f"r{i:02}" for i in range(12)], "block": ["b"] * 12}
    url = warehouse(table, {**columns, **{f"c{i}": SPELLED for i in range(len(expected))}}, {"c0": "VARCHAR(6)"})
    attributes = {f"c{i}": spelled(parts) for i, parts in enumerate(expected)}
    known = {"id": "identifying" if together else QUASI, "block": QUASI}
    more = {"entity": "id"} if together else {}
    with opened(url, quoted(table), {**known, **attributes}, tmp_path, **more) as task:
        for i, (parts, values) in enumerate(expected.items()):
            assert (parts, read(task, f"c{i}")) == (parts, values)
            assert set(task.source.sensitives[f"c{i}"].reference.domain) == set(values)


def test_it_goes_with_unknown_with_a_condition_and_with_a_level(warehouse: Any, tmp_path: Path) -> None:
    """A code in whatever spelling, and the rows of the condition alone decide which spelling is the commonest."""
    values = ["flu", "N/A", "Flu", " n/a", "flu ", "FLU", "FLU", "FLU", None]
    url = warehouse("t", {"id": [f"r{i}" for i in range(9)], "ill": values, "n": [1, 1, 1, 1, 1, 2, 2, 2, 1]})
    entry = spelled("case space", unknown=["n/a"])
    more = {"source": {"url": "", "table": "t", "where": "n = 1"}}
    with opened(url, "t", {"id": QUASI, "ill": entry}, tmp_path, **more) as task:
        assert read(task, "ill") == ["Flu", None, "Flu", None, "Flu", None]
    (tmp_path / "kinds.csv").write_text("leaf,kind,all\nFLU,lungs,*\ngout,bone,*\n")
    entry |= {"taxonomy": {"file": "kinds.csv"}, "publish_as": {"level": 1}}
    with opened(url, "t", {"id": QUASI, "ill": entry}, tmp_path) as task:
        assert read(task, "ill") == ["lungs", None, "lungs", None, *["lungs"] * 4, None]


def test_a_hierarchy_has_the_spelling_that_is_read(warehouse: Any, tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("town,land,all\nOslo,no,*\n")
    url = warehouse("t", {"id": ["a", "b", "c"], "town": ["Oslo", "OSLO", "Oslo"]})
    entry = {**QUASI, "hierarchy": {"file": "towns.csv"}, "same": ["case"]}
    with opened(url, "t", {"id": "identifying", "town": entry}, tmp_path) as task:
        assert task.source.frequency_sets.blocks((0,), ())[0].total.tolist() == [3]
    said = r"1 value of column town \(3 rows\) is missing in its hierarchy: 'oslo'"
    with pytest.raises(InputError, match=said), opened(url, "t", {"town": entry}, tmp_path, entity="id"):
        pass


def test_a_population_is_spelled_alike(warehouse: Any, tmp_path: Path) -> None:
    """Whichever spelling is the commonest in either table."""
    url = warehouse("t", {"town": ["Oslo", "Oslo", "OSLO"]})
    warehouse("everybody", {"town": ["OSLO", "OSLO", "Oslo", "oslo"]})
    for k in (4, 5):
        privacy = [{"k_map": {"k": k, "population": {"table": "everybody"}}}]
        with opened(url, "t", {"town": {**QUASI, "same": ["case"]}}, tmp_path, privacy) as task:
            assert task.assess((0,)).satisfied == (k == 4)


def test_what_is_no_text_or_too_much_of_it_is_refused(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = warehouse("t", {"n": [1, 2], "town": ["Oslo", "oslo"]})
    said = r"spec\.yaml:\d+: column n is of type .*, and spellings are of text; remove `same`"
    with pytest.raises(InputError, match=said), opened(url, "t", {"n": {**QUASI, "same": ["case"]}}, tmp_path):
        pass
    monkeypatch.setattr("qblock.engines.spelled.MOST_EDGES", 0)
    said = r"1 values of column town are spelled otherwise than they are read; valid: at most 0\. Write them alike"
    with pytest.raises(InputError, match=said), opened(url, "t", {"town": {**QUASI, "same": ["case"]}}, tmp_path):
        pass


def test_a_data_frame_is_read_so_too() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2], "ill": ["flu", "Flu", "gout", "gout "]})
    entries: list[dict[str, Any]] = [{}, {"same": ["case", "space"]}]
    audits = [audit(frame, ["age"], {"ill": entry}) for entry in entries]
    least = [next(g for g in of.guarantees if g.model == "distinct_l_diversity").values[0].value for of in audits]
    assert least == [2, 1]


LETTERS = st.text(
    st.sampled_from(["a", "A", " ", "\u00a0", "\t", "\u00e9", "e", "\u0301", "\u00df", "s", "S", "'"]), max_size=4
)
PRIVACY = [{"distinct_l_diversity": {"l": 2}}, {"t_closeness": {"t": 0.4}}, {"beta_likeness": {"beta": 2}}]


def are_one(a: str, b: str, parts: tuple[str, ...]) -> bool:
    """Of two texts, by their letters one after another, decomposed where composition makes no difference."""

    def letters(text: str) -> list[str]:
        text = unicodedata.normalize("NFD", text) if "unicode" in parts else text
        folded = "".join(letter.casefold() for letter in text) if "case" in parts else text
        folded = unicodedata.normalize("NFD", folded) if "unicode" in parts else folded
        if "space" not in parts:
            return list(folded)
        kept: list[str] = []
        for letter in folded.strip():
            if not (letter.isspace() and kept[-1] == " "):
                kept.append(" " if letter.isspace() else letter)
        return kept

    return letters(a) == letters(b)


def read_slowly(values: list[str], parts: tuple[str, ...]) -> list[str]:
    """Each value compared with each other one."""
    rows = Counter(values)
    return [min((-rows[b], b) for b in values if are_one(a, b, parts))[1] for a in values]


@pytest.mark.each_engine
def test_answers_are_those_of_a_table_that_is_spelled_so(warehouse: Any, tmp_path: Path) -> None:
    numbers = count()

    @settings(max_examples=10)
    @given(
        st.lists(st.tuples(LETTERS, LETTERS), min_size=4, max_size=16),
        st.lists(st.sampled_from(PARTS), min_size=1, unique=True),
    )
    def alike(rows: list[tuple[str, str]], chosen: list[str]) -> None:
        number, parts = next(numbers), tuple(chosen)
        towns, ills = (list(values) for values in zip(*rows, strict=True))
        tables = {f"raw{number}": (towns, ills), f"one{number}": (read_slowly(towns, parts), read_slowly(ills, parts))}
        answers = []
        for name, (of_towns, of_ills) in tables.items():
            url = warehouse(name, {"town": of_towns, "ill": of_ills})
            more = {"same": chosen} if of_towns is towns else {}
            attributes = {"town": {**QUASI, **more}, "ill": {"role": "sensitive", **more}}
            with opened(url, name, attributes, tmp_path, PRIVACY, suppression_limit=0.3) as task:
                found = run_search(task).to_json()
                answers.append({key: found[key] for key in ("nodes_total", "minimal", "chosen", "satisfying", "rows")})
                answers[-1]["domain"] = task.source.sensitives["ill"].reference.domain
                answers[-1]["leaves"] = task.source.hierarchies[0].leaves
                answers[-1]["top"] = task.assess(task.lattice.top).tightest
        assert answers[0] == answers[1]

    alike()


@given(LETTERS, LETTERS, st.lists(st.sampled_from(PARTS), unique=True))
def test_two_texts_are_one_as_people_read_them(a: str, b: str, chosen: list[Any]) -> None:
    parts = tuple(chosen)
    assert (plain(a, parts) == plain(b, parts)) == are_one(a, b, parts)
    assert plain(plain(a, parts), parts) == plain(a, parts)
