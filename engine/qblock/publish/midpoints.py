"""The view of a release's rows with one number to compute with for each column that has bounds.

The number of a label is its expected value by `VIEW_spread`, which is computed from the published labels and their
counts alone: nothing new is revealed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qblock.ledger.kept import PublishedColumn
from qblock.publish.helpers import shortened
from qblock.spec import Spec
from qblock.spec.sections import MIDDLE

MIDPOINTS_SAY = (
    "The rows of {view} with one number to compute with for each column that has bounds: the expected value within "
    "the label. It is estimated from the published labels and their rows, and NULL where a label has no finite bounds."
)
MIDDLE_SAYS = (
    "The expected value of {of} within its label, estimated from all published labels; NULL where the label has no "
    "finite bounds."
)


@dataclass(frozen=True)
class Middle:
    """A column of expected values. of: its quasi-identifier; mean: the published column of its means in blocks, which
    go first."""

    name: str
    of: str
    of_dates: bool
    mean: str | None

    @property
    def expression(self) -> str:
        """The mean of the closed cells of a label; a row's open part has no number."""
        mean = "sum(share * middle) / sum(share)"
        # The three engines add days to a date alike.
        return f"DATE '1970-01-01' + CAST(floor({mean}) AS INTEGER)" if self.of_dates else mean


@dataclass(frozen=True)
class Midpoints:
    """What the view shows: the published columns, and the middles after them."""

    published: tuple[str, ...]
    columns: tuple[Middle, ...]

    @property
    def comments(self) -> dict[str, str]:
        return {middle.name: MIDDLE_SAYS.format(of=middle.of) for middle in self.columns}

    def select(
        self,
        rows: str,
        spread: str,
        named: Callable[[str], str],
        literal: Callable[[str], str],
        stored: Callable[[str], str] | None = None,
    ) -> str:
        """The statement of the view.

        Args:
            rows: The table of the version.
            spread: What has the columns of `VIEW_spread`.
            named: A name as the engine quotes it.
            literal: A text as the engine quotes it.
            stored: The column of the table that has a published one, quoted; by default of its own name.
        """
        own = stored or named
        selected = [f"s.{own(name)} AS {named(name)}" for name in self.published]
        joins = []
        for number, middle in enumerate(self.columns):
            expected = f"m{number}.middle"
            if middle.mean is not None:
                expected = f"coalesce(s.{own(middle.mean)}, {expected})"
            selected.append(f"{expected} AS {named(middle.name)}")
            of_labels = (
                f"SELECT label, {middle.expression} AS middle FROM {spread} AS cells "
                f"WHERE column_name = {literal(middle.of)} AND middle IS NOT NULL AND share > 0 GROUP BY label"
            )
            joins.append(f" LEFT JOIN ({of_labels}) AS m{number} ON m{number}.label = s.{own(middle.of)}")
        return f"SELECT {', '.join(selected)} FROM {rows} AS s{''.join(joins)}"


def midpoints_of(spec: Spec, columns: Sequence[PublishedColumn]) -> Midpoints:
    """The columns of the view, from those that are published: a quasi-identifier with bounds has a middle."""
    taken = {column.name.casefold() for column in columns}
    types: dict[str, list[str]] = {}
    means: dict[str, str] = {}
    of = ""
    for column in columns:
        of = column.name if column.role == "quasi_identifier" else of
        if column.role == "bound":
            types.setdefault(of, []).append(column.type.casefold())
        if column.role == "mean":
            means[of] = column.name
    middles = []
    for of, own in types.items():
        name = _free(spec.publish.names.get(f"{of}_{MIDDLE}") or shortened(f"{of}_{MIDDLE}"), taken)
        middles.append(Middle(name, of, any("date" in type_ for type_ in own), means.get(of)))
        taken.add(name.casefold())
    return Midpoints(tuple(column.name for column in columns), tuple(middles))


def _free(name: str, taken: set[str]) -> str:
    while name.casefold() in taken:
        name += "_"
    return name
