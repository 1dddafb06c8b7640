"""What a release on Spark needs of its spec and of the cluster's operator: there are no rights to ask for."""

from __future__ import annotations

import re

from qblock.errors import InputError
from qblock.publish.helpers import names
from qblock.spec import Spec
from qblock.warehouse.rights import Needs
from qblock.warehouse.spark_catalog import within
from qblock.warehouse.spark_client import PATH, PATHS

NAME = re.compile(r"[a-z0-9_]+", re.ASCII)
READERS = (
    "open-source Spark has no grants: the operator of the cluster must see to it that readers reach publish.path and "
    "neither private.path nor the source, and that nobody but the job reads the cluster's shuffle and spill files"
)


def check_spec(spec: Spec) -> None:
    """Raise InputError for a spec that cannot be published on Spark, as far as it tells by itself."""
    publish, private = spec.publish, spec.private
    assert private is not None  # the ledger's place asks for it
    if publish.url is not None:
        raise InputError(f"{spec.at('publish', 'url')}: a release from Spark is published there; remove it")
    if publish.path is None or publish.readers_checked is None:
        raise InputError(
            f"{spec.at('publish')}: {READERS}. Say where the published tables are stored, and that this was seen to: "
            'publish: {path: /where/readers/may/read, readers_checked: "by operator"}'
        )
    for key, path in (("publish.path", publish.path), ("private.path", private.path)):
        if not PATH.fullmatch(path):
            raise InputError(f"{key}: a folder of the cluster {PATHS}")
    if within(publish.path, private.path) or within(private.path, publish.path):
        raise InputError(
            f"{spec.at('publish', 'path')}: published and private tables must not be in one folder, nor one in the "
            "other: whoever reads files there reads both"
        )
    for place_, name in (
        (("publish", "schema"), publish.schema),
        (("publish", "view"), spec.view),
        (("release",), spec.release),
        *((("publish", "names"), name) for name in names(spec.view, publish.names).values()),
    ):
        if not NAME.fullmatch(name):
            raise InputError(
                f"{spec.at(*place_)}: catalogs of Spark know lower-case letters, digits and _ alone; rename it"
            )
    if publish.readers:
        raise InputError(f"{spec.at('publish', 'readers')}: Spark has no roles; remove it ({READERS})")


def needs(spec: Spec, job: str | None, officer: str | None) -> Needs:
    """The folders of a release. Raises InputError for a role."""
    for option, role in (("--job", job), ("--officer", officer)):
        if role is not None:
            raise InputError(f"{option} {role}: Spark has no roles; leave it out. {READERS}")
    assert spec.private is not None
    home, published = spec.private.path, spec.publish.path or ""
    paths = f"the job writes in {home} and {published}; readers read {published} alone"
    return Needs("spark", published, None, notes=(READERS, paths))
