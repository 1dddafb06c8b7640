"""Which part earlier versions have in the runs of a release, by its spec."""

from __future__ import annotations

from qblock.errors import InputError
from qblock.ledger.store import Store
from qblock.spec import Spec
from qblock.versions.alone import NotJoint
from qblock.versions.lag.turn import LaggingVersions
from qblock.versions.turn import JointVersions


def joint_versions(spec: Spec, place: Store, run: str, notes: list[str]) -> NotJoint:
    """The versions of a release in a run. notes: of the run, to which theirs are added."""
    if not spec.checked_together:
        return NotJoint(spec, place, run, notes)
    if spec.bundles and spec.on_refusal != "hold_back":
        raise InputError(
            f"{spec.at('versions', 'on_refusal')}: where people have several rows (`count: entities`) later "
            "versions lag behind the source (hold_back); leave on_refusal out, or write `versions: {joint: none}`"
        )
    if spec.bundles and spec.versions.audience:
        raise InputError(
            f"{spec.at('versions', 'audience')}: releases of people with several rows (`count: entities`) are "
            "not checked together with other ones; leave them out, or write `versions: {joint: none}`"
        )
    policy = LaggingVersions if spec.on_refusal == "hold_back" else JointVersions
    return policy(spec, place, run, notes)
