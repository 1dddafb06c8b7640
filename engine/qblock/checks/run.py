"""The findings about a source, worst first."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING

import sqlalchemy as sa

from qblock.checks import values
from qblock.checks.dependencies import Dependency, dependencies
from qblock.checks.groups import one_groups
from qblock.checks.history import stored_times, superseded
from qblock.checks.skew import MOST_SHARE, Excluded, MapGroups, NodeGroups, PublishedGroups, excluded, one_valued
from qblock.checks.volatile import volatile
from qblock.engines.tables import TableName
from qblock.engines.values import NUMERIC
from qblock.errors import Refused, counted
from qblock.lattice import Node
from qblock.results.check import Finding, SpecChecked, unsafe
from qblock.search.assessment import Assessment
from qblock.search.nodes import pinned_node
from qblock.search.result import SearchResult
from qblock.search.run import open_task
from qblock.search.task import Task
from qblock.spec import Spec
from qblock.spec.accepted import CheckName
from qblock.spellings import PARTS

if TYPE_CHECKING:
    from qblock.search.boxes.recoded import Recoded

WHOLE = re.compile("-?[0-9]+")
LEAST_UNCOVERED = 0.1
"""The share of rows whose values a hierarchy lacks from which it is more than a few typing errors."""


def check_spec(spec: Spec, today: date, *, name_values: bool) -> SpecChecked:
    """The answer of `check`: the findings about the pinned node, else about any, and what there is to note."""
    with open_task(spec, name_values=name_values) as task:
        node = None if spec.pinned is None else pinned_node(task, spec.pinned)
        findings = check(task, node, today)
        fields = {
            "release": spec.release,
            "rows": task.source.rows,
            "checks": findings,
            "notes": [*unanswered(spec, findings), *unused(task)],
        }
    return SpecChecked.model_validate(fields)


def check(task: Task, node: Node | None, today: date) -> list[Finding]:
    """What a source's values say about its spec. node: what is published, where that is known; today: what lies behind
    it is in the future."""
    told = (_determines(task.spec, dependency) for dependency in dependencies(task, node))
    seen = None if node is None else task.assess(node)
    return _findings(task, told, seen, today)


def check_chosen(task: Task, result: SearchResult, today: date) -> list[Finding]:
    """The same of what a search chose. task: of the source as it is. Of one that a map which is kept recodes, nothing
    is said of what its labels hide: that was asked when the map was found."""
    assert result.chosen is not None
    if task.source.recoding is not None:
        return _findings(task, (), result.chosen, today)
    return _findings(task, _told(task, result), result.recoded or result.chosen, today)


def check_kept(task: Task, today: date) -> list[Finding]:
    """The same of a later version with the map of the one before, whose labels are not asked about again."""
    return _findings(task, (), None, today)


def _findings(task: Task, told: Iterable[Finding], seen: Assessment | Recoded | None, today: date) -> list[Finding]:
    """seen: what readers would see, where that is known."""
    findings = [*_single_rows(task), *told, *_volatile(task), *_history(task), *_uncovered(task)]
    for column in values.columns(task):
        findings += _of_column(task.spec, column, today)
    if isinstance(seen, Assessment):
        findings += _skewed(task, NodeGroups(task, seen), published=seen.satisfied)
        findings += [] if task.source.recoding is not None else _grouped(task, seen.node)
    elif seen is not None:
        findings += _skewed(task, MapGroups(seen), published=True)
    return sorted(_answered(task.spec, findings), key=lambda f: (f.because is not None, f.severity != "unsafe"))


def nearly_unique(task: Task) -> list[str]:
    """The insensitive columns with fewer than 2 rows for each value on average."""
    source, names = task.source, task.spec.insensitives
    if not names:
        return []
    counts = [sa.func.count(sa.distinct(source.expression(name))).label(f"n{i}") for i, name in enumerate(names)]
    row = source.session.fetch(sa.select(*counts).select_from(source.relation)).to_pylist()[0]
    return [name for i, name in enumerate(names) if 2 * row[f"n{i}"] > source.rows]


def _single_rows(task: Task) -> Iterator[Finding]:
    for name in nearly_unique(task):
        yield Finding(
            check="single_rows",
            columns=(name,),
            severity="unsafe",
            figure={},
            sentence=f"column {name} would be published as is, and its values nearly single out rows (on average "
            "fewer than 2 rows have the same value)",
            remedy="make it identifying, or a quasi_identifier",
        )


def _determines(spec: Spec, told: Dependency) -> Finding:
    column, of = told.column, told.of
    remaining = "one value remains" if told.left < 1.05 else f"{told.left:.1f} values remain"
    how = f", which the table computes of {of}," if told.computed else ""
    sentence = (
        f"{column}{how} is published as it is and tells {of}: of {told.without:.1f} equally common values {remaining} "
        f"for readers of both. Groups are then as small as {counted(told.k, 'row')}, whatever k is promised"
    )
    role = f"attributes: {{{column}: {{role: quasi_identifier, ...}}}}"
    own = f"leave {column} or {of} out" if column in spec.sensitives else role
    remedy = f'{own}; or accept: [{{check: determines, column: {column}, of: {of}, because: "..."}}]'
    figure = {"without": round(told.without, 3), "left": round(told.left, 3), "k": told.k}
    return Finding(
        check="determines", columns=(column, of), severity="unsafe", figure=figure, sentence=sentence, remedy=remedy
    )


def _warning(
    check: CheckName, column: str, sentence: str, remedy: str, *, of: str | None = None, **figure: int | float
) -> Finding:
    columns = (column,) if of is None else (column, of)
    return Finding(check=check, columns=columns, severity="warning", figure=figure, sentence=sentence, remedy=remedy)


def _of_column(spec: Spec, column: values.Column, today: date) -> Iterator[Finding]:
    name = column.name
    alike = values.spellings(column)
    if alike is not None:
        many, few = alike
        sentence = (
            f"{many} values of {name} are only {few} without case, spaces and composed letters. Each spelling counts "
            "as another value"
        )
        remedy = f"attributes: {{{name}: {{same: [{', '.join(PARTS)}]}}}}"
        yield _warning("spellings", name, sentence, remedy, values=many, without=few)
    codes = values.unknown_codes(column)
    if codes:
        rows, named = sum(column.rows[code] for code in codes), ", ".join(codes)
        sentence = f"{named} of {name} looks like a code for unknown, in {counted(rows, 'row')}: it counts as a value"
        remedy = _unknown(spec, column, codes)
        yield _warning("unknown_codes", name, sentence, remedy, rows=rows, values=len(codes))
    alone = values.unique(column)
    if alone is not None:
        sentence = (
            f"{alone[0]} of {alone[1]} values of {name} are of one row alone. l counts nothing there, and anybody who "
            "knows such a value finds the row"
        )
        coarser = f"round {name} in a view"
        if column.kind in NUMERIC:
            coarser = f"attributes: {{{name}: {{publish_as: {{ranges: [...]}}}}}}"
        remedy = f"{coarser}, or ask for t_closeness or epsilon_m_anonymity of it"
        yield _warning("unique_sensitive", name, sentence, remedy, rows=alone[0], values=alone[1])
    impossible = values.impossible(column, today)
    if impossible is not None:
        rows, what = impossible
        sentence = f"{name} is {what} in {counted(rows, 'row')}"
        remedy = f"correct {name} in a view, or leave the rows out: source: {{where: ...}}"
        yield _warning("history", name, sentence, remedy, rows=rows)


def _unknown(spec: Spec, column: values.Column, codes: Iterable[str]) -> str:
    """The line that makes these codes unknown, beside those that are."""
    texts = [*spec.attributes[column.name].unknown, *codes]
    listed = ", ".join(text if WHOLE.fullmatch(text) else f'"{text}"' for text in texts)
    nulls = ", nulls: value" if column.sensitive else ""
    return f"attributes: {{{column.name}: {{unknown: [{listed}]{nulls}}}}}"


def _skewed(task: Task, groups: PublishedGroups, *, published: bool) -> Iterator[Finding]:
    """Sensitive attributes of which some group has one value nearly everywhere, or fewer than a model asks, for who
    knows what is hidden. published: whether the groups satisfy all models."""
    for number, name in enumerate(task.source.sensitives):
        share = one_valued(groups, number)
        if share >= MOST_SHARE:
            sentence = f"in some group {100 * share:.1f} % have one {name}, however many values the group has"
            remedy = f"privacy: [{{recursive_cl_diversity: {{c: 3, l: 2, sensitive: {name}}}}}]"
            yield _warning("skew", name, sentence, remedy, share=round(share, 4))
    for told in excluded(task, groups) if published else ():
        yield _excluded(told)


def _excluded(told: Excluded) -> Finding:
    name, of, required, left = told.sensitive, told.of, _rounded(told.required), _rounded(told.left)
    sentence = (
        f"some values of {name} never occur with some of {of}, which is hidden: to anybody who knows {of}, l is {left} "
        f"and not {required}, in {counted(told.rows, 'row')}"
    )
    more = math.ceil(2 * told.required - told.left)
    remedy = f"privacy: [{{distinct_l_diversity: {{l: {more}, sensitive: {name}}}}}], or levels that show {of} as it is"
    return _warning("skew", name, sentence, remedy, of=of, l=required, left=left, rows=told.rows)


def _rounded(number: float) -> int | float:
    rounded = round(number, 3)
    return int(rounded) if rounded.is_integer() else rounded


def _volatile(task: Task) -> Iterator[Finding]:
    """A view that is not the same when it is read again."""
    table = TableName.parse(task.spec.source.table)
    view = volatile(task.source.session, table)
    if view is None:
        return
    where = "" if view.view == str(table) else f" in {view.view}, which it reads"
    what = "each run reads other rows, and versions differ though no row changed"
    if view.each_reading:
        what = "the rows that are copied differ from those that were counted"
    sentence = f"{table} is a view with {view.function}(){where}: {what}"
    remedy = f"store its rows, and release these: CREATE TABLE {table}_stored AS SELECT * FROM {table}"
    yield _warning("volatile", str(table), sentence, remedy)


def _history(task: Task) -> Iterator[Finding]:
    """Rows that are no longer true, and times at which rows were stored."""
    for ended in superseded(task):
        name = ended.column
        sentence = (
            f"{name} says of {counted(ended.rows, 'row')} that they are no longer true. They are released like the "
            "others, and a person with two states is counted twice"
        )
        remedy = f"source: {{where: {json.dumps(ended.current, ensure_ascii=False)}}}"
        yield _warning("history", name, sentence, remedy, rows=ended.rows)
    for name in stored_times(task):
        sentence = f"{name} reads like the time at which a row was stored. Nobody outside knows it, and it costs detail"
        yield _warning("history", name, sentence, f"attributes: {{{name}: identifying}}")


def _uncovered(task: Task) -> Iterator[Finding]:
    """Hierarchies that lack the values of many rows, which are published as if nothing were known."""
    rows = task.source.rows
    for name, lacking in task.source.rows_uncovered().items():
        if lacking >= LEAST_UNCOVERED * rows:
            many = f"{lacking:,} of {counted(rows, 'row')}"
            sentence = f"the hierarchy of {name} lacks the values of {many}, which `uncovered: top` hides"
            remedy = f"attributes: {{{name}: {{uncovered: refuse}}}}, which names the values, and add them to it"
            yield _warning("uncovered", name, sentence, remedy, rows=lacking)


def _grouped(task: Task, node: Node) -> Iterator[Finding]:
    """Blocks that are one household or another group."""
    for group in one_groups(task, node):
        groups = "1 group is" if group.blocks == 1 else f"{group.blocks:,} groups are"
        sentence = (
            f"{groups} of one {group.column} each, in {counted(group.rows, 'row')}: k counts its people as strangers, "
            "and anybody who knows that they belong together learns what they share"
        )
        remedy = f"groups: {group.column}"
        if group.column in task.spec.insensitives:
            remedy = f"attributes: {{{group.column}: identifying}}, and {remedy}"
        yield _warning("groups", group.column, sentence, remedy, blocks=group.blocks, rows=group.rows)


def _answered(spec: Spec, findings: Iterable[Finding]) -> Iterator[Finding]:
    reasons = {(a.check, *a.columns): a.because for a in spec.accept}
    for finding in findings:
        yield finding.model_copy(update={"because": reasons.get((finding.check, *finding.columns))})


def unanswered(spec: Spec, findings: Sequence[Finding]) -> list[str]:
    """What the spec accepts though nothing is found of it."""
    there = {(f.check, *f.columns) for f in findings}
    return [
        f"{spec.at('accept', i)}: {accepted.check} finds nothing of {accepted.column}: remove it"
        for i, accepted in enumerate(spec.accept)
        if (accepted.check, *accepted.columns) not in there
    ]


def unused(task: Task) -> list[str]:
    """The codes for unknown that no row has."""
    spec = task.spec
    if not any(attribute.unknown for attribute in spec.attributes.values()):
        return []
    return [
        f"{spec.at('attributes', name, 'unknown')}: no row of {name} has {' or '.join(spec.attributes[name].unknown)}: "
        "remove `unknown`"
        for name in values.never_null(task)
        if spec.attributes[name].unknown
    ]


def refuse_single_rows(task: Task) -> None:
    """Raise Refused for columns that single out rows, which the spec does not answer for."""
    _refuse(task.spec, _single_rows(task))


def refuse_dependencies(task: Task, result: SearchResult) -> None:
    """Raise Refused for columns that tell what a search's choice hides, which the spec does not answer for. task: of
    the source as it is."""
    _refuse(task.spec, _told(task, result))


def _told(task: Task, result: SearchResult) -> Iterator[Finding]:
    if result.recoded is None:
        assert result.chosen is not None
        told = dependencies(task, result.chosen.node)
    else:
        told = dependencies(task, None, set(result.recoded.hidden()))
    return (_determines(task.spec, dependency) for dependency in told)


def _refuse(spec: Spec, findings: Iterable[Finding]) -> None:
    refuse_findings(spec, list(_answered(spec, findings)))


def refuse_findings(spec: Spec, findings: Sequence[Finding]) -> None:
    """Raise Refused for what is unsafe, which the spec does not answer for."""
    stopped = unsafe(findings)
    if stopped:
        first = stopped[0]
        more = f" ({counted(len(stopped) - 1, 'more finding')}: qblock check)" if stopped[1:] else ""
        raise Refused(f"{spec.at('attributes', first.columns[0])}: {first.sentence}; {first.remedy}{more}")
