"""What one reader may hold of several releases: none publishes what another protects."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from qblock.errors import InputError, QblockError, Refused
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release import roles
from qblock.release.apply import plan
from qblock.release.verify import verify
from release.jobs import ATTRIBUTES, Job

pytestmark = pytest.mark.either_engine

HEIGHTS = {"zip": ATTRIBUTES["zip"], "age": ATTRIBUTES["age"]}
NO_MODEL = [{"k_anonymity": {"k": 2}}]


@pytest.fixture
def group(engine_name: str, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Two roles, of which the second can become the first, and a third on its own; on DuckDB only names."""
    names = [f"qblock_reader_{secrets.token_hex(4)}" for _ in range(3)]
    if engine_name == "duckdb":
        yield names
        return
    server = request.getfixturevalue("server")
    url = request.getfixturevalue("postgresql_url")
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        connection.execute(sql.SQL("GRANT {} TO {}").format(*map(sql.Identifier, names[:2])))
    yield names
    for where in (url, server):
        with psycopg.connect(where, autocommit=True) as connection:
            for name in reversed(names):
                connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
                if where is server:
                    connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def named(job: Job, release: str, audience: list[str], readers: list[str] | None = None, **settings: Any) -> Job:
    """A release of the same table, as a view of its own."""
    found = copy.deepcopy(job.settings) | {"release": release, **settings}
    found["publish"] |= {"view": release, "readers": readers or []}
    if job.engine == "duckdb":
        found["publish"]["url"] = f"duckdb:///{job.folder}/{release}.duckdb"
    versions = found.get("versions", {})
    settings = found | {"versions": {"audience": audience, **versions}}
    return Job(job.engine, job.folder, job.url, settings, changes=job.changes, first_run=job.first_run)


def one_and_two(job: Job, ours: dict[str, Any], theirs: dict[str, Any], **settings: Any) -> tuple[Job, Job]:
    """Two releases that name each other; attributes besides zip and age."""
    one = named(job, "first", ["second"], entity="name", attributes={"name": "identifying", **ours}, **settings)
    two = named(job, "second", ["first"], entity="name", attributes={"name": "identifying", **theirs}, **settings)
    return one, two


SENSITIVE = {**HEIGHTS, "disease": "sensitive"}
CONFLICTS = {
    "sensitive beside insensitive": ({**HEIGHTS, "disease": "insensitive"}, "as insensitive"),
    "sensitive beside a quasi-identifier": (
        {**HEIGHTS, "disease": {"role": "quasi_identifier", "hierarchy": "suppress"}},
        "as a quasi-identifier",
    ),
    "a quasi-identifier beside insensitive": (
        {"zip": ATTRIBUTES["zip"], "age": "insensitive", "disease": "sensitive"},
        "publishes it as it is, beside disease",
    ),
}


@pytest.mark.parametrize("second_first", [False, True])
@pytest.mark.parametrize("case", CONFLICTS)
def test_an_audience_never_gets_what_one_of_its_releases_protects(job: Job, case: str, second_first: bool) -> None:
    theirs, message = CONFLICTS[case]
    if "age" in theirs and theirs["age"] == "insensitive":
        job.change("UPDATE people SET age = 10 * (age / 30)" if job.engine == "postgresql" else
                   "UPDATE people SET age = 10 * (age // 30)")  # fmt: skip
    privacy = {"privacy": NO_MODEL}
    one, two = one_and_two(job, SENSITIVE, theirs, **privacy)
    first, later = (two, one) if second_first else (one, two)
    assert first.begin().status == "published"
    with pytest.raises(Refused, match=message) as raised:
        later.run()
    assert raised.value.exit_status == 3
    assert "release first" in str(raised.value)
    assert "second" in str(raised.value)
    with pytest.raises(Refused, match=message):
        plan(later.spec)
    assert history(later.spec)["current"] is None
    assert first.run().status == "unchanged"


def test_one_who_is_named_and_names_nobody_is_refused_as_well(job: Job) -> None:
    one, two = one_and_two(job, SENSITIVE, {**HEIGHTS, "disease": "insensitive"}, privacy=NO_MODEL)
    two.settings["versions"] = {}
    one.begin()
    with pytest.raises(Refused, match="as insensitive"):
        two.run()


def test_what_was_published_once_stays_known(job: Job) -> None:
    one, two = one_and_two(job, SENSITIVE, {**HEIGHTS, "disease": "insensitive"}, privacy=NO_MODEL)
    two.run()
    del two.settings["attributes"]["disease"]
    two.set(versions={"audience": ["first"], "joint": "none"})
    two.run()
    with pytest.raises(Refused, match=r"version 1 of release second, .* publishes it as insensitive"):
        one.run()


def test_two_sensitive_releases_without_a_joint_check_are_refused(job: Job) -> None:
    one, two = one_and_two(job, SENSITIVE, SENSITIVE, privacy=NO_MODEL)
    one.begin()
    del two.settings["entity"]
    with pytest.raises(Refused, match="cannot be checked together"):
        two.run()


def test_two_releases_that_know_people_by_other_columns_are_refused(job: Job) -> None:
    job.change("ALTER TABLE people ADD COLUMN number text")
    job.change("UPDATE people SET number = 'n' || name")
    one, two = one_and_two(job, SENSITIVE, {**SENSITIVE, "number": "identifying"}, privacy=NO_MODEL)
    one.begin()
    two.set(entity="number")
    with pytest.raises(Refused, match="both need the same"):
        two.run()


def test_releases_that_protect_each_other_are_published(job: Job) -> None:
    one, two = one_and_two(job, SENSITIVE, SENSITIVE, privacy=NO_MODEL)
    assert any("second, which versions.audience names, has not been published" in note for note in one.begin().notes)
    assert two.run().status == "published"
    event = history(two.spec)["events"][-1]
    source = "main.people" if job.engine == "duckdb" else "public.people"
    assert (event["source"], event["entity"], event["audience"]) == (source, "name", ["first"])
    assert [list(pair) for pair in event["columns"]] == [
        ["zip", "quasi_identifier"],
        ["age", "quasi_identifier"],
        ["disease", "sensitive"],
    ]


def test_only_the_release_whose_column_is_exposed_can_waive_it(job: Job) -> None:
    one, two = one_and_two(job, SENSITIVE, {**HEIGHTS, "disease": "insensitive"}, privacy=NO_MODEL)
    one.begin()
    two.settings["versions"]["joint"] = "none"
    with pytest.raises(Refused, match="as insensitive"):
        two.run()
    one.settings["versions"]["joint"] = "none"
    one.run()
    assert any("as insensitive" in note for note in two.run().notes)


def test_a_bare_quasi_identifier_is_noted(job: Job) -> None:
    job.change("UPDATE people SET age = 30")
    one, two = one_and_two(job, SENSITIVE, {"zip": ATTRIBUTES["zip"], "age": "insensitive"}, privacy=NO_MODEL)
    one.run()
    assert any("people who know everybody's quasi-identifiers know that anyway" in note for note in two.run().notes)


def test_a_column_of_another_table_is_another_attribute(job: Job) -> None:
    one, two = one_and_two(job, SENSITIVE, {**HEIGHTS, "disease": "insensitive"}, privacy=NO_MODEL)
    one.begin()
    job.change("CREATE TABLE more AS SELECT * FROM people")
    two.settings["source"] = {"url": job.url, "table": "more"}
    assert two.run().status == "published"


def test_a_slip_in_the_audience_is_refused_with_the_nearest_name(job: Job) -> None:
    one = named(job, "inpatients", [])
    one.run()
    two = named(job, "wards", ["inpatient"], versions={"joint": "none"})
    for act in (two.run, lambda: plan(two.spec)):
        with pytest.raises(
            InputError, match=r"no release inpatient; did you mean inpatients\? It knows inpatients"
        ) as e:
            act()
        assert e.value.exit_status == 2
    assert "spec.yaml:" in str(e.value)


def test_releases_whose_names_are_alike_can_begin_with_either(job: Job) -> None:
    jobs = [
        named(job, f"sales_{n}", [f"sales_{m}" for m in (1, 2, 3) if m != n], entity="name", privacy=NO_MODEL,
              attributes={"name": "identifying", **SENSITIVE})
        for n in (1, 2, 3)
    ]  # fmt: skip
    assert [one.run().status for one in jobs] == ["published"] * 3


def test_a_release_whose_spec_is_beside_this_one_may_be_yet_to_come(job: Job) -> None:
    named(job, "sales_2023", [], versions={"joint": "none"}).run()
    other = named(job, "sales", ["sales_2024"], versions={"joint": "none"})
    with pytest.raises(InputError, match="sales_2023"):
        other.run()
    (job.folder / "next.yaml").write_text("version: 1\nrelease: sales_2024\n")
    assert any("sales_2024, which" in note for note in other.run().notes)


def test_two_releases_of_one_table_to_one_reader_name_each_other_or_waive_it(job: Job, group: list[str]) -> None:
    named(job, "first", [], [group[0]]).run()
    two = named(job, "second", [], [group[0]])
    with pytest.raises(Refused, match=r"first publishes \S+\.people as .* can read both"):
        two.run()
    two.settings["versions"]["joint"] = "none"
    assert any("is refused from now on" in note for note in two.run().notes)


@pytest.mark.each_engine
def test_a_member_of_two_groups_is_one_reader(job: Job, group: list[str]) -> None:
    if job.engine == "duckdb":
        pytest.skip("DuckDB has no roles")
    named(job, "first", [], [group[0]]).run()
    with pytest.raises(Refused, match=f"role {group[1]} can read both|reader"):
        named(job, "second", [], [group[1]]).run()
    assert named(job, "third", [], [group[2]]).run().status == "published"


@pytest.mark.each_engine
def test_a_view_that_was_opened_to_everybody_has_every_reader(job: Job, group: list[str]) -> None:
    if job.engine == "duckdb":
        pytest.skip("DuckDB has no roles")
    one = named(job, "first", [], [group[0]])
    one.run()
    job.change("GRANT SELECT ON published.first TO PUBLIC")
    one.run(force=True)
    with pytest.raises(Refused, match=f"reader {group[2]} can read both"):
        named(job, "second", [], [group[2]]).run()


GIVEN = {
    "the view": ("GRANT SELECT ON published.first TO {0}", "REVOKE SELECT ON published.first FROM {0}"),
    "a column": ("GRANT SELECT (zip) ON published.first TO {0}", "REVOKE SELECT (zip) ON published.first FROM {0}"),
    "a helper view": (
        "GRANT SELECT ON published.first_blocks TO {0}",
        "REVOKE SELECT ON published.first_blocks FROM {0}",
    ),
    "everybody": ("GRANT SELECT ON published.first TO PUBLIC", "REVOKE SELECT ON published.first FROM PUBLIC"),
    "a role of its own": ("GRANT {1} TO {0}", "REVOKE {1} FROM {0}"),
    "the owner": ("ALTER VIEW published.first OWNER TO {0}", "ALTER VIEW published.first OWNER TO CURRENT_USER"),
    "under another name": (
        "GRANT SELECT ON published.first TO {0}; ALTER VIEW published.first RENAME TO renamed",
        "REVOKE SELECT ON published.renamed FROM {0}; ALTER VIEW published.renamed RENAME TO first",
    ),
}
"""How an administrator lets the first of two roles read what the second one reads, and how it is taken back."""


@pytest.mark.each_engine
def test_who_was_given_the_view_by_another_is_a_reader_at_once(job: Job, group: list[str]) -> None:
    if job.engine == "duckdb":
        pytest.skip("DuckDB has no roles")
    named(job, "first", [], [group[0]]).run()
    two = named(job, "second", [], [group[2]])
    refused = f"release first publishes .* and (reader|role) {group[2]} can read both"
    for way, (given, taken) in GIVEN.items():
        assert plan(two.spec).steps
        job.change(given.format(group[2], group[0]))
        with pytest.raises(Refused, match=refused) as raised:
            plan(two.spec)
        for back in re.findall(r"; take it back \((.*?)\), name it", str(raised.value)):
            job.change(back)
            assert plan(two.spec).steps
        assert ("take it back" in str(raised.value)) == (way != "a role of its own")
        job.change(taken.format(group[2], group[0]))
    job.change(GIVEN["the view"][0].format(group[2]))
    with pytest.raises(Refused, match=refused) as raised:
        two.run()
    assert raised.value.exit_status == 3
    assert history(two.spec)["current"] is None


@pytest.mark.each_engine
def test_a_reader_who_gets_both_later_is_found_by_both(job: Job, group: list[str]) -> None:
    if job.engine == "duckdb":
        pytest.skip("DuckDB has no roles")
    one, two = named(job, "first", [], [group[0]]), named(job, "second", [], [group[2]])
    one.run()
    two.run()
    assert [verify(release.spec).status for release in (one, two)] == ["verified", "verified"]
    job.change(f"GRANT SELECT ON published.first TO {group[2]}")
    for release, other in ((one, "second"), (two, "first")):
        problem = f"release {other} publishes public.people as published.{other}, too, and reader {group[2]} can"
        assert any(text.startswith(problem) for text in verify(release.spec).problems)
        with pytest.raises(Refused, match=f"{group[2]} can read both"):
            release.run()
    job.change(f"REVOKE SELECT ON published.first FROM {group[2]}")
    assert [verify(release.spec).status for release in (one, two)] == ["verified", "verified"]


@pytest.mark.each_engine
def test_who_gets_the_view_while_it_is_made_anew_is_a_reader(
    job: Job, group: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if job.engine == "duckdb":
        pytest.skip("DuckDB has no roles")
    named(job, "first", [], [group[0]]).run()
    two = named(job, "second", [], [group[2]])
    two.run()
    real = roles.judge

    def judge(*arguments: Any, running: bool = False) -> list[str]:
        if running:
            job.change(f"GRANT SELECT ON published.second TO {group[0]}")
        return real(*arguments, running=running)

    monkeypatch.setattr(roles, "judge", judge)
    with pytest.raises(Refused, match=f"reader {group[0]} can read both"):
        two.run(force=True)


@pytest.mark.each_engine
def test_releases_of_one_table_to_other_readers_are_no_matter(job: Job, group: list[str]) -> None:
    if job.engine == "duckdb":
        pytest.skip("DuckDB has no roles: whoever has both files")
    named(job, "first", [], [group[0]]).run()
    assert named(job, "second", [], [group[2]]).run().status == "published"


def test_two_runs_at_once_cannot_both_publish(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = one_and_two(job, SENSITIVE, {**HEIGHTS, "disease": "insensitive"}, privacy=NO_MODEL)
    real = roles.judge
    ended: list[QblockError] = []

    def judge(*arguments: Any, running: bool = False) -> list[str]:
        # The other run gets as far as its own publication while this one is about to publish.
        if running and arguments[0].release == "first" and not ended:
            with pytest.raises(Refused) as raised:
                two.run()
            ended.append(raised.value)
        return real(*arguments, running=running)

    monkeypatch.setattr(roles, "judge", judge)
    assert one.run().status == "published"
    assert "as insensitive" in str(ended[0])


def test_a_run_that_was_killed_is_not_about_to_publish(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = one_and_two(job, SENSITIVE, {**HEIGHTS, "disease": "insensitive"}, privacy=NO_MODEL)
    real = roles.judge

    def killed(*arguments: Any, running: bool = False) -> list[str]:
        if running:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(roles, "judge", killed)
        patch.setattr("qblock.release.apply.Run.record_failure", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            two.run()
    assert history(two.spec)["events"][-1]["state"] == "staged"
    assert one.run().status == "published"
    with store_of(two.spec).lock("second"), pytest.raises(Refused, match="as insensitive"):
        one.run(force=True)
