"""A kept version of a release, as it is reported: from its private copy, whose digest the ledger has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from qblock.engines.session import Session
from qblock.engines.tables import TableName
from qblock.errors import InputError, Refused
from qblock.ledger.events import PUBLISHING, RecordedEvent
from qblock.ledger.kept import Kept, kept_digest
from qblock.ledger.stores import store_of
from qblock.publish.digest import content_digest
from qblock.publish.targets import Target, target_of
from qblock.spec import Spec
from qblock.spec.digest import spec_digest


@dataclass(frozen=True, eq=False)
class KeptVersion:
    """event: by which it was published first; current: the version that readers see, None where there is none; same:
    whether the spec is still the one that it was published by."""

    spec: Spec
    target: Target
    kept: Kept
    event: RecordedEvent
    current: int | None
    same: bool

    @property
    def version(self) -> int:
        assert self.event.version is not None
        return self.event.version

    @contextmanager
    def opened(self) -> Iterator[tuple[Session, str]]:
        """A session in which the views of the release show this version, and the schema of those. Raises Refused where
        its copy is not what was published."""
        with self.target.kept(self.version, self.kept.columns) as (session, schema):
            rows = session.relation(TableName(schema, self.spec.view))
            if content_digest(session, rows, self.kept.columns) != self.event.content_digest:
                raise Refused(
                    f"version {self.version} of release {self.spec.release} is not reported: its content was altered, "
                    "the digest is not the one in the ledger"
                )
            yield session, schema

    def without_helpers(self) -> InputError:
        """Of a version whose helper views somebody dropped."""
        return InputError(
            f"version {self.version} of release {self.spec.release} has no helper views, which a report needs: "
            "somebody dropped them. `qblock history` has its guarantees"
        )


def kept_version(spec: Spec, version: int) -> KeptVersion:
    """A version of the release. Raises InputError, with those that are kept, for one that is not; Refused where what is
    kept with it was altered."""
    place = store_of(spec)
    target = target_of(spec, place)
    with place.read() as reader:
        events = reader.history(spec.release)
        known = sorted(number for number in reader.kept_versions(spec.release) if target.holds(number))
        current, text = reader.pointer(spec.release), reader.reference(spec.release, version)
    if version not in known:
        kept = f"kept: {', '.join(map(str, known))}" if known else "none is kept"
        raise InputError(f"version {version} of release {spec.release} is not kept; {kept}")
    first = next(event for event in events if event.version == version and event.state in PUBLISHING)
    if text is None or kept_digest(text) != first.reference_digest:
        raise Refused(
            f"version {version} of release {spec.release} is not reported: the quantities kept with it are missing or "
            "were altered"
        )
    return KeptVersion(spec, target, Kept.of_text(text), first, current, first.spec_digest == spec_digest(spec))
