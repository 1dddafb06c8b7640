"""Faults in models of counts: k-anonymity, diversity, and what all models share."""

from __future__ import annotations

from mutation.mutation import Mutation

SHARED: tuple[Mutation, ...] = (
    Mutation(
        "strict bounds are attained", "models/base.py", "        return bound.attained\n", "        return True\n"
    ),
    Mutation(
        "attained bounds are strict", "models/base.py", "        return bound.attained\n", "        return False\n"
    ),
    Mutation(
        "ratios: strict bounds are attained",
        "models/base.py",
        "return side >= 0 if bound.attained else side > 0",
        "return side >= 0",
    ),
    Mutation(
        "ratios: attained bounds are strict",
        "models/base.py",
        "return side >= 0 if bound.attained else side > 0",
        "return side > 0",
    ),
    Mutation(
        "only the first bound decides",
        "models/base.py",
        "        for bound in self.about.bounds:\n            if bound.decides",
        "        for bound in self.about.bounds[:1]:\n            if bound.decides",
        "alpha_k or npd or delta_presence",
    ),
    Mutation(
        "the table's value is its best block's",
        "models/base.py",
        'largest = bound.stricter == "smaller"\n',
        'largest = bound.stricter == "larger"\n',
    ),
    Mutation(
        "products overflow 64 bits",
        "models/ratios.py",
        "if narrow and max(_peak(numerator), 1) * q < _SAFE and max(_peak(denominator), 1) * abs(p) < _SAFE:",
        "if narrow:",
        "large",
    ),
    Mutation(
        "factors overflow 64 bits",
        "models/ratios.py",
        "if array.dtype == object or max(_peak(array), 1) * peak >= _SAFE:",
        "if array.dtype == object:",
        "large",
    ),
)

PROJECTIONS = ("tests/search/test_projections.py",)
DIVERSITY: tuple[Mutation, ...] = (
    Mutation(
        "k of some quasi-identifiers: only the last choice counts",
        "models/anonymity.py",
        "least = np.minimum(least, total[number])",
        "least = total[number]",
        tests=PROJECTIONS,
    ),
    Mutation(
        "k of some quasi-identifiers: the search counts blocks of all of them",
        "search/task.py",
        'if "projections" in bound[0][0].needs:',
        "if False:",
        tests=PROJECTIONS,
    ),
    Mutation(
        "k of some quasi-identifiers: the copy is counted by all of them",
        "publish/recheck.py",
        'if "projections" in requirement.model.needs:',
        "if False:",
        tests=("tests/release/test_projections.py",),
    ),
    Mutation(
        "k of some quasi-identifiers: beside suppression",
        "spec/checks.py",
        "needed = next((remedy for remedy, missing in remedies.items() if missing), None)",
        "needed = None",
        tests=PROJECTIONS,
    ),
    Mutation(
        "k counts values",
        "models/anonymity.py",
        "return blocks.rows, np.ones_like",
        "return blocks.support, np.ones_like",
        "k_anonymity",
    ),
    Mutation(
        "k counts pairs, not people",
        "models/anonymity.py",
        "return blocks.rows, np.ones_like",
        "return blocks.total, np.ones_like",
        "entities",
    ),
    Mutation(
        "distinct: one more",
        "models/diversity.py",
        "return blocks.support, np.ones_like",
        "return blocks.support + 1, np.ones_like",
        "distinct",
    ),
    Mutation(
        "frequency: by people",
        "models/diversity.py",
        "        return blocks.total, blocks.largest\n",
        "        return blocks.rows, blocks.largest\n",
        "entities",
    ),
    Mutation(
        "entropy: a share dropped",
        "models/diversity.py",
        "entropy = blocks.sum(-share * np.log(share))",
        "entropy = blocks.sum(-share * np.log(share)) - 1e-6",
        "entropy",
    ),
    Mutation(
        "entropy: equal counts not recognized",
        "models/diversity.py",
        "        if int(block.largest[0]) * support == total:\n            return support\n",
        "        if int(block.largest[0]) * support == total:\n            return float(support) - 1e-12\n",
        "entropy",
    ),
    Mutation(
        "entropy: whole values not recognized",
        "models/diversity.py",
        "return nearest if abs(DIGITS.subtract(value, Decimal(nearest))) <= EQUAL * nearest else value",
        "return value - Decimal('1e-40')",
        "entropy",
    ),
    Mutation(
        "recursive: tail from l+1",
        "models/diversity.py",
        "return blocks.largest, blocks.total - head(blocks, int(self.l) - 1)",
        "return blocks.largest, blocks.total - head(blocks, int(self.l))",
        "recursive",
    ),
    Mutation(
        "recursive: tail from l-1",
        "models/diversity.py",
        "return blocks.largest, blocks.total - head(blocks, int(self.l) - 1)",
        "return blocks.largest, blocks.total - head(blocks, int(self.l) - 2)",
        "recursive",
    ),
    Mutation(
        "recursive: not strict",
        "models/diversity.py",
        'bounds=(Bound("l", "larger", decides=False), Bound("c", "smaller", attained=False))',
        'bounds=(Bound("l", "larger", decides=False), Bound("c", "smaller"))',
        "recursive",
        after="class RecursiveCLDiversity(",
    ),
    Mutation(
        "recursive: l=1 by the formula",
        "models/diversity.py",
        "        if self.l == 1:\n            return np.zeros_like(blocks.total), np.ones_like(blocks.total)\n",
        "",
        "recursive",
    ),
    Mutation(
        "recursive: largest l not strict",
        "models/diversity.py",
        "holds = sign(blocks.largest[blocks.owner], tail, self.c) < 0",
        "holds = sign(blocks.largest[blocks.owner], tail, self.c) <= 0",
        "recursive",
    ),
    Mutation(
        "recursive: largest l may be 0",
        "models/diversity.py",
        "        holds[blocks.start[:-1]] = True\n",
        "",
        "recursive",
    ),
    Mutation(
        "pd: allowed values count",
        "models/diversity.py",
        "result: Ints = blocks.max(np.where(allowed[blocks.value], 0, blocks.count))",
        "result: Ints = blocks.largest",
        "pd",
    ),
    Mutation(
        "pd: blocks of allowed values fail",
        "models/diversity.py",
        "return most, np.where(most == 0, 1, tail)",
        "return most + (most == 0), np.where(most == 0, 1, tail)",
        "pd",
    ),
    Mutation(
        "pd: l-1 others eliminated",
        "models/diversity.py",
        "np.minimum(head(blocks, l - 2) + most, head(blocks, l - 1))",
        "np.minimum(head(blocks, l - 1) + most, head(blocks, l))",
        "pd",
    ),
    Mutation(
        "pd: the tie of s_y eliminated",
        "models/diversity.py",
        "np.minimum(head(blocks, l - 2) + most, head(blocks, l - 1))",
        "head(blocks, l - 1)",
        "pd",
    ),
    Mutation("pd: largest l not infinite", "models/diversity.py", "    result[most == 0] = math.inf\n", "", "pd"),
    Mutation(
        "npd: an absent protected value is skipped",
        "models/diversity.py",
        "np.where(present == int(protected.sum()), rarest, 0)",
        "np.where(present > 0, rarest, 0)",
        "npd",
    ),
    Mutation("npd: shares instead of percent", "models/diversity.py", "rarest, 0), 100)", "rarest, 0), 99)", "npd"),
    Mutation(
        "multi: only one part of a block counts",
        "models/multi.py",
        "result[attribute.owner[~attribute.model.passes(attribute.blocks, attribute.reference)]] = False",
        "result[attribute.owner[~attribute.model.passes(attribute.blocks, attribute.reference)][:1]] = False",
        "multi",
    ),
    Mutation(
        "multi: declared monotone with suppression where the base is",
        "models/multi.py",
        "suppression = len(models) == 1 and all(",
        "suppression = all(",
        tests=("tests/laws/test_multi_flags.py",),
    ),
    Mutation(
        "multi: parts are not split by the others",
        "models/multi.py",
        "np.delete(values, i, axis=1)",
        "np.delete(values, i, axis=1)[:, :0]",
        "multi",
    ),
)
