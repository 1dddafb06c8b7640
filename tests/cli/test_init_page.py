"""The page of `qblock init --open`: its own program writes the spec for the roles chosen; no value is in it."""

from __future__ import annotations

import json
import random
import stat
import webbrowser
from collections import Counter
from datetime import date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.hostile import NAMES
from report.in_page import program

from qblock.api import propose_spec
from qblock.profiling.unique_sets import percent
from qblock.spec import read_spec

pytestmark = pytest.mark.either_engine

ROLES = ("quasi_identifier", "sensitive", "identifying", "left out")
HOSTILE = [
    "'quoted'\nno: comment",
    '</script><script>x("',
    "???",
    "\u202eright\u2067to left",
    "null",
    "yes",
    "${HOME}",
    "a: b",
]
SECRETS = ["</script><b>secret", "secret \n---", "=secret()", "\u202esecret", "secret ???"]
PEOPLE: dict[str, list[Any]] = {
    "patient_id": list(range(100, 300)),
    "age": [20 + i * 7 % 61 for i in range(200)],
    "zip": [f"130{i * 13 % 37:02}" for i in range(200)],
    "gender": [("m", "f", None)[i * i % 3] for i in range(200)],
    "city": [f"city {i * i % 11}" for i in range(200)],
    "star": [("*", "b", None)[i * i % 7 % 3] for i in range(200)],
    "admission": [date(2020, 1, 1) + timedelta(days=9 * (i * 3 % 41)) for i in range(200)],
    "children": [i * i % 6 for i in range(200)],
    "measure": [i % 23 / 7 for i in range(200)],
    "diagnosis": [("flu", "cold", "cough")[i * i % 5 % 3] for i in range(200)],
    "ratio": [float("inf") if i % 50 == 0 else float("nan") if i % 51 == 0 else i * i % 9 / 2 for i in range(200)],
    "moved": [None if i % 4 == 0 else datetime(2020, 1, 1) + timedelta(hours=7 * i) for i in range(200)],
    "flag": [i * i % 7 < 2 for i in range(200)],
    "town": [f"town {i * i % 11}" for i in range(200)],
    "constant": [1] * 200,
    "empty": [None] * 199 + ["x"],
    "note": [f"free text, which is longer than most, no {i}" for i in range(200)],
}

QUASI = {
    "age": "Readers see its value, ranges of 5, 10, 20 or *, as a search decides.",
    "zip": "Readers see its value, its first digits or *, as a search decides.",
    "gender": "Readers see its value or *, as a search decides.",
    "city": "Readers see its value or *, as a search decides. Add levels to hierarchies/city.csv for more.",
    "admission": "Readers see its value, its month, quarter, year or *, as a search decides.",
    "children": "Readers see its value, ranges from 0, 1 on or *, as a search decides.",
    "moved": "Readers see its day, month, quarter, year or *, as a search decides.",
}

FEW = {name: PEOPLE[name] for name in ("patient_id", "age", "city", "diagnosis")}


def hostile(draw: random.Random) -> dict[str, list[Any]]:
    """A few columns of these people under names that no file is safe from."""
    names = draw.sample([*HOSTILE, *NAMES], 7)
    kinds = draw.sample(list(PEOPLE), 7)
    return {"patient_id": PEOPLE["patient_id"], **{name: PEOPLE[of] for name, of in zip(names, kinds, strict=True)}}


def data_of(page: Path) -> dict[str, Any]:
    """What the page is made of, as a browser finds it: up to the first end of a script."""
    text = page.read_text("utf-8").split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert text.isprintable()
    return dict(json.loads(text))


def asked(context: Any, function: str, roles: list[str]) -> Any:
    """The answer of a function of the page about these roles."""
    context.set("given", json.dumps(roles))
    return context.eval(f"{function}(data, JSON.parse(given))")


def proposed(url: str, folder: Path, **more: Any) -> Any:
    return propose_spec(url, "people", folder, page=True, **more)


@pytest.mark.parametrize("sensitive", [None, ["none"], ["diagnosis", "city"]])
@pytest.mark.parametrize("entity", [None, "none"])
def test_roles_that_nobody_changed_are_the_spec_that_is_written(
    warehouse: Any, tmp_path: Path, sensitive: list[str] | None, entity: str | None
) -> None:
    url = warehouse("people", PEOPLE)
    answer = proposed(url, tmp_path, sensitive=sensitive, entity=entity)
    assert [file.name for file in answer.files[-2:]] == ["roles.html", "release.yaml"]
    data = data_of(answer.page)
    context, roles = program("roles.js", data), [column["start"] for column in data["columns"]]
    written = (tmp_path / "release.yaml").read_text("utf-8")
    assert asked(context, "text", roles) == written
    assert int(str(asked(context, "nodes", roles))) == answer.nodes
    propose_spec(url, "people", tmp_path / "other", sensitive=sensitive, entity=entity)
    assert (tmp_path / "other" / "release.yaml").read_text("utf-8") == written


@pytest.mark.parametrize("seed", range(4))
def test_roles_that_are_drawn_are_a_spec_that_is_searched(
    warehouse: Any, qblock: Any, tmp_path: Path, monkeypatch: Any, seed: int
) -> None:
    draw = random.Random(seed)
    url = warehouse("people", PEOPLE if seed < 2 else hostile(draw))
    monkeypatch.setenv("WAREHOUSE_URL", url)
    monkeypatch.setenv("HOME", "elsewhere")
    data = data_of(proposed(url, tmp_path).page)
    context, reached = program("roles.js", data), Counter[int]()
    assert asked(context, "text", [column["start"] for column in data["columns"]]) == (
        tmp_path / "release.yaml"
    ).read_text("utf-8")
    for _ in range(4):
        roles = [draw.choice([role for role in ROLES if role in column["entries"]]) for column in data["columns"]]
        if json.loads(asked(context, "((data, roles) => JSON.stringify(verdict(data, roles)))", roles))[0] != "verdict":
            continue
        (tmp_path / "release.yaml").write_text(asked(context, "text", roles), "utf-8")
        spec = read_spec((tmp_path / "release.yaml").read_text("utf-8"), tmp_path / "release.yaml")
        for role, names in (("quasi_identifier", spec.quasi_identifiers), ("sensitive", spec.sensitives)):
            assert names == tuple(
                column["name"] for column, own in zip(data["columns"], roles, strict=True) if own == role
            )
        ran = qblock("search", tmp_path / "release.yaml", "--json")
        assert ran.status in (0, 3), ran.err
        reached[ran.status] += 1
    assert reached[0]


def test_a_role_that_a_column_cannot_have_says_why(warehouse: Any, tmp_path: Path) -> None:
    texts = {"many": [f"place {i % 5}{i:04}" for i in range(1200)], "visit": [i // 2 for i in range(1200)]}
    people = {name: (values * 6)[:1200] for name, values in PEOPLE.items()}
    data = data_of(proposed(warehouse("people", {**people, **texts}), tmp_path, entity="visit").page)
    barred = {column["name"]: column["barred"] for column in data["columns"]}
    assert set(barred["visit"]) == {"quasi_identifier", "sensitive", "left out"}
    assert barred["star"]["quasi_identifier"].startswith("holds NULL and `*`")
    assert barred["ratio"]["quasi_identifier"].startswith("some values are infinite")
    assert barred["many"]["quasi_identifier"] == "1,200 distinct values and no evident hierarchy"
    assert barred["age"] == {}


def test_a_hierarchy_file_that_is_not_written_is_not_named(
    warehouse: Any, qblock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = warehouse("people", PEOPLE)
    monkeypatch.setenv("WAREHOUSE_URL", url)
    data = data_of(proposed(url, tmp_path, sensitive=["city", "town", "diagnosis"]).page)
    assert not (tmp_path / "hierarchies" / "city.csv").exists()
    quasi = ("city", "age")
    roles = ["quasi_identifier" if column["name"] in quasi else "left out" for column in data["columns"]]
    roles[0] = "identifying"
    (tmp_path / "release.yaml").write_text(asked(program("roles.js", data), "text", roles), "utf-8")
    ran = qblock("search", tmp_path / "release.yaml", "--json")
    assert ran.status == 0, ran.err
    assert sorted(ran.json["quasi_identifiers"]) == sorted(quasi)


@pytest.mark.parametrize("lattice", [True, False])
def test_what_is_wrong_with_the_roles_is_said(lattice: bool) -> None:
    levels = {"quasi_identifier": 10**4, "sensitive": None, "open": None}
    columns = [
        {"name": name, "entries": {role: {"levels": of, "open": role == "open"} for role, of in levels.items()}}
        for name in "abc"
    ]
    context = program("roles.js", {"columns": columns, "lattice": lattice, "most": 10**7})

    def verdict(*roles: str) -> Any:
        return json.loads(asked(context, "((data, roles) => JSON.stringify(verdict(data, roles)))", list(roles)))

    quasi, sensitive = "quasi_identifier", "sensitive"
    ready = "The spec is ready: 1 quasi-identifier, 2 sensitive columns."
    assert verdict(quasi, sensitive, sensitive) == ["verdict", ready, []]
    assert verdict(sensitive, sensitive, sensitive)[0] == "failed"
    assert verdict(quasi, quasi, sensitive)[0] == ("failed" if lattice else "verdict")
    assert verdict(quasi, "open", "open")[::2] == ["warned", [1, 2]]


def test_what_readers_may_see_is_said_of_each_role(warehouse: Any, tmp_path: Path) -> None:
    data = data_of(proposed(warehouse("people", PEOPLE), tmp_path).page)
    readers = {column["name"]: column["entries"] for column in data["columns"]}
    quasi = {name: entries["quasi_identifier"]["readers"] for name, entries in readers.items() if name in QUASI}
    assert quasi == QUASI
    assert readers["note"]["identifying"]["readers"] == "Readers never see it."


def test_sets_that_single_people_out_are_those_of_the_rows(warehouse: Any, tmp_path: Path) -> None:
    data = data_of(proposed(warehouse("people", PEOPLE), tmp_path).page)
    context, names = program("roles.js", data), [column["name"] for column in data["columns"]]

    def share(columns: list[str]) -> str:
        rows = Counter(zip(*(PEOPLE[name] for name in columns), strict=True))
        return percent(sum(1 for count in rows.values() if count == 1) / 200)

    def told(columns: list[str]) -> Any:
        roles = ["quasi_identifier" if name in columns else "left out" for name in names]
        return json.loads(asked(context, "((data, roles) => JSON.stringify(unique(data, roles)))", roles))

    for columns in (["age"], ["age", "gender"], ["age", "zip", "gender"]):
        assert told(columns) == {
            "columns": [names.index(name) for name in columns],
            "share": share(columns),
            "all": True,
        }
    more = ["gender", "city", "age", "children"]
    counted = told(more)
    assert {names[i] for i in counted["columns"]} < set(more)
    assert counted["all"] is False
    assert counted["share"] == max((share(list(of)) for of in combinations(more, 3)), key=lambda text: float(text[:-2]))
    # Nothing is said of what nobody counted.
    assert told(["flag"]) is None
    for column in data["columns"]:
        if column["name"] not in ("ratio", "empty"):
            assert column["alone"] == share([column["name"]]), column["name"]


def test_no_value_of_the_table_is_in_the_page(warehouse: Any, tmp_path: Path) -> None:
    """No more than the spec tells: where ranges end."""
    secrets = {
        "city": [SECRETS[i * i % 11 % 5] for i in range(200)],
        "diagnosis": [f"{SECRETS[i % 5]}{i * i % 7}" for i in range(200)],
        "note": [f"{SECRETS[i % 5]} {i}" for i in range(200)],
        "insured": [None if i % 9 else SECRETS[0] for i in range(200)],
        "income": [77_001 + 1_000 * (i * i % 150) for i in range(200)],
        "salary": [(77_001 + 1_000 * (i % 150)) / 8 for i in range(200)],
    }
    answer = proposed(warehouse("people", {**PEOPLE, **secrets}), tmp_path, sensitive=["diagnosis"])
    page, spec = answer.page.read_text("utf-8"), (tmp_path / "release.yaml").read_text("utf-8")
    assert "secret" not in page.replace("secrets", "")
    for name, values in {**PEOPLE, **secrets}.items():
        for value in {str(value) for value in values if value is not None and len(str(value)) > 3}:
            assert value not in page or value in spec, (name, value)
    assert "Internal: keep this page from readers" in page
    assert "Internal: not for readers of the release" in page.split("@page")[-1]


def test_names_end_no_element_and_no_line(warehouse: Any, tmp_path: Path) -> None:
    columns = {"patient_id": PEOPLE["patient_id"], **dict.fromkeys(HOSTILE, PEOPLE["age"])}
    columns["x" * 60] = PEOPLE["zip"]
    answer = proposed(warehouse("people", columns), tmp_path)
    page = answer.page.read_text("utf-8")
    assert page.count("<script") == 2
    assert "\u202e" not in page
    assert [column["name"] for column in data_of(answer.page)["columns"]] == list(columns)
    assert "a multiple of &#39;quoted&#39;" in page
    assert set(yaml.safe_load((tmp_path / "release.yaml").read_text("utf-8"))["attributes"]) <= set(columns)


def test_the_page_is_private_and_takes_the_place_of_none(warehouse: Any, qblock: Any, tmp_path: Path) -> None:
    url, page, spec = warehouse("people", FEW), tmp_path / "roles.html", tmp_path / "release.yaml"
    init = ("init", url, "people", "--directory", tmp_path, "--open")
    page.write_text("mine", "utf-8")
    page.chmod(0o644)
    ran = qblock(*init)
    assert ran.status == 2
    assert "roles.html already exists; give another folder with --directory, or --force to replace it" in ran.err
    assert (page.read_text("utf-8"), spec.exists(), (tmp_path / "hierarchies").exists()) == ("mine", False, False)
    ran = qblock(*init, "--force")
    assert ran.status == 0, ran.err
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    page.unlink()
    page.mkdir()
    spec.write_text("mine", "utf-8")
    ran = qblock(*init, "--force")
    assert (ran.status, spec.read_text("utf-8")) == (2, "mine")
    assert "is a folder" in ran.err


def test_a_table_that_is_not_there_leaves_no_page(warehouse: Any, qblock: Any, tmp_path: Path) -> None:
    url = warehouse("people", FEW)
    assert qblock("init", url, "nobody", "--directory", tmp_path / "made", "--open").status == 2
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(("desktop", "opens"), [(True, True), (True, False), (False, True)])
def test_a_browser_shows_the_page_where_there_is_one(
    warehouse: Any, qblock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, desktop: bool, opens: bool
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: shown.append(address) or opens)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0" if desktop else "")
    url = warehouse("people", FEW)
    ran = qblock("init", url, "people", "--directory", tmp_path, "--open")
    assert ran.status == 0, ran.err
    assert shown == ([(tmp_path / "roles.html").as_uri()] if desktop else [])
    said = " ".join(ran.out.split())
    assert ("roles.html is open in your browser" in said) == (desktop and opens)
    assert ("roles.html in a browser, to choose the roles" in said) != (desktop and opens)
    ran = qblock("init", url, "people", "--directory", tmp_path, "--open", "--force", "--json")
    assert str(tmp_path / "roles.html") in ran.json["files"]
    assert len(shown) == desktop
