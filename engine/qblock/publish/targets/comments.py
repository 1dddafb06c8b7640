"""What a view and its columns say about themselves, to whoever reads them: what holds for every version."""

from __future__ import annotations

from collections.abc import Sequence

from qblock.ledger.kept import PublishedColumn
from qblock.publish.helpers import names
from qblock.spec import Spec

RELEASED = "Release {release}, anonymized by qblock."
"""How the comment of a release's view begins."""
SAYS = {
    "quasi_identifier": "Quasi-identifier: a label of its hierarchy, `*` where it is hidden; which level it has, and "
    "how to filter it: {columns}.",
    "bound": "Bound of the label of {of} ({end}); infinite where the label is open or hidden, so that no filter drops "
    "its rows silently.",
    "people": "How many people the rows of its q*-block are about, the same in each of them: add it up over {blocks}, "
    "not over rows.",
    "sensitive": "Sensitive attribute: as it is in the source; what is guaranteed of it: {guarantees}.",
    "insensitive": "Published as it is in the source.",
}
ENDS = {
    "low": "low <= value < high",
    "high": "low <= value < high",
    "from": "from <= value < until",
    "until": "from <= value < until",
    "range": "the value lies in it",
}


def view_comment(spec: Spec) -> str:
    """The comment of the view."""
    named = names(spec.view, spec.publish.names)
    return (
        f"{RELEASED.format(release=spec.release)} What each column means and how to filter it: {named['columns']}; "
        f"the labels: {named['levels']}; what is guaranteed: {named['guarantees']}; which version this is: "
        f"{named['version']}. Rows of the source may be missing, and a row need not be one individual."
    )


def column_comments(spec: Spec, columns: Sequence[PublishedColumn]) -> dict[str, str]:
    """The comment of each published column."""
    named = names(spec.view, spec.publish.names)
    defaults = {name: default for default, name in spec.publish.names.items()}
    comments, of = {}, ""
    for column in columns:
        of = of if column.role == "bound" else column.name
        end = ENDS.get(defaults.get(column.name, column.name).rpartition("_")[2], "")
        comments[column.name] = SAYS[column.role].format(
            columns=named["columns"], blocks=named["blocks"], guarantees=named["guarantees"], of=of, end=end
        )
    return comments
