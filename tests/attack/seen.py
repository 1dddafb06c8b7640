"""What an audience was shown, and the exact attacker who holds all of it.

The attacker knows everybody's quasi-identifiers, who was in the source when, who kept their value, every table that was
ever readable, and how a recode or another type writes the same values. Everything here is in real values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from versions.register import Episode, Register, Row, joint_cells

from attack.world import VALUES


def certain(register: Register) -> list[str]:
    """The people of whom only one value is possible, though some version shows them."""
    diverse = {labels for labels, cell in joint_cells(register).items() if len(set(cell)) > 1}
    left = [
        episode
        for episode in register.episodes
        # Two people of one joint cell who differ could be exchanged: both are uncertain.
        if register.labels(episode.rows) not in diverse and any(row.published for row in episode.rows.values())
    ]
    return [episode.person for episode in left if not _other_value(register, episode)]


def _other_value(register: Register, target: Episode) -> bool:
    """Whether some assignment that fits all tables gives the target another value than the real one."""
    episodes = sorted(register.episodes, key=lambda e: (e.person, e.number) != (target.person, target.number))
    tables = {key: Counter(values) for key, values in register.published.items()}
    keys = [[(v, row.block) for v, row in episode.rows.items() if row.published] for episode in episodes]

    def fits(i: int) -> bool:
        if i == len(episodes):
            return True
        for value in map(str, VALUES):
            if (i == 0 and value == target.value) or any(tables[key][value] < 1 for key in keys[i]):
                continue
            for key in keys[i]:
                tables[key][value] -= 1
            if fits(i + 1):
                return True
            for key in keys[i]:
                tables[key][value] += 1
        return False

    return fits(0)


def register_of(shown: Sequence[Sequence[Row]]) -> Register:
    """The versions that were ever readable, whichever release they are of."""
    return Register(tuple(row for rows in shown for row in rows))
