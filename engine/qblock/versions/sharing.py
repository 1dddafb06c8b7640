"""How many people share the joint cells of those who leave at once: counts alone, for whoever runs the job."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import sqlalchemy as sa

from qblock.results.release import Sharing
from qblock.spec import Spec
from qblock.versions.crosswalk import Crosswalk, fresh_name
from qblock.versions.episodes import PUBLISHED
from qblock.versions.excluded import OUT, entities_apart
from qblock.versions.units import owner, owner_of
from qblock.versions.withdrawals import whole_cells


def sharing(crosswalk: Crosswalk, spec: Spec, digests: Sequence[str], published: Collection[int]) -> Sharing:
    """What `take_out` of the whole cells of these people would come to. published: the versions that are kept.

    Where versions do not lag, it rolls the episodes of the release's check on, which may be undone.
    """
    removal = whole_cells(crosswalk, spec, digests)
    gone = set(entities_apart(crosswalk, spec.release, [OUT]))
    leaving = sorted(set(digests) - gone)
    going = crosswalk.own.load(
        fresh_name(), pa.table({"entity": pa.array([*leaving, *removal.companions], pa.string())})
    )
    t, excluded = crosswalk.tables.row, crosswalk.tables.apart
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
    staying = int(crosswalk.own.scalar(shown))
    crosswalk.own.drop(going)
    companions = len({owner_of(companion) for companion in removal.companions})
    return Sharing(leaving=len(leaving), companions=companions, cells=removal.cells, staying=staying)
