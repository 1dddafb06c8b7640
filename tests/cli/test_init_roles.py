"""`qblock init` and roles: private matters in several languages, what is left to a person, and how many columns are
taken as what others know."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qblock.api import ProposedColumn
from qblock.cli.start import ask_sensitive, parse_columns
from qblock.column_names import folded
from qblock.profiling.columns import MOST_COLUMNS, MOST_NODES
from qblock.profiling.words import private_topic, suggests
from qblock.spec import load_spec

PRIVATE = {
    "health": """
        diagnosis hiv_status Symptoms treatment_arm drugs depression_score pregnant smoker alcoholUse died
        Krankheit Befund Medikament Schwangerschaft maladie traitement grossesse enfermedad tratamiento
        embarazo malattia farmaco gravidanza ziekte behandeling zwangerschap doenca tratamento gravidez
        choroba leczenie vaccinated disability
    """,
    "a laboratory value": """
        cd4 CD4_count cd80 hba1c cholesterol systolic_bp creatinine Blutdruck hemoglobine glucosa bloeddruk
    """,
    "sex life": """
        sexual_orientation homo lesbian contraception sexuelleOrientierung homosexualite orientamento
        seksualiteit
    """,
    "religion": """
        religion church_attendance Konfession croyance creencia credo geloof igreja wyznanie
    """,
    "political opinion": """
        party vote92 politicalViews ideology Partei scrutin partido elezione_voto stemming eleicao
    """,
    "trade union membership": """
        union unionmember Gewerkschaft syndicat sindicato sindacato vakbond
    """,
    "biometric data": """
        fingerprint iris_scan biometric_template Fingerabdruck empreinte huella impronta vingerafdruk
    """,
    "genetic data": """
        genotype dna brca1 snp_17 genetisch adn genetica
    """,
    "offences": """
        arrested convictions prison_time recidivism felony Vorstrafen condamnation delito reato misdrijf
        crime przestepstwo parole
    """,
    "money": """
        salary lwage income2023 faminc debt loan_amount bankrupt Gehalt Einkommen salaire revenu sueldo
        deuda stipendio reddito salaris inkomen renda divida wynagrodzenie credit_score welfare
        unemployed_benefit
    """,
    "work or achievement": """
        occupation gpa exam_result Arbeitgeber emploi ocupacion licenziamento ontslag
    """,
}
PUBLIC = """
    age zip postcode city state region country gender sex height weight birthdate date_of_birth
    marital_status education admission_date visit_date children race ethnicity Alter PLZ Geschlecht
    Geburtsdatum edad sexo idade leeftijd wiek naissance ville provincia partner department product
    brand colour shift wing census language
"""
NAMES = [(name, topic) for topic, names in PRIVATE.items() for name in names.split()]


@pytest.mark.parametrize(("name", "topic"), NAMES, ids=[name for name, _ in NAMES])
def test_a_private_matter_is_known_by_its_name(name: str, topic: str) -> None:
    proposed = private_topic(name)
    assert proposed is not None
    assert not proposed.visible
    expected = {topic, "health"} if name == "depression_score" else {topic, "money"} if "unemploy" in name else {topic}
    assert proposed.says in expected


@pytest.mark.parametrize("name", PUBLIC.split())
def test_what_others_see_is_not_private(name: str) -> None:
    proposed = private_topic(name)
    assert proposed is None or (proposed.visible and suggests(name, "quasi"))


@pytest.mark.parametrize("seed", range(40))
def test_a_name_in_other_letters_suggests_the_same(seed: int) -> None:
    """In capitals, with accents left out, among other words, or numbered."""
    draw = random.Random(seed)
    name = draw.choice(NAMES)[0]
    other = draw.choice(
        [name.upper() if "_" in name or name.islower() else name, f"my_{name}", f"{name}_2", f"x.{name}"]
    )
    assert getattr(private_topic(other), "says", None) == getattr(private_topic(name), "says", None), folded(other)


ROWS = 300


def roles(qblock: Any, url: str, folder: Path, *more: str) -> dict[str, tuple[str, str]]:
    ran = qblock("init", url, "people", "--directory", folder, "--json", *more)
    assert ran.status == 0, ran.err
    return {column["name"]: (column["role"], column["reason"]) for column in ran.json["columns"]}


@pytest.mark.either_engine
def test_flags_and_codes_are_left_to_a_person(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(7)
    columns: dict[str, list[Any]] = {
        "age": [draw.randrange(20, 80) for _ in range(ROWS)],
        "gender": [draw.randrange(2) for _ in range(ROWS)],
        "person": [draw.randrange(2) for _ in range(ROWS)],
        "arm": [draw.randrange(4) for _ in range(ROWS)],
        "wing": [draw.choice(["north", "south"]) for _ in range(ROWS)],
        "floor": [draw.choice(["first", "second", "third"]) for _ in range(ROWS)],
        "q7": [draw.choice([1, None]) for _ in range(ROWS)],
        "wave": [3] * ROWS,
        "nothing": [None] * ROWS,
        "fnlwgt": [draw.randrange(10_000, 99_999) for _ in range(ROWS)],
        "reading": [draw.random() for _ in range(ROWS)],
        "points": [draw.randrange(100) for _ in range(ROWS)],
    }
    url = warehouse("people", columns, {"q7": "INTEGER", "nothing": "INTEGER"})
    monkeypatch.setenv("WAREHOUSE_URL", url)
    proposed = roles(qblock, url, tmp_path / "made")
    assert {name: role for name, (role, _) in proposed.items()} == {
        "age": "quasi_identifier",
        "gender": "quasi_identifier",
        "person": "decide",
        "arm": "decide",
        "wing": "decide",
        "floor": "quasi_identifier",
        "q7": "decide",
        "wave": "left out",
        "nothing": "left out",
        "fnlwgt": "left out",
        "reading": "decide",
        "points": "decide",
    }
    assert (proposed["wave"][1], proposed["nothing"][1]) == ("has one value", "has no value")
    assert proposed["fnlwgt"][1] == "a survey weight"
    text = (tmp_path / "made" / "release.yaml").read_text("utf-8")
    assert "\n  # arm: {role: quasi_identifier, hierarchy: " in text
    # Nothing is open in a way that stops a search: what is left to a person is not published.
    assert set(load_spec(tmp_path / "made" / "release.yaml").attributes) == {"age", "gender", "floor"}
    assert qblock("search", tmp_path / "made" / "release.yaml").status == 0


@pytest.mark.either_engine
def test_where_there_are_only_flags_all_of_them_are_open(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {f"q{i}": [(i * j // 7) % 2 for j in range(ROWS)] for i in range(1, 6)}
    url = warehouse("people", columns)
    monkeypatch.setenv("WAREHOUSE_URL", url)
    ran = qblock("init", url, "people", "--directory", tmp_path / "made", "--sensitive", "q1", "--json")
    assert ran.status == 0, ran.err
    assert list(ran.json["open"]) == ["q2", "q3", "q4", "q5"]
    refused = qblock("search", tmp_path / "made" / "release.yaml")
    assert (refused.status, "attributes.q2.role: `???` stands for a decision" in refused.err) == (2, True)


def greedy(columns: dict[str, list[Any]], known: list[str], most: int) -> list[str]:
    """By all rows at once, for few columns."""
    taken: list[str] = []
    for group in (known, [name for name in columns if name not in known]):
        rest = list(group)
        while rest and len(taken) < most:
            alone = {}
            for name in rest:
                rows = list(zip(*(columns[other] for other in [*taken, name]), strict=True))
                alone[name] = sum(count == 1 for count in Counter(rows).values())
            best = max(rest, key=lambda name: alone[name])
            taken.append(best)
            rest.remove(best)
    return taken


@pytest.mark.either_engine
@pytest.mark.parametrize("seed", range(3))
def test_those_that_single_out_most_are_proposed(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(seed)
    known = ["age", "city"]
    columns: dict[str, list[Any]] = {"age": [draw.randrange(20, 80) for _ in range(ROWS)]}
    for i in range(9):
        values = draw.randrange(11, 40)
        columns[f"m{i}"] = [f"{draw.randrange(values)} x" for _ in range(ROWS)]
    columns["city"] = [draw.choice("abcd") for _ in range(ROWS)]
    url = warehouse("people", columns)
    monkeypatch.setenv("WAREHOUSE_URL", url)
    proposed = roles(qblock, url, tmp_path / "made", "--sensitive", "none")
    expected = greedy(columns, known, MOST_COLUMNS)
    assert {name for name, (role, _) in proposed.items() if role == "quasi_identifier"} == set(expected)
    assert {role for name, (role, _) in proposed.items() if name not in expected} == {"decide"}
    assert qblock("search", tmp_path / "made" / "release.yaml").status == 0


@pytest.mark.either_engine
def test_the_lattice_is_never_larger_than_a_search_takes(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    draw = random.Random(1)
    columns: dict[str, list[Any]] = {
        f"postcode_{i}": [f"{draw.randrange(10**9):09}" for _ in range(ROWS)] for i in range(7)
    }
    for values in columns.values():  # repeated, or they would be identifiers
        values[ROWS // 3 :] = [draw.choice(values[: ROWS // 3]) for _ in range(ROWS - ROWS // 3)]
    url = warehouse("people", columns)
    ran = qblock("init", url, "people", "--directory", tmp_path / "made", "--sensitive", "none", "--json")
    assert ran.status == 0, ran.err
    assert 0 < ran.json["nodes"] <= MOST_NODES < 10**7
    assert {column["role"] for column in ran.json["columns"]} == {"quasi_identifier", "decide"}


NUMBERED = ["age", "zip code", "1", "a,b", "none of it"]


@pytest.mark.parametrize(
    ("typed", "picked"),
    [
        ("1", ["age"]),
        ("3", ["1"]),
        ("1-3", ["age", "zip code", "1"]),
        ("1 - 2, 4", ["age", "zip code", "a,b"]),
        ("1 2", ["age", "zip code"]),
        ("zip code", ["zip code"]),
        ("zip code, age", ["zip code", "age"]),
        ("a,b", ["a,b"]),
        ("age, age, 1", ["age"]),
        ("none", ["none"]),
        ("0", ["none"]),
        ("none of it", ["none of it"]),
        ("6", None),
        ("3-1", None),
        ("0-2", None),
        ("ages", None),
        ("age, 9", None),
        (",", None),
    ],
)
def test_columns_are_picked_by_numbers_and_names(typed: str, picked: list[str] | None) -> None:
    assert parse_columns(typed, NUMBERED) == picked


@pytest.mark.parametrize(
    ("typed", "picked", "said"),
    [
        ([""], ["income"], "Which columns are sensitive"),
        (["?", "2"], ["age"], "distinct values: 7; why of age"),
        (["1", "id, 3", "9", "none"], ["none"], "id leads to a person and is never published"),
    ],
)
def test_what_leads_to_a_person_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: list[str],
    picked: list[str],
    said: str,
) -> None:
    roles = {"id": "identifying", "age": "quasi_identifier", "income": "sensitive"}
    same = {"distinct": 7, "approximate": False, "nulls": 0, "values": "7"}
    columns = [ProposedColumn(name=name, role=role, reason=f"why of {name}", **same) for name, role in roles.items()]
    monkeypatch.setattr("typer.prompt", lambda *_, **__: typed.pop(0))
    assert ask_sensitive(columns) == picked
    assert typed == []
    assert said in capsys.readouterr().err


@pytest.mark.either_engine
def test_nothing_that_is_printed_is_wider_than_a_screen(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    draw = random.Random(3)
    names = [
        f"{'_'.join(parts)}" for parts in itertools.product(("first", "second"), ("wave", "visit"), map(str, range(9)))
    ]
    columns = {name: [draw.randrange(2 + i) for _ in range(ROWS)] for i, name in enumerate(names)}
    ran = qblock("init", warehouse("people", columns), "people", "--directory", tmp_path / "made")
    assert ran.status == 0, ran.err
    wide = [line for line in ran.out.splitlines() if len(line.rstrip()) > 80]
    assert [line for line in wide if str(tmp_path) not in line] == []


@pytest.mark.either_engine
def test_where_no_name_says_anything_numbers_are_taken(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    draw = random.Random(4)
    columns: dict[str, list[Any]] = {
        f"v{i}": [draw.randrange(20 + i) for _ in range(ROWS)] for i in range(MOST_COLUMNS + 2)
    }
    columns["yes"] = [draw.randrange(2) for _ in range(ROWS)]
    ran = qblock("init", warehouse("people", columns), "people", "--directory", tmp_path / "made", "--yes", "--json")
    assert ran.status == 0, ran.err
    roles = [column["role"] for column in ran.json["columns"]]
    assert roles.count("quasi_identifier") == MOST_COLUMNS
    assert roles[-1] == "decide"
