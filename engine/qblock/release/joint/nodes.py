"""Another node where the joint check refuses: the published one again (`pin`), or the best that passes (`coarsen`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qblock.lattice import Node
from qblock.release.joint.book import Book
from qblock.release.joint.crosswalk import Candidate, candidate, recorded
from qblock.release.joint.gate import Verdict, check
from qblock.search.task import Assessment, Task
from qblock.spec import Spec

COARSENED = (
    "the node was chosen by looking at the sensitive values of all versions, and that it had to be this coarse is "
    "itself information: not protected against an attacker who knows the search"
)


@dataclass(frozen=True, eq=False)
class Passing:
    """A node that passes together with the earlier versions. tried: how many were, with it."""

    chosen: Assessment
    candidate: Candidate
    verdict: Verdict
    tried: int


def published_node(book: Book, spec: Spec) -> Node | None:
    """The node of the release's newest version, where that has the same quasi-identifiers."""
    versions = recorded(book, spec.release)
    if not versions or versions[-1].quasi_identifiers != spec.quasi_identifiers:
        return None
    return versions[-1].node


def first_passing(book: Book, task: Task, nodes: Iterable[Node], version: int) -> Passing | None:
    """The first of some nodes, best first, that satisfies the spec by itself and together with the earlier versions."""
    tried = 0
    for node in nodes:
        chosen = task.assess(node)
        if not chosen.satisfied:
            continue
        tried += 1
        found = candidate(book, task, chosen, version)
        references = [[part.reference for part in parts] for parts in chosen.counts.parts]
        verdict = check(book, task.spec, references, found)
        if verdict.passed:
            return Passing(chosen, found, verdict, tried)
        book.own.drop(found.rows)
    return None
