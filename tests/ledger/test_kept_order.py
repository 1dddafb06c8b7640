"""References that were kept before only `order` ordered: read as they are, and used in the order of today."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Reference
from qblock.ledger.kept import Kept
from qblock.models import TCloseness
from qblock.publish.kept_counts import rematch
from qblock.spec import Requirement, read_spec
from qblock.versions.gate import references_of

TEXT = """
version: 1
release: r
source: {url: "duckdb:///x.duckdb", table: t}
attributes:
  a: {role: quasi_identifier, hierarchy: suppress}
  s: {role: sensitive, domain: [30, 10, 20]ORDER}
privacy:
  - t_closeness: {t: 0.2, distance: ordered}
"""
OLD = Reference(
    6,
    ("30", "10", "20"),
    np.array([2, 2, 2], np.int64),
    ordered=True,
    numbers=(Fraction(30), Fraction(10), Fraction(20)),
    taxonomy=np.array([[0, 0, 0], [1, 1, 0], [2, 0, 0]], np.int64),
    prior=(Fraction(3), Fraction(1), Fraction(2)),
    guarded=((0, 1), (2,)),
)
NOW = Reference(
    6,
    ("10", "20", "30"),
    np.array([2, 2, 2], np.int64),
    ordered=True,
    numbers=(Fraction(10), Fraction(20), Fraction(30)),
    kind="integer",
)


def test_what_was_kept_is_read_and_written_as_it_was() -> None:
    text = Kept((), ((OLD,),)).text()
    assert '"kind"' not in text
    assert '"people"' not in text
    assert Kept.of_text(text).text() == text
    new = Kept((), ((replace(NOW, people=4),),)).text()
    found = Kept.of_text(new).references[0][0]
    assert (found.kind, found.people) == ("integer", 4)
    assert Kept.of_text(new).text() == new


def test_an_arranged_reference_is_the_same_table() -> None:
    found = OLD.ascending()
    assert found.domain == NOW.domain
    assert found.numbers == NOW.numbers
    assert found.taxonomy is not None
    assert found.taxonomy.tolist() == [[0, 0, 0], [1, 1, 0], [2, 1, 0]]
    assert found.prior == (1, 2, 3)
    assert found.guarded == ((0, 2), (1,))
    assert found.like(OLD).domain == OLD.domain
    assert replace(OLD, numbers=None).like(replace(NOW, numbers=None)).domain == NOW.domain
    text = replace(OLD, domain=("c", "a", "b"), numbers=None)
    assert text.ascending() is text
    assert text.like(NOW) is text


def t(reference: Reference) -> Fraction:
    """Of two blocks, {10: 2, 20: 1} and {20: 1, 30: 2}."""
    code = {value: i for i, value in enumerate(reference.domain)}
    blocks = Blocks.of([{code["10"]: 2, code["20"]: 1}, {code["20"]: 1, code["30"]: 2}])
    return TCloseness(t=1, distance="ordered").tightest(blocks, reference).values[0].value  # type: ignore[return-value]


def test_a_joint_check_with_an_old_version_measures_in_the_order_of_today() -> None:
    requirement = Requirement(TCloseness(t=1, distance="ordered"), ("s",))
    version = None
    found = references_of(requirement, version, {"s": OLD}, [NOW])  # type: ignore[arg-type]
    assert (t(OLD), t(found[0])) == (Fraction(1, 6), Fraction(1, 3))
    more = replace(OLD, domain=("30", "10", "99"), numbers=(Fraction(30), Fraction(10), Fraction(99)))
    assert references_of(requirement, version, {"s": more}, [NOW])[0].domain == ("10", "30", "99")  # type: ignore[arg-type]


def test_a_rollback_to_an_old_version_measures_in_the_order_of_today() -> None:
    for order, expected in (("", Fraction(1, 3)), (", order: ascending", Fraction(1, 3)), (LISTED, Fraction(1, 6))):
        spec = read_spec(TEXT.replace("ORDER", order), "s.yaml", {})
        found = rematch(spec, Kept((), ((OLD,),)), (), same_spec=True)
        assert t(found.references[0][0]) == expected


LISTED = ", order: [30, 10, 20]"
