"""`qblock init` and tables that keep what was: known by their key, which has one current row, and by nothing less."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from qblock.api import propose_spec
from qblock.cli.app import run
from qblock.results.tables import Proposed
from qblock.search.run import open_task
from qblock.spec import load_spec

pytestmark = pytest.mark.either_engine
Rows = list[dict[str, Any]]
PEOPLE = 60
FAR = date(9999, 12, 31)


def history() -> Rows:
    """The states of people one after the other, each with its days: a third has one, a third two, a third three."""
    rows = []
    for person in range(PEOPLE):
        states = person % 3 + 1
        for state in range(states):
            begin = date(2024, 1, 1) + timedelta(days=100 * state + person)
            end = None if state + 1 == states else begin + timedelta(days=100)
            rows.append(
                {
                    "customer_id": 1000 + person,
                    "zip_code": f"{10_115 + (person + state) % 7}",
                    "gender": "fm"[person % 2],
                    "diagnosis": ["flu", "cold", "asthma", "angina"][(person * 7 + state) % 4],
                    "from": begin,
                    "until": end,
                }
            )
    return rows


def columns_of(rows: Rows, names: dict[str, str], **made: Any) -> dict[str, list[Any]]:
    """The columns of rows, `from` and `until` under other names, or without them; made: others, each by a function."""
    plain = [name for name in rows[0] if name not in ("from", "until")]
    columns = {name: [row[name] for row in rows] for name in plain}
    columns |= {new: [row[old] for row in rows] for old, new in names.items()}
    return columns | {name: [make(row) for row in rows] for name, make in made.items()}


def at(value: date | None) -> datetime | None:
    return None if value is None else datetime(value.year, value.month, value.day)


def is_current(row: dict[str, Any]) -> bool:
    return row["until"] is None


DELETED = 1000 + PEOPLE - 1
FORMS: dict[str, tuple[dict[str, list[Any]], str, int]] = {
    "dbt": (
        columns_of(
            history(),
            {},
            dbt_scd_id=lambda row: f"{row['customer_id']}-{row['from']}",
            dbt_updated_at=lambda row: at(row["from"]),
            dbt_valid_from=lambda row: at(row["from"]),
            dbt_valid_to=lambda row: at(row["until"]),
            dbt_is_deleted=lambda row: str(row["customer_id"] == DELETED and row["until"] is None),
        ),
        "dbt_valid_to IS NULL AND dbt_is_deleted = 'False'",
        PEOPLE - 1,
    ),
    "a far end": (
        columns_of(history(), {"from": "valid_from"}, valid_to=lambda row: row["until"] or FAR),
        "valid_to = '9999-12-31'",
        PEOPLE,
    ),
    "capitals": (columns_of(history(), {"from": "ValidFrom", "until": "ValidTo"}), "ValidTo IS NULL", PEOPLE),
    "a space": (columns_of(history(), {"from": "Valid from", "until": "Valid to"}), '"Valid to" IS NULL', PEOPLE),
    "NULL or far": (
        columns_of(
            history(),
            {"from": "valid_from"},
            valid_until=lambda row: row["until"] or (FAR if row["customer_id"] % 2 else None),
        ),
        "(valid_until IS NULL OR valid_until = '9999-12-31')",
        PEOPLE,
    ),
    "effective": (
        columns_of(history(), {"from": "effective_from", "until": "effective_to"}),
        "effective_to IS NULL",
        PEOPLE,
    ),
    "start and end": (columns_of(history(), {"from": "start_date", "until": "end_date"}), "end_date IS NULL", PEOPLE),
    "a boolean": (columns_of(history(), {"from": "valid_from"}, is_current=is_current), "is_current", PEOPLE),
    "Y and N": (
        columns_of(history(), {"from": "start_date"}, current_flag=lambda row: "NY"[is_current(row)]),
        "current_flag = 'Y'",
        PEOPLE,
    ),
    "1 and 0": (columns_of(history(), {}, is_current=lambda row: int(is_current(row))), "is_current = 1", PEOPLE),
    "text": (
        columns_of(history(), {}, is_current=lambda row: "true" if is_current(row) else "false"),
        "is_current = 'true'",
        PEOPLE,
    ),
    "deleted, maybe": (
        columns_of(
            history(),
            {"from": "valid_from", "until": "valid_to"},
            is_deleted=lambda row: None if row["customer_id"] % 2 else row["customer_id"] == DELETED - 1,
        ),
        "valid_to IS NULL AND (is_deleted IS NULL OR NOT is_deleted)",
        PEOPLE - 1,
    ),
}


def proposed(url: str, folder: Path, table: str | None = "people", **more: Any) -> Proposed:
    return propose_spec(url, table, folder, sensitive=["diagnosis"], **more)


@pytest.mark.parametrize("form", FORMS)
def test_the_current_rows_are_proposed(warehouse: Any, tmp_path: Path, form: str) -> None:
    columns, where, kept = FORMS[form]
    url = warehouse("people", columns)
    made = proposed(url, tmp_path / "spec")
    assert made.history is not None
    assert (made.history.key, made.history.where, made.history.kept) == ("customer_id", where, kept)
    assert (made.history.rows, made.rows) == (len(columns["customer_id"]), kept)
    assert (made.entity.column, made.entity.count) == ("customer_id", "rows")
    spec = load_spec(made.files[-1], {"WAREHOUSE_URL": url})
    assert spec.source.where == where
    assert set(spec.attributes) == {"customer_id", "zip_code", "gender", "diagnosis"}
    with open_task(spec) as task:
        assert task.source.rows == kept


def stays() -> Rows:
    """Several stays of a person; whoever is still there has no end."""
    rows = []
    for person in range(PEOPLE):
        for stay in range(person % 3 + 1):
            begin = date(2024, 1, 1) + timedelta(days=90 * stay + person)
            last = stay == person % 3 and person % 2
            rows.append({"customer_id": 1000 + person, "from": begin, "until": None if last else begin + timedelta(6)})
    return rows


def first_of_each(rows: Rows) -> Rows:
    return [row for row in rows if is_current(row)]


ORDINARY: dict[str, dict[str, list[Any]]] = {
    "stays": columns_of(stays(), {"from": "admission_date", "until": "discharge_date"}),
    "stays that start and end": columns_of(stays(), {"from": "start_date", "until": "end_date"}),
    "contracts, one for each": columns_of(
        [row for row in stays() if row["from"] < date(2024, 3, 1)], {"from": "valid_from", "until": "valid_to"}
    ),
    "two rows are current": columns_of([*history(), history()[-1]], {"from": "valid_from", "until": "valid_to"}),
    "every row is current": columns_of(first_of_each(history()), {"from": "valid_from"}, is_current=is_current),
    "nothing is open": columns_of(
        history(), {"from": "valid_from"}, valid_to=lambda row: row["until"] or date(2026, 1, 1)
    ),
    "an end without a begin": columns_of(stays(), {"until": "valid_to"}),
    "a flag of something else": columns_of(history(), {}, is_current_smoker=is_current),
    "a flag that is none": columns_of(history(), {}, is_current=lambda row: "ABC"[row["customer_id"] % 3]),
}


@pytest.mark.parametrize("what", ORDINARY)
def test_of_a_table_that_is_none_nothing_is_said(
    warehouse: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    columns = {**ORDINARY[what]}
    columns.setdefault("zip_code", [f"{10_115 + i % 7}" for i in range(len(columns["customer_id"]))])
    columns.setdefault("diagnosis", ["flu", "cold"] * (len(columns["customer_id"]) // 2 + 1))
    columns["diagnosis"] = columns["diagnosis"][: len(columns["customer_id"])]
    url = warehouse("people", columns)
    made = proposed(url, tmp_path / "spec", entity="customer_id")
    assert made.history is None
    assert made.rows == len(columns["customer_id"])
    assert "where" not in made.files[-1].read_text()


def test_it_is_said_on_the_screen_and_in_the_spec(
    warehouse: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = warehouse("people", FORMS["dbt"][0])
    assert run(["init", url, "people", "--directory", str(tmp_path), "--sensitive", "diagnosis"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "59 rows, 9 columns." in said
    assert (
        "The table is a snapshot of dbt: customer_id repeats, and an open end in dbt_valid_to and dbt_is_deleted marks "
        "the current row of each customer_id. The spec takes these alone: 59 of 120 rows (`source.where`)."
    ) in said
    assert "dbt_scd_id (says which row of a history is current)" in said
    text = (tmp_path / "release.yaml").read_text()
    assert "\n  # The spec takes these alone: 59 of 120 rows (`source.where`).\n  where: " in text


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_that_are_a_history(tmp_path: Path, ending: str) -> None:
    table = pa.table(FORMS["deleted, maybe"][0])
    file = tmp_path / f"people.{ending}"
    pc.write_csv(table, file) if ending == "csv" else pq.write_table(table, file)
    made = proposed(str(file), tmp_path, None)
    spec = load_spec(made.files[-1])
    assert spec.source.where == "valid_to IS NULL AND (is_deleted IS NULL OR NOT is_deleted)"
    with open_task(spec) as task:
        assert task.source.rows == PEOPLE - 1


def test_a_snapshot_in_which_nothing_has_changed_yet(warehouse: Any, tmp_path: Path) -> None:
    columns, _, _ = FORMS["dbt"]
    kept = [i for i, until in enumerate(columns["dbt_valid_to"]) if until is None]
    first = {name: [values[i] for i in kept] for name, values in columns.items()}
    made = proposed(warehouse("people", first, {"dbt_valid_to": "TIMESTAMP"}), tmp_path / "spec")
    assert made.history is not None
    assert made.history.why.startswith("The table is a snapshot of dbt: an open end in dbt_valid_to and dbt_is_deleted")
    assert (made.history.rows, made.history.kept) == (PEOPLE, PEOPLE - 1)


def test_the_person_that_somebody_names_is_the_key(warehouse: Any, tmp_path: Path) -> None:
    columns = {**FORMS["dbt"][0], "zone": [i % 5 for i in range(len(FORMS["dbt"][0]["customer_id"]))]}
    url = warehouse("people", columns)
    assert proposed(url, tmp_path / "a", entity="zone").history is None
    made = proposed(url, tmp_path / "b", entity="customer_id")
    assert made.history is not None
    assert made.entity.count == "rows"
