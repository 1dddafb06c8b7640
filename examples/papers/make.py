"""The tables of the source papers as a DuckDB file with specs: `python examples/papers/make.py DIR`.

docs/papers.md has the commands that reproduce the papers' examples from DIR.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

INPATIENTS = [
    ("13053", 28, "Russian", "Heart Disease"),
    ("13068", 29, "American", "Heart Disease"),
    ("13068", 21, "Japanese", "Viral Infection"),
    ("13053", 23, "American", "Viral Infection"),
    ("14853", 50, "Indian", "Cancer"),
    ("14853", 55, "Russian", "Heart Disease"),
    ("14850", 47, "American", "Viral Infection"),
    ("14850", 49, "American", "Viral Infection"),
    ("13053", 31, "American", "Cancer"),
    ("13053", 37, "Indian", "Cancer"),
    ("13068", 36, "Japanese", "Cancer"),
    ("13068", 35, "American", "Cancer"),
]
CONDITIONS = ("Heart Disease", "Viral Infection", "Cancer")
ZIP, AGE = ("476**", "4790*", "476**"), ("2*", ">=40", "3*")
HEART = "Heart Disease"
DISEASES = (HEART, HEART, HEART, "Flu", HEART, "Cancer", HEART, "Cancer", "Cancer")
STOMACH = ("gastric ulcer", "gastritis", "stomach cancer")
ILL = (STOMACH, ("gastritis", "flu", "bronchitis"), ("bronchitis", "pneumonia", "stomach cancer"))
SALARIES = ((3, 4, 5), (6, 8, 11), (7, 9, 10))
TWO = [("s1", "v1"), ("s1", "v2"), ("s2", "v3"), ("s3", "v3")]
THESIS_8 = [
    ("4217", 34, "Common cold"),
    ("4212", 39, "n/a"),
    ("4732", 39, "HIV"),
    ("4743", 23, "HIV"),
]
THESIS_9 = [
    ("4210-4219", "30-39", "Common cold"),
    ("4210-4219", "30-39", "n/a"),
    ("4700-4799", "20-39", "HIV"),
    ("4700-4799", "20-39", "HIV"),
]
THESIS_10 = [
    ("4000-4999", "20-34", "Common cold"),
    ("4000-4999", "35-39", "n/a"),
    ("4000-4999", "35-39", "HIV"),
    ("4000-4999", "20-34", "HIV"),
]
THESIS_11 = [
    ("4000-4999", "20-34", "Common cold"),
    ("4000-4999", "35-39", "Hepatitis B"),
    ("4000-4999", "35-39", "HIV"),
    ("4000-4999", "20-34", "HIV"),
]
THESIS_12 = [("4000-4999", "20-34", disease) for disease in ("Common cold", *["HIV"] * 8)]
CLASSES = {
    ("17-25", "11***"): (490, 500, 510, 1000),
    ("26-35", "11***"): (500, 600, 700),
    ("36-45", "11***"): (1000, 510, 680),
}
VACCINES = {
    ("<40", "M"): (200, 300),
    (">=40", "M"): (1800, 2700),
    (">=40", "F"): (18000, 2000),
}
"""EP Table 3, with how many have flu and cancer."""
PATIENTS = "SELECT row_number() OVER (ORDER BY gender, age, disease DESC) AS person, * FROM vaccines"
"""Table 3 with a number for each person; 1 is a woman over 40 who has flu, as Rachel is."""
LISTS = {"rachel": ("Flu", "Cancer"), "rachel_cancer": ("Cancer",)}
"""EP Examples 2 and 3, by spec: what person 1 guards. Nobody else guards anything."""


def tables() -> dict[str, tuple[Sequence[str], list[tuple[Any, ...]]]]:
    """By name: the columns, and a row for each person."""
    q, s = ("q", "s"), ("zip", "age", "disease")
    salaries = [
        (f"class {i + 1}", n * 1000, d) for i, row in enumerate(SALARIES) for n, d in zip(row, ILL[i], strict=True)
    ]
    skew = [("mixed", "negative", 1), ("mixed", "positive", 1), ("most", "negative", 1), ("most", "positive", 49)]
    skew += [("others", "negative", 9898), ("others", "positive", 50)]
    grid = [(0, 0, "a", 5), (0, 1, "a", 6), (1, 0, "a", 3), (1, 0, "b", 4), (1, 1, "a", 1), (1, 1, "b", 1)]
    incomes = [("north", "high", 34), ("north", "low", 166), ("south", "high", 300), ("south", "low", 500)]
    vaccines = [(*key, d, n) for key, two in VACCINES.items() for d, n in zip(("Flu", "Cancer"), two, strict=True)]
    return {
        "inpatients": (("zip", "age", "nationality", "condition"), INPATIENTS),
        "sample": (q, [("q1", "s1"), ("q1", "s2"), *[("q2", "s2")] * 4]),
        "population": (q, [("q1", "s1"), ("q1", "s2"), ("q2", "s2"), ("q2", "s2")]),
        "two_attributes": (("q", "s", "v"), [("q", *both) for both in TWO]),
        "diseases": (s, [(ZIP[i // 3], AGE[i // 3], d) for i, d in enumerate(DISEASES)]),
        "salaries": (("class", "salary", "disease"), salaries),
        "skewed": (("q", "test"), _people(skew)),
        "grid": (("x", "y", "s"), _people(grid)),
        "classes": (("age", "zip", "salary"), [(*key, n) for key, row in CLASSES.items() for n in row]),
        "values": (("q", "v"), [("one", 40), ("one", 60), ("two", 50), ("two", 80)]),
        "class_1": (("q", "v"), [("G1", v) for v in (40, 60)]),
        "class_2": (("q", "v"), [("G2", v) for v in (40, 50, 60)]),
        "thesis_8": (("zip", "age", "diagnostic"), THESIS_8),
        "thesis_9": (("zip", "age", "diagnostic"), THESIS_9),
        "thesis_10": (("zip", "age", "diagnostic"), THESIS_10),
        "thesis_11": (("zip", "age", "diagnostic"), THESIS_11),
        "thesis_12": (("zip", "age", "diagnostic"), THESIS_12),
        "vaccines": (("age", "gender", "disease"), _people(vaccines)),
        "incomes": (("region", "income"), _people(incomes)),
        **{f"{name}_guards": (("person", "disease"), [(1, d) for d in guarded]) for name, guarded in LISTS.items()},
    }


def _people(counted: list[Any]) -> list[tuple[Any, ...]]:
    return [row[:-1] for row in counted for _ in range(row[-1])]


FILES = {
    "zip.csv": "zip,four,three,any\n13053,1305*,130**,*\n13068,1306*,130**,*\n"
    "14850,1485*,1485*,*\n14853,1485*,1485*,*\n",
    "age.csv": "age,decade,half,any\n"
    + "".join(f"{a},<30,<40,*\n" for a in (21, 23, 28, 29))
    + "".join(f"{a},3*,<40,*\n" for a in (31, 35, 36, 37))
    + "".join(f"{a},>=40,>=40,*\n" for a in (47, 49, 50, 55)),
    "disease.csv": "disease,organ,any\n"
    + "".join(f"{d},stomach,*\n" for d in STOMACH)
    + "".join(f"{d},lungs,*\n" for d in ("flu", "bronchitis", "pneumonia")),
    "diagnostic.csv": "diagnostic,kind,any\nCommon cold,harmless,*\nHepatitis B,serious,*\nHIV,serious,*\n",
}

FIGURE_2 = (
    ["q: {role: quasi_identifier, hierarchy: suppress}", "v: sensitive"],
    ["epsilon_m_anonymity: {epsilon: 15, m: 1, sensitive: v}"]
    + [
        f"delta_l_diversity: {{delta: 15, l: 1, reading: {reading}, sensitive: v}}" for reading in ("literal", "window")
    ],
)
"""DL Figure 2, Examples 2 and 3: a class at a time."""

ADVERSARIES = (
    "adversary: I, stubbornness: 30000, at_most: false, prior: {values: {Flu: 12000, Cancer: 18000}}",
    "adversary: II, stubbornness: 30000",
    "adversary: III, prior: {values: {Flu: 2, Cancer: 3}}",
    "adversary: IV",
)
"""EP Example 3, in its order."""

SPECS = {
    "class_1": FIGURE_2,
    "class_2": FIGURE_2,
    "inpatients": (
        [
            "zip: {role: quasi_identifier, hierarchy: {file: zip.csv}}",
            "age: {role: quasi_identifier, hierarchy: {file: age.csv}}",
            "nationality: {role: quasi_identifier, hierarchy: suppress}",
            "condition: sensitive",
        ],
        [
            "k_anonymity: {k: 4}",
            "distinct_l_diversity: {l: 3, sensitive: condition}",
            "entropy_l_diversity: {l: 2.8, sensitive: condition}",
            "recursive_cl_diversity: {c: 3, l: 3, sensitive: condition}",
        ],
    ),
    "sample": (["q: {role: quasi_identifier, hierarchy: suppress}", "s: sensitive"], ["k_anonymity: {k: 1}"]),
    "two_attributes": (
        ["q: {role: quasi_identifier, hierarchy: suppress}", "s: sensitive", "v: sensitive"],
        [f"distinct_l_diversity: {{l: 3, sensitive: {of}}}" for of in ("s", "v", "[s, v]")],
    ),
    "grid": (
        [f"{name}: {{role: quasi_identifier, hierarchy: suppress}}" for name in "xy"] + ["s: sensitive"],
        ["nt_closeness: {n: 11, t: 0.25, sensitive: s}"],
    ),
    "values": (
        ["q: {role: quasi_identifier, hierarchy: suppress}", "v: sensitive"],
        ["epsilon_m_anonymity: {epsilon: 15, m: 1.5, sensitive: v}"]
        + [f"delta_l_diversity: {{delta: 7.5, l: 1.5, reading: {one}, sensitive: v}}" for one in ("literal", "window")],
    ),
    "vaccines": (
        [f"{name}: {{role: quasi_identifier, hierarchy: suppress}}" for name in ("age", "gender")]
        + ["disease: sensitive"],
        [
            "epsilon_privacy: {epsilon: 2.5, adversary: I, stubbornness: 30000, at_most: false, "
            "prior: {values: {Flu: 12000, Cancer: 18000}}, sensitive: disease}",
            "epsilon_privacy: {epsilon: 3, adversary: II, stubbornness: 1000, sensitive: disease}",
            "epsilon_privacy: {epsilon: 61, adversary: II, stubbornness: 30000, sensitive: disease}",
            "epsilon_privacy: {epsilon: 6, adversary: III, prior: {values: {Flu: 2, Cancer: 3}}, sensitive: disease}",
        ],
    ),
    **{
        name: (
            [f"{column}: {{role: quasi_identifier, hierarchy: suppress}}" for column in ("age", "gender")]
            + ["disease: sensitive"],
            [
                f"epsilon_privacy: {{epsilon: 6, {adversary}, sensitive: disease, "
                f"predicates: {{table: main.{name}_guards, entity: person, value: disease}}}}"
                for adversary in ADVERSARIES
            ],
        )
        for name in LISTS
    },
    "incomes": (
        ["region: {role: quasi_identifier, hierarchy: suppress}", "income: sensitive"],
        ["recursive_cl_diversity: {c: 4, l: 2, sensitive: income}", "t_closeness: {t: 0.2, sensitive: income}"],
    ),
    "skewed": (
        ["q: {role: quasi_identifier, hierarchy: suppress}", "test: sensitive"],
        ["t_closeness: {t: 0.2, sensitive: test}"],
    ),
}


def main(folder: Path) -> None:
    """Write everything into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "papers.duckdb"
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        for name, (columns, rows) in tables().items():
            kinds = ("BIGINT" if isinstance(value, int) else "VARCHAR" for value in rows[0])
            declared = ", ".join(f'"{column}" {kind}' for column, kind in zip(columns, kinds, strict=True))
            connection.execute(f'CREATE TABLE "{name}" ({declared})')
            places = ", ".join("?" for _ in columns)
            for row in dict.fromkeys(rows):
                connection.execute(
                    f'INSERT INTO "{name}" SELECT {places} FROM range({rows.count(row)})',
                    row,
                )
        connection.execute(f"CREATE TABLE patients AS {PATIENTS}")
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    for name, (attributes, privacy) in SPECS.items():
        table = "patients" if name in LISTS else name
        lines = ["version: 1", f"release: {name}", f'source: {{url: "duckdb:///papers.duckdb", table: main.{table}}}']
        lines += ["entity: person"] if name in LISTS else []
        lines += ["attributes:", *(f"  {one}" for one in attributes), "privacy:", *(f"  - {one}" for one in privacy)]
        (folder / f"{name}.yaml").write_text("\n".join(lines) + "\n", "utf-8")
    with (folder / "heart.csv").open("w", encoding="utf-8", newline="") as written:
        # LD section 1: heart disease is rare among Japanese, and of the others nothing is known.
        writer = csv.writer(written)
        writer.writerow(["zip", "age", "nationality", "condition", "weight"])
        for code, age, nationality, _ in INPATIENTS:
            for condition in CONDITIONS:
                rare = nationality == "Japanese" and condition == "Heart Disease"
                writer.writerow([code, age, nationality, condition, "0.01" if rare else "1"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
