"""People who withdraw are named to the letter: a name that is nobody's is told as that, and takes nobody out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from qblock.cli.app import run
from qblock.errors import InputError
from qblock.ledger.history import history
from qblock.release.erase import erase
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.either_engine

ATTRIBUTES = {"block": {"role": "quasi_identifier", "hierarchy": "suppress"}, "value": "sensitive"}
BLOCKS = {"block": ["q", "q", "r", "r"], "value": ["a", "b", "a", "b"]}
UUIDS = [f"6f9619ff-8b86-d011-b42d-00cf4fc964f{n}" for n in range(4)]
IDS: dict[str, tuple[str, list[Any], str, list[str]]] = {
    "integer": ("INTEGER", [6, 7, 8, 9], "7", ["007", "7.0", " 7", ""]),
    "numeric": ("NUMERIC(10, 2)", [Decimal("1.5"), 7, 8, 9], "1.5", ["1.50", "15e-1", "NaN"]),
    "text": ("VARCHAR", ["Ann  Lee", "007", "Zoë", "it's"], "Ann  Lee", ["Ann Lee", "7", "Zoe\u0308"]),
    "empty": ("VARCHAR", ["", "b", "c", "d"], "", [" ", "NULL", "''"]),
    "date": ("DATE", [date(2026, 1, n) for n in range(1, 5)], "2026-01-01", ["2026-1-1", "01.01.2026", "20260101"]),
    "uuid": ("UUID", UUIDS, UUIDS[1], [UUIDS[1].upper(), UUIDS[1].replace("-", ""), UUIDS[1][:-1]]),
}


def entity_job(make_job: MakeJob, kind: str = "integer", **versions: Any) -> Job:
    type_, ids, _, _ = IDS[kind]
    privacy = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]
    return make_job(
        {"id": ids, **BLOCKS},
        {"id": type_},
        attributes=ATTRIBUTES,
        privacy=privacy,
        entity="id",
        versions=versions,
    )


def states(job: Job) -> list[str]:
    return [event["state"] for event in history(job.spec)["events"]]


@pytest.mark.parametrize("kind", IDS)
def test_a_name_that_is_nobodys_text_takes_nobody_out(make_job: MakeJob, kind: str) -> None:
    """At once and queued, before the first version and after it."""
    job = entity_job(make_job, kind)
    right, wrong = IDS[kind][2:]
    for runs in range(2):
        for number, name in enumerate(wrong):
            with pytest.raises(InputError, match=r"^1 of 1 name matches nobody"):
                erase(job.spec, [name], now=bool(number % 2))
        result = job.run()
        assert (result.rows, result.status) == (4, "unchanged" if runs else "published")
    assert "erased" not in states(job)
    assert (erase(job.spec, [right]).status, erase(job.spec, [right]).shown) == ("queued", 1)


def test_one_name_of_nobody_stops_a_whole_list_and_is_counted_alone(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list in another form may name others, and whoever is taken out is never shown again."""
    job = entity_job(make_job)
    job.begin()
    (job.folder / "list.txt").write_text("6\n6\n007\n\n4711\n007\n", "utf-8")
    file = str(job.folder / "list.txt")
    for options in ([], ["--now", "--yes"]):
        assert run(["erase", str(job.spec.path), "8", "--file", file, *options]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "2 of 4 names match nobody" in " ".join(err.split())
        assert "column id" in err
        assert not [name for name in ("4711", "'007'") if name in err]
    assert len(job.published()) == 4
    (job.folder / "list.txt").write_text("6\n8\n", "utf-8")
    assert run(["erase", str(job.spec.path), "--file", file, "--now", "--yes"]) == 3
    assert run(["erase", str(job.spec.path), "--file", file, "--now", "--yes", "--quiet"]) == 3


def test_who_is_known_anywhere_is_somebody_and_may_be_named_again(make_job: MakeJob) -> None:
    """In the source alone, in both, and in what was kept alone: shown and gone, or out before they were ever shown."""
    job = entity_job(make_job)
    job.begin()
    job.change("INSERT INTO people VALUES (20, 'q', 'c'), (21, 'q', 'd')")
    never_shown = erase(job.spec, ["20"], now=True)
    assert (never_shown.status, never_shown.shown, never_shown.published) == ("erased", 0, None)
    assert erase(job.spec, ["21"]).status == "erased"
    job.change("DELETE FROM people WHERE id IN (8, 9, 20, 21)")
    for _ in range(2):
        assert erase(job.spec, ["20", "21"], now=True).shown == 0
        found = erase(job.spec, ["8"], now=True)
        assert (found.status, found.shown) == ("erased", 1)
    assert len(job.published()) == 2
    # The source is not needed for people whom the crosswalk knows.
    job.change("DROP TABLE people")
    assert erase(job.spec, ["6"]).status == "queued"


def test_somebody_of_another_release_is_nobody_of_this_one(make_job: MakeJob) -> None:
    job = entity_job(make_job)
    job.begin()
    job.change("CREATE TABLE others AS SELECT id + 100 AS id, block, value FROM people")
    publish = {**job.settings["publish"], "view": "others"}
    if job.engine == "duckdb":
        publish["url"] = f"duckdb:///{job.folder}/others.duckdb"
    job.set(release="others", source={**job.settings["source"], "table": "others"}, publish=publish)
    job.run()
    with pytest.raises(InputError, match="1 of 2 names matches nobody"):
        erase(job.spec, ["7", "107"], now=True)


def test_a_row_without_an_entity_is_nobody(make_job: MakeJob) -> None:
    job = entity_job(make_job, "text")
    job.begin()
    job.change("INSERT INTO people VALUES (NULL, 'q', 'c')")
    for name in ("", "NULL", "None", "null"):
        with pytest.raises(InputError, match="matches nobody"):
            erase(job.spec, [name], now=True)


def test_bytes_that_are_no_text_name_nobody(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = entity_job(make_job, "text")
    job.begin()
    assert run(["erase", str(job.spec.path), "person \udcff"]) == 2
    assert "1 of 1 name matches nobody" in " ".join(capsys.readouterr().err.split())
