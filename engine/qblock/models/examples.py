"""A model made from what its class declares; what one means in words; and the table of all models as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any

from qblock.blocks import Reference
from qblock.canonical import decimal_text
from qblock.models import REGISTRY
from qblock.models.anonymity import known_in_words
from qblock.models.base import Bound, Model, Setting, parameters_of


def required(model: type[Model]) -> tuple[str, ...]:
    """The names of the parameters without a default."""
    return tuple(f.name for f in fields(model) if f.default is MISSING and f.default_factory is MISSING)


def example(model: type[Model], **given: Any) -> Model:
    """A model of this class with the parameters given, the required ones that are not given as in their examples."""
    needed = required(model)
    parameters = {p.name: p.example for p in model.about.parameters if p.name in needed}
    return model(**{**parameters, **given})


def in_setting(model: type[Model], setting: Setting, reference: Reference) -> Model:
    """A model of this class as `audit` and `compare` compute it for a sensitive attribute unasked."""
    given = {name: of(reference) if callable(of) else of for name, of in setting.parameters.items()}
    exact = {p.name for p in model.about.parameters if p.kind == "rational"}
    return example(model, **{name: Fraction(v) if name in exact else v for name, v in given.items()})


OF_ROWS = {
    "everybody is hidden among at least {k} people who": "each row is hidden among at least {k} rows that",
    "everybody looks": "each row looks",
    "people who look the same": "rows that look the same",
}
"""What a meaning says of a table that does not tell whose a row is."""


def in_words(model: Model, sensitive: Iterable[str] = (), *, groups: bool = False, rows: bool = False) -> str:
    """What a model asks, in plain words (About.meaning). groups: of k-anonymity, whether of so many groups, too; rows:
    whether it is not known who a row is about, so that rows are spoken of instead of people."""
    given = {n: decimal_text(v) if isinstance(v, Fraction) else v for n, v in parameters_of(model).items()}
    more = f", of at least {given['k']} households or other groups" if groups else known_in_words(model)
    meaning = model.about.meaning
    for people, instead in OF_ROWS.items() if rows else ():
        meaning = meaning.replace(people, instead)
    return meaning.format(**given, sensitive=" and ".join(sensitive)) + more


def markdown() -> str:
    """One row for each model of the registry."""
    lines = [
        "| model | parameters | a block passes when | source | coarser stays safe | ... with suppression | tightest |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in REGISTRY:
        instance = example(model)
        flags = instance.monotone
        names = ", ".join(f.name if f.default is MISSING else f"[{f.name}]" for f in fields(model))
        cells = [
            f"`{model.name}`",
            names,
            model.about.condition.replace("|", "\\|"),
            model.about.citation,
            _yes(flags.generalization),
            _yes(flags.suppression),
            ", ".join(_bound(bound) for bound in model.about.bounds),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _bound(bound: Bound) -> str:
    side = "least" if bound.stricter == "larger" else "greatest"
    return f"{side} {bound.parameter}" + ("" if bound.attained else " (not attained)")
