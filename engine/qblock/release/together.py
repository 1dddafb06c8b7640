"""The versions of a release, and of what its readers may hold besides, checked together within a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qblock.errors import Refused
from qblock.release.joint.book import open_book, prepare
from qblock.release.joint.crosswalk import candidate, discard, record, recorded
from qblock.release.joint.gate import Verdict, check, unchanged
from qblock.search.task import Assessment
from qblock.spec import Spec
from qblock.warehouse.protocol import Session

if TYPE_CHECKING:
    from qblock.release.run import Run


def applies(spec: Spec) -> bool:
    """Whether versions are checked together: the spec says who a row is about, and does not waive it."""
    return spec.entity is not None and spec.count == "rows" and spec.versions.joint != "none"


def make_ready(run: Run) -> None:
    """Make the crosswalk where it is missing, before the snapshot, which would not see it otherwise."""
    if applies(run.spec):
        prepare(run.place)


def check_together(run: Run, chosen: Assessment) -> Verdict:
    """Check a node together with all that was ever shown, and record it in the crosswalk when it passes.

    Recorded before anything is staged, so that nothing is ever shown that is not in it; what an earlier run recorded
    and never showed is taken out. Raises Refused, saying how many cells fail and why, never whose.
    """
    release, shown = run.spec.release, set(run.published_digests)
    with open_book(run.place, run.task.source.session) as book:
        for version in recorded(book, release):
            if version.key.version not in shown:
                discard(book, version.key)
        missing = shown - {version.key.version for version in recorded(book, release)}
        if missing:
            raise Refused(
                f"version {min(missing)} of release {release} was published without a crosswalk (without `entity`, or "
                "with `versions: {joint: none}`), so no later version can be checked together with it; publish under "
                "another release name, or write `versions: {joint: none}`"
            )
        found = candidate(book, run.task, chosen, run.version)
        verdict = check(book, run.spec, run.kept.references, found)
        if not verdict.passed:
            raise Refused(refusal(run.spec, verdict))
        record(book, found)
    return verdict


def still_complete(run: Run, session: Session) -> bool:
    """Whether no other release of the audience recorded a version since the check, asked when publishing."""
    if run.together is None:
        return True
    with open_book(run.place, session) as book:
        return unchanged(book, run.spec, run.together)


def refusal(spec: Spec, verdict: Verdict) -> str:
    """What a refused joint check says to the person who must act."""
    models = ", ".join(f"{name} in {n} cells" for name, n in verdict.models)
    how = "with rows that can be linked" if verdict.mode == "linked" else "by people whose value did not change"
    return (
        f"{verdict.versions} versions together tell more than each one alone ({how}): of {verdict.cells} joint cells "
        f"{verdict.failing} fail, with {verdict.rows} people in them ({models}). Joint cells are people who look the "
        "same in every version ever published. Nothing is published; keep the published node (search.node), wait until "
        "newcomers and leavers come in larger groups, or write `versions: {on_refusal: pin}`"
    )
