"""What of a release on Spark is decided by its spec alone, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from qblock.errors import InputError
from qblock.ledger.stores import place_of
from qblock.publish.targets import target_of
from qblock.spec import Spec, load_spec, spec_digest
from qblock.warehouse.spark_catalog import same_path, within
from qblock.warehouse.spark_client import path_literal
from qblock.warehouse.spark_dialect import SparkDialect

PRIVATE = "private: {url: duckdb:///qblock/ledger.duckdb, path: /data/private}"
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
        ((PRIVATE.replace("duckdb:///qblock/ledger.duckdb", '"sc://host"'), PUBLISH), "private.url: Spark"),
        ((PRIVATE.replace("ledger.duckdb", "x.duckdb"), PUBLISH), r"private.url: .*x.duckdb is not a ledger"),
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
        ((PRIVATE, PUBLISH.replace("{path", "{readers: [analyst], path")), "Spark has no roles"),
        ((PRIVATE, PUBLISH.replace("{path", '{url: "duckdb:///out.duckdb", path')), "published there; remove it"),
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
    with pytest.raises(InputError, match="private: DuckDB holds private state itself"):
        place_of(spec(tmp_path, PRIVATE, target, url="duckdb:///w.duckdb"))
    with pytest.raises(InputError, match=r"publish\.path is for sources on Spark"):
        target_of(spec(tmp_path, target.replace("{url", "{path: /data, url"), url="duckdb:///w.duckdb"))
    with pytest.raises(InputError, match=r"publish\.readers_checked is for sources on Spark"):
        target_of(spec(tmp_path, PUBLISH.replace("path: /data/published, ", ""), url="postgresql://host/db"))


def test_the_ledger_is_where_the_spec_says(tmp_path: Path) -> None:
    place = place_of(spec(tmp_path, PRIVATE, PUBLISH))
    assert place.file == tmp_path / "qblock" / "ledger.duckdb"
    assert not place.atomic
    served = place_of(
        spec(tmp_path, PRIVATE.replace("duckdb:///qblock/ledger.duckdb", "postgresql://host/db"), PUBLISH)
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


def test_an_order_within_an_aggregate_is_written_as_spark_reads_it() -> None:
    text = sa.func.string_agg(sa.column("a"), sa.literal_column("''")).aggregate_order_by(sa.column("a"))
    found = str(sa.select(text.label("t")).compile(dialect=SparkDialect()))
    assert found == "SELECT string_agg(`a`, '') WITHIN GROUP (ORDER BY `a`) AS `t`"
