"""How many people share the joint cells of those who leave at once: counts alone, for whoever runs the job."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
import sqlalchemy as sa

from qblock.joint.crosswalk import Book, fresh_name
from qblock.joint.episodes import PUBLISHED
from qblock.joint.excluded import OUT, entities_apart
from qblock.joint.units import owner, owner_of
from qblock.joint.withdrawals import whole_cells
from qblock.spec import Spec


@dataclass(frozen=True)
class Sharing:
    """leaving: people who withdraw and are not out yet; companions: others in their joint cells, who leave with them;
    cells: these joint cells, which leave whole; staying: the others whom the newest version shows.

    It depends on nothing but who withdraws, blocks, and which versions show whom: on no sensitive value that is not
    shown, so whether they leave may be decided by it.
    """

    leaving: int
    companions: int
    cells: int
    staying: int

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    def __str__(self) -> str:
        cells = "joint cell" if self.cells == 1 else f"{self.cells:,} joint cells"
        if self.companions:
            companions = _people(self.companions, "other person shares", "other people share")
            companions = f"{companions} their {cells}, and would leave with them"
        else:
            companions = f"nobody else is in their {cells}" if self.cells else "they are in no joint cell"
        who = _people(self.leaving, "person withdraws", "people withdraw")
        return f"{who}; {companions}; {_people(self.staying, 'person', 'people')} would stay"


def _people(n: int, singular: str, plural: str) -> str:
    return f"{n:,} {singular if n == 1 else plural}"


def sharing(book: Book, spec: Spec, digests: Sequence[str], published: Collection[int]) -> Sharing:
    """What `take_out` of the whole cells of these people would come to. published: the versions that are kept.

    Where versions do not lag, it rolls the episodes of the release's check on, which may be undone.
    """
    removal = whole_cells(book, spec, digests)
    gone = set(entities_apart(book, spec.release, [OUT]))
    leaving = sorted(set(digests) - gone)
    going = book.own.load(fresh_name(), pa.table({"entity": pa.array([*leaving, *removal.companions], pa.string())}))
    t, excluded = book.tables.row, book.tables.apart
    out = sa.select(excluded.c.entity).where(excluded.c.release == spec.release, excluded.c.state == OUT)
    # Of people with several rows a unit may leave while others of the same person stay.
    person = owner(t.c.entity)
    shown = sa.select(sa.func.count(sa.distinct(person))).where(
        t.c.release == spec.release,
        t.c.version == max(published, default=0),
        t.c.shown == PUBLISHED,
        t.c.entity.not_in(out),
        t.c.entity.not_in(sa.select(going.c.entity)),
        person.not_in(out),
        person.not_in(sa.select(going.c.entity)),
    )
    staying = int(book.own.scalar(shown))
    book.own.drop(going)
    companions = len({owner_of(companion) for companion in removal.companions})
    return Sharing(len(leaving), companions, removal.cells, staying)
