"""Faults in hierarchies: what does not nest, labels of the wrong block, and digests that see nothing."""

from __future__ import annotations

from mutation.mutation import Mutation

HIERARCHY_TESTS = "tests/hierarchy/test_hierarchy.py"
BUILDERS = "tests/hierarchy/test_hierarchy_builders.py"
COLUMNS = "tests/hierarchy/test_built_by_columns.py"

HIERARCHY: tuple[Mutation, ...] = (
    Mutation(
        "finest: init proposes none",
        "profiling/ranges.py",
        "[_of_cells(p) if 2 * p.profile.distinct > rows - p.profile.nulls else p for p in proposals]",
        "list(proposals)",
        tests=("tests/cli/test_init_ends.py::test_values_of_single_rows_are_read_as_cells",),
    ),
    Mutation(
        "finest: a cell may lie in two labels",
        "hierarchy/builders.py",
        "        if Fraction(point) % Fraction(step or 1):\n",
        "        if False:\n",
        tests=("tests/hierarchy/test_finest.py::test_cells_that_cross_a_label_are_refused",),
    ),
    Mutation(
        "finest: a value is kept beside its cell",
        "spec/sources.py",
        "    return hierarchy.in_cells(cells.columns[1])",
        "    return hierarchy",
        tests=("tests/hierarchy/test_finest.py::test_where_in_its_cell_a_value_lies_changes_nothing",),
    ),
    Mutation(
        "nesting: looked at below the second level alone",
        "hierarchy/core.py",
        "        if not label or label in seen or not level:\n",
        "        if not label or label in seen or level != 1:\n",
        tests=(f"{HIERARCHY_TESTS}::test_moving_one_leaf_to_another_parent_is_found",),
    ),
    Mutation(
        "labels: whole numbers keep theirs where one form is asked",
        "hierarchy/written.py",
        'return labels == "plain" and kind == "integer"',
        'return kind == "integer"',
        tests=(f"{BUILDERS}::test_half_open_labels_of_whole_numbers_read",),
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
        "for row, label in enumerate(last) if label != TOP][:1]:",
        "for row, label in enumerate(last) if label is None][:1]:",
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
        "        for level, labels in enumerate(self.columns):\n            label",
        "        for level, labels in enumerate(self.columns[:1]):\n            label",
        tests=(HIERARCHY_TESTS,),
    ),
    Mutation(
        "ranges: toward zero",
        "hierarchy/builders.py",
        "counts = counts // (step // below)\n",
        "counts = abs(counts) // (step // below) * np.sign(counts)\n",
        tests=(f"{BUILDERS}::test_negative_ranges_read_unambiguously",),
    ),
    Mutation(
        "ranges: the range at the end of top coding is published",
        "hierarchy/builders.py",
        "if last is None else np.minimum(counts, last))\n",
        "if last is None else np.minimum(counts, last + 1))\n",
        tests=(f"{BUILDERS}::test_ranges_with_top_and_bottom_coding",),
    ),
    Mutation(
        "cuts: a cell of its own for the upper bound",
        "hierarchy/builders.py",
        "np.minimum((counts - start) // step, last)\n",
        "(counts - start) // step\n",
        tests=(f"{BUILDERS}::test_cuts_of_whole_numbers", f"{COLUMNS}::test_cuts_of_whole_numbers"),
    ),
    Mutation(
        "cuts: a label that goes beyond the lower bound",
        "hierarchy/builders.py",
        "written(max(low, start + cell * step), ",
        "written(start + cell * step, ",
        tests=(f"{BUILDERS}::test_cells_at_bounds_that_are_no_cuts_are_narrower",),
    ),
    Mutation(
        "dates: a week in the year of its day",
        "hierarchy/builders.py",
        '"{:04d}-W{:02d}".format(*day.isocalendar()[:2])',
        '"{:04d}-W{:02d}".format(day.year, day.isocalendar()[1])',
        tests=(f"{BUILDERS}::test_dates_by_week", f"{BUILDERS}::test_dates_nest"),
    ),
    Mutation(
        "nesting by columns: a label may have several parents",
        "hierarchy/core.py",
        "        if (parents[fine.of_leaf] != coarse.of_leaf).any():\n",
        "        if len(parents) < len(set(parents.tolist())):\n",
        tests=(f"{COLUMNS}::test_what_is_wrong",),
    ),
    Mutation(
        "nesting by columns: something is above the star",
        "hierarchy/core.py",
        "        if top is not None and parents[top] != coarse.place(TOP):\n",
        "        if top is not None and coarse.place(TOP) is None:\n",
        tests=(f"{COLUMNS}::test_the_star_is_under_the_star_alone",),
    ),
    Mutation(
        "codes: the last leaf of a label",
        "hierarchy/labels.py",
        "        first[self.of_leaf[::-1]] = np.arange(len(self.of_leaf) - 1, -1, -1, dtype=np.int32)\n",
        "        first[self.of_leaf] = np.arange(len(self.of_leaf), dtype=np.int32)\n",
        tests=(f"{COLUMNS}::test_dates",),
    ),
    Mutation(
        "texts: characters are bytes",
        "hierarchy/labels.py",
        "    if widths.sum() < len(data):",
        "    if widths.sum() > len(data):",
        tests=(f"{COLUMNS}::test_texts_are_kept",),
    ),
    Mutation(
        "digest: what JSON escapes is written as it is",
        "hierarchy/core.py",
        '[\\x00-\\x1f"\\\\]',
        '[\\x00-\\x1f"]',
        tests=(f"{COLUMNS}::test_digests_of_ledgers_before", f"{COLUMNS}::test_suppress"),
    ),
    Mutation(
        "numbers: 64 bits hold any",
        "hierarchy/written.py",
        "        if max(size * factor + most, factor) < 2**62:\n",
        "        if max(size + most, factor) < 2**62:\n",
        tests=(f"{COLUMNS}::test_numbers_as_large_as_64_bits_hold_and_larger",),
    ),
    Mutation(
        "dates: years before Christ are years after",
        "hierarchy/builders.py",
        '    fit = known & ~whole(pc.ends_with(leaves, "BC"))\n',
        "    fit = known\n",
        tests=(f"{COLUMNS}::test_dates_and_what_is_none",),
    ),
    Mutation(
        "files: a quotation mark is a character like others",
        "hierarchy/files.py",
        """    unlike = ('"', """,
        "    unlike = (",
        tests=(f"{COLUMNS}::test_lines_however_they_end", f"{COLUMNS}::test_a_file_a_table_and_rows"),
    ),
    Mutation(
        "tables: leaves in the order of their texts",
        "source/levels.py",
        '    return pc.array_sort_indices(pc.binary_join_element_wise(rows, mark, one_text("")))\n',
        "    return pc.array_sort_indices(columns[0])\n",
        tests=("tests/source/test_many_leaves.py",),
    ),
    Mutation(
        "uncovered: a row without a value is one of those that a hierarchy lacks",
        "engines/queries.py",
        "sa.and_(raw.is_not(None), raw.not_in(",
        "sa.or_(raw.is_(None), raw.not_in(",
        tests=("tests/release/test_unfit.py::test_it_is_said_of_how_many_rows_they_are",),
    ),
    Mutation(
        "leaves: a type holds one more",
        "engines/values.py",
        "    return -(2 ** (bits - 1)) <= least and most < 2 ** (bits - 1)\n",
        "    return -(2 ** (bits - 1)) <= least and most <= 2 ** (bits - 1)\n",
        tests=("tests/source/test_many_leaves.py",),
    ),
)
