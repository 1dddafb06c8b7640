"""The private state of a place, from a spec or a URL, for programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from qblock.engines.driver_errors import explained
from qblock.errors import hide_all_tracebacks
from qblock.ledger.stores import store_of, store_of_url
from qblock.release.rekey import rekey
from qblock.results.release import Rekeyed, Upgraded
from qblock.spec import load_spec


@partial(hide_all_tracebacks, explain=explained)
class Ledger:
    """The private state of all releases of a place."""

    def __init__(self, target: str, *, name_values: bool = False) -> None:
        """target: the path of a spec, or the URL of the ledger's database; name_values: as of a Release. Raises
        InputError for neither.
        """
        self.name_values = name_values
        self._place = store_of_url(target, Path.cwd()) if "://" in target else store_of(load_spec(target))

    def upgrade(self) -> Upgraded:
        """Upgrade the schema to the version of this program; twice is once."""

        before, after = self._place.upgrade()
        return Upgraded(before=before, after=after)

    def rekey(self, *, wait: float = 0) -> Rekeyed:
        """Give the crosswalk a new key, in one transaction. wait: seconds to wait for runs of any release there.

        Raises Busy while one is in progress.
        """
        return rekey(self._place, wait=wait)
