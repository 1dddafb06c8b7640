"""Faults in the search, the lattice, the blocks and the statements."""

from __future__ import annotations

from mutation.mutation import Mutation

COUNTS = ("tests/frequency/test_frequency_sets.py",)
NODES = ("tests/integration/test_whole_lattices.py",)
CLASSES = {
    "models/diversity.py": (
        "FrequencyLDiversity",
        "EntropyLDiversity",
        "RecursiveCLDiversity",
        "PdRecursiveCLDiversity",
        "NpdRecursiveCLDiversity",
    ),
    "models/closeness.py": ("TCloseness", "NtCloseness"),
    "models/proximity.py": ("DeltaLDiversity",),
    "models/likeness.py": ("AlphaKAnonymity", "BetaLikeness", "DeltaDisclosure"),
    "models/anonymity.py": ("DeltaPresence",),
    "models/epsilon.py": ("EpsilonPrivacy",),
}

DECLARED = tuple(
    Mutation(
        f"{name} declared monotone with suppression",
        file,
        "suppression=False",
        "suppression=True",
        "monotone",
        after=f"class {name}(",
    )
    for file, names in CLASSES.items()
    for name in names
)

HIGHEST = ("tests/search/test_highest_level.py",)
WEIGHTS = ("tests/search/test_weights.py",)
HIDDEN = ("tests/search/test_suppressed_attributes.py",)

STRUCTURE = (
    Mutation(
        "suppressed: block sizes alone say that a node satisfies",
        "search/result.py",
        "if outcome is None or (result.choice",
        "if outcome is None or False and (result.choice",
        tests=HIDDEN,
    ),
    Mutation(
        "suppressed: entities are taken for rows",
        "search/task.py",
        "if self.sizes_only and not sets.entities:",
        "if self.sizes_only:",
        tests=HIDDEN,
    ),
    Mutation(
        "suppressed: sizes decide whatever is asked",
        "search/task.py",
        "if self.sizes_only and not sets.entities:",
        "if not sets.entities:",
        tests=HIDDEN,
    ),
    Mutation(
        "suppressed: any node that satisfies shows it",
        "search/result.py",
        "slice(None, level + 1) if i == attribute",
        "slice(level, None) if i == attribute",
        tests=HIDDEN,
    ),
    Mutation(
        "weights: bounds are not weighted",
        "search/utility.py",
        "share = 1.0 if shares is None or",
        "share = 1.0 if shares is not None or",
        tests=("tests/search/test_weights.py::test_weighted_figures_and_the_choice_by_them",),
    ),
    Mutation(
        "weights: equal ones take the way of others",
        "metrics/formulas.py",
        "if weights is None or len(set(weights)) < 2:",
        "if weights is None:",
        tests=WEIGHTS,
    ),
    Mutation(
        "max: what is alike goes beyond it",
        "search/task.py",
        "tuple(map(min, coarsest, self.lattice.top))",
        "coarsest",
        tests=HIGHEST,
    ),
    Mutation(
        "max: blocks above it are no supersets",
        "search/containing.py",
        "zip(sets.lattice.heights, node, strict=True)))",
        "zip(source.lattice.heights, node, strict=True)))",
        tests=("tests/search/test_highest_level.py::test_the_search_is_that_of_the_whole_lattice_up_to_there",),
    ),
    Mutation(
        "max: precision is of the levels up to it",
        "search/utility.py",
        "levels /= max(self._task.source.hierarchies[i].height, 1)",
        "levels /= max(height, 1)",
        tests=("tests/search/test_highest_level.py::test_metrics_are_what_they_are_without",),
    ),
    Mutation(
        "minimal nodes are the maximal ones",
        "lattice.py",
        "any(is_generalization(node, other) for other in kept)",
        "any(is_generalization(other, node) for other in kept)",
        "minimal",
    ),
    Mutation(
        "equal pairs are not added up",
        "blocks.py",
        "        count = np.add.reduceat(count, first) if len(first) else count\n",
        "        count = count[first] if len(first) else count\n",
        "order_and_splitting",
    ),
    Mutation(
        "the flag without suppression decides under a budget",
        "search/task.py",
        "return flags.suppression if self.budget else flags.generalization",
        "return flags.generalization",
        "duckdb",
        NODES,
    ),
    Mutation(
        "nodes that decide each other are asked together",
        "search/strategies.py",
        "left[up(node)] = left[down(node)] = -1.0",
        "left[node] = -1.0",
        tests=("tests/search/test_strategies.py::test_of_nodes_that_are_asked_together_none_decides_another",),
    ),
    Mutation(
        "a budget may not be used up",
        "search/task.py",
        "all(failing <= self.budget",
        "all(failing < self.budget",
        "duckdb",
        NODES,
    ),
)

STATEMENTS = (
    Mutation(
        "rows without a leaf are dropped",
        "frequency/coding.py",
        "joined = joined.outerjoin(named",
        "joined = joined.join(named",
        tests=("tests/source/test_levels.py::test_values_outside_the_bounds_of_cuts_are_not_covered",),
    ),
    Mutation(
        "predicates: values outside of the domain are dropped",
        "engines/queries.py",
        "joined = joined.outerjoin(dimension.table",
        "joined = joined.join(dimension.table",
        tests=("tests/search/test_guards.py::test_a_table_that_does_not_fit_is_refused",),
    ),
    Mutation(
        "search: a frequency set is readable by others",
        "files.py",
        "written_whole(path, private=True)",
        "written_whole(path, private=False)",
        tests=("tests/cli/test_parquet.py::test_a_frequency_set_is_a_group_by",),
    ),
    Mutation(
        "compare: drawn queries in place of those of a file",
        "search/compare.py",
        "        leaves,\n        workload,\n",
        "        leaves,\n        None,\n",
        tests=("tests/search/test_compare_workload.py::test_the_error_of_every_node_is_that_of_the_definition",),
    ),
    Mutation(
        "search: a frequency set has the labels of the leaves",
        "search/compare_results.py",
        '_texts(hierarchy, node[i], keys[:, i], "*")',
        '_texts(hierarchy, 0, keys[:, i], "*")',
        tests=("tests/cli/test_parquet.py::test_a_frequency_set_is_a_group_by",),
    ),
)
ARRAYS = ("tests/recoding/test_arrays.py::test_both_count_any_parts_alike",)
IN_MEMORY = (
    Mutation(
        "map in memory: rows whose label was not named go with others",
        "search/boxes/arrays.py",
        "return np.where(named[at] == cell, child[order[at]], -1)",
        "return child[order[at]]",
        tests=ARRAYS,
    ),
    Mutation(
        "map in memory: labels of several parents are not put in order",
        "search/boxes/arrays.py",
        "        if not self._ascending(attribute, at, level, code):\n",
        "        if False:\n",
        tests=ARRAYS,
    ),
    Mutation(
        "map in memory: a population's rows count as the table's own",
        "search/boxes/arrays.py",
        "size, total = (placed(len(occurring), place, of) for of in (own.size, own.rows))",
        "size = total = placed(len(occurring), np.searchsorted(occurring, others[0][0]), others[0][2])",
        tests=ARRAYS,
    ),
    Mutation(
        "map in memory: who has several values of a box is there with each",
        "search/boxes/arrays.py",
        "size = n if rows.value is None else _pairs(cells, replace(rows, value=None), span, 1)[2]",
        "size = np.add.reduceat(n, first) if len(first) else n",
        tests=ARRAYS,
    ),
    Mutation(
        "map in memory: people of labels that go together are added up",
        "search/boxes/arrays.py",
        "        if not self.entities:\n            return atoms.groups.merged(group, number)\n",
        "        if True:\n            return atoms.groups.merged(group, number)\n",
        tests=ARRAYS,
    ),
    Mutation(
        "map: a person has a value once for each of another attribute",
        "search/boxes/groups.py",
        "if not (self.values == ANY).any():",
        "if True:",
        tests=("tests/recoding/test_people.py::test_a_person_with_a_value_in_several_rows_has_it_once",),
    ),
    Mutation(
        "map in portions: the rows of a person count as those of one another",
        "search/boxes/arrays.py",
        "keys, fetched.n, table.told, fetched.entity)",
        "keys, fetched.n, table.told, None if fetched.entity is None else np.arange(len(fetched.n)))",
        tests=("tests/recoding/test_people.py::test_a_person_with_a_value_in_several_rows_has_it_once",),
    ),
    Mutation(
        "map in memory: metrics leave out the rows of boxes that were done before others",
        "search/boxes/arrays.py",
        "        self._settle(split)\n",
        "",
        tests=("tests/recoding/test_arrays.py::test_tables_beside_it_are_counted_alike",),
    ),
    Mutation(
        "map in memory: a cut is where it is among the labels of all portions",
        "search/boxes/propose.py",
        "moved = self.at[parts] - self.atoms.start[:-1][parts] + chosen.start[:-1]",
        "moved = self.at[parts]",
        tests=("tests/recoding/test_arrays.py::test_every_model_gets_the_same_map",),
    ),
    Mutation(
        "map in memory: what one portion chose counts for the next",
        "search/boxes/propose.py",
        "at = np.concatenate([of.at + start for of, start in zip(given, starts.tolist(), strict=True)])",
        "at = np.concatenate([of.at for of in given])",
        tests=("tests/recoding/test_arrays.py::test_every_model_gets_the_same_map",),
    ),
    Mutation(
        "map in portions: the rows of the last part are left out",
        "search/boxes/arrays.py",
        "fetched = table.leaves.rows(int(parts[0]), int(parts[-1]))",
        "fetched = table.leaves.rows(int(parts[0]), int(parts[-1]) - 1)",
        tests=("tests/recoding/test_arrays.py::test_every_model_gets_the_same_map",),
    ),
    Mutation(
        "map in portions: each portion suppresses what it likes to",
        "search/boxes/specialize.py",
        "None if self._budget else self._counting.handed_over(",
        "self._counting.handed_over(",
        tests=("tests/recoding/test_limits.py::test_the_limit_is_one_for_all_parts",),
    ),
    Mutation(
        "map in memory: further cuts are tried of the parts that were tried first",
        "search/boxes/propose.py",
        "return Tried(parts, self.atoms.select(there, index), self.where[index])",
        "return Tried(parts, self.atoms.select(there, index), self.where[: len(index)])",
        tests=("tests/recoding/test_arrays.py::test_every_model_gets_the_same_map",),
    ),
    Mutation(
        "progress: the rows of boxes that are done stay open",
        "search/boxes/specialize.py",
        "self._open_rows = max(0, self._open_rows - settled)",
        "self._open_rows = max(0, self._open_rows)",
        tests=("tests/search/test_progress.py::test_a_map_says_which_share_of_the_rows_its_boxes_have",),
    ),
    Mutation(
        "progress: how long a map takes is guessed",
        "search/progress.py",
        "self._report(SearchProgress(*told, None, self._settled()))",
        "self._report(SearchProgress(*told, self._remaining(), self._settled()))",
        tests=("tests/search/test_progress.py::test_nothing_is_guessed_of_how_long_a_map_takes",),
    ),
)
PAGE = ("tests/search/test_explorer.py",)
EXPLORER = (
    Mutation(
        "explorer: the best is the one with the largest metric",
        "search/explorer.py",
        "metric.sign * rounded(values[i])",
        "-metric.sign * rounded(values[i])",
        tests=PAGE,
    ),
    Mutation(
        "explorer: what fails whatever is asked is a choice",
        "search/explorer.py",
        "        if _barred(counts):\n",
        "        if False:\n",
        tests=PAGE,
    ),
    Mutation(
        "explorer: of a large lattice the best at other k and l are not looked for",
        "search/explorer.py",
        "(as_asked(spec), *rungs(asking))",
        "(as_asked(spec),)",
        tests=PAGE,
    ),
    Mutation(
        "explorer: a large lattice is explored below its nodes alone",
        "search/explorer.py",
        "(*lattice.parents(node), *lattice.children(node))",
        "lattice.children(node)",
        tests=PAGE,
    ),
    Mutation(
        "explorer: a level that nobody accepts is chosen",
        "report/templates/explorer.js",
        "order[node] !== null && shows(data, most, node) && ",
        "order[node] !== null && ",
        tests=PAGE,
    ),
    Mutation(
        "explorer: a map is the best where nobody wants maps",
        "report/templates/explorer.js",
        "held && (maps || !mapOf(data, choice))",
        "held",
        tests=PAGE,
    ),
    Mutation(
        "explorer: a map counts as what half of its rows show",
        "search/explorer.py",
        "MOST_SHOWN = 0.9",
        "MOST_SHOWN = 0.5",
        tests=PAGE,
    ),
    Mutation(
        "explorer: the lines for a map forget the size of its boxes",
        "search/maps.py",
        "    if search.box is not None:\n        parts",
        "    if False:\n        parts",
        tests=PAGE,
    ),
    Mutation(
        "explorer: a map is counted by what it was searched for alone",
        "search/maps.py",
        "partial(count_again, counted)",
        "lambda recoded: recoded",
        tests=PAGE,
    ),
    Mutation(
        "explorer: a threshold is compared with rounded numbers",
        "report/templates/explorer.js",
        "const left = a[0] * b[1], right = b[0] * a[1];",
        "const left = Math.round(Number(a[0]) / Number(a[1])), right = Math.round(Number(b[0]) / Number(b[1]));",
        tests=PAGE,
    ),
    Mutation(
        "explorer: a name ends the element of the data",
        "report/templates/explorer.html.j2",
        "{{ data | tojson }}",
        "{{ data | tojson | replace('\\\\u003c', '<') | safe }}",
        tests=PAGE,
    ),
)
ROLES_PAGE = ("tests/cli/test_init_page.py",)
ROLES = (
    Mutation(
        "roles: a name in a reason ends the line of the spec",
        "profiling/spec_text.py",
        "_key(p.name), _plain(p.reason)",
        "_key(p.name), p.reason",
        tests=ROLES_PAGE,
    ),
    Mutation(
        "roles: a hierarchy file is named that is not written",
        "profiling/roles.py",
        'isinstance(quasi, str) or quasi.form.get("file", "") in ("", *self.files)',
        "True",
        tests=ROLES_PAGE,
    ),
    Mutation(
        "roles: NULL reads like a value",
        "profiling/roles.py",
        'if row[f"n{i}"]}',
        "if False}",
        tests=ROLES_PAGE,
    ),
    Mutation(
        "roles: the column that says who a row is about is published",
        "profiling/roles.py",
        "if p.name == self.person:",
        "if False:",
        tests=ROLES_PAGE,
    ),
    Mutation(
        "roles: everybody may read the page",
        "profiling/first_spec.py",
        "with private_output(directory / PAGE) as output:",
        'with (directory / PAGE).open("wb") as output:',
        tests=ROLES_PAGE,
    ),
    Mutation(
        "roles: a lower bound is told as the share of all columns",
        "report/templates/roles.js",
        'all: most === all || most[1] === "100 %"',
        "all: true",
        tests=ROLES_PAGE,
    ),
    Mutation(
        "roles: a requirement is asked of a column that is not sensitive",
        "report/templates/roles.js",
        "...entries.map((entry) => entry.requirement)",
        "...data.columns.map((column) => (column.entries.sensitive || column.entries.identifying).requirement)",
        tests=ROLES_PAGE,
    ),
    Mutation(
        "roles: a name ends the element of the data",
        "report/templates/roles.html.j2",
        "{{ data | tojson }}",
        "{{ data | tojson | replace('\\\\u003c', '<') | safe }}",
        tests=ROLES_PAGE,
    ),
)
