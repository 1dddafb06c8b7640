"""How far answers from a release are off: counts and means by hand, and by `release.estimate`, on one's own CSV file.

    python -m benchmarks.analyst people.csv --numbers age,income --names sex,region --sensitive illness

publishes a map with k = 5 in a folder of its own, asks twelve aggregates and fifty that are drawn, and prints the
median and the worst relative error of both. By hand: a row with two bounds counts by the share of its label that a
range covers, rows without them as the others, and a mean is that of the middles.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

import qblock

DRAWN = 50
LEAST = 0.05
"""Share of the rows that a count is about at least: of few rows any answer is far off, and should be."""


@dataclass(frozen=True)
class Question:
    """A count of the rows whose column is from the first number on and below the other, or a mean of a column; where:
    another column with one value."""

    what: str
    column: str
    ends: tuple[float, float] | None = None
    where: tuple[str, Any] | None = None

    def truth(self, frame: pd.DataFrame) -> float:
        rows = frame if self.where is None else frame[frame[self.where[0]] == self.where[1]]
        if self.ends is None:
            return float(rows[self.column].mean())
        low, high = self.ends
        return float(((rows[self.column] >= low) & (rows[self.column] < high)).sum())

    def by_hand(self, view: pd.DataFrame) -> float:
        rows = view if self.where is None else view[view[self.where[0]] == str(self.where[1])]
        low, high = rows[f"{self.column}_low"], rows[f"{self.column}_high"]
        known = (low > float("-inf")) & (high < float("inf"))
        low, high = low[known], high[known]
        if self.ends is None:
            return float(((low + high) / 2).mean())
        inside = (high.clip(upper=self.ends[1]) - low.clip(lower=self.ends[0])).clip(lower=0)
        return float((inside / (high - low)).sum() * len(rows) / max(1, len(low)))

    def estimated(self, release: qblock.Release) -> float:
        where: dict[str, Any] = {} if self.where is None else {self.where[0]: self.where[1]}
        if self.ends is None:
            answer = release.estimate("mean", self.column, where=where)
        else:
            where[self.column] = {"from": self.ends[0], "below": self.ends[1]}
            answer = release.estimate("count", where=where)
        return float("nan") if answer.expected is None else float(answer.expected)


def questions(frame: pd.DataFrame, numbers: Sequence[str], sensitive: str, seed: int) -> list[list[Question]]:
    """Twelve aggregates: of each column of numbers its upper and lower quarter and its mean, over all and by the
    sensitive attribute, in turn; and those that are drawn."""
    draw, values = random.Random(seed), sorted(frame[sensitive].unique())
    fixed = []
    for where in (None, (sensitive, values[0]), (sensitive, values[-1])):
        for name in numbers:
            quarters = [float(frame[name].quantile(share)) for share in (0.25, 0.5, 0.75, 1)]
            fixed += [Question("count", name, (quarters[2], quarters[3]), where), Question("mean", name, None, where)]
            fixed += [Question("count", name, (quarters[0], quarters[1]), where)]
    drawn: list[Question] = []
    while len(drawn) < DRAWN:
        name, where = draw.choice(numbers), draw.choice([None, (sensitive, draw.choice(values))])
        ends = sorted(draw.choices(sorted(frame[name]), k=2))
        question = Question("count", name, (float(ends[0]), float(ends[1])), where)
        if question.truth(frame) >= LEAST * len(frame):
            drawn.append(question)
    return [[q for q in fixed if q.truth(frame)][:12], drawn]


def published(
    file: Path, folder: Path, numbers: Sequence[str], names: Sequence[str], sensitive: str, k: int, typical: str
) -> Path:
    """Publish a map of a file; the spec."""
    frame = pd.read_csv(file)
    types = {name: "integer" if frame[name].dtype.kind == "i" else "double" for name in numbers}
    attributes = {name: f"{{role: quasi_identifier, hierarchy: {{ranges: {steps(frame[name])}}}}}" for name in numbers}
    attributes |= dict.fromkeys(names, "{role: quasi_identifier, hierarchy: suppress}") | {sensitive: "sensitive"}
    lines = ["version: 1", "release: people", f"source: {{file: {file.resolve()}, types: {types}}}", "attributes:"]
    lines += [f"  {name}: {entry}" for name, entry in attributes.items()]
    lines += [f"privacy: [{{k_anonymity: {{k: {k}}}}}]", "search: {recoding: multidimensional, choose_by: loss}"]
    lines += [f"publish: {{url: 'duckdb:///{folder}/people.duckdb', typical: {typical}}}"]
    spec = folder / "release.yaml"
    spec.write_text("\n".join(lines) + "\n")
    return spec


def steps(values: pd.Series) -> list[float]:
    """Three widths of ranges: a hundredth of what most values span, and five and twenty-five times that."""
    span = float(values.quantile(0.95) - values.quantile(0.05))
    power = 10 ** len(str(int(span / 100))) if span >= 100 else 1
    return [power, 5 * power, 25 * power]


def errors(answered: Mapping[Question, tuple[float, float, float]], place: int) -> str:
    """The median and the worst of relative errors."""
    far = [abs(answers[place] - answers[0]) / abs(answers[0]) for answers in answered.values()]
    return f"{100 * statistics.median(far):.1f} | {100 * max(far):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    for option in ("--numbers", "--names", "--sensitive"):
        parser.add_argument(option, required=True)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--typical", choices=["mean", "none"], default="none", help="publish.typical")
    given = parser.parse_args()
    numbers, names = given.numbers.split(","), [name for name in given.names.split(",") if name]
    frame = pd.read_csv(given.file)
    with tempfile.TemporaryDirectory() as folder:
        spec = published(given.file, Path(folder), numbers, names, given.sensitive, given.k, given.typical)
        release = qblock.Release(spec)
        release.publish()
        with duckdb.connect(f"{folder}/people.duckdb", read_only=True) as connection:
            view = connection.execute("SELECT * FROM published.people").df()
        view[given.sensitive] = view[given.sensitive].astype(str)
        for what, of in zip(("twelve", "drawn"), questions(frame, numbers, given.sensitive, 47), strict=True):
            answered = {q: (q.truth(frame), q.by_hand(view), q.estimated(release)) for q in of}
            means = {q: answers for q, answers in answered.items() if q.what == "mean"}
            # | table | rows | questions | by hand: median %, worst % | estimated: median %, worst %
            print(f"| {given.file.stem} | {len(frame):,} | {what} | {errors(answered, 1)} | {errors(answered, 2)} |")
            if means:
                print(f"| | | its means | {errors(means, 1)} | {errors(means, 2)} |")


if __name__ == "__main__":
    main()
