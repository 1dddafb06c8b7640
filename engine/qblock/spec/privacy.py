"""The `privacy` entries of a spec, built into models through the registry of model classes."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from qblock.errors import ParameterError, choices
from qblock.models import BY_NAME, KAnonymity, Model
from qblock.models.base import Kind, Parameter
from qblock.models.examples import in_words
from qblock.models.multi import check_base
from qblock.spec.document import Document, Path, Scalar
from qblock.spec.fields import (
    NUMBERS,
    TEXTS_OR_NULL,
    Checked,
    check_keys,
    closed_object,
    described,
    exact_number,
    flag_of,
    null_or_text,
    plain_number,
    table_name,
    table_parts,
    text_of,
    whole_number,
)
from qblock.spec.written import flow

EXAMPLES: dict[Kind, Any] = {
    "prior": "uniform",
    "population": {"table": "census.people"},
    "predicates": "singletons",
}
"""Of the kinds that a spec writes in forms of its own."""
GUARD_KEYS = ("table", "entity", "value", "group")
GUARDED = "guarded"
"""What the parameter `predicates` of a model is where a table lists them per person."""
PRIORS = ("uniform", "table")
PRIOR_FORMS = "uniform, table, {values: {VALUE: WEIGHT}}, {from_table: TABLE, column: COLUMN, where: {COLUMN: VALUE}}"


@dataclass(frozen=True)
class PriorValues:
    """Weights of the sensitive values (None is NULL), in any scale; a value that is not listed has weight 0."""

    weights: tuple[tuple[str | None, int | Fraction], ...]
    kind = "values"


@dataclass(frozen=True)
class PriorTable:
    """The counts of a column's values in another table, in its rows where each column of `where` has that value."""

    table: str
    column: str
    where: tuple[tuple[str, str | None], ...] = ()
    kind = "from_table"

    @property
    def parts(self) -> tuple[str, ...]:
        return table_parts(self.table)


Prior = PriorValues | PriorTable


@dataclass(frozen=True)
class GuardTable:
    """A table of sensitive predicates: one row for each person (`entity`, as the spec's) and value to be guarded.

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


@dataclass(frozen=True)
class Requirement:
    """One entry of `privacy`: a model with its parameters, for the sensitive attributes named.

    sensitive: none for a model that ignores them; several for the multi-attribute form. models: the model of each
    sensitive attribute, in that order (they differ where a parameter such as `allowed` is given per attribute); for
    a model without one, the model itself. prior: where the model's prior is `values` or `from_table`. guards: where
    its predicates are those of a table. index, line: its number in the list (from 0) and its line in the file. groups:
    whether it asks k groups of each block, too (`Spec.groups`). of_rows: whether it is not known who a row is about
    (`Spec.entity`), which its meaning alone tells.
    """

    model: Model
    sensitive: tuple[str, ...] = ()
    index: int = 0
    line: int = 0
    models: tuple[Model, ...] = ()
    prior: Prior | None = None
    guards: GuardTable | None = None
    groups: bool = False
    of_rows: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not self.models:
            object.__setattr__(self, "models", (self.model,) * max(1, len(self.sensitive)))

    @property
    def meaning(self) -> str:
        """What it asks, in plain words."""
        return in_words(self.model, self.sensitive, groups=self.groups, rows=self.of_rows)


def parameters(model: type[Model]) -> dict[str, Parameter]:
    """The parameters of a model by name, in the order in which it declares them."""
    return {parameter.name: parameter for parameter in model.about.parameters}


def required(model: type[Model]) -> list[str]:
    """The parameters that a spec must give: those without a default, and a population, although a model can do without
    (its counts may be given)."""
    fields = dataclasses.fields(model)
    return [field.name for field in fields if field.default is dataclasses.MISSING or field.name == "population"]


def requirements(document: Document, sensitives: list[str]) -> tuple[Requirement, ...]:
    """The valid entries of `privacy`; what is wrong is recorded in the document."""
    root: Path = ("privacy",)
    entries = document.data.get("privacy")
    if entries is None:
        document.wrong(root, "there is no privacy model; write a list of models: `- k_anonymity: {k: 4}`")
        return ()
    if not isinstance(entries, list) or not entries:
        document.wrong(root, "{it} is not a list of models; write one or more: `- k_anonymity: {k: 4}`")
        return ()
    built = [_entry(document, (*root, index), entry, sensitives) for index, entry in enumerate(entries)]
    return tuple(requirement for requirement in built if requirement is not None)


def _entry(document: Document, path: Path, entry: Any, sensitives: list[str]) -> Requirement | None:
    if not isinstance(entry, dict) or len(entry) != 1:
        document.wrong(path, "{it} is not one model with its parameters; write `- k_anonymity: {k: 4}`")
        return None
    ((name, given),) = entry.items()
    place = (*path, name)
    model = BY_NAME.get(name)
    if model is None:
        document.wrong(place, f"{name} is not a model; {choices(BY_NAME, name)}")
        return None
    if given is not None and not isinstance(given, dict):
        document.wrong(place, "{it} is not a mapping of parameters; write " + example(model))
        return None
    given = given or {}
    count = len(document.problems)
    sensitive = _sensitive(document, place, model, given, sensitives)
    values = _values(document, place, model, given, sensitive)
    if len(document.problems) > count:
        return None
    prior, guards = values.get("prior"), values.get("predicates")
    if isinstance(prior, Prior):
        values["prior"] = prior.kind
    if isinstance(guards, GuardTable):
        values["predicates"] = GUARDED
    attributes = sensitive or (None,)
    built = [_build(document, place, model, values, attribute, len(sensitive) > 1) for attribute in attributes]
    models = tuple(item for item in built if item is not None)
    if len(models) < len(built):
        return None
    return Requirement(
        models[0],
        sensitive,
        index=int(path[1] or 0),
        line=document.place(place)[0],
        models=models,
        prior=prior if isinstance(prior, Prior) else None,
        guards=guards if isinstance(guards, GuardTable) else None,
        groups=document.data.get("groups") is not None and isinstance(models[0], KAnonymity) and not models[0].needs,
        of_rows=document.data.get("entity") is None,
    )


def _sensitive(
    document: Document, place: Path, model: type[Model], given: dict[str, Any], sensitives: list[str]
) -> tuple[str, ...]:
    path = (*place, "sensitive")
    raw = given.get("sensitive")
    if not model.about.uses_sensitive:
        if "sensitive" in given:
            document.wrong(path, f"{model.name} does not use a sensitive attribute; remove this key")
        return ()
    if raw is None:
        if not sensitives:
            document.wrong(place, "no column is sensitive; give a column that role")
        elif len(sensitives) > 1:
            document.wrong(
                place, f"there are several sensitive attributes; add `sensitive: NAME`; {choices(sensitives)}"
            )
        return tuple(sensitives[:1])
    if isinstance(raw, list) and len(raw) < 2:
        document.wrong(path, "a list asks for the multi-attribute form, of two names or more; write `sensitive: NAME`")
        return ()
    names: list[str] = []
    for index, item in enumerate(raw if isinstance(raw, list) else [raw]):
        where = (*path, index) if isinstance(raw, list) else path
        name = item.text if isinstance(item, Scalar) else item
        if not isinstance(name, str) or name not in sensitives:
            document.wrong(where, "{it} is not a sensitive attribute; " + choices(sensitives or ["(none)"], name))
        elif name in names:
            document.wrong(where, "{it} appears twice in the list; remove one")
        else:
            names.append(name)
    return tuple(names)


def _values(
    document: Document, place: Path, model: type[Model], given: dict[str, Any], sensitive: tuple[str, ...]
) -> dict[str, Any]:
    known, needed = parameters(model), required(model)
    defaults = {field.name: field.default for field in dataclasses.fields(model)}
    valid = [*known, "sensitive"] if model.about.uses_sensitive else list(known)
    values: dict[str, Any] = {}
    for key, raw in given.items():
        if key == "sensitive":
            continue
        path = (*place, key)
        if key not in known:
            document.wrong(path, f"{key} is not a parameter of {model.name}; {choices(valid, key)}")
            continue
        try:
            if known[key].per_attribute and len(sensitive) > 1 and isinstance(raw, dict):
                check_keys(raw, sensitive, "one of the attributes named here")
                values[key] = {name: _texts(raw.get(name, [])) for name in sensitive}
            elif raw is None and defaults[key] is None and key not in needed:
                values[key] = None
            else:
                values[key] = read_parameter(known[key], raw)
        except ValueError as error:
            document.wrong(path, str(error))
    missing = [name for name in needed if name not in given]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        document.wrong(place, f"{', '.join(missing)} {are} missing; write {example(model)}")
    return values


def read_parameter(declared: Parameter, raw: Any) -> Any:
    """The value of the file as the kind that a model declares; of a prior or of predicates also where they are from.
    Raises ValueError."""
    if declared.kind != "choice":
        return KINDS[declared.kind].read(raw)
    given = raw.text if isinstance(raw, Scalar) else raw
    if given not in declared.valid:  # type: ignore[operator]
        raise ValueError("{it} is not valid; " + choices(declared.valid, given))  # type: ignore[arg-type]
    return given


def _texts(raw: Any) -> tuple[str | None, ...]:
    if not isinstance(raw, list):
        raise ValueError("{it} is not a list; write one: [a, b]")
    return tuple(null_or_text(item) for item in raw)


def _population(raw: Any) -> str:
    if isinstance(raw, dict) and list(raw) != ["table"]:
        raise ValueError("{it} does not name a table; write {table: schema.table}")
    return table_name(raw["table"] if isinstance(raw, dict) else raw)


def _predicates(raw: Any) -> str | tuple[tuple[str | None, ...], ...] | GuardTable:
    if isinstance(raw, list):
        return tuple(map(_texts, raw))
    if not isinstance(raw, dict):
        if raw == GUARDED:
            raise ValueError("{it} needs its table; write {table: TABLE, entity: COLUMN, value: COLUMN}")
        return text_of(raw)
    check_keys(raw, GUARD_KEYS, "a key of predicates")
    missing = [key for key in GUARD_KEYS[:3] if key not in raw]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing; write {{table: TABLE, entity: COLUMN, value: COLUMN}}")
    return GuardTable(**{key: text_of(value) for key, value in raw.items()} | {"table": table_name(raw["table"])})


def _build(
    document: Document, place: Path, model: type[Model], values: dict[str, Any], attribute: str | None, in_list: bool
) -> Model | None:
    known = parameters(model)
    mine = {
        key: value[attribute] if known[key].per_attribute and isinstance(value, dict) else value
        for key, value in values.items()
    }
    try:
        built = model(**mine)
        if in_list:
            check_base(built)
        return built
    except ParameterError as error:
        message = str(error).removeprefix(f"{model.name}: ")
        named = re.match(r"(\w+)\b", message)
        path = (*place, named[1]) if named and named[1] in values else place
        document.wrong(path, message)
        return None


def example(model: type[Model]) -> str:
    """How an entry of this model is written: `name: {parameters}`, with a valid value of each."""
    known = parameters(model)
    return f"`{model.name}: {flow({name: example_of(known[name]) for name in required(model)})}`"


def example_of(declared: Parameter) -> Any:
    """A valid value of a parameter as a spec has it."""
    value = EXAMPLES.get(declared.kind, declared.example)
    if isinstance(declared.valid, tuple):
        return value if value in declared.valid else declared.valid[0]
    if isinstance(value, tuple | list):
        return [str(item) for item in value]
    if isinstance(value, Fraction):
        return plain_number(value)
    return value


def read_prior(raw: Any) -> Prior | str:
    """uniform, table, or one of the two mappings. Raises ValueError."""
    if not isinstance(raw, dict):
        if raw not in PRIORS:
            raise ValueError(f"{{it}} is not a prior; valid: {PRIOR_FORMS}")
        return str(raw)
    if list(raw) == ["values"]:
        return PriorValues(_weights(raw["values"]))
    valid = ("from_table", "column", "where") if "from_table" in raw else ("values", "from_table")
    check_keys(raw, valid, "a key of a prior")
    if not {"from_table", "column"} <= set(raw):
        raise ValueError(f"{{it}} is not a prior; valid: {PRIOR_FORMS}")
    where = raw.get("where")
    if where is not None and not isinstance(where, dict):
        raise ValueError("`where` is not a mapping; write the value of each column: {year: 2024}")
    pairs = tuple((column, null_or_text(value)) for column, value in (where or {}).items())
    return PriorTable(table_name(raw["from_table"]), text_of(raw["column"]), pairs)


def _weights(raw: Any) -> tuple[tuple[str | None, int | Fraction], ...]:
    if not isinstance(raw, dict) or not raw:
        raise ValueError("`values` is not a mapping; write a weight for each value: {flu: 0.7, cancer: 0.3}")
    weights = []
    for value, weight in raw.items():
        try:
            weights.append((value, exact_number(weight)))
        except ValueError:
            raise ValueError(f"the weight of {'null' if value is None else value} is not a number") from None
    if min(weight for _, weight in weights) < 0 or not any(weight for _, weight in weights):
        raise ValueError("the weights are out of range; valid: 0 or more, and one of them above 0")
    return tuple(weights)


TABLE = {"type": "string", "minLength": 1}
TEXT_LIST = {"type": "array", "items": TEXTS_OR_NULL}
WEIGHTS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number", "minimum": 0}}
WHERE = {"type": "object", "additionalProperties": TEXTS_OR_NULL}
POPULATION = closed_object(
    "table", table=described(TABLE, "A table of the whole population, with the quasi-identifiers.", "census.people")
)
VALUES = closed_object(
    "values", values=described(WEIGHTS, "The weight of each sensitive value.", {"flu": 3, "cancer": 1})
)
FROM_TABLE = closed_object(
    *("from_table", "column"),
    from_table=described(TABLE, "A table whose rows are the prior.", "census.people"),
    column=described(TABLE, "Its column of sensitive values.", "diagnosis"),
    where=described(WHERE, "The rows that count, by equal values.", {"year": 2025}),
)
GUARDS = closed_object(
    *GUARD_KEYS[:3],
    table=described(TABLE, "A table of statements that the attacker may believe.", "clinic.guards"),
    entity=described(TABLE, "Its column that says who it is about.", "patient_id"),
    value=described(TABLE, "Its column of sensitive values.", "diagnosis"),
    group=described(TABLE, "Its column that groups values into one statement.", "statement"),
)
PREDICATES = [
    {"enum": ["singletons", "taxonomy", "negative"]},
    {"type": "array", "minItems": 1, "items": TEXT_LIST},
    GUARDS,
]
KINDS: dict[Kind, Checked] = {
    "whole": Checked(whole_number, {"type": "integer"}),
    "rational": Checked(exact_number, NUMBERS),
    "flag": Checked(flag_of, {"type": "boolean"}),
    "values": Checked(_texts, TEXT_LIST),
    "population": Checked(_population, {"anyOf": [TABLE, POPULATION]}),
    "prior": Checked(read_prior, {"anyOf": [{"enum": list(PRIORS)}, VALUES, FROM_TABLE]}),
    "predicates": Checked(_predicates, {"anyOf": PREDICATES}),
}
"""How a parameter of each kind is read, and its JSON Schema; a choice is one of its words."""
