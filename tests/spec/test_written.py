"""A name that is written into a spec is read back as it is, and stays on one line."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from qblock.spec.document import parse
from qblock.spec.written import key_text, value_text, values_text

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(NAMES, NAMES)
@example("null", "a$b")
@example("${HOME}", "$$")
@example('</script><script>x\n\u202e"\\', "a: b, c] #")
def test_names_are_read_back(name: str, other: str) -> None:
    lines = (
        f"a: {{{key_text(name)}: {value_text(name)}}}\nb: {values_text((name, other))}\nc: {values_text((other,))}\n"
    )
    assert len(lines.splitlines()) == 3
    assert lines.replace("\n", "").isprintable()
    data = parse(lines, "spec.yaml", {"HOME": "elsewhere"}).data
    assert data == {"a": {name: name}, "b": [name, other], "c": other}
