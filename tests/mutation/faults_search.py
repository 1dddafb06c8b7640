"""Faults in the search, the lattice, the blocks and the statements."""

from __future__ import annotations

from mutation.mutation import Mutation

COUNTS = ("tests/frequency/test_frequency_sets.py",)
NODES = ("tests/integration/test_whole_lattices.py",)
CLASSES = {
    "models/diversity.py": ("FrequencyLDiversity", "EntropyLDiversity", "RecursiveCLDiversity"),
    "models/diversity_pd.py": ("PdRecursiveCLDiversity", "NpdRecursiveCLDiversity"),
    "models/closeness.py": ("TCloseness",),
    "models/nt_closeness.py": ("NtCloseness",),
    "models/proximity.py": ("DeltaLDiversity",),
    "models/likeness.py": ("AlphaKAnonymity", "BetaLikeness", "DeltaDisclosure"),
    "models/population.py": ("DeltaPresence",),
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

STRUCTURE = (
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
        "search/strategies/chains.py",
        "left[up(node)] = left[down(node)] = -1.0",
        "left[node] = -1.0",
        tests=("tests/search/test_strategies.py::test_of_nodes_that_are_asked_together_none_decides_another",),
    ),
    Mutation(
        "a budget may not be used up",
        "search/task.py",
        "            if failing > self.budget:",
        "            if failing >= self.budget:",
        "duckdb",
        NODES,
    ),
)

STATEMENTS = (
    Mutation(
        "rows without a leaf are dropped",
        "warehouse/queries.py",
        "joined = joined.outerjoin(dimension.table",
        "joined = joined.join(dimension.table",
        "duckdb",
        COUNTS,
    ),
)
