"""Whatever stands in a spec, the answer is a spec or an InputError whose every line has a place."""

from __future__ import annotations

import copy
import re
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from test_spec_load import SPEC
from test_spec_privacy import ENTRIES

from qblock.errors import InputError
from qblock.spec import Spec, read_spec, spec_digest

WORDS = ["age", "condition", "suppress", "file", "sensitive", "quasi_identifier", "", "a.b", "top", "${X}", "$$", "4GB"]
SCALARS = st.none() | st.booleans() | st.integers(-5, 50) | st.floats(-3, 3) | st.sampled_from(WORDS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "1", "k"]), inner, max_size=3),
    max_leaves=6,
)


def full() -> dict[str, Any]:
    """A spec that uses every section and every model."""
    data = yaml.safe_load(SPEC.replace("${WAREHOUSE_URL}", "duckdb:///a.duckdb"))
    data["privacy"] = [{name: yaml.safe_load(parameters)} for name, parameters in ENTRIES.items()]
    data["search"]["node"] = {"zip_code": 0, "age": 1, "gender": 0}
    data["versions"] = {"audience": ["other"], "keep": 2, "stale_after": "36h", "cohort": 4, "confirm": "0a" * 32}
    data["entity"], data["count"] = "patient_id", "rows"
    return dict(data)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path of a tree."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def answer(text: str) -> Spec | None:
    """The spec, or None for a proper error."""
    try:
        return read_spec(text, "spec.yaml", {})
    except InputError as error:
        for line in str(error).splitlines():
            assert re.match(r"spec\.yaml:[1-9][0-9]*: .", line), line
            assert "{it}" not in line
        return None


@given(st.data())
def test_any_value_anywhere(data: st.DataObject):
    tree = full()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([p for p in places(tree) if p]))
        owner = tree
        for key in place[:-1]:
            owner = owner[key]
        if isinstance(owner, dict) and data.draw(st.booleans()):
            key = data.draw(st.sampled_from([*WORDS, "role", "hierarchy"]))
            owner[key] = owner.pop(place[-1])
        else:
            owner[place[-1]] = data.draw(VALUES)
    spec = answer(yaml.safe_dump(copy.deepcopy(tree), sort_keys=False))
    if spec is not None:
        assert len(spec_digest(spec)) == 64


@given(st.text("{}[]:,-&*!?|>'\"%@`# \n\tab1", max_size=30))
def test_any_text(text: str):
    assert answer(text) is None


@given(st.integers(0, len(SPEC)), st.text("{}[]:,-&*!'\"# \n1a", min_size=1, max_size=3))
def test_any_typing_error(at: int, typed: str):
    answer(SPEC[:at] + typed + SPEC[at:])
