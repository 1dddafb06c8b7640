"""Which part earlier versions have in the runs of a release, by its spec."""

from __future__ import annotations

from qblock.joint.alone import NotJoint
from qblock.joint.lag.turn import LaggingVersions
from qblock.joint.turn import JointVersions
from qblock.ledger.place import Place
from qblock.spec import Spec


def joint_versions(spec: Spec, place: Place, run: str, notes: list[str]) -> NotJoint:
    """The versions of a release in a run. notes: of the run, to which theirs are added."""
    if not spec.checked_together:
        return NotJoint(spec, place, run, notes)
    made = LaggingVersions if spec.on_refusal == "hold_back" else JointVersions
    return made(spec, place, run, notes)
