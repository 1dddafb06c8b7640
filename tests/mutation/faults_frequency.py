"""Faults in the counts of a node: NULL, entities, blocks that are one number, and sums that nobody looks at."""

from __future__ import annotations

from mutation.mutation import Mutation

SETS = "tests/frequency/test_frequency_sets.py"
SAMPLES = "tests/frequency/test_samples.py"
ARRAYS = "tests/frequency/test_arrays.py"

FREQUENCY: tuple[Mutation, ...] = (
    Mutation(
        "packing: NULL has no key",
        "engines/queries.py",
        "cases.append((raw.is_(None), sa.literal_column(str(null))))",
        'cases.append((raw.is_(None), sa.literal_column("0")))',
        tests=(f"{SETS}::test_values_without_a_leaf_become_one_where_the_spec_says_so",),
    ),
    Mutation(
        "roll-up: from a set that is not finer",
        "frequency/coding.py",
        "return all(o & ~w == 0 for",
        "return any(o & ~w == 0 for",
        tests=("tests/frequency/test_coding.py::test_every_word_must_be_finer",),
    ),
    Mutation(
        "paths: a label has the number of its leaf",
        "hierarchy/core.py",
        "        cleared = sum(self.bits[: max(0, level - self.first)])",
        "        cleared = sum(self.bits[: max(0, level - self.first - 1)])",
        tests=("tests/hierarchy/test_paths.py::test_a_label_is_a_prefix",),
    ),
    Mutation(
        "paths: children of all parents are numbered together",
        "hierarchy/core.py",
        "    starts[1:] = p[1:] != p[:-1]\n",
        "    starts[1:] = False\n",
        tests=("tests/hierarchy/test_paths.py::test_no_bit_is_wasted_on_the_top", "tests/frequency/test_coding.py"),
    ),
    Mutation(
        "coding: a word holds a bit too many",
        "frequency/coding.py",
        "if bits + width <= BITS), len(used))",
        "if bits + width <= BITS + 1), len(used))",
        tests=("tests/frequency/test_coding.py::test_words",),
    ),
    Mutation(
        "coding: levels are alike that merge labels",
        "frequency/coding.py",
        "            while high < len(widths) and not widths[high]:",
        "            while high < len(widths) - 1 and widths[high] < 2:",
        tests=("tests/frequency/test_coding.py::test_levels_that_merge_nothing_are_one",),
    ),
    Mutation(
        "samples: parts of blocks",
        "frequency/slices.py",
        "            return Sample(blocks, PARTS)",
        "            return Sample(self._sets.coding.mask(self._sets.lattice.bottom), PARTS)",
        tests=(f"{SAMPLES}::test_a_sample_is_of_whole_blocks",),
    ),
    Mutation(
        "samples: from a slice of finer blocks",
        "frequency/slices.py",
        "next((by for by in self._tables if finer(blocks, by)), None)",
        "next((by for by in self._tables if finer(by, blocks)), None)",
        tests=(f"{SAMPLES}::test_a_sample_is_of_whole_blocks",),
    ),
    Mutation(
        "samples: what some blocks do not fail passes",
        "search/task.py",
        "            return self._counts(node, SAMPLED).failing_rows > self.budget",
        "            return self._counts(node, SAMPLED).failing_rows >= self.budget",
        tests=(f"{SAMPLES}::test_hubs_and_samples_change_no_answer",),
    ),
    Mutation(
        "portions: the first one again and again",
        "engines/queries.py",
        "sa.literal_column(str(sample.number))",
        'sa.literal_column("0")',
        tests=(f"{SAMPLES}::test_portions_are_all_blocks_once",),
    ),
    Mutation(
        "portions: of pairs instead of blocks",
        "frequency/sets.py",
        "Sample(self.coding.mask(node), portion.of, portion.number)",
        "Sample(mask, portion.of, portion.number)",
        tests=(f"{SAMPLES}::test_portions_are_all_blocks_once",),
    ),
    Mutation(
        "hubs: the largest goes though it is needed",
        "frequency/sets.py",
        "        return self._wanted is not None and not self._wanted[up(hub.node)].any()",
        "        return False",
        tests=(f"{SAMPLES}::test_a_hub_that_no_open_node_needs_goes_before_a_larger_one",),
    ),
    Mutation(
        "threads: an interrupt lets the next statement begin",
        "engines/duckdb/dialect.py",
        "            self._ended = True\n",
        "",
        tests=(
            "tests/warehouse/test_beside.py::test_an_interrupt_ends_what_other_threads_ask_and_begins_nothing_more",
        ),
    ),
    Mutation(
        "threads: what was shared stays",
        "engines/duckdb/adapter.py",
        "if session is not None and session.committed:",
        "if session is None:",
        tests=("tests/warehouse/test_beside.py::test_nothing_that_was_shared_is_there_in_the_next_snapshot",),
    ),
    Mutation(
        "pairs: a word of a key is shifted into the one before",
        "frequency/coding.py",
        "                single <<= end - start\n",
        "                single <<= end - start - 1\n",
        tests=(
            "tests/frequency/test_pairs.py::test_one_number_has_the_order_of_several_words",
            f"{ARRAYS}::test_rows_of_keys_are_added_up",
        ),
    ),
    Mutation(
        "hubs: counts of entities are added up",
        "frequency/sets.py",
        "queries.roll_up(source.stored, mask, by_entity=self.entities)",
        "queries.count_entities(source.stored, mask) if self.entities else queries.roll_up(source.stored, mask)",
        tests=(f"{SAMPLES}::test_hubs_and_samples_change_no_answer",),
    ),
    Mutation(
        "arrays: in a table of all keys each row counts once",
        "frequency/arrays.py",
        "table = np.bincount(single, self.n)",
        "table = np.bincount(single)",
        tests=(f"{ARRAYS}::test_rows_of_keys_are_added_up",),
    ),
    Mutation(
        "arrays: doubles count more rows than they hold",
        "frequency/arrays.py",
        "if 1 << width <= len(single) and self._width + len(single).bit_length() <= EXACT:",
        "if 1 << width <= len(single):",
        tests=(f"{ARRAYS}::test_rows_of_keys_are_added_up",),
    ),
    Mutation(
        "arrays: a count that is as wide as the key spills into it",
        "frequency/arrays.py",
        "        elif width + self._width <= BITS:",
        "        elif self._width <= BITS:",
        tests=(f"{ARRAYS}::test_rows_of_keys_are_added_up",),
    ),
    Mutation(
        "arrays: each portion is the first one",
        "frequency/arrays.py",
        "total % int(sample.parts) == int(sample.number)",
        "total % int(sample.parts) == 0",
        tests=(f"{ARRAYS}::test_memory_answers_what_statements_answer",),
    ),
    Mutation(
        "arrays: the last answer is that of every node",
        "frequency/arrays.py",
        "last[0] is source and last[1] == mask:",
        "last[0] is source:",
        tests=(f"{ARRAYS}::test_memory_answers_what_statements_answer",),
    ),
    Mutation(
        "arrays: those of the least size are below it",
        "frequency/arrays.py",
        "    small = sizes[sizes < least]\n",
        "    small = sizes[sizes <= least]\n",
        tests=(f"{ARRAYS}::test_memory_answers_what_statements_answer",),
    ),
    Mutation(
        "arrays: rows are counted in place of entities",
        "frequency/sets.py",
        "        if self.session.embedded and not self.entities:\n",
        "        if self.session.embedded:\n",
        tests=(f"{ARRAYS}::test_entities_are_not_counted_in_memory",),
    ),
    Mutation(
        "sizes: those below are not all",
        "engines/queries.py",
        "    small = blocks.c.n < sa.literal_column(str(least))",
        "    small = blocks.c.n < sa.literal_column(str(least - 1))",
        tests=(f"{SAMPLES}::test_hubs_and_samples_change_no_answer",),
    ),
    Mutation(
        "counts: fewer than the source has",
        "frequency/sets.py",
        "        if total != self.rows:\n",
        "        if total > self.rows:\n",
        tests=(f"{SETS}::test_counts_that_do_not_add_up_are_refused",),
    ),
    Mutation(
        "entities: as large as the sum of their values",
        "frequency/sets.py",
        '            rows = counts["n"][order_of(words, alone)]\n',
        "            rows = np.add.reduceat(n, first)\n",
        tests=(f"{SETS}::test_entities_are_counted_once",),
    ),
    Mutation(
        "blocks: one number for several",
        "blocks.py",
        "    if math.prod(sizes) < 2**62:",
        "    if math.prod(sizes) < 2**100:",
        tests=(f"{SETS}::test_keys_beyond_what_one_integer_holds_are_told_apart",),
    ),
)
