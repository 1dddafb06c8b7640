"""What is published: the right rows, in an order of their own, with nothing else, on both engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from release.jobs import PEOPLE, Job, MakeJob

from qblock.errors import Refused
from qblock.publish.recheck import Counted
from qblock.release import apply
from qblock.release.verify import verify


def by_hand(zip_kept: int, width: int) -> list[tuple[str, str, str, str]]:
    """PEOPLE with so many digits of the zip code and ages in ranges of this width, in bytewise order."""
    rows = []
    for zip_code, age, disease, ward in zip(*(PEOPLE[c] for c in ("zip", "age", "disease", "ward")), strict=True):
        low = age // width * width
        rows.append((zip_code[:zip_kept] + "*" * (5 - zip_kept), f"{low}-{low + width - 1}", disease, ward))
    return sorted(rows)


def test_the_published_rows_are_those_computed_by_hand(job: Job) -> None:
    result = job.run()
    assert (result.status, result.version, result.rows, result.suppressed) == ("published", 1, 12, 0)
    assert result.node == {"zip": 1, "age": 2}
    assert job.published() == by_hand(4, 20)
    assert not verify(job.spec).problems


@pytest.mark.either_engine
def test_the_same_again_is_nothing_to_do_and_force_publishes_it(job: Job) -> None:
    first = job.run()
    again = job.run()
    assert (again.status, again.version, again.ledger_head) == ("unchanged", 1, first.ledger_head)
    forced = job.run(force=True)
    assert (forced.status, forced.version, forced.digest) == ("published", 2, first.digest)
    assert not verify(job.spec, forced.ledger_head).problems


@pytest.mark.parametrize("node", [[0, 0], [5, 3], [0, 3], [2, 0]])
def test_every_level_is_published_as_text(make_job: MakeJob, node: list[int]) -> None:
    job = make_job(search={"node": node}, privacy=[{"k_anonymity": {"k": 1}}], versions={"joint": "none"})
    assert job.run().choice == "pinned"
    expected = []
    for zip_code, age, disease, ward in zip(*(PEOPLE[c] for c in ("zip", "age", "disease", "ward")), strict=True):
        expected.append((zip_code[: 5 - node[0]] + "*" * node[0] if node[0] < 5 else "*",
                         str(age) if node[1] == 0 else "*", disease, ward))  # fmt: skip
    assert job.published() == sorted(expected)
    assert not verify(job.spec).problems


def other_sizes(found: Counted) -> Counted:
    """As many rows, in blocks of other sizes."""
    rows = found.rows.copy()
    rows[:2] += [1, -1]
    return replace(found, rows=rows)


def other_value(found: Counted) -> Counted:
    """The same blocks, and another k."""
    first, *more = found.tightest
    assert first is not None
    return replace(found, tightest=(replace(first, values=(replace(first.values[0], value=99),)), *more))


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("otherwise", "found"),
    [
        (other_sizes, "blocks of the copy have other sizes than the search counted"),
        (other_value, "the copy satisfies other values of k_anonymity than the search found"),
    ],
)
def test_a_copy_of_which_anything_counts_otherwise_is_not_published(
    job: Job, monkeypatch: pytest.MonkeyPatch, otherwise: Callable[[Counted], Counted], found: str
) -> None:
    real = apply.count_again
    monkeypatch.setattr(apply, "count_again", lambda *arguments: otherwise(real(*arguments)))
    with pytest.raises(Refused, match=f"the copy failed its check, nothing is published: {found}$"):
        job.run()
