"""An answer of a release: values alone, for programs (`to_dict`), pandas (`to_frame`) and notebooks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from qblock.tables.html import page, table
from qblock.tables.results import frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Answer:
    """An answer of a release. release: its name; notes: what the person who asked should know; answer: all of it as
    JSON, which `to_dict` reads."""

    columns: ClassVar[tuple[str, ...]] = ()
    """The names of the columns of `rows_shown`."""

    release: str
    notes: tuple[str, ...]
    answer: str = field(repr=False)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """From what the command line prints with --json."""
        return cls(**cls.values(answer), answer=json.dumps(answer))

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The fields, but for the answer itself."""
        return {"release": answer["release"], "notes": tuple(answer.get("notes", answer.get("warnings", ())))}

    @property
    def title(self) -> str:
        """One line for a notebook."""
        return f"{type(self).__name__}: {self.release}"

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        """The rows of the table that stands for it."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """What the command prints with --json."""
        return dict(json.loads(self.answer))

    def to_frame(self) -> pd.DataFrame:
        """The table that stands for it. Imports pandas."""
        return frame(self.columns, self.rows_shown())

    def _repr_html_(self) -> str:
        shown = [table(self.columns, self.rows_shown())] if self.columns else []
        return page(self.title, *shown, *self.notes)
