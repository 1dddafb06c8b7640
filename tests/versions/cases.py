"""Small scenarios of our own, each with what J1 and J1-linked say: a lone checkout tests the same rules."""

from __future__ import annotations

from dataclasses import dataclass

from .register import Register, Row


@dataclass(frozen=True)
class Case:
    """versions: for each version `block: values`, with a person for each letter position; see `register`."""

    name: str
    versions: tuple[str, ...]
    j1: bool
    linked: bool

    @property
    def register(self) -> Register:
        """Each version is a text `person:block:value ...`; an exclamation mark after the block: suppressed."""
        rows = []
        for number, text in enumerate(self.versions, 1):
            for item in text.split():
                person, block, value = item.split(":")
                rows.append(Row(person, number, block.rstrip("!"), value, not block.endswith("!")))
        return Register(tuple(rows))


def cube() -> tuple[str, ...]:
    """Eight persons, three releases by one attribute each; any two of them are harmless together."""
    values = dict(zip(("000", "001", "010", "011", "100", "101", "110", "111"), "xbaxcxxa", strict=True))
    return tuple(" ".join(f"p{p}:{axis}{p[i]}:{v}" for p, v in values.items()) for i, axis in enumerate("XYZ"))


CASES = (
    Case("nothing changes", ("p:q:a r:q:b", "p:q:a r:q:b"), True, True),
    Case("a diverse pair of newcomers", ("p:q:a r:q:b", "p:q:a r:q:b t:q:a u:q:c"), True, True),
    Case("newcomers with one value", ("p:q:a r:q:b", "p:q:a r:q:b t:q:a u:q:a"), False, False),
    Case("leavers with one value", ("p:q:b r:q:c t:q:a u:q:a", "p:q:b r:q:c"), False, False),
    Case("a lone newcomer", ("p:q:a r:q:b", "p:q:a r:q:b t:q:c"), False, False),
    Case("a lone mover", ("p:g:a r:g:b s:g:a t:h:a u:h:b", "p:g:a r:g:b s:h:a t:h:a u:h:b"), False, False),
    Case("movers with two values", ("p:g:a r:g:b s:g:a t:g:b", "p:g:a r:g:b s:h:a t:h:b"), True, True),
    Case("two nodes that cross", ("p:A:a r:A:b s:B:b t:B:a", "p:C:a r:D:b s:C:b t:D:a"), False, False),
    Case("pairs of versions pass, the three do not", cube(), False, False),
    Case("one value changes", ("p:q:a r:q:b s:q:a t:q:c", "p:q:a r:q:b s:q:b t:q:c"), False, False),
    Case("all change and one comes", ("p:q:b s:q:a t:q:a", "p:q:a n:q:a s:q:b t:q:b"), True, False),
    Case("all change", ("p:q:b r:q:a", "p:q:a r:q:c"), True, True),
    Case(
        "a block failed for its values",
        ("p0:r!:b p1:s!:a p2:s!:a p3:u:b p4:u:a", "p0:*:b p1:*:a p2:*:a p3:*:b p4:*:a"),
        False,
        False,
    ),
    Case("small blocks failed for their size", ("p:g!:a r:h!:b s:u:a t:u:b", "p:*:a r:*:b s:*:a t:*:b"), True, True),
    Case("absent once with the same value", ("p:q:a r:q:b", "s:q:a t:q:b", "p:q:a r:q:b s:q:a t:q:b"), True, True),
    Case("a value that comes back", ("p:q:a r:q:b", "p:q:b r:q:a", "p:q:a r:q:b"), True, True),
)
