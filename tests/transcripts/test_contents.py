"""The content digests of releases of drawn tables, which are the same on each engine: lines of recorded/contents.txt.

A line is a release: its number, what was asked, and what was published: rows, suppressed rows, node or boxes, digest.
QBLOCK_TRANSCRIPTS=update writes them anew (docs/testing.md, Transcripts).
"""

from __future__ import annotations

import json
import os
import random
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from release.jobs import MakeJob, first_runs, make_job  # noqa: F401

from qblock.errors import Refused

FILE = Path(__file__).parent / "recorded" / "contents.txt"
QUICK, ALL = 8, 48
MODELS: list[list[dict[str, Any]]] = [
    [{"k_anonymity": {"k": 3}}],
    [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
    [{"distinct_l_diversity": {"l": 3}}],
    [{"entropy_l_diversity": {"l": 2}}],
    [{"frequency_l_diversity": {"l": 2}}],
    [{"recursive_cl_diversity": {"c": 2, "l": 2}}],
    [{"t_closeness": {"t": 0.4}}, {"k_anonymity": {"k": 2}}],
    [{"alpha_k_anonymity": {"alpha": 0.6, "k": 3}}],
    [{"beta_likeness": {"beta": 2}}],
    [{"epsilon_privacy": {"epsilon": 4, "adversary": "III"}}],
]
ATTRIBUTES: dict[str, Any] = {
    "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 3}},
    "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 20], "start": 0}},
    "born": {"role": "quasi_identifier", "hierarchy": {"dates": ["month", "quarter", "year"]}, "nulls": "top"},
    "weight": {"role": "quasi_identifier", "hierarchy": {"edges": [0, 50, 70, 90], "finest": 10}},
    "sex": {"role": "quasi_identifier", "hierarchy": "suppress", "nulls": "top"},
}


def drawn(rng: random.Random, repeated: bool) -> dict[str, list[Any]]:
    """A table of people. repeated: some have several rows."""
    rows = rng.randint(20, 150)
    return {
        "id": [f"p{rng.randrange(rows) if repeated else i}" for i in range(rows)],
        "zip": [f"{rng.choice((10, 10, 21))}{rng.randrange(4)}" for _ in range(rows)],
        "age": [rng.randint(18, 70) for _ in range(rows)],
        "born": [
            None if rng.random() < 0.05 else date(1960, 1, 1) + timedelta(rng.randrange(700)) for _ in range(rows)
        ],
        "weight": [Decimal(rng.randint(4000, 11000)) / 100 for _ in range(rows)],
        "sex": [rng.choice(("f", "m", "m", "", None)) for _ in range(rows)],
        "ward": [rng.choice("ÄB'") for _ in range(rows)],
        "value": [rng.choice(("flu", "cold", "cold", "none", "é 1")) for _ in range(rows)],
    }


def settings(rng: random.Random, number: int) -> dict[str, Any]:
    """Further settings of a release: its map or its lattice, its models, which columns it has."""
    names = rng.sample(sorted(ATTRIBUTES), rng.choice([2, 3]))
    recoding = "multidimensional" if number % 3 == 2 else "full_domain"
    by = rng.choice(["loss", "discernibility", "kl_divergence"])
    found: dict[str, Any] = {
        "release": f"r{number}",
        "entity": "id",
        "attributes": {"id": "identifying", **{n: ATTRIBUTES[n] for n in names}, "value": "sensitive"},
        "privacy": MODELS[number % len(MODELS)],
        "search": {"recoding": recoding, "choose_by": by},
    }
    if number % 4 == 1:
        found["count"] = "entities"
    if rng.random() < 0.5:
        found["attributes"]["ward"] = "insensitive"
    if recoding == "full_domain":
        found["versions"] = {"joint": "none"}
        found["suppression_limit"] = rng.choice([0, 0.1, 5])
    return found


def line_of(number: int, make: MakeJob) -> str:
    rng = random.Random(number)
    columns, more = drawn(rng, repeated=number % 4 == 1), settings(rng, number)
    job = make(columns, table=f"t{number}", **more)
    if more["search"]["recoding"] == "multidimensional":
        job.settings["publish"]["names"] = {"weight": "share"}  # a column is called weight
    models = " ".join(f"{name} {json.dumps(p)}" for model in more["privacy"] for name, p in model.items())
    names = [n for n in more["attributes"] if n in ATTRIBUTES]
    asked = f"{number:02} {more['search']['recoding']} {','.join(names)} {models}"
    try:
        result = job.run()
    except Refused:
        return f"{asked}: refused"
    shown = f"{result.boxes} boxes" if result.boxes else f"node {','.join(map(str, result.node.values()))}"
    return f"{asked}: {result.rows} rows, {result.suppressed} suppressed, {shown}, {result.digest}"


def check(number: int, make: MakeJob) -> None:
    now = line_of(number, make)
    lines = {line[:2]: line for line in FILE.read_text("utf-8").splitlines()} if FILE.exists() else {}
    if os.environ.get("QBLOCK_TRANSCRIPTS") == "update":
        lines[now[:2]] = now
        FILE.write_text("".join(f"{line}\n" for _, line in sorted(lines.items())), "utf-8")
    else:
        assert now == lines[now[:2]]


@pytest.mark.handed_on
@pytest.mark.parametrize("number", range(QUICK))
def test_the_content_is_as_before(number: int, make_job: MakeJob) -> None:  # noqa: F811
    check(number, make_job)


@pytest.mark.handed_on
@pytest.mark.parametrize("number", range(QUICK, ALL))
def test_more_contents_are_as_before(number: int, make_job: MakeJob) -> None:  # noqa: F811
    check(number, make_job)
