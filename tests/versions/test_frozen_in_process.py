"""Where a session is in this process only those are looked up whose frozen quasi-identifiers differ from the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from versions.test_admission import PEOPLE, change, contents, make_spec, opened, publish


@pytest.fixture
def engine_name() -> str:
    return "duckdb"


def test_who_moved_is_where_the_first_version_has_them(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE)
    spec = make_spec(url, tmp_path)
    with opened(spec) as (task, _, _admission):
        before = contents(task)
    publish(spec, 1, (1, 2))
    change(url, "UPDATE people SET zip = '22', age = NULL WHERE id IN (0, 3)")
    with opened(spec) as (task, _, admission):
        assert contents(task) == before
        assert admission.moves(task.source.session) == 2


def test_columns_of_another_layout_are_frozen_though_their_texts_agree(warehouse, tmp_path: Path) -> None:
    url = warehouse("people", PEOPLE | {"age": ["31", "32", "33", "34", "41", "42", "43", "44"]})
    zip_, age = (f"  {name}: {{role: quasi_identifier, hierarchy: {{digits: 2}}}}\n" for name in ("zip", "age"))
    publish(make_spec(url, tmp_path, zip_ + age), 1, (2, 2))
    change(url, "UPDATE people SET zip = age, age = zip WHERE id = 0")
    with opened(make_spec(url, tmp_path, age + zip_)) as (task, _, _admission):
        assert contents(task)[0] == ("31", "11")
