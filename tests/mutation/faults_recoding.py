"""Faults in recoding maps: boxes that fail, values on the wrong side, too many rows suppressed, worse splits."""

from __future__ import annotations

from mutation.mutation import Mutation

SEARCH = ("tests/recoding/test_laws.py::test_the_map_is_the_one_that_a_slow_search_finds",)
LARGE = ("tests/recoding/test_laws.py::test_a_large_table_begins_at_the_node_only_where_the_top_loses_more",)
LIMIT = "tests/recoding/test_limits.py"
LOSES = (f"{LIMIT}::test_rows_are_not_suppressed_where_more_is_lost",)
NAMES = ("tests/recoding/test_division.py::test_a_rest_of_few_reads_by_their_names_where_readers_see_each_of_them",)
CHAIN = ("tests/recoding/test_partition.py::test_a_chain", "tests/recoding/test_partition.py::test_a_grid")
PEOPLE = ("tests/recoding/test_partition.py::test_people_of_the_whole_table_count_once",)
REPLAY = ("tests/recoding/test_replay.py::test_every_combination_has_one_box_and_keeps_it",)
CUT = ("tests/recoding/test_replay.py::test_a_cut_needs_the_order_that_it_was_made_in",)
NAMED = ("tests/recoding/test_replay.py::test_a_cut_stays_where_the_label_has_another_name",)
GAINED = ("tests/recoding/test_replay.py::test_a_label_that_gained_a_smaller_value_stays",)
TEXTS = ("tests/recoding/test_texts.py",)
OF_VERSION = ("tests/release/test_maps.py",)
FIGURES = ("tests/recoding/test_figures.py",)

HELD_BY_ALL = "tests/release/test_held_by_all.py"

RECODING: tuple[Mutation, ...] = (
    Mutation(
        "map: everybody in a box may hold a value",
        "search/boxes/counting.py",
        "            bad |= common\n",
        "            pass\n",
        tests=(f"{HELD_BY_ALL}::test_what_is_searched_is_released",),
    ),
    Mutation(
        "nodes: everybody in a block may hold a value",
        "search/task.py",
        "common = held_by_all(blocks) if self.forbids_held_by_all and of is None else None",
        "common = None",
        tests=(f"{HELD_BY_ALL}::test_what_is_searched_is_released",),
    ),
    Mutation(
        "nodes: pruned although rows of another block bring a value",
        "search/task.py",
        "return not self.forbids_held_by_all or self._of_one_block",
        "return True",
        tests=(f"{HELD_BY_ALL}::test_nodes_are_pruned_only_where_nobody_is_in_two_blocks",),
    ),
    Mutation(
        "map: a box of the least size fails",
        "search/boxes/counting.py",
        "failing: Mask = (groups.size < self.least) & (groups.rows > 0)",
        "failing: Mask = (groups.size <= self.least) & (groups.rows > 0)",
        "k_anonymity",
        SEARCH,
    ),
    Mutation(
        "map: what a split takes of the sizes is not counted",
        "search/boxes/propose.py",
        'if self._by != "loss":',
        "if True:",
        tests=("tests/recoding/test_division.py::test_a_split_counts_by_what_it_takes_of_the_sizes",),
    ),
    Mutation(
        "map: a split that divides no rows is worth nothing",
        "search/boxes/propose.py",
        "np.where(gains > 0, math.inf, 0.0)",
        "np.zeros(len(gains))",
        tests=("tests/recoding/test_division.py::test_a_label_that_all_rows_have_is_named_first",),
    ),
    Mutation(
        "map: of a large table splits never begin at the node",
        "search/boxes/recoded.py",
        "(task.source.rows < LARGE or worse(best))",
        "task.source.rows < LARGE",
        tests=LARGE,
    ),
    Mutation(
        "map: of a large table splits always begin twice",
        "search/boxes/recoded.py",
        "(task.source.rows < LARGE or worse(best))",
        "True",
        tests=LARGE,
    ),
    Mutation(
        "map: a child that fails may stand alone beside a rest",
        "search/boxes/propose.py",
        "alone = np.flatnonzero((candidates.numbers(left) >= 0) & ~failing & (groups.rows > 0))",
        "alone = np.flatnonzero(candidates.numbers(left) >= 0)",
        tests=SEARCH,
    ),
    Mutation(
        "map: a cut is one label off",
        "search/boxes/specialize.py",
        "atoms.code[proposed.at], 0)",
        "atoms.code[proposed.at - 1], 0)",
        tests=SEARCH,
    ),
    Mutation(
        "map: of cuts as near to the median, the higher one",
        "search/boxes/propose.py",
        "np.lexsort((places, np.abs(2 * below - whole[of]), of))",
        "np.lexsort((-places, np.abs(2 * below - whole[of]), of))",
        tests=("tests/recoding/test_maps.py::test_of_two_cuts_as_near_to_the_median_the_lower_one_is_taken",),
    ),
    Mutation(
        "map: each split may suppress the whole limit",
        "search/boxes/specialize.py",
        "                self._budget -= rows\n",
        "",
        tests=(f"{LIMIT}::test_the_limit_is_one_for_all_parts",),
    ),
    Mutation(
        "map: what the first blocks suppress is not of the limit",
        "search/boxes/specialize.py",
        "        self._budget -= lost\n",
        "",
        tests=(f"{LIMIT}::test_what_the_node_suppresses_is_of_the_limit",),
    ),
    Mutation(
        "map: labels with the same first child are one",
        "recoding/ladder.py",
        "key = (level, codes.tobytes(), stated, bounds)",
        "key = (level, codes[:1].tobytes(), stated, None)",
        tests=SEARCH,
    ),
    Mutation(
        "map: a part is not among those on its way",
        "recoding/tree.py",
        "        path = [part]\n        while",
        "        path = [self.parents[part]]\n        while",
        tests=CHAIN,
    ),
    Mutation(
        "map: only the whole table is on the way of a part",
        "search/boxes/counting.py",
        "tuple(path(parts, columns[0]))",
        "tuple(path(parts, columns[0]))[:1]",
        tests=CHAIN,
    ),
    Mutation(
        "map: the whole table adds up the people of its blocks",
        "search/boxes/specialize.py",
        "        if self._counting.entities:\n            # Entities",
        "        if False:\n            # Entities",
        tests=PEOPLE,
    ),
    Mutation(
        "map: the split with the least gain",
        "search/boxes/propose.py",
        "rows * (before[place] - leaves)",
        "rows * (leaves - before[place])",
        tests=SEARCH,
    ),
    Mutation(
        "map: more is lost than by the node",
        "search/boxes/recoded.py",
        "new_tally(), over, spend=False)",
        "new_tally(), over)",
        tests=LOSES,
    ),
    Mutation(
        "map: suppressed rows lose nothing",
        "metrics/boxes.py",
        " + boxes.suppressed * size\n",
        " + boxes.suppressed\n",
        tests=("tests/recoding/test_figures.py::test_the_blocks_of_a_node_as_boxes",),
    ),
    Mutation(
        "replay: a label with another name is on no side of its cut",
        "recoding/ladder.py",
        "inside[i] = before and (least is None or least <= first)",
        "inside[i] = before and (least is None or least < first)",
        tests=NAMED,
    ),
    Mutation(
        "replay: boxes that are done lose their rows",
        "recoding/parts.py",
        "PartedKeys(counts.part, counts.words, child, child), keep=True)\n        parts =",
        "PartedKeys(counts.part, counts.words, child, child), keep=False)\n        parts =",
        tests=REPLAY,
    ),
    Mutation(
        "replay: what no child has is in a part of its own",
        "recoding/splits.py",
        'side = np.where(kind == KINDS.index("rest"), 0, NONE)',
        "side = np.full(len(left), NONE)",
        tests=REPLAY,
    ),
    Mutation(
        "replay: a label that came later has a new part each time",
        "recoding/splits.py",
        "child[i] = self._later.get(int(parts[i]), {}).get(int(codes[i]), NONE)",
        "pass",
        tests=REPLAY,
    ),
    Mutation(
        "map: rests of one label are numbered on from those of another",
        "recoding/tree.py",
        "in numbers[label.within])",
        "in numbers[None])",
        tests=("tests/recoding/test_division.py::test_the_rests_of_each_label_are_numbered_from_one",),
    ),
    Mutation(
        "replay: cuts go by names where the order is lost",
        "recoding/tree.py",
        "        if not ladder.ordered:\n            raise",
        "        if False:\n            raise",
        tests=CUT,
    ),
    Mutation(
        "replay: a label that gained a smaller value leaves its side",
        "recoding/ladder.py",
        "if name is None or name in bounds.names:",
        "if name is None:",
        tests=GAINED,
    ),
    Mutation(
        "map: a cut is the value of the first who is above it",
        "recoding/ladder.py",
        "else round_number(a, b))",
        "else b)",
        tests=TEXTS,
    ),
    Mutation(
        "map: a cut of moments is the first who is above it",
        "recoding/ladder.py",
        "else round_moment(a, b))",
        "else b)",
        tests=TEXTS,
    ),
    Mutation(
        "map: the outermost label ends with the greatest value",
        "recoding/ladder.py",
        "replace(last, low=point, high=around.high,",
        "replace(last, low=point, high=around.high or last.leaves[1],",
        tests=TEXTS,
    ),
    Mutation(
        "map: a label of whole numbers ends beyond them",
        "hierarchy/written.py",
        "int(end - first) + closed",
        "int(end - first) + 1",
        tests=TEXTS,
    ),
    Mutation(
        "map: the steps of cuts do not nest",
        "hierarchy/cuts.py",
        "yield ten / 2",
        "yield ten / 5",
        tests=TEXTS,
    ),
    Mutation(
        "map: labels speak of missing values where there is none",
        "search/boxes/propose.py",
        "first + whole - begins - without), axis=1)",
        "first + whole - begins), axis=1)",
        tests=("tests/recoding/test_sides.py::test_sides_of_a_cut_stand_for_the_leaves_of_their_labels",),
    ),
    Mutation(
        "named map: boxes that fail are suppressed beyond the limit",
        "search/boxes/specialize.py",
        "suppressed=failing if affordable else np.zeros_like(failing)",
        "suppressed=failing",
        tests=("tests/release/test_maps.py::test_a_named_map_that_fails_is_refused",),
    ),
    Mutation(
        "named map: boxes that fail are published",
        "search/boxes/specialize.py",
        "suppressed=failing if affordable else np.zeros_like(failing)",
        "suppressed=np.zeros_like(failing)",
        tests=("tests/release/test_maps.py::test_a_named_map_that_fails_is_refused",),
    ),
    Mutation(
        "named map: it goes with its version",
        "release/run.py",
        "            if version != self.spec.map_version:\n                forget",
        "            if True:\n                forget",
        tests=("tests/release/test_maps.py::test_the_named_map_outlives_its_version",),
    ),
    Mutation(
        "named map: nobody asks how it was chosen",
        "release/run.py",
        "        if self.named is not None:\n            return self.named.event\n",
        "",
        tests=("tests/release/test_maps.py::test_a_version_has_the_map_that_the_spec_names",),
    ),
    Mutation(
        "named map: each version has one of its own",
        "search/boxes/recoded.py",
        "        if self.known is not None:\n            return dict(self.known)\n",
        "",
        tests=SEARCH,
    ),
    Mutation(
        "a small part: one label is left out as two are",
        "search/boxes/arrays.py",
        "stays = ~small | (np.diff(cells.start) == 1)",
        "stays = ~small",
        tests=("tests/recoding/test_arrays.py",),
    ),
    Mutation(
        "a small part: no label of it is suppressed",
        "search/boxes/specialize.py",
        "if not self._counting.entities and not self._budget:",
        "if not self._counting.entities:",
        tests=(f"{LIMIT}::test_a_part_that_is_too_small_for_two_boxes_may_lose_a_row",),
    ),
    Mutation(
        "a small part: one that two groups fit counts as small",
        "search/boxes/specialize.py",
        "small = self._counts.rows(open_.parts[places]) < 2 * self._judge.least",
        "small = self._counts.rows(open_.parts[places]) <= 2 * self._judge.least",
        tests=("tests/recoding/test_arrays.py",),
    ),
    Mutation(
        "a rest: values of the source are named that readers do not see",
        "recoding/ladder.py",
        "if not shown >= {*names}:",
        "if not names:",
        tests=NAMES,
    ),
    Mutation(
        "a rest: labels of boxes that nobody sees count as seen",
        "recoding/tree.py",
        "seen = self.used(attribute, np.array(list(parts), dtype=np.int64))",
        "seen = used",
        tests=NAMES,
    ),
    Mutation(
        "a rest: its name is that of a label",
        "recoding/ladder.py",
        "return None if any(self.code(level, text) is not None for level in levels) else text",
        "return text",
        tests=("tests/recoding/test_division.py::test_the_names_of_a_rest_are_no_label_and_no_more_than_three",),
    ),
)
