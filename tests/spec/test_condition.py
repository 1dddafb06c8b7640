"""What `source.where` may say, and that a condition is the same whatever way it is written."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.errors import InputError
from qblock.spec import load, spec_of
from qblock.spec.condition import (
    ColumnName,
    Comparison,
    Condition,
    IsNull,
    Joined,
    Like,
    Not,
    OneOf,
    Value,
    columns_of,
    condition_of,
    where_text,
)
from qblock.spec.digest import canonical, spec_digest

READ = {
    "valid_to IS NULL AND NOT is_deleted AND site IN ('A','B')": (
        """("valid_to" IS NULL) AND (NOT ("is_deleted" = TRUE)) AND ("site" IN ('A', 'B'))"""
    ),
    "a = 1 or b <> -2.50 and c": """("a" = 1) OR (("b" <> -2.5) AND ("c" = TRUE))""",
    "5 < a": '"a" > 5',
    "1e3 >= a": '"a" <= 1000',
    "a=.5e-1": '"a" = 0.05',
    "a BETWEEN 1 AND 2 AND b": """("a" >= 1) AND ("a" <= 2) AND ("b" = TRUE)""",
    "a NOT BETWEEN 1 AND 2": """NOT (("a" >= 1) AND ("a" <= 2))""",
    "a not in ('x')": """NOT ("a" IN ('x'))""",
    "a IS NOT NULL": 'NOT ("a" IS NULL)',
    "a LIKE 'x!%_'": """"a" LIKE 'x!!%_' ESCAPE '!'""",
    r"a NOT LIKE 'x\_\\%' ESCAPE '\'": r"""NOT ("a" LIKE 'x!_\%' ESCAPE '!')""",
    "a = 'it''s' ": """"a" = 'it''s'""",
    r"a = '\'": r""""a" = '\'""",
    "a = '-- no comment; /* */'": """"a" = '-- no comment; /* */'""",
    '"Größe (cm)" > 3 AND "a""b" = TRUE': """("Größe (cm)" > 3) AND ("a""b" = TRUE)""",
    '"order" = 1 AND end IS NULL AND "select" = 2': """("order" = 1) AND ("end" IS NULL) AND ("select" = 2)""",
    "DATE '2026-01-31' <= d": """"d" >= DATE '2026-01-31'""",
    "d = TIMESTAMP '2026-01-31 12:00:00'": """"d" = TIMESTAMP '2026-01-31 12:00:00'""",
    "valid_from < valid_to": '"valid_from" < "valid_to"',
    "((a)) = (1) and (b is null)": """("a" = 1) AND ("b" IS NULL)""",
    "Valid_To IS NULL": '"Valid_To" IS NULL',
}
REFUSED = {
    "lower(a) = 'x'": "LOWER(a) is not allowed",
    "a = current_date": "CURRENT_DATE",
    "a IN (SELECT b FROM c)": "a IN (SELECT b FROM c) is not allowed",
    "EXISTS (SELECT 1)": "is not allowed",
    "CAST(a AS INTEGER) = 1": "a cast is not allowed",
    "a::text = '1'": "a cast is not allowed",
    "'2026-01-31'::date = a": "a cast is not allowed",
    "a = 1; DROP TABLE t": "; ends a statement",
    "a = 1;": "; ends a statement",
    "a = 1 -- AND b = 2": "a comment is not read",
    "a = 1 /* AND b = 2 */": "a comment is not read",
    "-- a = 1": "a comment is not read",
    "a + 1 = 2": "a + 1 ",
    "t.a = 1": "t.a is not allowed",
    "a = NULL": "nothing equals NULL; write IS NULL",
    "a IN ('x', NULL)": "nothing equals NULL; write IS NULL",
    "a IN ()": "IN () has no value",
    "a IS NOT TRUE": "IS TRUE is not allowed",
    "a ILIKE 'x'": "is not allowed",
    "a LIKE b": "b stands where a value must",
    "a LIKE 5": "LIKE takes a pattern",
    r"a LIKE 'x\_'": r"databases differ in what \ means",
    "a LIKE 'x!y' ESCAPE '!'": "behind the escape ! of LIKE",
    "a LIKE 'x!' ESCAPE '!'": "behind the escape ! of LIKE",
    "a LIKE 'x' ESCAPE ''": "ESCAPE takes one character",
    "a LIKE 'x' COLLATE c": "is not allowed",
    "a BETWEEN SYMMETRIC 2 AND 1": "is not allowed",
    "a IS DISTINCT FROM 1": "is not allowed",
    "1 = 1": "names no column",
    "1 < a < 3": "names no column",
    "TRUE": "TRUE is a value and no condition",
    "a = 'x' 'y'": "is not allowed",
    "(a, b) IN ((1, 2))": "is not allowed",
    "CASE WHEN a THEN b END": "is not allowed",
    "a = :name": "is not allowed",
    "a = ?": "is not allowed",
    "a = {{ x }}": "is not allowed",
    "a = N'x'": "is not allowed",
    "DATE a = b": "this is not a condition",
    "INTERVAL '1' DAY = a": "is not allowed",
    "a = 'x": "this is not a condition in SQL",
    "a = 1 LIMIT 1": "this is not a condition in SQL",
    "a = 1 UNION SELECT 2": "this is not a condition in SQL",
    "SELECT 1": "this is not a condition in SQL",
    "(a = 1": "this is not a condition in SQL",
    "": "the condition is empty",
    "a = 'x\0'": "a character that no text",
    "a IN (" + ", ".join("1" * 10 for _ in range(2000)) + ")": "characters, and at most",
    "(" * 60 + "NOT a" + ")" * 60: "more than 50 deep",
    "NOT " * 4000 + "a": "more than 50 deep",
}


@pytest.mark.parametrize(("text", "canonical"), READ.items())
def test_a_condition_is_read(text: str, canonical: str) -> None:
    assert str(condition_of(text.strip())) == canonical
    assert condition_of(canonical) == condition_of(text.strip())


@pytest.mark.parametrize(("text", "said"), REFUSED.items())
def test_anything_else_is_refused_with_the_part_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        where_text(text)

    assert "sqlglot" not in str(caught.value)


def test_a_long_chain_of_one_word_is_flat() -> None:
    condition = condition_of(" OR ".join(f"a = {i}" for i in range(900)))
    assert isinstance(condition, Joined)
    assert len(condition.parts) == 900
    assert columns_of(condition) == ("a",)


NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8)
COLUMNS = st.builds(ColumnName, NAMES | st.sampled_from(["end", "Order", 'a"b', "select", "NULL", "true", "date"]))
TEXTS = st.text(st.sampled_from("a'\"\\%_!-;:?${}/* \n") | st.characters(exclude_categories=("Cs",)), max_size=8)
VALUES = st.one_of(
    st.builds(Value, TEXTS.filter(lambda text: "\0" not in text), st.just("text")),
    st.integers(-(10**30), 10**30).map(lambda n: Value(str(n), "number")),
    st.sampled_from([Value("0.25", "number"), Value("-0.5", "number"), Value("true", "flag"), Value("false", "flag")]),
    st.sampled_from([Value("2026-01-31", "date"), Value("2026-01-31 12:00:00+01:00", "timestamp")]),
)
PATTERNS = st.lists(st.sampled_from(["!%", "!_", "!!", "%", "_", "a", "'", "\\", "\n"]), max_size=6).map("".join)
LEAVES = st.one_of(
    st.builds(Comparison, COLUMNS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), VALUES | COLUMNS),
    st.builds(OneOf, COLUMNS, st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    st.builds(Like, COLUMNS, PATTERNS),
    st.builds(IsNull, COLUMNS),
)


def joined(word: Any, parts: list[Condition]) -> Condition:
    flat: list[Condition] = []
    for part in parts:
        flat += part.parts if isinstance(part, Joined) and part.word == word else (part,)
    return Joined(word, tuple(flat))


CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(joined, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=3))
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_what_a_condition_writes_reads_as_the_same(condition: Condition) -> None:
    assert condition_of(str(condition)) == condition


@given(
    st.text(st.sampled_from("ab '\"()=<>%_!-;:?${}/*\\,.1") | st.characters(exclude_categories=("Cs",)), max_size=30)
)
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert where_text(text) == text.strip()


def document(where: Any, **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "release": "stays",
        "source": {"url": "duckdb:///w.duckdb", "table": "stays", "where": where, **more},
        "attributes": {"age": {"role": "quasi_identifier", "hierarchy": "suppress"}},
        "privacy": [{"k_anonymity": {"k": 2}}],
    }


def test_the_same_condition_is_the_same_spec() -> None:
    digest = spec_digest(spec_of(document("valid_to IS NULL AND site = 'A'")))
    assert spec_digest(spec_of(document("""(valid_to is null)\n  and "site"='A'"""))) == digest
    others = ["valid_to IS NULL", "valid_to IS NULL OR site = 'A'", "valid_to IS NULL AND site = 'a'", None]
    assert len({spec_digest(spec_of(document(where))) for where in others} | {digest}) == 5


def test_a_spec_without_a_condition_has_the_digest_that_it_had() -> None:
    assert "where" not in canonical(spec_of(document(None)))


def test_a_wrong_condition_is_wrong_at_its_place(tmp_path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "version: 1\nrelease: stays\nsource:\n  url: \"duckdb:///w.duckdb\"\n  table: stays\n  where: lower(a) = 'x'\n"
        "attributes: {age: {role: quasi_identifier, hierarchy: suppress}}\nprivacy: [{k_anonymity: {k: 2}}]\n"
    )
    with pytest.raises(InputError) as caught:
        load.load_spec(path)
    assert str(caught.value).startswith(f"{path}:6: source.where: LOWER(a) is not allowed in a condition; write only")


def test_a_value_of_a_variable_is_not_repeated(tmp_path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "version: 1\nrelease: stays\n"
        'source: {url: "duckdb:///w.duckdb", table: stays, where: "lower(\'${SITE}\') = a"}\n'
        "attributes: {age: {role: quasi_identifier, hierarchy: suppress}}\nprivacy: [{k_anonymity: {k: 2}}]\n"
    )
    with pytest.raises(InputError) as caught:
        load.load_spec(path, {"SITE": "Geheimhausen"})
    assert "Geheimhausen" not in str(caught.value)
