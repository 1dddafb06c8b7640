"""What of a release on Spark is decided by its spec alone, without a server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.engines.spark.adapter import SparkDialect
from qblock.engines.spark.catalog import Entry, _tells, same_path, within
from qblock.engines.spark.client import path_literal
from qblock.errors import InputError, Refused
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.stores import store_of
from qblock.publish.targets import target_of
from qblock.publish.targets.spark_helpers import SparkHelpers
from qblock.spec import Spec, load_spec, spec_digest

PRIVATE = "private: {url: sqlite:///qblock/ledger.sqlite, path: /data/private}"
PUBLISH = "publish: {path: /data/published, readers_checked: by operator}"
ALONE = "versions: {joint: none}"
SPEC = """version: 1
release: {release}
source: {{url: "{url}", table: people}}
attributes:
  age: {{role: quasi_identifier, hierarchy: suppress}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 2}}}}]
"""


def spec(folder: Path, *parts: str, url: str = "sc://host", release: str = "people") -> Spec:
    path = folder / "spec.yaml"
    path.write_text(SPEC.format(url=url, release=release) + "\n".join(parts) + "\n", "utf-8")
    return load_spec(path)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((PUBLISH, ALONE), r"Spark cannot hold the ledger of a release; give it a database: private: \{url: "),
        ((PRIVATE.replace("sqlite:///qblock/ledger.sqlite", '"sc://host"'), PUBLISH), "private.url: Spark"),
        ((PRIVATE.replace("ledger.sqlite", "x.duckdb"), PUBLISH), r"private.url: .*x.duckdb is not a ledger"),
        ((PRIVATE, ALONE), r"Spark has no grants: .*publish: \{path: .*, readers_checked: \"by operator\"\}"),
        ((PRIVATE, "publish: {path: /data/published}", ALONE), "Spark has no grants"),
        ((PRIVATE, "publish: {readers_checked: by operator}", ALONE), "Spark has no grants"),
        ((PRIVATE, PUBLISH.replace("/data/published", "/data/private")), "must not be in one folder"),
        ((PRIVATE, PUBLISH.replace("/data/published", "s3a://bucket/data/private/x")), "must not be in one folder"),
        ((PRIVATE, PUBLISH.replace("/data/published", "/data")), "must not be in one folder"),
        ((PRIVATE, PUBLISH.replace("/data/published", "\"/it's\"")), "publish.path: a folder of the cluster begins"),
        ((PRIVATE.replace("/data/private", "data"), PUBLISH), "private.path: a folder of the cluster begins"),
        ((PRIVATE, PUBLISH.replace("{path", "{view: People, path")), "lower-case letters, digits and _ alone"),
        ((PRIVATE, PUBLISH.replace("{path", '{schema: "a b", path')), "lower-case letters, digits and _ alone"),
        ((PRIVATE, PUBLISH.replace("{path", "{names: {levels: the labels}, path")), "lower-case letters, digits and _"),
        ((PRIVATE, PUBLISH.replace("{path", "{readers: [analyst], path")), "Spark has no roles"),
        ((PRIVATE, PUBLISH.replace("{path", '{url: "sc://host:15002/;token=t", path')), "is published; remove it"),
        ((PRIVATE, 'publish: {url: "duckdb:///out.duckdb"}'), "private.path is for releases on Spark; remove it"),
        ((PUBLISH.replace("{path", '{url: "duckdb:///out.duckdb", path'),), "publish.path is for releases on Spark"),
    ],
)  # fmt: skip
def test_a_release_on_spark_says_what_is_missing(tmp_path: Path, parts: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        target_of(spec(tmp_path, *parts))


def test_names_that_catalogs_fold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lower-case"):
        target_of(spec(tmp_path, PRIVATE, PUBLISH, release="People"))


def test_other_engines_have_no_use_for_it(tmp_path: Path) -> None:
    target = 'publish: {url: "duckdb:///out.duckdb"}'
    with pytest.raises(InputError, match=r"private\.path is for releases on Spark; remove it"):
        store_of(spec(tmp_path, PRIVATE, target, url="duckdb:///w.duckdb"))
    with pytest.raises(InputError, match=r"changes both in one transaction; remove `private`"):
        store_of(spec(tmp_path, 'private: {url: "sqlite:///qblock/ledger.sqlite"}', url="postgresql://host/db"))
    with pytest.raises(InputError, match=r"private\.path is missing"):
        target_of(spec(tmp_path, 'private: {url: "sqlite:///qblock/ledger.sqlite"}', PUBLISH))
    with pytest.raises(InputError, match=r"publish\.path is for releases on Spark"):
        target_of(spec(tmp_path, target.replace("{url", "{path: /data, url"), url="duckdb:///w.duckdb"))
    with pytest.raises(InputError, match=r"publish\.readers_checked is for releases on Spark"):
        target_of(spec(tmp_path, PUBLISH.replace("path: /data/published, ", ""), url="postgresql://host/db"))
    with pytest.raises(InputError, match=r"publish\.storage_version is for releases from DuckDB; remove it"):
        target_of(spec(tmp_path, "publish: {storage_version: v1.5.0}", url="postgresql://host/db"))


def test_the_ledger_is_where_the_spec_says(tmp_path: Path) -> None:
    place = store_of(spec(tmp_path, PRIVATE, PUBLISH))
    assert place.file == tmp_path / "qblock" / "ledger.sqlite"
    assert not place.atomic
    served = store_of(
        spec(tmp_path, PRIVATE.replace("sqlite:///qblock/ledger.sqlite", "postgresql://host/db"), PUBLISH)
    )
    assert served.engine == "postgresql"
    assert not served.atomic  # versions are elsewhere


def test_where_private_state_is_does_not_change_the_digest(tmp_path: Path) -> None:
    digest = spec_digest(spec(tmp_path))
    assert digest == spec_digest(spec(tmp_path, PRIVATE, PUBLISH))
    assert digest != spec_digest(spec(tmp_path, PUBLISH.replace("{path", "{schema: other, path")))


def test_views_of_two_servers_are_two_targets(tmp_path: Path) -> None:
    found = [target_of(spec(tmp_path, PRIVATE, PUBLISH, ALONE, url=url)).identity() for url in ("sc://a", "sc://b")]
    assert found[0].source == found[1].source == "default.people"
    assert found[0].database != found[1].database


@pytest.mark.parametrize(
    ("one", "other", "same", "inside"),
    [
        ("file:/data/x", "/data/x/", True, True),
        ("hdfs://name:8020/data/x", "/data//x", True, True),
        ("s3a://one/data", "s3a://two/data", False, True),
        ("/data/xy", "/data/x", False, False),
        ("/data/x/y", "/data/x", False, True),
        ("/data", "/", False, True),
    ],
)
def test_folders(one: str, other: str, same: bool, inside: bool) -> None:
    assert same_path(one, other) == same
    assert within(one, other) == inside


@pytest.mark.parametrize("path", ["/it's", "/a\\b", "/a\nb", "relative", "", "/a b", "/a;b", "/a`b"])
def test_a_path_cannot_leave_its_literal(path: str) -> None:
    with pytest.raises(InputError, match="begins with / or SCHEME://"):
        path_literal(path)


def helpers(folder: Path) -> SparkHelpers:
    return SparkHelpers(spec(folder, PRIVATE, PUBLISH))


def test_a_name_of_a_helper_view_that_is_taken_is_refused(tmp_path: Path) -> None:
    own = helpers(tmp_path)
    mine = Entry("people_levels", own.says["levels"], is_view=True)
    own.check({mine.name: mine})
    for theirs in (replace(mine, is_view=False), replace(mine, comment="qblock release people")):
        with pytest.raises(InputError, match=r"people_levels already exists, a (table|view) that does not belong"):
            own.check({theirs.name: theirs})
    of_another_view = replace(mine, comment=mine.comment.replace("people", "persons"))
    assert own.own({mine.name: of_another_view}) == []


def test_what_is_told_of_a_view_is_what_it_says_and_shows() -> None:
    told = "Owner: x\nType: VIEW\nComment: says\nView Text: SELECT 1\nView Original Text: SELECT 1\n"
    assert _tells(told, "says", "SELECT 1")
    assert not _tells(told, "says", "SELECT 2")
    assert not _tells(told, "say", "SELECT 1")
    other = "Type: VIEW\nComment: says\nView Text: SELECT 2\nView Original Text: SELECT 2\n"
    assert not _tells(f"Owner: x\n{other}{told}", "says", "SELECT 1")  # a view whose columns' names tell another story
    assert not _tells("", "says", "SELECT 1")


def test_a_table_beside_a_version_that_is_another_one_is_dropped_with_the_version(tmp_path: Path) -> None:
    dropped: list[str] = []
    catalog: Any = SimpleNamespace(
        write=lambda *_: None,
        rows=lambda *_: None,
        differ=lambda *_: True,
        drop=lambda _, names: dropped.extend(names),
    )
    with pytest.raises(Refused, match="is not what was staged: nothing is published"):
        helpers(tmp_path).copy(catalog, ("private", "people_v1"), "people_v1_aa", "mark")
    assert dropped == ["people_v1_aa", "people_v1_aa_shown"]


def test_helper_views_that_are_missing_or_of_another_name_are_not_intact(tmp_path: Path) -> None:
    own, columns = helpers(tmp_path), [PublishedColumn("age", "quasi_identifier", "text", "text")]
    texts = own.texts("people_v1_aa", columns)
    entries = {name: Entry(name, says, is_view=True) for name, (says, _) in texts.items()}
    for name in ("people_v1_aa_shown", "people_v1_shown"):
        entries[name] = Entry(name, "", is_view=False)
    told = {"differ": False}
    catalog: Any = SimpleNamespace(
        entries=lambda _: entries,
        showing=lambda _, asked: set(asked) & set(entries),
        differ=lambda *_: told["differ"],
    )

    def intact(table: str = "people_v1_aa", private: str = "people_v1") -> bool:
        return own.intact(catalog, ("private", private), table, columns)

    assert intact()
    assert not intact("people_v2_bb")
    assert not intact(private="people_v2")
    told["differ"] = True
    assert not intact()
    told["differ"] = False
    former = entries.setdefault("former", Entry("former", own.says["levels"], is_view=True))
    assert not intact()
    del entries[former.name], entries["people_levels"]
    assert not intact()


def test_an_order_within_an_aggregate_is_written_as_spark_reads_it() -> None:
    text = sa.func.string_agg(sa.column("a"), sa.literal_column("''")).aggregate_order_by(sa.column("a"))
    found = str(sa.select(text.label("t")).compile(dialect=SparkDialect()))
    assert found == "SELECT string_agg(`a`, '') WITHIN GROUP (ORDER BY `a`) AS `t`"
