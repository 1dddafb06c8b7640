"""The crosswalk's tables as statements see them; migrations create them."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from qblock.warehouse.engines import ENGINES


class Tables:
    """In schema `qblock` on PostgreSQL, in a file of their own on DuckDB.

    key: the secrets of the digests of entities; each later one is applied to the digests of the one before. version:
    every version that was recorded. row: who was where in which version with which value (the crosswalk proper). block:
    the labels of a version's blocks, for explanations. episode and signature: what was rolled from the rows for the
    checks of a release; rolled: how far. frozen: the quasi-identifiers of an entity's first publication. apart:
    entities that are set apart, why, and in which state. turnover: who waited and who was gone when a run last looked.
    rekeyed: changes of the key that a release's ledger may not record yet. shown: what the newest version of a steady
    job shows of each person; waiting: who waits, since which run, and how values changed that are shown as they were;
    steady: what else it remembers.
    """

    def __init__(self, schema: str | None) -> None:
        metadata = sa.MetaData(schema=schema)

        def table(name: str, **columns: type[sa.types.TypeEngine]) -> sa.Table:
            return sa.Table(name, metadata, *(sa.Column(column, type_) for column, type_ in columns.items()))

        text, number = sa.Text, sa.BigInteger
        self.key = table("crosswalk_key", id=number, secret=text)
        self.version = table(
            "crosswalk_version",
            release=text,
            version=number,
            position=number,
            rows=number,
            least=number,
            source=text,
            quasi_identifiers=text,
            node=text,
            hierarchies=text,
            sensitive=text,
            audience=text,
            content=text,
            types=text,
            stamp=text,
        )
        self.row = table(
            "crosswalk",
            release=text,
            version=number,
            entity=text,
            block=number,
            shown=text,
            block_rows=number,
            value=text,
        )
        self.block = table(
            "crosswalk_block", release=text, version=number, block=number, shown=text, rows=number, label=text
        )
        self.episode = table(
            "crosswalk_episode",
            release=text,
            entity=text,
            episode=number,
            begun=text,
            running=sa.Boolean,
            value=text,
            signature=text,
        )
        self.signature = table("crosswalk_signature", release=text, signature=text, shown=text)
        self.rolled = table("crosswalk_rolled", release=text, versions=text)
        self.frozen = table("crosswalk_frozen", release=text, version=number, entity=text, names=text, place=text)
        self.apart = table("crosswalk_apart", release=text, entity=text, why=text, state=text, version=number)
        self.turnover = table("crosswalk_turnover", release=text, entity=text, state=text)
        self.rekeyed = table("crosswalk_rekeyed", release=text, key=number, people=number)
        self.shown = table(
            "crosswalk_shown",
            release=text,
            entity=text,
            block=text,
            cell=text,
            place=text,
            value=text,
            earlier=text,
        )
        self.waiting = table("crosswalk_waiting", release=text, entity=text, since=number, seen=text, times=number)
        self.steady = table("crosswalk_steady", release=text, state=text)
        self.of_entities = [relation for relation in metadata.tables.values() if "entity" in relation.c]
        """All tables that hold digests of entities."""


@cache
def _tables(schema: str | None) -> Tables:
    return Tables(schema)


def tables(engine: str) -> Tables:
    """The crosswalk's tables on an engine."""
    return _tables(ENGINES[engine].facts.private_schema)
