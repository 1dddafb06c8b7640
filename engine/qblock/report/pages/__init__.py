"""The pages of a report, in their order; each is a module of its own."""

from __future__ import annotations

from qblock.report.pages import (
    attacks,
    beliefs,
    blocks,
    changes,
    columns,
    epsilon,
    guarantees,
    lattice,
    rights,
    risk,
    room,
    spec,
    verdict,
    versions,
)
from qblock.report.parts import Page

PAGES: tuple[Page, ...] = (
    verdict.PAGE,
    columns.PAGE,
    guarantees.PAGE,
    attacks.PAGE,
    risk.PAGE,
    blocks.PAGE,
    room.PAGE,
    lattice.PAGE,
    changes.PAGE,
    epsilon.PAGE,
    beliefs.PAGE,
    versions.PAGE,
    rights.PAGE,
    spec.PAGE,
)
