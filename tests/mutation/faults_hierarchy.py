"""Faults in hierarchies: what does not nest, labels of the wrong block, and digests that see nothing."""

from __future__ import annotations

from mutation.mutation import Mutation

HIERARCHY_TESTS = "tests/hierarchy/test_hierarchy.py"
BUILDERS = "tests/hierarchy/test_hierarchy_builders.py"

HIERARCHY: tuple[Mutation, ...] = (
    Mutation(
        "nesting: looked at below the second level alone",
        "hierarchy/core.py",
        "        if not label or label in seen or not level:\n",
        "        if not label or label in seen or level != 1:\n",
        tests=(f"{HIERARCHY_TESTS}::test_moving_one_leaf_to_another_parent_is_found",),
    ),
    Mutation(
        "nesting: widths of which none is a multiple",
        "hierarchy/builders.py",
        "        if coarse <= fine or Fraction(coarse) % Fraction(fine):\n",
        "        if coarse <= fine:\n",
        tests=(f"{BUILDERS}::test_widths_that_do_not_nest",),
    ),
    Mutation(
        "nesting: weeks are parts of months",
        "hierarchy/builders.py",
        "for chain in (WEEKS, MONTHS)):",
        "for chain in (WEEKS, MONTHS, UNITS)):",
        tests=(f"{BUILDERS}::test_dates_of_a_number_column_and_units_that_do_not_nest",),
    ),
    Mutation(
        "top: the last level need not be one",
        "hierarchy/core.py",
        "for row, label in enumerate(labels[-1]) if label != TOP][:1]:",
        "for row, label in enumerate(labels[-1]) if label is None][:1]:",
        tests=(HIERARCHY_TESTS,),
    ),
    Mutation(
        "null: a leaf that reads the same",
        "hierarchy/core.py",
        "        if self.height and TOP in self.leaves:\n",
        "        if not self.height and TOP in self.leaves:\n",
        tests=(f"{HIERARCHY_TESTS}::test_null_leaf_is_refused_beside_a_leaf_that_reads_the_same",),
    ),
    Mutation(
        "digest: of the leaves alone",
        "hierarchy/core.py",
        "for row in zip(*self.labels, strict=True))\n        text",
        "for row in zip(*self.labels[:1], strict=True))\n        text",
        tests=(HIERARCHY_TESTS,),
    ),
    Mutation(
        "ranges: toward zero",
        "hierarchy/builders.py",
        "            index = (number - low) // step\n",
        "            index = int((number - low) / step)\n",
        tests=(f"{BUILDERS}::test_negative_ranges_read_unambiguously",),
    ),
    Mutation(
        "dates: a week in the year of its day",
        "hierarchy/builders.py",
        '"{:04d}-W{:02d}".format(*day.isocalendar()[:2])',
        '"{:04d}-W{:02d}".format(day.year, day.isocalendar()[1])',
        tests=(f"{BUILDERS}::test_dates_by_week", f"{BUILDERS}::test_dates_nest"),
    ),
)
