"""The check of a node together with earlier versions, and what other nodes give where it fails."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

from qblock.errors import Refused
from qblock.joint.turn import JointVersions, TogetherRefused
from qblock.lattice import Node
from qblock.release.chosen import Chosen
from qblock.release.run import Run
from qblock.search.assessment import Assessment

MOST_TRIED = 5
"""Nodes that are tried for what a refusal says of them: each is a check over everybody."""


def check_together(run: Run) -> None:
    """Check the node together with earlier versions; try others where the spec says so."""
    refused: TogetherRefused | None = None
    kept = run.current.node if run.current is not None else None
    begin = partial(run.begin, joint=run.spec.versions.joint)
    others: list[Node] = []
    for tried in run.joint.attempts(run.task, run.found, run.chosen.assessment, kept):
        if tried is not run.chosen.assessment:
            others.append(tried.node)
            run.fell_back = True
            run.chosen = Chosen.of(run.spec, run.task, tried, run.ranges)
        references = run.chosen.kept.references
        try:
            run.joint.check(run.task, tried, references, run.version, run.published_digests, begin)
        except TogetherRefused as error:
            refused = refused or error
        else:
            return
    if refused is not None:
        policy = run.spec.on_refusal
        gave = _would_give(run, kept) if policy == "refuse" else _also_failed(policy, others)
        raise with_more(with_more(refused, gave), run.joint.refused())


def _would_give(run: Run, kept: Node | None) -> str:
    """What `pin` and `coarsen` would give where a version was refused and nobody waits: they are tried, and nothing of
    it is kept."""
    joint, first = run.joint, run.chosen.assessment
    if not isinstance(joint, JointVersions) or joint.waiting is not None:
        return ""

    def passes(tried: Assessment) -> bool:
        references = Chosen.of(run.spec, run.task, tried, run.ranges).kept.references
        try:
            with joint.trying():
                joint.check(run.task, tried, references, run.version, run.published_digests, lambda _: "")
        except TogetherRefused:
            return False
        return True

    found = []
    for policy in ("pin", "coarsen"):
        tried = list(islice(joint.others(policy, run.task, run.found, first, kept), MOST_TRIED))
        passing = next((one.node for one in tried if passes(one)), None)
        if passing is not None:
            found.append(f"`on_refusal: {policy}` would publish node {list(passing)}")
        elif tried:
            nodes = f"node {list(tried[0].node)} fails" if len(tried) == 1 else f"its first {len(tried)} nodes fail"
            found.append(f"`on_refusal: {policy}` would be refused, too: {nodes}")
    return "; ".join(found)


def _also_failed(policy: str, others: Sequence[Node]) -> str:
    """What `pin` and `coarsen` gave where no node passed together with earlier versions."""
    if policy == "pin":
        return f"The published node {list(others[0])} fails, too" if others else "There is no other node to pin"
    if policy == "coarsen":
        found = "1 other node fails" if len(others) == 1 else f"{len(others)} other nodes fail"
        return f"{found}, too (coarsen)" if others else "No other node satisfies the models (coarsen)"
    return ""


def with_more(error: Refused, more: str) -> Refused:
    """A refusal with another sentence at its end, if there is one."""
    return type(error)(f"{error}. {more}") if more else error
