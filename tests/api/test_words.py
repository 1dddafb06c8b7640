"""What names of columns suggest, in several languages, whatever their case, accents and signs."""

from __future__ import annotations

import pytest

from qblock.column_names import folded
from qblock.profiling.words import numbers_rows, private_topic, suggests


def kinds(name: str) -> list[str]:
    """What a name suggests; a private matter is sensitive."""
    public = [kind for kind in ("identifying", "quasi") if suggests(name, kind)]  # type: ignore[arg-type]
    return [*public, *(["sensitive"] if private_topic(name) else [])]


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
        ("amount", "sensitive"),
        ("grade", "sensitive"),
        ("Pr\u00e9nom", "identifying"),
        ("apellidos", "identifying"),
        ("Stra\u00dfe", "identifying"),
        ("PatientNr", "identifying"),
        ("kunden_nummer", "identifying"),
        ("PESEL", "identifying"),
        ("via2", "identifying"),
    ],
)
def test_a_name_suggests_what_it_says(name: str, about: str) -> None:
    assert kinds(name) == [about]


@pytest.mark.parametrize("name", ["capital", "ward", "viable", "renomme", "1", "", "\u674e"])
def test_a_name_that_suggests_nothing(name: str) -> None:
    assert kinds(name) == []


def test_names_are_folded() -> None:
    assert folded("Geb.datum (Tag)") == "_geb_datum_tag_"
    assert numbers_rows("visitId")
    assert not numbers_rows("idle")
