"""The steps of a release, as data: `plan` prints them, and `apply` runs exactly these."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from qblock.warehouse.engines import ENGINES


@dataclass(frozen=True)
class Step:
    """One step; what it does is in `apply`."""

    def describe(self) -> str:
        """What it does, in one sentence."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """How JSON and logs call it: check_node."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def to_json(self) -> dict[str, Any]:
        return {"step": self.name, **asdict(self), "description": self.describe()}


@dataclass(frozen=True)
class Lock(Step):
    release: str
    wait: float

    def describe(self) -> str:
        wait = f", waiting {self.wait:g} seconds at most" if self.wait else ""
        return f"Take the lock of release {self.release}{wait}: one run at a time."


@dataclass(frozen=True)
class UpgradeLedger(Step):
    found: str | None
    needed: str

    def describe(self) -> str:
        if self.found == self.needed:
            return f"The ledger is at revision {self.found}: nothing to upgrade."
        return f"Bring the ledger from revision {self.found or 'none'} to {self.needed}."


@dataclass(frozen=True)
class CheckPrivateState(Step):
    release: str
    joint: bool

    def describe(self) -> str:
        more = ", or the crosswalk" if self.joint else ""
        return (
            f"Refuse if what is published or kept of {self.release}{more} has a version that the ledger does not know, "
            "or an event of it is missing or was altered."
        )


@dataclass(frozen=True)
class ClearLeftovers(Step):
    release: str

    def describe(self) -> str:
        return f"Clean up after interrupted runs of {self.release}."


@dataclass(frozen=True)
class CheckReaders(Step):
    readers: tuple[str, ...]

    def describe(self) -> str:
        who = ", ".join((*self.readers, "PUBLIC"))
        return f"Refuse if {who}, or a role that one of them can become, could read the source or anything private."


@dataclass(frozen=True)
class Snapshot(Step):
    engine: str
    table: str

    def describe(self) -> str:
        how = ENGINES[self.engine].facts.snapshot_words
        return (
            f"Open {self.table} in {how}; check its columns, and that the hierarchies cover every value; scan it once."
        )


@dataclass(frozen=True)
class CheckDisclosure(Step):
    insensitive: tuple[str, ...]

    def describe(self) -> str:
        if not self.insensitive:
            return "Apart from the sensitive ones, no column is published as it is."
        return f"Stop if {', '.join(self.insensitive)}, published unchanged, nearly single out rows."


@dataclass(frozen=True)
class Search(Step):
    strategy: str
    choose_from: str
    choose_by: str
    models: tuple[str, ...]

    def describe(self) -> str:
        what = "by block sizes alone, then check every model" if self.choose_from == "sizes" else "that is minimal"
        return (
            f"Search the lattice ({self.strategy}) for a node that satisfies {', '.join(self.models)}; "
            f"choose one {what}, by {self.choose_by.replace('_', ' ')}."
        )


@dataclass(frozen=True)
class SearchMap(Step):
    strategy: str
    from_node: bool
    choose_from: str
    choose_by: str
    models: tuple[str, ...]

    def describe(self) -> str:
        what = "by block sizes alone, then check every box with" if self.choose_from == "sizes" else "all of which pass"
        begin = f"Search the lattice ({self.strategy}), and split from its top and from its best node"
        if not self.from_node:
            begin = f"Split from the top of the lattice ({self.strategy})"
        return (
            f"{begin} into boxes {what} {', '.join(self.models)}; choose splits by {self.choose_by.replace('_', ' ')}."
        )


@dataclass(frozen=True)
class CheckMap(Step):
    version: int
    models: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"Give every row its box of the recoding map of version {self.version}, and check the boxes against "
            f"{', '.join(self.models)}; nothing is searched."
        )


@dataclass(frozen=True)
class CheckNode(Step):
    node: tuple[int, ...]
    models: tuple[str, ...]

    def describe(self) -> str:
        return f"Check the pinned node {list(self.node)} against {', '.join(self.models)}; nothing is searched."


@dataclass(frozen=True)
class CheckEarlierVersions(Step):
    current: int | None
    joint: str
    entity: bool
    force: bool

    def describe(self) -> str:
        if self.current is None:
            return "No version is published yet: nothing to compare with."
        again = "publish it again even then" if self.force else "stop there if nothing has changed"
        if self.joint != "none" and self.entity:
            changed = f"check all versions ever published together ({self.joint})"
        elif self.joint == "none":
            changed = "versions together are not protected (versions.joint: none)"
        else:
            changed = "refuse changed data, since versions together would not be protected"
        return f"Compare with version {self.current}; {again}; {changed}."


@dataclass(frozen=True)
class RecordVerdict(Step):
    release: str

    def describe(self) -> str:
        return f"Write in the ledger what a run of {self.release} would come to, and say it nowhere else."


@dataclass(frozen=True)
class CopyVersion(Step):
    version: int
    columns: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"Build version {self.version} where no reader can see it ({', '.join(self.columns)}), "
            "ordered by what it publishes; record it as staged."
        )


@dataclass(frozen=True)
class Recheck(Step):
    models: tuple[str, ...]

    def describe(self) -> str:
        return f"Recount the copy independently and compare it with the search: rows, blocks, {', '.join(self.models)}."


@dataclass(frozen=True)
class Publish(Step):
    view: str
    readers: tuple[str, ...]

    def describe(self) -> str:
        to = f", readable by {', '.join(self.readers)}" if self.readers else ""
        return f"Publish it as {self.view}{to}, together with the ledger row."


@dataclass(frozen=True)
class Retire(Step):
    keep: int

    def describe(self) -> str:
        return f"Drop versions beyond the newest {self.keep}; the ledger keeps their rows."


@dataclass(frozen=True)
class CheckVersion(Step):
    version: int
    models: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"Recount the kept copy of version {self.version}: content and guarantees as the ledger has them, "
            f"and {', '.join(self.models)} as the spec asks now."
        )


@dataclass(frozen=True)
class Republish(Step):
    version: int
    view: str

    def describe(self) -> str:
        return f"Publish version {self.version} again as {self.view}, together with the ledger row."


@dataclass(frozen=True)
class FindPeople(Step):
    people: int
    column: str

    def describe(self) -> str:
        who = "person" if self.people == 1 else f"{self.people} people"
        return (
            f"Look the {who} named up by column {self.column}, in earlier versions and in the source; "
            "do nothing if a name is nobody's."
        )


@dataclass(frozen=True)
class FindMissing(Step):
    column: str
    confirm: int | None

    def describe(self) -> str:
        unless = (
            "it was not confirmed" if self.confirm is None else f"they are not the {self.confirm} that were confirmed"
        )
        return (
            f"Find by column {self.column} whom versions that are kept show and the source has no more; do nothing if "
            f"that is nobody, or if they are more than a fifth and {unless}."
        )


@dataclass(frozen=True)
class CountSharing(Step):
    def describe(self) -> str:
        return (
            "Count how many people share their joint cells, and ask whether all of them are to leave (not with --yes)."
        )


@dataclass(frozen=True)
class SetApart(Step):
    now: bool

    def describe(self) -> str:
        if self.now:
            return "Take them out at once, with everybody who shares a joint cell with them."
        return (
            "Take out at once whoever was never shown; the others wait until a batch of their block closes by its size."
        )


@dataclass(frozen=True)
class PublishWithout(Step):
    view: str

    def describe(self) -> str:
        return f"If a version shows any of them, publish one without them as {self.view}, by the steps of a release."


@dataclass(frozen=True)
class DropShowing(Step):
    keep: int

    def describe(self) -> str:
        return (
            f"Drop the versions that show them, except the one that readers see, and those beyond the newest "
            f"{self.keep}."
        )
