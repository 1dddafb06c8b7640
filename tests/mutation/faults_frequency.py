"""Faults in the counts of a node: NULL, entities, blocks that are one number, and sums that nobody looks at."""

from __future__ import annotations

from mutation.mutation import Mutation

SETS = "tests/frequency/test_frequency_sets.py"

FREQUENCY: tuple[Mutation, ...] = (
    Mutation(
        "roll-up: without NULL",
        "warehouse/queries.py",
        "joined = joined.join(mapping, mapping.c.c0 == code)",
        "joined = joined.join(mapping, sa.and_(mapping.c.c0 == code, mapping.c.leaf.is_not(None)))",
        tests=(f"{SETS}::test_values_without_a_leaf_become_one_where_the_spec_says_so",),
    ),
    Mutation(
        "roll-up: from a set that is not finer",
        "frequency/sets.py",
        "if set(sensitive) <= set(k.sensitive) and is_generalization(node, k.node))",
        "if set(sensitive) <= set(k.sensitive) and sum(node) >= sum(k.node))",
        tests=(f"{SETS}::test_every_node_counts_the_raw_rows",),
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
        "        return Blocks(pairs.start, pairs.value, pairs.count, rows, keys)",
        "        return Blocks(pairs.start, pairs.value, pairs.count, pairs.rows, keys)",
        tests=(f"{SETS}::test_entities_are_counted_once",),
    ),
    Mutation(
        "sizes: rows of blocks that are just large enough",
        "frequency/sizes.py",
        "        below = self.size < least\n",
        "        below = self.size <= least\n",
        tests=(f"{SETS}::test_a_block_of_just_enough_rows_is_not_below",),
    ),
    Mutation(
        "blocks: one number for several",
        "frequency/sizes.py",
        "    if np.prod([float(n) for n in leaves]) < 2**62:",
        "    if np.prod([float(n) for n in leaves]) < 2**100:",
        tests=(f"{SETS}::test_keys_beyond_what_one_integer_holds_are_told_apart",),
    ),
)
