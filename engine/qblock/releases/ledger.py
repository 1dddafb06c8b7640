"""The ledger and the crosswalk themselves, of a spec or given by URL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qblock.errors import hide_all_tracebacks
from qblock.ledger.migrate import upgrade_ledger
from qblock.ledger.stores import place_of, place_of_url
from qblock.release.rekey import Rekeyed, rekey
from qblock.spec import load_spec


@dataclass(frozen=True)
class Upgraded:
    """Revisions of the ledger's schema. before: None where there was no ledger."""

    before: str | None
    after: str

    def to_dict(self) -> dict[str, Any]:
        """What `qblock ledger upgrade --json` prints."""
        return dict(vars(self))


@hide_all_tracebacks
class Ledger:
    """The private state of all releases of a place."""

    def __init__(self, target: str, *, name_values: bool = False) -> None:
        """target: the path of a spec, or the URL of the ledger's database; name_values: as of a Release. Raises
        InputError for neither.
        """
        self.name_values = name_values
        self._place = place_of_url(target, Path.cwd()) if "://" in target else place_of(load_spec(target))

    def upgrade(self) -> Upgraded:
        """Upgrade the schema to the version of this program; twice is once."""
        return Upgraded(*upgrade_ledger(self._place))

    def rekey(self, *, wait: float = 0) -> Rekeyed:
        """Give the crosswalk a new key, in one transaction. wait: seconds to wait for runs of any release there.

        Raises Busy while one is in progress.
        """
        return rekey(self._place, wait=wait)
