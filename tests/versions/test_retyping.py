"""What moves in the crosswalk is written in Python as the database writes it."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest
import sqlalchemy as sa

from qblock.versions.crosswalk import Crosswalk
from qblock.versions.texts import decoded, encoded, encoded_texts, join_texts, joined_text, split_text

pytestmark = pytest.mark.either_engine

HOSTILE = ["", None, "N", "V3:abc", "a:b", "é\U0001f600", f"{chr(30)}1{chr(31)}{chr(30)}", chr(31), f"{chr(30)}N"]


@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_texts_are_put_together_alike(open_a_book: type[AbstractContextManager[Crosswalk]], at: int) -> None:
    texts = [*HOSTILE[at:], *HOSTILE[:at]]
    literals = [sa.cast(sa.literal(text), sa.Text) for text in texts]
    with open_a_book() as crosswalk:
        value, place = (crosswalk.own.scalar(sa.select(one)) for one in (encoded(literals), join_texts(literals)))
    assert (encoded_texts(texts), joined_text(texts)) == (value, place)
    assert (list(decoded(value)), split_text(place)) == (texts, texts)
