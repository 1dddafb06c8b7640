"""Releases that the same readers may hold: the crosswalk must have every version of theirs."""

from __future__ import annotations

from qblock.errors import Refused
from qblock.ledger.events import PUBLISHING
from qblock.ledger.stamps import Written
from qblock.ledger.store import Store
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, lacking
from qblock.versions.episodes import VersionKey
from qblock.versions.recorded import recorded


def check_audience(crosswalk: Crosswalk, spec: Spec, place: Store) -> None:
    """Raise Refused where a release that the same readers may hold has versions that no crosswalk knows."""
    known = {version.key for version in recorded(crosswalk)}
    with place.read() as reader:
        for name in spec.versions.audience:
            events = [e for e in reader.history(name) if e.state in PUBLISHING and e.version is not None]
            without = [e.version for e in events if VersionKey(name, e.version or 0) not in known]
            lost = [v for v in without if v is not None and Written.of(reader, name).together(v)]
            if lost:
                raise Refused(
                    f"release {name}, which versions.audience names: {lacking(place, lost, there=True)}; nothing is "
                    "published. Restore it from a backup"
                )
            if without:
                raise Refused(
                    f"version {without[0]} of release {name}, which versions.audience names, was published without a "
                    "crosswalk (without `entity`, or with `versions: {joint: none}`), so no version can be checked "
                    "together with it; nothing is published. Leave it out of the audience if no reader can hold both, "
                    "or write `versions: {joint: none}`"
                )
