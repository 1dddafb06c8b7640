"""Sensitive predicates that a table lists per person (epsilon_privacy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qblock.spec.fields import choices, table_parts, text_of

KEYS = ("table", "entity", "value", "group")
KIND = "guarded"
"""What the model's parameter `predicates` then is."""


@dataclass(frozen=True)
class GuardTable:
    """One row for each person (`entity`, as the spec's entity) and value that the person wants guarded.

    group: the column whose values tell a person's sets of values apart; without it each value is a set of its own.
    """

    table: str
    entity: str
    value: str
    group: str | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return table_parts(self.table)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.entity, self.group, self.value) if name is not None)


def read_guards(raw: dict[str, Any]) -> GuardTable:
    """The mapping that `predicates` may be. Raises ValueError."""
    unknown = [key for key in raw if key not in KEYS]
    if unknown:
        raise ValueError(f"{unknown[0]} is not a key of predicates; {choices(KEYS, unknown[0])}")
    missing = [key for key in KEYS[:3] if key not in raw]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing; write {{table: TABLE, entity: COLUMN, value: COLUMN}}")
    given = {key: text_of(value) for key, value in raw.items()}
    table_parts(given["table"])
    return GuardTable(**given)
