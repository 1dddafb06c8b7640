"""Levels as people name them: `as it is (33 values)`, `in ranges of 5`, `by year`, `suppressed to *`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from fractions import Fraction

from qblock.canonical import decimal_text
from qblock.errors import QblockError
from qblock.hierarchy import TOP, Hierarchy, from_csv
from qblock.hierarchy.builders import outer_cuts
from qblock.spec import Spec
from qblock.spec.sources import (
    CsvFile,
    Cuts,
    Dates,
    Digits,
    DimensionTable,
    Edges,
    HierarchySource,
    Ranges,
    Suppress,
    TaxonomyLevel,
)

SUPPRESSED = "suppressed to *"
AS_IT_IS = "as it is"


def published_in_words(spec: Spec, name: str) -> str | None:
    """What readers see of a sensitive attribute that is published coarser than it is in the source (`publish_as`); None
    where it is not."""
    attribute = spec.attributes[name]
    published, taxonomy = attribute.publish_as, attribute.taxonomy
    if published is None:
        return None
    if isinstance(published, TaxonomyLevel):
        if isinstance(taxonomy, DimensionTable) and published.level < len(taxonomy.levels):
            return f"by {taxonomy.levels[published.level]}"
        return f"by level {published.level} of its taxonomy"
    steps = _steps(published)
    assert steps is not None  # of ranges
    return steps[0]


DIFFER_BY = {"case": "case", "space": "spaces", "unicode": "composed letters"}


def alike_in_words(spec: Spec, name: str) -> str | None:
    """That spellings of a column are made one (`same`); None where they are not."""
    parts = [DIFFER_BY[part] for part in spec.attributes[name].same]
    if not parts:
        return None
    named = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    return f"values that differ by {named} alone being one"


def levels_in_words(spec: Spec, hierarchies: Iterable[Hierarchy]) -> dict[str, tuple[str, ...]]:
    """For each quasi-identifier what readers see at each level, with how many labels the hierarchy has there.

    Counts of labels and names of levels alone: no label is named.
    """
    words = {}
    for hierarchy in hierarchies:
        of_levels = []
        for level in range(hierarchy.height + 1):
            labels = _labels(hierarchy, level)
            of_levels.append(_counted(_of_hierarchy(spec, hierarchy, level), labels))
        words[hierarchy.attribute] = tuple(of_levels)
    return words


def _labels(hierarchy: Hierarchy, level: int) -> int:
    """How many labels there are besides `*`."""
    return len(set(hierarchy.columns[level].distinct.to_pylist()) - {TOP, None})


def _of_hierarchy(spec: Spec, hierarchy: Hierarchy, level: int) -> str:
    if not _labels(hierarchy, level):
        return SUPPRESSED
    return named(spec.attributes[hierarchy.attribute].hierarchy, level, hierarchy.level_names)


def node_in_words(
    spec: Spec, levels: Mapping[str, int], values: Mapping[str, int] | None = None
) -> tuple[tuple[str, str], ...]:
    """What readers see of each quasi-identifier at a node, as far as the spec and its files tell; nothing is asked of a
    database, and a file that cannot be read costs no more than the name of its level. values: how many labels besides
    `*` the published rows have of each, where that was counted."""
    words = []
    for name, level in levels.items():
        attribute = spec.attributes.get(name)
        said = _of_spec(spec, name, None if attribute is None else attribute.hierarchy, level)
        if values is not None and name in values:
            said = _counted(said, values[name]) if values[name] else SUPPRESSED
        words.append((name, said))
    return tuple(words)


def _counted(said: str, labels: int) -> str:
    return said if said == SUPPRESSED else f"{said} ({labels:,} value{'' if labels == 1 else 's'})"


def _of_spec(spec: Spec, name: str, form: HierarchySource | None, level: int) -> str:
    if isinstance(form, CsvFile):
        file = spec.file(form)
        with suppress(QblockError, OSError):
            if file is not None:
                hierarchy = from_csv(file, name, form.layout)
                if level <= hierarchy.height:
                    return _of_hierarchy(spec, hierarchy, level)
        return AS_IT_IS if not level else f"level {level}"
    return named(form, level, form.levels if isinstance(form, DimensionTable) else ())


def named(form: HierarchySource | None, level: int, names: Iterable[str]) -> str:
    """What a level shows. names: of the levels, where they are stated."""
    if not level:
        return _finest(form)
    steps = _steps(form)
    if steps is None:
        leaf, *above = tuple(names) or ("",)
        # A name that only numbers the level says nothing more.
        steps = [f"at level {i}" if name == f"{leaf}_{i}" else f"by {name}" for i, name in enumerate(above, 1)]
    return steps[level - 1] if level <= len(steps) else SUPPRESSED


def _finest(form: HierarchySource | None) -> str:
    step = getattr(form, "finest", None)
    if step is None:
        return AS_IT_IS
    return f"by {step}" if isinstance(step, str) else f"in ranges of {decimal_text(step)}"


def _steps(form: HierarchySource | None) -> list[str] | None:
    """The levels above the leaves and below `*`; None where the names of levels say them."""
    if isinstance(form, Suppress):
        return []
    if isinstance(form, Digits):
        end = "first" if form.from_ == "right" else "last"
        kept = [f"{end} {n} of" if n > 1 else f"{end} of" for n in range(form.digits - 1, 0, -1)]
        return [f"by the {which} {form.digits} digits" for which in kept]
    if isinstance(form, Ranges):
        return [f"in ranges of {decimal_text(width)}{_between(form, width)}" for width in form.ranges]
    if isinstance(form, Edges):
        return [f"in ranges from {', '.join(decimal_text(Fraction(edge)) for edge in form.edges)} on"]
    if isinstance(form, Dates):
        return [f"by {unit.replace('_', ' ').replace('iso', 'ISO')}" for unit in form.dates]
    if isinstance(form, Cuts):
        grid = form.cuts.grid
        unit = " days" if grid.of_dates else ""
        return [f"in ranges of {decimal_text(width)}{unit}" for width in grid.widths()]
    return None


def _between(form: Ranges, width: int | Fraction) -> str:
    """Where ranges of a width begin and end; beyond are open labels."""
    ends = outer_cuts(width, form.start, form.from_, form.to)
    low, high = (None if cut is None else decimal_text(Fraction(form.start + cut * width)) for cut in ends)
    if low == high:
        return "" if low is None else f", below {low} or from there on"
    if low is None or high is None:
        return f" from {low} on" if high is None else f" up to {high}"
    return f" from {low} to {high}"
