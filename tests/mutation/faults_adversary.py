"""Faults in epsilon-privacy."""

from __future__ import annotations

from mutation.mutation import Mutation

ADVERSARY: tuple[Mutation, ...] = (
    Mutation(
        "epsilon: nobody removed from p_out",
        "adversary.py",
        "    first = x * total / (left * (x - 1 + Fraction(mass)))\n",
        "    first = x * total / (left * (x + Fraction(mass)))\n",
        "epsilon_privacy or vldb",
    ),
    Mutation(
        "epsilon: n + sigma",
        "adversary.py",
        "    total = n - 1 + Fraction(sigma)\n",
        "    total = n + Fraction(sigma)\n",
        "epsilon_privacy or vldb",
    ),
    Mutation(
        "epsilon: doubles with n + sigma",
        "models/epsilon*.py",
        "total = (n - 1) + float(self.sigma)",
        "total = n + float(self.sigma)",
        "epsilon_privacy or vldb",
    ),
    Mutation(
        "epsilon: known people are ignored",
        "models/epsilon*.py",
        "left, mass, rest = n - known,",
        "left, mass, rest = n,",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: a block of b people passes",
        "models/epsilon*.py",
        "np.where((part.rows <= self.known) &",
        "np.where((part.rows < self.known) &",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: only the first ratio",
        "models/epsilon*.py",
        "result = np.maximum(1.0, np.maximum(first, second))",
        "result = np.maximum(1.0, first)",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: exactly sigma for at most",
        "models/epsilon*.py",
        "return (least, sigma) if model.at_most and least < sigma else (sigma,)",
        "return (sigma,)",
        "epsilon_privacy or vldb",
    ),
    Mutation(
        "epsilon: more known people than others (III)",
        "models/epsilon*.py",
        "never = (mass == 0) | (left <= x)",
        "never = mass == 0",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: more known people than others (I, II)",
        "models/epsilon*.py",
        "never = ((x == 1) & (mass == 0)) | (left <= x)",
        "never = (x == 1) & (mass == 0)",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: certain predicates pass with known people",
        "models/epsilon*.py",
        "np.where(certain, 1.0 if known == 0 else math.inf, result)",
        "np.where(certain, 1.0, result)",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: negative predicates of absent values",
        "models/epsilon*.py",
        "            result[layer.broken(part, self.known)] = math.inf\n",
        "",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: II with one row per predicate",
        "models/epsilon*.py",
        "tuple(map(Fraction, members))",
        "tuple(Fraction(1) for _ in members)",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: prior of the observed for the uniform one",
        "adversary.py",
        "        return [Fraction(1)] * reference.values\n",
        "        return [Fraction(n) for n in reference.totals.tolist()]\n",
        "epsilon_privacy or vldb",
    ),
    Mutation(
        "epsilon: external counts without their one",
        "adversary.py",
        '(1 if prior == "from_table" else 0)',
        "0",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: only the first group of predicates",
        "adversary.py",
        "        remaining = later\n",
        "        remaining = []\n",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: who guards nothing is guarded",
        "models/epsilon.py",
        "        x[lacking[owner]] = 0\n",
        "",
        "epsilon_privacy",
    ),
    Mutation(
        "epsilon: the least size in doubles",
        "models/epsilon.py",
        "left * (p * total - q * (n * unit + s - m)) // slope",
        "int(left * (p * total / q - (n * unit + s - m)) / (slope / q))",
        tests=("tests/models/test_epsilon_sizes.py",),
    ),
    Mutation(
        "epsilon: guarded predicates declared monotone",
        "models/epsilon.py",
        'generalization=self.predicates != "guarded"',
        "generalization=True",
        "epsilon_privacy",
    ),
)
