"""What names of columns suggest, in several languages, whatever their case, accents and signs."""

from __future__ import annotations

import pytest

from qblock.profiling.words import folded, numbers_rows, suggests


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("Geb.datum", "quasi"),
        ("GEBURTSDATUM", "quasi"),
        ("codePostal", "quasi"),
        ("d\u00e9partement", "quasi"),
        ("Cap", "quasi"),
        ("p\u0142e\u0107", "quasi"),
        ("leeftijd", "quasi"),
        ("wojew\u00f3dztwo", "quasi"),
        ("fecha de nacimiento", "quasi"),
        ("Diagnose", "sensitive"),
        ("salaire_net", "sensitive"),
        ("Wynagrodzenie", "sensitive"),
        ("Einkommen", "sensitive"),
        ("terapia", "sensitive"),
        ("Pr\u00e9nom", "identifying"),
        ("apellidos", "identifying"),
        ("Stra\u00dfe", "identifying"),
        ("PatientNr", "identifying"),
        ("kunden_nummer", "identifying"),
        ("PESEL", "identifying"),
    ],
)
def test_a_name_suggests_what_it_says(name: str, about: str) -> None:
    assert [kind for kind in ("identifying", "quasi", "sensitive") if suggests(name, kind)] == [about]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["amount", "capital", "ward", "via2", "renomme", "grade", "1", "", "\u674e"])
def test_a_name_that_suggests_nothing(name: str) -> None:
    assert not any(suggests(name, kind) for kind in ("identifying", "quasi", "sensitive"))


def test_names_are_folded() -> None:
    assert folded("Geb.datum (Tag)") == "_geb_datum_tag_"
    assert numbers_rows("visitId")
    assert not numbers_rows("idle")
