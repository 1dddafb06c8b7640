"""What a spec alone says of the versions after the first one."""

from __future__ import annotations

from qblock.spec import Spec

NO_ENTITY = (
    "This can be published once: a run with changed data will be refused. To publish again, add `entity: COLUMN` now, "
    "the column that says who a row is about. If readers keep no older versions, `versions: {joint: none}` does it too"
)
ROOM = (
    "nobody who left can go from a box of fewer than {} people before the box is stale: {} go together, and {} stay "
    "(docs/steady-job.md). To make room, write `search: {{box: {{least: {}}}}}` before the first version"
)
WITHOUT_ENTITY = "none (no entity)"
"""How versions of a spec that does not say who a row is about are checked together, as ledger and results have it."""


def joint_check(spec: Spec) -> str:
    """How the versions of a release are checked together, for the ledger and results: `versions.joint`, or
    WITHOUT_ENTITY where nothing says who a row is about."""
    joint = spec.versions.joint
    return WITHOUT_ENTITY if spec.entity is None and joint != "none" else joint


def later_versions(spec: Spec) -> list[str]:
    """What to say of versions after the first one: nothing where they are checked together, or where that is waived."""
    if spec.checked_together or spec.versions.joint == "none":
        return []
    return [NO_ENTITY]


def room_to_leave(spec: Spec, k: int) -> list[str]:
    """What larger boxes of a map would buy, where people cannot leave. k: the least people of a joint cell."""
    leave = max(k, spec.versions.leave or 0)
    if spec.search.recoding != "multidimensional" or spec.least_box >= leave + k:
        return []
    return [ROOM.format(leave + k, leave, k, 2 * (leave + k))]
