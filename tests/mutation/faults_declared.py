"""Faults in what is declared of a sensitive attribute: order, named values and priors; and in far numbers."""

from __future__ import annotations

from mutation.mutation import Mutation

ORDERS = ("tests/source/test_orders.py",)
NAMED = ("tests/source/test_named_values.py",)
HUGE = ("tests/models/test_huge.py::test_a_parameter_beyond_all_counts",)
DUCKDB = "duckdb"

VALUES: tuple[Mutation, ...] = (
    Mutation(
        "order: the domain as it is written",
        "source/levels.py",
        "        return domain.select(ascending)",
        "        return domain",
        DUCKDB,
        ORDERS,
    ),
    Mutation(
        "order: the list does nothing",
        "source/levels.py",
        "    if not order:\n        return domain",
        "    if True:\n        return domain",
        DUCKDB,
        ORDERS,
    ),
    Mutation(
        "order: text ascends",
        "source/levels.py",
        'return column.kind != "text"',
        "return True",
        DUCKDB,
        ORDERS,
    ),
    Mutation(
        "order: NULL is anywhere among numbers",
        "source/levels.py",
        "return numbers and None not in domain",
        "return numbers",
        DUCKDB,
        ORDERS,
    ),
    Mutation(
        "order: numbers ascend as texts",
        "comparison.py",
        '    if kind in NUMBERS:\n        return _number(text, kind == "float") or (OTHER, text)\n',
        "",
        DUCKDB,
        ORDERS,
    ),
    Mutation(
        "order: moments ascend as texts",
        "comparison.py",
        'return _moment(text, kind == "date") or (OTHER, text)',
        "return (OTHER, text)",
        DUCKDB,
        tests=("tests/source/test_named_values.py::test_every_spelling_of_a_value_is_that_value",),
    ),
    Mutation(
        "named: by text alone",
        "comparison.py",
        "        return self._keys.get(key(named, self._kind))",
        "        return None",
        DUCKDB,
        NAMED,
    ),
    Mutation(
        "prior: NULL has the weight of the empty string",
        "source/knowledge.py",
        "        code = values.reference.code_of(value)\n        if code is None:",
        '        code = values.reference.code_of(value or "")\n        if code is None:',
        DUCKDB,
        NAMED,
    ),
    Mutation(
        "prior: a null key is a text",
        "spec/document.py",
        "name = None if null else key.value",
        "name = key.value",
        DUCKDB,
        NAMED,
    ),
    Mutation(
        "prior: a quoted null is NULL",
        "spec/document.py",
        "null = path[-2:] == NULL_KEYS and key.style is None",
        "null = path[-2:] == NULL_KEYS",
        DUCKDB,
        NAMED,
    ),
    Mutation(
        "prior: NULLs of a table are not counted",
        "source/knowledge.py",
        "        if null is not None:  # which no join matches",
        "        if False:",
        DUCKDB,
        NAMED,
    ),
    Mutation(
        "prior: NULLs of a table are counted whatever is asked",
        "source/knowledge.py",
        ".where(value.is_(None), *conditions)",
        ".where(value.is_(None))",
        DUCKDB,
        NAMED,
    ),
    Mutation(
        "(n,t): the table as superset has rows",
        "models/closeness.py",
        "np.array([reference.size]))",
        "np.array([reference.rows]))",
        "superset and duckdb",
        ("tests/search/test_entities.py",),
    ),
    Mutation(
        "far: a double for what is beyond doubles",
        "models/epsilon.py",
        "        if not self.plain:\n            return self._one_by_one(predicate, x, n, known)\n",
        "",
        "",
        HUGE,
    ),
    Mutation(
        "far: k through a double",
        "models/ratios.py",
        "    difference = wide(numerator[near]) * q - wide(denominator[near]) * p\n",
        "    difference = numerator[near] / denominator[near] - p / q\n",
        "",
        HUGE,
    ),
    Mutation(
        "kept: an old version in its own order",
        "versions/gate.py",
        "replace(reference.like(now), ordered",
        "replace(reference, ordered",
        "",
        ("tests/ledger/test_kept_order.py",),
    ),
    Mutation(
        "kept: a rollback in the order of then",
        "publish/kept_counts.py",
        "return reference if listed else reference.ascending()",
        "return reference",
        "",
        ("tests/ledger/test_kept_order.py",),
    ),
)
