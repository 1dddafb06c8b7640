"""What a refusal of versions together says, for the person who must act."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.search.assessment import HELD_BY_ALL
from qblock.versions.changed import Changed
from qblock.versions.gate import Verdict
from qblock.versions.versions import UNPROTECTED


def refusal(
    verdict: Verdict,
    why: Sequence[str] = (),
    changed: Changed | None = None,
    leavers: str = "",
    *,
    by_rows: bool = False,
    of_map: bool = False,
) -> str:
    """The refusal of a joint check, for the person who must act. changed: how many values changed,
    where versions fail for those who know whose; leavers: what is said of people who left (`leavers_way_on`); by_rows:
    whether blocks are split by how many rows somebody has; of_map: whether blocks are the boxes of a recoding map."""
    coarser = "ask for larger boxes (a larger k)" if of_map else "pin a coarser node (search.node)"
    same = "keep the published map (search.node: {version: N})" if of_map else "keep the published node (search.node)"
    models = ", ".join(f"{name} in {n} cells" for name, n in verdict.models)
    if verdict.versions == 1 and by_rows:
        return (
            f"{verdict.failing} of {verdict.cells} groups of people who have as many rows in a block fail, with "
            f"{verdict.rows} people in them ({models}): it may be known how many rows somebody has "
            "(versions.row_counts: known). Nothing is published; give few rows of each person in a view of the source, "
            f"or {coarser}"
        )
    if verdict.versions == 1:  # of people with several rows, whom no model covers in this
        return (
            f"in {verdict.failing} of {verdict.cells} blocks, with {verdict.rows} people in them, there is "
            f"{HELD_BY_ALL}, so that being in such a block reveals it. Nothing is published; {coarser}"
        )
    linked = verdict.mode == "linked"
    how = "to whoever knows whose value changed" if linked else "by people whose value did not change"
    same_cell = ", and whose value changed in the same ones" if linked else ""
    groups = "newcomers, leavers and changed values" if linked else "newcomers and leavers"
    because = f"{changed}. " if changed else ""
    more = f"To explain: {'; '.join(why)}. " if why else ""
    return (
        f"{verdict.versions} versions together tell more than each one alone ({how}): {verdict.failing} of "
        f"{verdict.cells} joint cells fail, with {verdict.rows} people in them ({models}). Joint cells are people who "
        f"look the same in every version ever published{same_cell}. {because}{more}{leavers}Nothing is published; "
        f"{same}, wait until {groups} come in larger groups, or write "
        "`versions: {on_refusal: hold_back}`, with which versions lag behind the source until they pass. What else is "
        f"left is {UNPROTECTED}"
    )
