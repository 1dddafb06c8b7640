"""`qblock init` and codes of known kinds: by nine values in ten, whatever the column is called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from qblock.profiling.words import CODES

ICD = ["E11.9", "I10", "J45.0", "S72.01", "C50.9", "Z38"]
LOINC = ["2345-7", "718-7", "4548-4", "2160-0"]
COUNTRIES = ["DE", "FR", "PL", "NL"]
IPV4 = ["10.0.0.1", "192.168.17.4", "8.8.8.8"]
IPV6 = ["2001:db8::1", "fe80::a00:27ff:fe4e:66a1", "2001:0db8:0000:0000:0000:ff00:0042:8329"]
IBAN = ["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19", "NO9386011117947"]
ROWS = 60


def column(values: list[str], *others: str | None) -> list[str | None]:
    """The values again and again, and the others once."""
    return [*(values[i % len(values)] for i in range(ROWS - len(others))), *others]


@pytest.fixture
def roles(qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(**columns: list[str | None]) -> dict[str, tuple[str, str]]:
        url = warehouse("people", {**columns, "age": [20 + i % 9 for i in range(ROWS)]})
        monkeypatch.setenv("WAREHOUSE_URL", url)
        ran = qblock("init", url, "people", "--directory", tmp_path / "made", "--json")
        assert ran.status == 0, ran.err
        found = {one["name"]: (one["role"], one["reason"]) for one in ran.json["columns"]}
        assert set(ran.json["open"]) == {name for name, (role, _) in found.items() if role == "sensitive"}
        return found

    return run


def test_codes_are_known_by_their_form(roles: Any) -> None:
    found = roles(
        c1=column(ICD, "unknown", None),
        c2=column(LOINC),
        c3=column(COUNTRIES, "?"),
        c4=column([*IPV4, *IPV6]),
        c5=column(IBAN),
        c6=column(["AUT", "CHE", "ITA"]),
    )
    assert found["c1"][0] == found["c2"][0] == "sensitive"
    assert "diagnoses (ICD-10)" in found["c1"][1]
    assert "laboratory tests (LOINC)" in found["c2"][1]
    for name in ("c3", "c6"):
        assert found[name][0] == "quasi_identifier"
        assert "country codes (ISO 3166)" in found[name][1]
    assert found["c4"] == ("identifying", "the values look like IP addresses, which lead to a person; never published")
    assert found["c5"][0] == "identifying"
    assert "bank accounts (IBAN)" in found["c5"][1]


def test_what_is_no_code_is_not_taken_for_one(roles: Any) -> None:
    found = roles(
        c1=column(ICD, *["none"] * 7),
        c2=column(["12:30:45", "08:00:00", "23:59:59"]),
        c3=column(["yes", "no", "NO"]),
        postcode_area=column(["B12", "E10", "W11", "N22"]),
        c5=column(["1-2", "3-4", "5-6"]),
        borrower_no=column([f"B{i:06}" for i in range(20)]),
        numbered=column([f"B{i:04}" for i in range(50)]),
        illness=column(["cold", "flu"]),
    )
    assert found.pop("illness")[1] == "the name suggests health"
    assert {name: role for name, (role, _) in found.items()} == {
        **dict.fromkeys(found, "quasi_identifier"),
        "borrower_no": "identifying",
        "numbered": "left out",
    }
    assert not any("look like" in reason or "ISO 3166" in reason for _, reason in found.values())


@pytest.mark.parametrize("code", [code for code in CODES if code.pattern], ids=lambda code: code.name)
def test_patterns_are_sent_as_they_are(code: Any) -> None:
    assert not re.search(r"['\\\\%]|:[A-Za-z_]", code.pattern)
