"""The node that a release's versions keep."""

from __future__ import annotations

from qblock.lattice import Node
from qblock.release.joint.book import Book
from qblock.release.joint.crosswalk import recorded
from qblock.spec import Spec


def published_node(book: Book, spec: Spec) -> Node | None:
    """The node of the release's newest version, where that has the same quasi-identifiers."""
    versions = recorded(book, spec.release)
    if not versions or versions[-1].quasi_identifiers != spec.quasi_identifiers:
        return None
    return versions[-1].node
